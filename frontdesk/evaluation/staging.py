"""From a scenario to the turn that a lane would decide on: the same facts, folded by the same state. Pure."""

import re
from datetime import UTC, datetime, timedelta

from brain import controls
from brain.attention import Manner, attention
from brain.contacts import Contact
from brain.entries import Act, Decided, Decision, Speak, Taken
from brain.prompt import Frame
from brain.rights import Rights
from brain.state import LaneState
from brain.tools import action_name
from brain.turn import Turn
from frontdesk.evaluation.scenario import Scenario, Work
from gateway.addresses import Address, Route
from gateway.events import (
    ActionChanged,
    ActionProgressed,
    ActionResponded,
    ClarificationRequested,
    Fact,
    MessageReceived,
    Person,
    Ref,
    identity_of,
)
from gateway.record import Record

ASSISTANT = "Frontdesk"
ITS_NAMES = frozenset({"assistant", "frontdesk", "bot", "you", "desk", "front desk"})  # as a history's author
THEN = datetime(2026, 6, 1, 9, 0, tzinfo=UTC)  # always the same, so that a prompt is
STARTED_AGO = timedelta(minutes=6)
_ASKS = re.compile(r"[?？؟]\s*(\([^()]*\)|\[[^\[\]]*\])?\s*[\"'”»]*$")


class Moment(Record, frozen=True, kw_only=True):
    """`turn` is None where the rules before any model already decided: `by_rule`. `ids` are the scenario's, by
    action."""

    turn: Turn | None
    by_rule: tuple[Decision, ...]
    frame: Frame
    ids: dict[str, str]
    rights: Rights
    now: datetime


def staged(scenario: Scenario, *, by_schema: bool = False) -> Moment:
    stage = _Stage(scenario)
    stage.works()
    stage.history()
    turn, rights = stage.turn(), stage.rights()
    by_rule: tuple[Decision, ...] = ()
    if turn is not None and turn.heard[0].control:
        by_rule = controls.decisions(turn.heard[0], turn, rights)
        turn = None
    frame = stage.frame(by_schema)
    return Moment(turn=turn, by_rule=by_rule, frame=frame, ids=stage.ids, rights=rights, now=THEN)


class _Stage:
    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.private = scenario.place == "private"
        self.state = LaneState("p-person" if self.private else "s-room")
        self.at = THEN - STARTED_AGO
        self.route = Route(medium="telegram" if self.private else "slack", account="desk", place="room")
        self.ids: dict[str, str] = {}
        self._facts = 0

    def frame(self, by_schema: bool) -> Frame:
        contact = Contact(key="person", name=self.scenario.author, role="owner")
        return Frame(ASSISTANT, contact, shared=not self.private, by_schema=by_schema)

    def turn(self) -> Turn | None:
        self.at = THEN
        self._hears(self._message(self.scenario.author, self.scenario.message, self.scenario.addressed))
        heard = tuple(self.state.undecided)
        return Turn(heard=heard, state=self.state) if heard else None

    def rights(self) -> Rights:
        """Whoever speaks asked for what is in flight: what roles forbid is code's, and no model's judgement."""
        return Rights(self.scenario.place, lambda _: "owner", lambda *_: True)

    # --- what is in flight -------------------------------------------------------------------------------------------

    def works(self) -> None:
        """As after a long conversation: the requests have left the prompt, the actions are in its live state."""
        works = self.scenario.in_flight
        by = self._person(self.scenario.author)
        self._decides(*(self._started(work, by) for work in works))
        self.ids = {key: work.id for key, work in zip(self.state.actions, works, strict=True)}
        for key, work in zip(list(self.state.actions), works, strict=True):
            for fact in self._told(key, work):
                self._hears(fact)
        self._decides()
        self.state.exchanges.clear()

    def _started(self, work: Work, by: Person) -> Act:
        name = work.name or work.id
        return Act(name=action_name(name), query=work.about or name, by=by, route=self.route)

    def _told(self, key: str, work: Work) -> list[Fact]:
        """What brought the action where it is."""
        conversation = self.state.conversation
        facts: list[Fact] = []
        if work.state == "paused":
            facts.append(ActionChanged(ref=self._ref(), conversation=conversation, action=key, phase="paused"))
        if self._waits_for_an_answer(work):
            asked = ClarificationRequested(
                ref=self._ref(), conversation=conversation, action=key, question="q1", text=work.last
            )
            return [*facts, asked]
        if work.state in ("awaiting_input", "hibernated"):
            last = work.last or "Done."
            facts.append(ActionResponded(ref=self._ref(), conversation=conversation, action=key, text=last))
            if work.state == "hibernated":
                facts.append(ActionChanged(ref=self._ref(), conversation=conversation, action=key, phase="hibernated"))
            return facts
        if work.last:
            facts.append(ActionProgressed(ref=self._ref(), conversation=conversation, action=key, text=work.last))
        return facts

    def _waits_for_an_answer(self, work: Work) -> bool:
        """The form has no field for an open question: one is open where the last thing told is a question, or where an
        answer can be right at all."""
        return bool(_ASKS.search(work.last)) or f"answer:{work.id}" in self.scenario.right

    def _ref(self) -> Ref:
        self._facts += 1
        return Ref("act", self._facts)

    # --- what was said -----------------------------------------------------------------------------------------------

    def history(self) -> None:
        for line in self.scenario.history:
            self.at += timedelta(seconds=1)
            if line.author.strip().lower() in ITS_NAMES:
                self._decides(Speak(route=self.route, text=line.text))
            else:
                self._hears(self._message(line.author, line.text, addressed=False, thread=False))
        self._decides()

    def _message(self, author: str, text: str, addressed: bool, thread: bool | None = None) -> MessageReceived:
        thread = self.scenario.thread if thread is None else thread
        self._facts += 1
        return MessageReceived(
            identity=f"said/{self._facts}",
            route=self.route,
            author=self._person(author),
            text=text,
            at=self.at,
            private=self.private,
            addressed=self.private or addressed or thread,
            by_name=self.private or addressed,
        )

    def _person(self, name: str) -> Person:
        return Person(address=Address(medium=self.route.medium, user=name), name=name)

    # --- the fold ----------------------------------------------------------------------------------------------------

    def _hears(self, fact: Fact) -> None:
        self.state.apply(Taken(event=fact, at=self.at, attention=attention(fact, self.state, Manner())))

    def _decides(self, *decisions: Decision) -> None:
        """Also of nothing, if something was heard that nobody answered."""
        heard = self.state.undecided
        if not (decisions or heard):
            return
        covers = tuple(identity_of(item.fact) for item in heard)
        self.state.apply(Decided(turn=self.state.turns + 1, at=self.at, covers=covers, decisions=decisions))
