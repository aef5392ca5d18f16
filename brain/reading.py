"""From what a model generated to decisions: every call checked against the table of legal tools, none trusted. Pure.

A call that cannot be taken is refused with a reason that the model can use. A call written into text or a code fence is
understood as the call.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from brain import files
from brain.addressing import react, requester, speak, speak_everywhere, whose_words
from brain.arguments import Refusal, checked, time_of
from brain.entries import Act, Decision, Remind, Speak, Steer, Unremind, Wait
from brain.meant import found_in_text, tool_named
from brain.past import beyond, context
from brain.reminding import FARTHEST, LEAST_ALONE, MAX_OPEN
from brain.rights import Rights
from brain.telling import without_events
from brain.tools import TEXT_OF, Legal, action_name
from brain.turn import Turn
from brain.working import ActionView
from gateway.addresses import Route
from gateway.events import Person
from gateway.llm.model import Generation, RawCall
from gateway.llm.written_calls import before_marks, has_marks
from gateway.record import Record, encode

DECIDED_BYTES = 240_000  # a turn's decisions are one entry
REMINDER_CHARACTERS = 2_000
NAME_SHOWN = 64
LONGEST_WAIT = timedelta(days=30)
BROKE_OFF = "it broke off at the length that an answer may have. Say it again, shorter and whole."
HALF_A_CALL = "part of it was to be a call, and cannot be read. Call the tool itself; nothing of it was shown."


class Read(Record, frozen=True, kw_only=True):
    """`results` has one text per call, in order, and one more where the words beside them cannot be sent; `refused`
    says that at least one was not taken. `queries` are the look-ups by the places of their calls: whoever does them
    puts what was found in there."""

    decisions: tuple[Decision, ...]
    calls: tuple[RawCall, ...] = ()
    results: tuple[str, ...] = ()
    refused: bool = False
    queries: tuple[tuple[int, str], ...] = ()


def read(
    generation: Generation,
    tools: tuple[Legal, ...],
    turn: Turn,
    rights: Rights,
    now: datetime,
    before: Sequence[Decision] = (),
    *,
    last: bool = False,
) -> Read:
    """`rights` decide by whose words a call follows; `now` is in the person's zone. `before` are the decisions of this
    turn so far, and `last` says that it is not asked again: its words go to every place that may be meant, then."""
    text, calls = without_events(generation.text, turn), generation.calls
    by_name = {tool.name: tool for tool in tools}
    text, written = found_in_text(text, by_name, whole=not generation.cut)
    if not calls:
        calls = written
    elif has_marks(text):  # servers that read a call may leave it in the text as well
        text = before_marks(text)
    reading = _Reading(by_name, turn, rights, now, before)
    for call in calls:
        reading.take(call)
    if text and not reading.queries and not any(isinstance(one, Speak | Wait) for one in reading.decisions):
        reading.say(text, generation, last=last)
    return Read(
        decisions=tuple(reading.decisions),
        calls=calls,
        results=tuple(reading.results),
        refused=reading.refused,
        queries=tuple(reading.queries),
    )


class _Reading:
    """What was read so far of one answer."""

    def __init__(
        self, by_name: dict[str, Legal], turn: Turn, rights: Rights, now: datetime, before: Sequence[Decision]
    ) -> None:
        self._by_name, self._turn, self._rights, self._now, self._before = by_name, turn, rights, now, before
        self.decisions: list[Decision] = []
        self.results: list[str] = []
        self.queries: list[tuple[int, str]] = []
        self.refused = False

    def take(self, call: RawCall) -> None:
        try:
            if (query := _query(call, self._by_name)) is not None:
                self.queries.append((len(self.results), query))
                self.results.append("")
                return
            decision = _decision(call, self._by_name, self._turn, self._rights, self._now)
            _check_room(decision, [*self._before, *self.decisions], self._turn)
        except Refusal as why:
            self.results.append(f"Not done: {why}")
            self.refused = True
        else:
            self.decisions.append(decision)
            self.results.append("Done.")

    def say(self, text: str, generation: Generation, *, last: bool) -> None:
        try:
            for one in _said(text, generation, self._turn, last=last):
                _check_room(one, [*self._before, *self.decisions], self._turn)
                self.decisions.insert(0, one)
        except Refusal as why:
            self.results.append(f"Not sent: {why}")
            self.refused = True


def _said(text: str, generation: Generation, turn: Turn, *, last: bool) -> list[Speak]:
    """In plain words, beside calls or alone."""
    if generation.cut and not generation.calls:
        raise Refusal(BROKE_OFF)
    if has_marks(text):
        raise Refusal(HALF_A_CALL)
    try:
        return [speak(text, {}, turn)]
    except Refusal:
        if last and (spoken := speak_everywhere(text, turn)):
            return spoken
        raise


def _query(call: RawCall, by_name: dict[str, Legal]) -> str | None:
    """What is to be looked up, before there is anything to say about it; None for any other call."""
    tool = tool_named(call.name, by_name)
    return str(checked(call, tool)["query"]) if tool is not None and tool.kind == "recall" else None


def _decision(call: RawCall, by_name: dict[str, Legal], turn: Turn, rights: Rights, now: datetime) -> Decision:
    tool = tool_named(call.name, by_name)
    if tool is None:
        raise Refusal(f"there is no tool {call.name[:NAME_SHOWN]} now. There are: {', '.join(by_name)}")
    arguments = checked(call, tool)
    if tool.kind == "wait":
        return Wait(reason=arguments["reason"], until=time_of(arguments, "until", now, LONGEST_WAIT))
    if tool.kind == "send_message":
        return speak(arguments.get("text", ""), arguments, turn)
    if tool.kind == "react":
        return react(arguments["emoji"], arguments.get("to"), turn)
    assert tool.kind != "recall"
    words = whose_words(arguments.get("for_message"), turn, rights)
    if tool.kind == "remind":
        return _remind(arguments, words, turn, rights, now)
    if tool.kind == "act":
        by, route = words or requester(turn)
        _check_rights(rights.may(by.address, "start"), by, "start work")
        return Act(
            name=action_name(arguments.get("name") or " ".join(arguments["query"].split()[:2])),
            query=arguments["query"],
            by=by,
            route=route,
            context=beyond(arguments["query"], context(turn.state, turn.heard, now.tzinfo or UTC)),
            persist=arguments.get("persist", True),
            files=files.handed_on(arguments, turn),
        )
    action = _action(tool, arguments, turn)
    by, route = words or (action.by, action.route)
    _check_rights(rights.may_tell(by.address, tool.kind, action), by, f"{tool.kind} {action.name}")
    return Steer(
        verb=tool.kind,
        action=action.key,
        by=by,
        text="" if tool.kind == "stop" and action.elsewhere else arguments.get(TEXT_OF.get(tool.kind, ""), ""),
        view=turn.view(action),
        question=tool.question or arguments.get("question", ""),
        via=route.medium,
        route=route if tool.kind in ("interject", "answer", "stop") else None,
        files=files.handed_on(arguments, turn) if tool.kind in ("interject", "answer") else (),
    )


def _check_rights(may: bool, by: Person, what: str) -> None:
    if not may:
        raise Refusal(f"{by.name} may not {what} here")


def _remind(
    arguments: dict[str, Any], words: tuple[Person, Route] | None, turn: Turn, rights: Rights, now: datetime
) -> Remind | Unremind:
    by, route = words or requester(turn)
    _check_rights(rights.may(by.address, "remind"), by, "be reminded")
    if (label := arguments.get("cancel")) is not None:
        reminder = next(one for one in turn.state.reminders if one.label == label)
        own = rights.same(by.address, reminder.by.address)
        _check_rights(own or rights.may(by.address, "stop"), by, f"cancel {reminder.by.name}'s {label}")
        return Unremind(label=label)
    text, at = arguments.get("text"), time_of(arguments, "at", now, FARTHEST)
    if not text or at is None:
        raise Refusal("remind needs text and at")
    if len(text) > REMINDER_CHARACTERS:
        raise Refusal(f"text of a reminder has at most {REMINDER_CHARACTERS:,} characters")
    if words is None and at < now + LEAST_ALONE:
        raise Refusal("nobody has written in this turn: at must be an hour from now at least")
    return Remind(text=text, at=at, by=by, route=route)


def _check_room(decision: Decision, others: list[Decision], turn: Turn) -> None:
    if len(encode([decision, *others])) > DECIDED_BYTES and decision not in others:
        raise Refusal("that is too much for one turn: make it shorter, or leave it to a worker that writes a file")
    made = sum(isinstance(one, Remind) for one in others)
    if isinstance(decision, Remind) and len(turn.state.reminders) + made >= MAX_OPEN:
        raise Refusal(f"{MAX_OPEN} reminders are open, more are not kept: cancel one first")


def _action(tool: Legal, arguments: dict[str, Any], turn: Turn) -> ActionView:
    action = turn.action(tool.action) if tool.action else turn.by_label(arguments["action"])
    if action is None:
        raise Refusal("that action is not known any more")
    if tool.kind == "answer" and (tool.question or arguments.get("question", "")) not in action.questions:
        raise Refusal("that question is not open any more")
    return action
