"""From what a model generated to decisions: every call checked against the table of legal tools, none trusted. Pure.

A call that cannot be taken is refused with a reason that the model can use. A call written into text or a code fence is
understood as the call.
"""

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

from brain import files
from brain.entries import Act, Decision, React, Remind, Speak, Steer, Unremind, Wait
from brain.parts import Heard
from brain.reminding import FARTHEST, LEAST_ALONE, MAX_OPEN
from brain.rights import Rights
from brain.tools import LISTS, REACTS, TEXT_OF, Legal, action_name
from brain.turn import Turn
from brain.working import ActionView
from gateway.addresses import Address, Route
from gateway.events import ControlPressed, MessageReceived, Person, TimerFired, identity_of
from gateway.files import FILES_MAX, Attachment
from gateway.llm.model import Generation, RawCall
from gateway.record import Record, whole_text

LONGEST_WAIT = timedelta(days=30)
_FROM_NOW = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*([smhd])\w*\s*$")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
MAX_TEXT = 60_000  # a command must fit into one entry
_FENCE = re.compile(r"^\s*(?:```(?:json|tool_call)?\s*)?(\{.*\})\s*(?:```)?\s*$", re.DOTALL)


class Refusal(Exception):
    """A call that is not taken; the text is for the model."""


class Read(Record, frozen=True, kw_only=True):
    """`results` has one text per call, in order; `refused` says that at least one was not taken. `queries` are the
    look-ups by the places of their calls: whoever does them puts what was found in there."""

    decisions: tuple[Decision, ...]
    calls: tuple[RawCall, ...] = ()
    results: tuple[str, ...] = ()
    refused: bool = False
    queries: tuple[tuple[int, str], ...] = ()


def read(
    generation: Generation, tools: tuple[Legal, ...], turn: Turn, context: str, rights: Rights, now: datetime
) -> Read:
    """`context` is what a new action is told of the conversation; `rights` decide by whose words a call follows.

    `now` is in the person's zone.
    """
    text, calls = generation.text.strip(), generation.calls
    by_name = {tool.name: tool for tool in tools}
    if not calls and (written := _written_call(text, by_name)):
        text, calls = "", (written,)
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
            decision = _decision(call, by_name, turn, context, rights, now)
            _check_room(decision, decisions, turn)
        except Refusal as why:
            results.append(f"Not done: {why}")
            refused = True
        else:
            decisions.append(decision)
            results.append("Done.")
    if text and not queries and not any(isinstance(decision, Speak | Wait) for decision in decisions):
        try:
            decisions.insert(0, _speak(text, {}, turn))
        except Refusal as why:
            return Read(decisions=(), calls=calls, results=(*results, f"Not sent: {why}"), refused=True)
    return Read(
        decisions=tuple(decisions),
        calls=calls,
        results=tuple(results),
        refused=refused,
        queries=tuple(queries),
    )


def _query(call: RawCall, by_name: dict[str, Legal]) -> str | None:
    """What is to be looked up, before there is anything to say about it; None for any other call."""
    tool = by_name.get(call.name)
    return str(_checked(call, tool)["query"]) if tool is not None and tool.kind == "recall" else None


def _decision(
    call: RawCall, by_name: dict[str, Legal], turn: Turn, context: str, rights: Rights, now: datetime
) -> Decision:
    tool = by_name.get(call.name)
    if tool is None:
        raise Refusal(f"there is no tool {call.name} now. There are: {', '.join(by_name)}")
    arguments = _checked(call, tool)
    if tool.kind == "wait":
        return Wait(reason=arguments["reason"], until=_until(arguments, "until", now, LONGEST_WAIT))
    if tool.kind == "send_message":
        return _speak(arguments.get("text", ""), arguments, turn)
    if tool.kind == "react":
        return _react(arguments["emoji"], arguments.get("to"), turn)
    assert tool.kind != "recall"
    words = _whose_words(arguments.get("for_message"), turn, rights)
    if tool.kind == "remind":
        return _remind(arguments, words, turn, rights, now)
    if tool.kind == "act":
        by, route = words or _requester(turn)
        _check_rights(rights.may(by.address, "start"), by, "start work")
        return Act(
            name=action_name(arguments.get("name") or " ".join(arguments["query"].split()[:2])),
            query=arguments["query"],
            by=by,
            route=route,
            context=context,
            persist=arguments.get("persist", True),
            files=_handed_on(arguments, turn),
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
        files=_handed_on(arguments, turn) if tool.kind in ("interject", "answer") else (),
    )


def _handed_on(arguments: dict[str, Any], turn: Turn) -> tuple[Attachment, ...]:
    """Those that are named; else what came with the words that are followed."""
    if "files" in arguments:
        return _named(arguments["files"], turn)
    label = arguments.get("for_message")
    return files.of(
        _with_album([item for item in turn.heard if not label or item.label == label.strip("[]")], turn), turn.state
    )


def _with_album(heard: list[Heard], turn: Turn) -> list[Heard]:
    albums = {item.fact.album.id for item in heard if isinstance(item.fact, MessageReceived) and item.fact.album}
    return [
        item
        for item in turn.heard
        if item in heard
        or (isinstance(item.fact, MessageReceived) and item.fact.album is not None and item.fact.album.id in albums)
    ]


def _named(labels: tuple[str, ...], turn: Turn) -> tuple[Attachment, ...]:
    if len(labels) > FILES_MAX:
        raise Refusal(f"at most {FILES_MAX} files at once")
    try:
        return files.named(labels, turn.state)
    except LookupError as error:
        known = ", ".join(list(turn.state.files)[-20:]) or "none"
        raise Refusal(f"there is no file {error.args[0]}; there are: {known}") from None


def _check_rights(may: bool, by: Person, what: str) -> None:
    if not may:
        raise Refusal(f"{by.name} may not {what} here")


def _checked(call: RawCall, tool: Legal) -> dict[str, Any]:
    """The arguments, only those that the tool has, each of its type."""
    arguments = call.parsed()
    if arguments is None:
        why = "it was cut off" if not call.complete else "its arguments are no JSON object"
        raise Refusal(f"{why}; call {tool.name} again, whole")
    checked: dict[str, Any] = {}
    for name in (*tool.required, *tool.optional):
        value = arguments.get(name)
        if name in LISTS and value is not None:
            checked[name] = _list(name, value, tool)
            continue
        if value is None or value == "":
            if name in tool.required and not (name == "text" and arguments.get("attach")):
                raise Refusal(f"{tool.name} needs {name}")
            continue
        wanted = bool if name == "persist" else str
        if not isinstance(value, wanted):
            raise Refusal(f"{name} of {tool.name} must be a {'boolean' if wanted is bool else 'string'}")
        if name in tool.choices and value not in tool.choices[name]:
            raise Refusal(f"{name} must be one of {', '.join(tool.choices[name])}")
        checked[name] = whole_text(value)[:MAX_TEXT] if isinstance(value, str) else value
    return checked


def _list(name: str, value: Any, tool: Legal) -> tuple[str, ...]:
    values = [value] if isinstance(value, str) else value
    if not (isinstance(values, list) and all(isinstance(one, str) for one in values)):
        raise Refusal(f'{name} of {tool.name} must be a list of references, as in ["f1"]')
    return tuple(one for one in values if one)


def _until(arguments: dict[str, Any], name: str, now: datetime, farthest: timedelta) -> datetime | None:
    """An ISO time in the person's zone (that of `now`), or a time from now as in 90s, 10m, 2h, 1d."""
    text = arguments.get(name)
    if text is None:
        return None
    instant = now.astimezone(UTC)
    try:
        if found := _FROM_NOW.match(text):
            span = timedelta(seconds=min(float(found[1]) * _SECONDS[found[2]], 2 * farthest.total_seconds()))
            until = now + span if found[2] == "d" else instant + span  # a day may be longer than its hours
        else:
            until = datetime.fromisoformat(text)
            until = until if until.tzinfo else until.replace(tzinfo=now.tzinfo)
        until = until.astimezone(UTC)
    except (ValueError, OverflowError):
        raise Refusal(f"{name} is neither an ISO time nor like 10m or 2h: {text}") from None
    if not instant < until <= instant + farthest:
        raise Refusal(f"{name} must be after now ({now.isoformat(timespec='minutes')}) and within {farthest.days} days")
    return until


def _remind(
    arguments: dict[str, Any], words: tuple[Person, Route] | None, turn: Turn, rights: Rights, now: datetime
) -> Remind | Unremind:
    by, route = words or _requester(turn)
    _check_rights(rights.may(by.address, "remind"), by, "be reminded")
    if (label := arguments.get("cancel")) is not None:
        reminder = next(one for one in turn.state.reminders if one.label == label)
        own = rights.same(by.address, reminder.by.address)
        _check_rights(own or rights.may(by.address, "stop"), by, f"cancel {reminder.by.name}'s {label}")
        return Unremind(label=label)
    text, at = arguments.get("text"), _until(arguments, "at", now, FARTHEST)
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


def _speak(text: str, how: dict[str, Any], turn: Turn) -> Speak:
    reply_to, medium, to = how.get("reply_to"), how.get("medium"), how.get("to")
    if reply_to is not None:
        heard = [item for item in turn.heard if item.label == reply_to.strip("[]")]
        if not heard:
            raise Refusal(f"{reply_to} is not among what this turn is about: {', '.join(_labels(turn))}")
    else:
        heard = list(turn.heard)
    if to:  # the table of tools has no other addresses than those
        route: Route = turn.reaches[Address.parse(to)]
    elif medium:
        route = turn.state.routes[medium]
    else:
        route = _one_route(heard, turn)
    answers = tuple(identity_of(item.fact) for item in heard)
    attached = _named(how.get("attach", ()), turn)
    by_tool = bool(how)
    return Speak(route=route, text=whole_text(text)[:MAX_TEXT], answers=answers, by_tool=by_tool, files=attached)


def _react(emoji: str, to: str | None, turn: Turn) -> React:
    said = [item for item in turn.heard if isinstance(item.fact, MessageReceived)]
    if to is not None:
        known = [item for exchange in turn.state.exchanges for item in exchange.heard]
        said = [
            item
            for item in (*known, *turn.state.overheard, *turn.heard)
            if item.label == to.strip("[]") and isinstance(item.fact, MessageReceived)
        ]
    if not said:
        raise Refusal(f"{to or 'that'} is no message here")
    fact = said[-1].fact
    assert isinstance(fact, MessageReceived)
    if fact.route.medium not in REACTS or not fact.route.reply_to:
        raise Refusal(f"no emoji can be put to a message on {fact.route.medium}")
    return React(route=fact.route, emoji=emoji, answers=(fact.identity,))


def _one_route(heard: list[Heard], turn: Turn) -> Route:
    """The newest message's, where all belong to one room."""
    routes = [route for item in heard if (route := turn.state.route_of(item)) is not None]
    if len({(route.medium, *route.room) for route in routes}) > 1:
        raise Refusal(
            f"these came from several places; say which you reply to with reply_to: {', '.join(_labels(turn))}"
        )
    route = routes[-1] if routes else turn.state.route
    if route is None:
        raise Refusal("nobody has written here yet")
    return route


def _labels(turn: Turn) -> list[str]:
    return list(dict.fromkeys(item.label for item in turn.heard))


def _whose_words(label: str | None, turn: Turn, rights: Rights) -> tuple[Person, Route] | None:
    """Author and route of the message that a call follows; None in a turn that nobody's message opened."""
    said = [item for item in turn.heard if isinstance(item.fact, MessageReceived | ControlPressed)]
    if label is not None:
        said = [item for item in said if item.label == label.strip("[]")]
        if not said:
            raise Refusal(f"{label} is not among what this turn is about: {', '.join(_labels(turn))}")
    authors = [item.fact.author.address for item in said if isinstance(item.fact, MessageReceived | ControlPressed)]
    if any(not rights.same(authors[0], other) for other in authors):
        raise Refusal("several people wrote; say whose words this follows with for_message")
    if not said:
        return None
    fact = said[-1].fact
    assert isinstance(fact, MessageReceived | ControlPressed)
    return fact.author, fact.route


def _requester(turn: Turn) -> tuple[Person, Route]:
    """Of a turn that an action opened: its own requester asks on."""
    for item in reversed(turn.heard):
        if isinstance(item.fact, TimerFired) and item.fact.by is not None and item.fact.route is not None:
            return item.fact.by, item.fact.route
        action = turn.state.actions.get(getattr(item.fact, "action", ""))
        if action is not None:
            return action.by, action.route
    raise Refusal("nobody asked for this")


def _written_call(text: str, by_name: dict[str, Legal]) -> RawCall | None:
    found = _FENCE.match(text)
    if not found:
        return None
    try:
        value = json.loads(found[1])
    except ValueError:
        return None
    name = value.get("name") or value.get("tool")
    arguments = value.get("arguments", value.get("parameters", {}))
    if name not in by_name or not isinstance(arguments, dict):
        return None
    return RawCall(name=name, arguments=json.dumps(arguments))
