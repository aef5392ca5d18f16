"""From what a model generated to decisions: every call checked against the table of legal tools, none trusted. Pure.

A call that cannot be taken is refused with a reason that the model can use. A call written into text or a code fence is
understood as the call.
"""

import re
from collections.abc import Container
from datetime import UTC, datetime, timedelta
from typing import Any

from brain import files
from brain.addressing import react, requester, speak, whose_words
from brain.arguments import Refusal, checked, time_of
from brain.entries import Act, Decision, Remind, Speak, Steer, Unremind, Wait
from brain.past import beyond, context
from brain.reminding import FARTHEST, LEAST_ALONE, MAX_OPEN
from brain.rights import Rights
from brain.tools import ABOUT, TEXT_OF, Legal, action_name
from brain.turn import Turn
from brain.working import ActionView
from gateway.addresses import Route
from gateway.events import Person
from gateway.llm.model import Generation, RawCall
from gateway.llm.written_calls import written_calls
from gateway.record import Record

LONGEST_WAIT = timedelta(days=30)
BROKE_OFF = "it broke off at the length that an answer may have. Say it again, shorter and whole."
_FENCED = re.compile(r"```(?:\w+)?\s*\{.*?\}\s*```|<tool_call>.*?</tool_call>", re.DOTALL)
_STEERING = re.compile(rf"(?:{'|'.join(ABOUT)}|answer_clarification)(?:_\w+__a\d+\w*)?$|(?:act|recall|remind|react)$")


class Read(Record, frozen=True, kw_only=True):
    """`results` has one text per call, in order, and one more where the words beside them cannot be sent; `refused`
    says that at least one was not taken. `queries` are the look-ups by the places of their calls: whoever does them
    puts what was found in there."""

    decisions: tuple[Decision, ...]
    calls: tuple[RawCall, ...] = ()
    results: tuple[str, ...] = ()
    refused: bool = False
    queries: tuple[tuple[int, str], ...] = ()


def read(generation: Generation, tools: tuple[Legal, ...], turn: Turn, rights: Rights, now: datetime) -> Read:
    """`rights` decide by whose words a call follows; `now` is in the person's zone."""
    text, calls = generation.text.strip(), generation.calls
    by_name = {tool.name: tool for tool in tools}
    if not calls:
        text, calls = _written(text, by_name)
    decisions: list[Decision] = []
    results: list[str] = []
    queries: list[tuple[int, str]] = []
    refused = False
    for call in calls:
        try:
            if (query := _query(call, by_name)) is not None:
                queries.append((len(results), query))
                results.append("")
                continue
            decision = _decision(call, by_name, turn, rights, now)
            _check_room(decision, decisions, turn)
        except Refusal as why:
            results.append(f"Not done: {why}")
            refused = True
        else:
            decisions.append(decision)
            results.append("Done.")
    if text and not queries and not any(isinstance(decision, Speak | Wait) for decision in decisions):
        try:
            decisions.insert(0, _said(text, generation, turn))
        except Refusal as why:
            results.append(f"Not sent: {why}")
            refused = True
    return Read(
        decisions=tuple(decisions),
        calls=calls,
        results=tuple(results),
        refused=refused,
        queries=tuple(queries),
    )


def _said(text: str, generation: Generation, turn: Turn) -> Speak:
    """In plain words, beside calls or alone."""
    if generation.cut and not generation.calls:
        raise Refusal(BROKE_OFF)
    return speak(text, {}, turn)


def _written(text: str, by_name: dict[str, Legal]) -> tuple[str, tuple[RawCall, ...]]:
    """What is said, and the calls that stand in the text: as all of it, or fenced off from what is said. A call of what
    is no tool now is one too, to be refused and not shown."""
    if whole := written_calls(text, _Callable(by_name)):
        return "", whole
    calls: list[RawCall] = []
    for found in _FENCED.finditer(text):
        calls += written_calls(found[0], by_name)
    rest = _FENCED.sub(lambda found: "" if written_calls(found[0], by_name) else found[0], text)
    return rest.strip(), tuple(calls)


class _Callable(Container[str]):
    """The names of tools, now or at another time."""

    def __init__(self, now: Container[str]) -> None:
        self._now = now

    def __contains__(self, name: object) -> bool:
        return name in self._now or (isinstance(name, str) and _STEERING.match(name) is not None)


def _query(call: RawCall, by_name: dict[str, Legal]) -> str | None:
    """What is to be looked up, before there is anything to say about it; None for any other call."""
    tool = by_name.get(call.name)
    return str(checked(call, tool)["query"]) if tool is not None and tool.kind == "recall" else None


def _decision(call: RawCall, by_name: dict[str, Legal], turn: Turn, rights: Rights, now: datetime) -> Decision:
    tool = by_name.get(call.name)
    if tool is None:
        raise Refusal(f"there is no tool {call.name} now. There are: {', '.join(by_name)}")
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
    if words is None and at < now + LEAST_ALONE:
        raise Refusal("nobody has written in this turn: at must be an hour from now at least")
    return Remind(text=text, at=at, by=by, route=route)


def _check_room(decision: Decision, others: list[Decision], turn: Turn) -> None:
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
