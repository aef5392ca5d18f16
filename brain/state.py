"""The fold of a lane's journal: all that a conversation is. Pure: no I/O, no clock, no model.

It keeps what a turn needs (recent exchanges whole, what is in flight, what is not yet delivered) and what dedupe needs
for ever. Mutable behind `apply`: copying on each entry would make a long conversation quadratic.
"""

from datetime import datetime

import msgspec

from brain.emission import action_key, emissions
from brain.entries import Act, Decided, Decision, LaneEntry, Spent, Steer, Taken, Wait
from gateway.actions import IN_FLIGHT, LEADS_TO, Phase
from gateway.addresses import Route
from gateway.events import (
    ActionAnswered,
    ActionChanged,
    ActionEnded,
    ActionFact,
    ActionProgressed,
    ActionResponded,
    ClarificationClosed,
    ClarificationRequested,
    CommandRefused,
    ControlPressed,
    Fact,
    MessageReceived,
    Outcome,
    Person,
    Ref,
    Send,
    SendClosed,
    TimerFired,
    identity_of,
)
from gateway.journal import Emitted, Outgoing, Owned, Released, forget_emitted
from gateway.llm.model import Message
from gateway.seen import Seen

EXCHANGES_KEPT, EXCHANGES_CUT_TO = 120, 80  # cut in strides, so that the prompt's prefix stays the same in between
COMPLETED_KEPT = 20
CLOSED_SENDS_KEPT = 50


class Heard(msgspec.Struct):
    """A fact in the prompt's order. `label` is its short reference: m12 for a message, a3 for an action's fact."""

    label: str
    fact: Fact
    at: datetime
    control: bool = False


class Exchange(msgspec.Struct):
    """A committed turn: what it heard, and what was decided."""

    heard: list[Heard]
    decided: Decided
    rendered: list[Message] | None = None  # kept by the prompt, which renders each once


class ActionView(msgspec.Struct):
    """What the conversation knows of an action. `label` (a3) is what people's words and tool names refer to."""

    key: str
    label: str
    name: str
    about: str
    by: Person
    route: Route
    phase: Phase = "running"
    since: datetime | None = None
    doing: str = ""
    last: str = ""
    questions: dict[str, ClarificationRequested] = {}
    by_control: bool = False  # the last steering was a button or a slash command: code tells its outcome

    @property
    def in_flight(self) -> bool:
        return self.phase in IN_FLIGHT


class Timer(msgspec.Struct, frozen=True):
    turn: int
    until: datetime
    reason: str


class SendView(msgspec.Struct):
    route: Route
    text: str
    outcome: Outcome | None = None


class LaneState:
    def __init__(self, conversation: str) -> None:
        self.conversation = conversation
        self.undecided: list[Heard] = []
        self.overheard: list[Heard] = []  # kept without a turn; shown with the next one
        self.exchanges: list[Exchange] = []
        self.actions: dict[str, ActionView] = {}
        self.sends: dict[Ref, SendView] = {}
        self.outgoing: list[Outgoing] = []
        self.routes: dict[str, Route] = {}  # medium -> where somebody last wrote on it; the newest last
        self.interrupts = 0  # events taken that cancel a generation
        self.turns = 0
        self.turns_alone = 0  # since somebody last wrote
        self.timer: Timer | None = None  # of the last turn, if it chose to wait until then
        self.crashes = 0  # unclean ownings since the oldest undecided event
        self.outage = False  # the person was told that the model cannot be reached
        self.actions_made = 0
        self.live = 0  # rises whenever what is in flight looks different
        self._identities: set[str] = set()
        self._seen = Seen()
        self._messages = 0

    # --- what may be asked -------------------------------------------------------------------------------------------

    def knows(self, fact: Fact) -> bool:
        if isinstance(fact, MessageReceived | ControlPressed):
            return fact.identity in self._identities
        return fact.ref in self._seen

    @property
    def is_private(self) -> bool:
        return self.conversation.startswith("p-")

    @property
    def route(self) -> Route | None:
        """Where the conversation last was."""
        return next(reversed(self.routes.values()), None)

    def in_flight(self) -> list[ActionView]:
        return [action for action in self.actions.values() if action.in_flight]

    def by_label(self, label: str) -> ActionView | None:
        return next((action for action in self.actions.values() if action.label == label), None)

    def route_of(self, heard: Heard) -> Route | None:
        """Where a reply to it belongs: its own place, or for an action's fact the place of the request."""
        match heard.fact:
            case MessageReceived(route=route) | ControlPressed(route=route):
                return route
            case TimerFired():
                return self.route
            case ClarificationRequested() if self.is_private:
                return self.route  # where the person is now
            case SendClosed(send=ref):
                return self.sends[ref].route if ref in self.sends else self.route
            case fact:
                action = self.actions.get(fact.action)
                return action.route if action else self.route

    # --- the fold ----------------------------------------------------------------------------------------------------

    def apply(self, entry: LaneEntry) -> None:
        match entry:
            case Taken():
                self._take(entry)
            case Decided():
                self._decide(entry)
            case Emitted(through=through):
                forget_emitted(self.outgoing, through)
            case Owned():
                self.crashes = self.crashes + 1 if self.undecided else 0
            case Released():
                self.crashes = max(0, self.crashes - 1)
            case Spent():
                pass
            case _:
                raise TypeError(f"a lane's journal holds no {type(entry).__name__}")

    def _take(self, taken: Taken) -> None:
        if not self.undecided:
            self.crashes = 0
        fact, control = taken.event, taken.attention == "control"
        heard = Heard(label=self._label(fact), fact=fact, at=taken.at, control=control)
        if taken.attention == "keep":
            if isinstance(fact, MessageReceived):
                self.overheard.append(heard)
            return
        self.undecided.append(heard)
        if not control and not isinstance(fact, ActionProgressed):
            self.interrupts += 1

    def _label(self, fact: Fact) -> str:
        """Notes the fact, and answers with its short reference."""
        match fact:
            case MessageReceived():
                self._identities.add(fact.identity)
                self._messages += 1
                self.routes.pop(fact.route.medium, None)
                self.routes[fact.route.medium] = fact.route
                self.turns_alone = 0
                return f"m{self._messages}"
            case ControlPressed():
                self._identities.add(fact.identity)
                self.turns_alone = 0
                return fact.action
            case SendClosed():
                self._seen.add(fact.ref)
                self._close_send(fact)
                return "send"
            case TimerFired():
                self._seen.add(fact.ref)
                self.timer = None
                return "timer"
            case _:
                self._seen.add(fact.ref)
                return self._note(fact)

    def _close_send(self, closed: SendClosed) -> None:
        if closed.send in self.sends:
            self.sends[closed.send].outcome = closed.outcome
        done = [ref for ref, send in self.sends.items() if send.outcome is not None]
        for ref in done[:-CLOSED_SENDS_KEPT]:
            del self.sends[ref]

    def _note(self, fact: ActionFact) -> str:
        """An action's fact in the live state; its label."""
        self.live += 1
        action = self.actions.get(fact.action)
        if action is None:
            return fact.action
        match fact:
            case ActionChanged(phase=phase, doing=doing):
                action.phase, action.doing = phase, doing
            case ActionProgressed(text=text):
                action.last = text
            case ActionResponded(text=text):
                action.phase, action.last, action.doing = "awaiting_input", text, ""
            case ClarificationRequested(question=question):
                action.questions[question] = fact
            case ClarificationClosed(question=question):
                action.questions.pop(question, None)
            case ActionEnded(end=end, text=text):
                action.phase, action.last, action.doing = end, text, ""
                action.questions.clear()
                self._forget_completed()
            case ActionAnswered() | CommandRefused():
                pass
        return action.label

    def _forget_completed(self) -> None:
        ended = [key for key, action in self.actions.items() if not action.in_flight]
        for key in ended[:-COMPLETED_KEPT]:
            del self.actions[key]

    def _decide(self, decided: Decided) -> None:
        covers = set(decided.covers)
        heard = self.overheard + [item for item in self.undecided if identity_of(item.fact) in covers]
        self.undecided = [item for item in self.undecided if identity_of(item.fact) not in covers]
        self.overheard = []
        self.turns, self.turns_alone, self.crashes = decided.turn, self.turns_alone + 1, 0
        self.outage = decided.by == "outage"
        waits = [one for one in decided.decisions if isinstance(one, Wait) and one.until is not None]
        self.timer = Timer(decided.turn, waits[-1].until, waits[-1].reason) if waits and waits[-1].until else None
        if decided.by == "control":
            self.interrupts += 1  # a generation that runs meanwhile must see what was steered
        outgoing = emissions(self.conversation, decided, self.actions_made)
        for decision in decided.decisions:
            self._follow(decision, decided)
        for item in outgoing:
            if isinstance(item.body, Send):
                self.sends[item.ref] = SendView(route=item.body.route, text=item.body.text)
        self.outgoing += outgoing
        self.exchanges.append(Exchange(heard=heard, decided=decided))
        if len(self.exchanges) > EXCHANGES_KEPT:
            del self.exchanges[: len(self.exchanges) - EXCHANGES_CUT_TO]

    def _follow(self, decision: Decision, decided: Decided) -> None:
        self.live += 1
        match decision:
            case Act(name=name, query=query, by=by, route=route):
                self.actions_made += 1
                key = action_key(self.conversation, self.actions_made)
                label = f"a{self.actions_made}"
                self.actions[key] = ActionView(
                    key=key, label=label, name=name, about=query, by=by, route=route, since=decided.at
                )
            case Steer(verb=verb, action=key, question=question) if key in self.actions:
                action = self.actions[key]
                action.by_control = decided.by == "control"
                if verb != "stop":  # an end is told by the action itself
                    action.phase = LEADS_TO.get((action.phase, verb), action.phase)
                if verb == "answer":
                    action.questions.pop(question, None)
            case _:
                pass


class Turn(msgspec.Struct, frozen=True):
    """What the turn is about, as the prompt showed it; the state may have gone on since."""

    heard: tuple[Heard, ...]
    state: LaneState

    def askers(self) -> list[Person]:
        """Whose words the turn follows: the authors of its messages, else who asked for the actions that spoke."""
        facts = [item.fact for item in self.heard]
        authors = [fact.author for fact in facts if isinstance(fact, MessageReceived | ControlPressed)]
        actions = [self.state.actions.get(getattr(fact, "action", "")) for fact in facts]
        return authors or [action.by for action in actions if action is not None]
