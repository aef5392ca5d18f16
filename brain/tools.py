"""What the conversation's model can decide now: one table of legal tools, rendered for a model and read back from it.

A tool exists only while it is legal. Up to MANY actions each have tools of their own, named for them; beyond that the
same verbs come as fixed tools with an `action` argument, because providers cap the number of tools.
"""

import re
from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from brain.entries import Steering
from brain.rights import Rights
from brain.turn import Turn
from brain.working import ActionView
from gateway.events import Person
from gateway.llm.model import Tool
from gateway.record import Record

MANY = 20
_NOT_NAME = re.compile(r"[^a-z0-9]+")

REACTS = ("telegram", "slack")  # mediums on which an emoji can be put to a message
EMOJIS = ("👍", "👎", "❤", "🎉", "👀", "🙏", "😁", "🤔", "👌", "🔥", "😢", "💯")
LISTS = ("attach", "files")

Kind = Literal["send_message", "react", "wait", "act", "recall", "remind"] | Steering

ABOUT: dict[Steering, str] = {
    "interject": "Pass a correction or a follow-up to {what}.",
    "ask": "Ask {what} how it stands; it is not disturbed.",
    "pause": "Let {what} stand still.",
    "resume": "Let {what} go on.",
    "stop": "End {what} and all that it started.",
    "answer": "Answer the question “{question}” of {what}.",
}
TEXT_OF: dict[Steering, str] = {"interject": "message", "ask": "question", "stop": "reason", "answer": "answer"}
NEEDS_TEXT: frozenset[Steering] = frozenset({"interject", "ask", "answer"})


class Legal(Record, frozen=True, kw_only=True):
    """One tool as it stands now. `action` is the action's key; None for a fixed tool that takes it as an argument."""

    name: str
    kind: Kind
    about: str
    action: str | None = None
    question: str | None = None
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    choices: dict[str, tuple[str, ...]] = {}


def legal(turn: Turn, rights: Rights, askers: Sequence[Person]) -> tuple[Legal, ...]:
    """What any of those whose words the turn follows may cause; whose words a call follows is checked as it is read.

    In an order that changes only at its end, so that the provider's cache of the tools holds as long as possible.
    """
    tools = [_send_message(turn), _WAIT]
    if not askers or rights.anyone_may(askers, "recall"):
        tools.append(_RECALL)
    if rights.anyone_may(askers, "remind"):
        tools.append(_remind(turn))
    if rights.anyone_may(askers, "start"):
        tools.append(_ACT)
    in_flight, completed = turn.in_flight(), turn.completed()
    can = [(action, rights.verbs(askers, action)) for action in [*in_flight, *completed]]
    if len(in_flight) > MANY:
        tools += _fixed(can)
    else:
        tools += [tool for action, verbs in can for tool in _own(action, verbs)]
    if turn.state.files:
        tools = [_with_files(tool) for tool in tools]
    if any(medium in REACTS for medium in turn.state.routes):
        tools.append(_REACT)
    return tuple(tools)


def _with_files(tool: Legal) -> Legal:
    takes = {"send_message": "attach", "act": "files", "interject": "files", "answer": "files"}.get(tool.kind)
    return msgspec.structs.replace(tool, optional=(*tool.optional, takes)) if takes else tool


def render(tools: tuple[Legal, ...]) -> list[Tool]:
    return [{"type": "function", "function": _function(tool)} for tool in tools]


def tool_name(verb: Steering, action: ActionView, question: str = "") -> str:
    """At most 64 characters of [a-zA-Z0-9_-], as providers ask."""
    word = "answer_clarification" if verb == "answer" else verb
    return "__".join(part for part in (f"{word}_{action.name}", action.label, question) if part)


def action_name(text: str) -> str:
    """A short name that fits into tool names."""
    return _NOT_NAME.sub("_", text.lower()).strip("_")[:20].strip("_") or "task"


_WAIT = Legal(
    name="wait",
    kind="wait",
    about="Stay silent, on purpose. until (ISO time, or 10m, 2h): decide again then, unless something comes before.",
    required=("reason",),
    optional=("until",),
)
_RECALL = Legal(
    name="recall",
    kind="recall",
    about="Search what was said here before what you see. query: the words to find. You get the result, then decide.",
    required=("query",),
)
_ACT = Legal(
    name="act",
    kind="act",
    about="Hand new work to a worker with Python. query: all it needs to know. name: one or two words for it. "
    "persist (default true): it stays for follow-ups.",
    required=("query",),
    optional=("name", "persist", "for_message"),
)


_REACT = Legal(
    name="react",
    kind="react",
    about="Put an emoji to a message, instead of words. to: its reference, if not the last.",
    required=("emoji",),
    optional=("to",),
    choices={"emoji": EMOJIS},
)


def _remind(turn: Turn) -> Legal:
    """Without an open one there is none to take back."""
    labels = tuple(one.label for one in turn.state.reminders)
    return Legal(
        name="remind",
        kind="remind",
        about="text comes back to you at that time (ISO, or 10m, 2h, 3d). Say that you will. cancel takes one back.",
        required=() if labels else ("text", "at"),
        optional=("text", "at", "cancel", "for_message") if labels else ("for_message",),
        choices={"cancel": labels} if labels else {},
    )


def _send_message(turn: Turn) -> Legal:
    """`medium` where this conversation has been. `to` is for elsewhere: an address of whoever it is that wrote."""
    mediums, addresses = tuple(turn.state.routes), tuple(str(address) for address in turn.reaches)
    choices = {"medium": mediums} if len(mediums) > 1 else {}
    if (
        not turn.state.is_private
        or {address.medium for address in turn.reaches} - {*mediums}
        or len(addresses) > len(mediums)
    ):
        choices |= {"to": addresses} if addresses else {}
    return Legal(
        name="send_message",
        kind="send_message",
        about="Reply in a chosen place; plain text does it where the last message came from."
        + (" to: another address of theirs, if they asked for that." if "to" in choices else ""),
        required=("text",),
        optional=("reply_to", *choices),
        choices=choices,
    )


def _own(action: ActionView, verbs: Sequence[Steering]) -> list[Legal]:
    what = f"“{action.name}” ({action.label})"
    tools = []
    for verb in verbs:
        for question in action.questions.values() if verb == "answer" else (None,):
            text = (TEXT_OF[verb],) if verb in TEXT_OF else ()
            tools.append(
                Legal(
                    name=tool_name(verb, action, question.question if question else ""),
                    kind=verb,
                    about=ABOUT[verb].format(what=what, question=question.text[:100] if question else ""),
                    action=action.key,
                    question=question.question if question else None,
                    required=text if verb in NEEDS_TEXT else (),
                    optional=(*(text if verb not in NEEDS_TEXT else ()), "for_message"),
                )
            )
    return tools


def _fixed(can: list[tuple[ActionView, tuple[Steering, ...]]]) -> list[Legal]:
    tools = []
    for verb, about in ABOUT.items():
        fitting = [action for action, verbs in can if verb in verbs]
        if not fitting:
            continue
        text = (TEXT_OF[verb],) if verb in TEXT_OF else ()
        questions = tuple(question for action in fitting for question in action.questions) if verb == "answer" else ()
        tools.append(
            Legal(
                name="answer_clarification" if verb == "answer" else verb,
                kind=verb,
                about=about.format(what="one action", question="…"),
                required=("action", *(("question",) if questions else ()), *(text if verb in NEEDS_TEXT else ())),
                optional=(*(text if verb not in NEEDS_TEXT else ()), "for_message"),
                choices={"action": tuple(action.label for action in fitting)},
            )
        )
    return tools


def _function(tool: Legal) -> dict[str, Any]:
    properties = {name: _property(name, tool) for name in (*tool.required, *tool.optional)}
    parameters = {"type": "object", "properties": properties, "required": list(tool.required)}
    return {"name": tool.name, "description": tool.about, "parameters": parameters}


def _property(name: str, tool: Legal) -> dict[str, Any]:
    if name == "persist":
        return {"type": "boolean"}
    if name in LISTS:
        return {"type": "array", "items": {"type": "string"}}
    if name in tool.choices:
        return {"type": "string", "enum": list(tool.choices[name])}
    return {"type": "string"}
