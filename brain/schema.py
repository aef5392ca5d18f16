"""`tool_calls = "schema"`: the same table of legal tools as one JSON schema, for models without reliable native calls.

The model says first what a message is (`kind`), then which work it is about, then its own words where it speaks; each
kind has one tool. A correction is passed on in the person's words and a result in the worker's: a small model would
only spoil them. Several events in a turn are decided each by itself. Pure.
"""

import json
from collections.abc import Sequence
from typing import Any

import msgspec

from brain.schema_doubt import SURE, chances
from brain.schema_kinds import KINDS, NOT_SAID, SILENT, TELL
from brain.schema_words import Item, items, messages, work_names
from brain.tools import TEXT_OF, Legal
from brain.turn import Turn
from gateway.llm.model import Generation, RawCall, Request
from gateway.record import Record, encode

REPLY = "reply"  # with what is done beside it
CANCEL = "cancel reminder"
NO_ANSWER = (ValueError, KeyError, TypeError, StopIteration, RecursionError)  # what was written is not of the schema


class Option(Record, frozen=True, kw_only=True):
    """One shape that an answer may have. `work` has the tool for each action that it can be about; without any, `tool`
    is it. `says` are the texts that the model writes itself."""

    kind: str
    tool: Legal | None = None
    work: dict[str, Legal] = {}
    says: tuple[str, ...] = ()


def request(system: str, turn: Turn, tools: tuple[Legal, ...], day: str, *, sees: bool) -> Request:
    decided = items(turn)
    schema = _together([{"anyOf": [_shape(one) for one in _options(item, turn, tools)]} for item in decided])
    more = [tool for tool in tools if _is_other(tool)]
    return Request(
        messages=messages(system, turn, decided, more, day, sees=sees), response_schema=schema, logprobs=True
    )


def doubted(generation: Generation, asked: Request, turn: Turn, tools: tuple[Legal, ...]) -> Request | None:
    """To ask once more, where the model has named one of several pieces of work and could as well have named another:
    then it is to ask the person which. None where it was sure, or the server does not tell."""
    decided = items(turn)
    try:
        values, likely = _values(generation, decided), iter(chances(generation))
        asking = [
            _asking(value, next(likely) if "work" in value else 1.0, _options(item, turn, tools))
            for item, value in zip(decided, values, strict=True)
        ]
    except NO_ANSWER:
        return None
    if not any(asking):
        return None
    shapes = [_shape(option) if option else _exactly(value) for option, value in zip(asking, values, strict=True)]
    return msgspec.structs.replace(asked, response_schema=_together(shapes), logprobs=False)


def understood(generation: Generation, turn: Turn, tools: tuple[Legal, ...]) -> Generation:
    """With the calls that its JSON means; with nothing, where it means none: half an answer is never shown."""
    decided = items(turn)
    calls: list[RawCall] = []
    try:
        for item, one in zip(decided, _values(generation, decided), strict=True):
            calls.append(_call(one, item, _options(item, turn, tools), alone=len(decided) == 1))
            if REPLY in one:
                calls.append(_reply(one[REPLY], item, alone=len(decided) == 1))
    except NO_ANSWER:
        calls = []
    return Generation(calls=tuple(calls), finish=generation.finish, usage=generation.usage, model=generation.model)


def _values(generation: Generation, decided: Sequence[Item]) -> list[dict[str, Any]]:
    """What was answered for each. Raises ValueError, KeyError, TypeError or RecursionError."""
    value = json.loads(generation.text)
    return [value] if len(decided) == 1 else [value[str(number)] for number, _ in enumerate(decided, 1)]


# --- what is possible ------------------------------------------------------------------------------------------------


def _options(item: Item, turn: Turn, tools: Sequence[Legal]) -> list[Option]:
    speak = next(tool for tool in tools if tool.kind == "send_message")
    silence = next(tool for tool in tools if tool.kind == "wait")
    if item.told:
        silent = [] if item.must_be_told else [Option(kind=SILENT, tool=silence)]
        return [Option(kind=TELL, tool=speak), *silent]
    found: list[Option] = []
    for kind in KINDS:
        legal = [tool for tool in tools if tool.kind == kind.tool]
        if not legal or (kind.in_threads and not item.in_thread):
            continue
        if not kind.about_work:
            found.append(Option(kind=kind.word, tool=legal[0], says=("text",) if kind.speaks else ()))
            continue
        work = _work(legal, turn)
        found.append(Option(kind=kind.word, work=work))
        if len(work) > 1:
            found.append(Option(kind=kind.word, work={NOT_SAID: speak}, says=("text",)))
    return [*found, *(one for tool in tools if _is_other(tool) for one in _others(tool))]


def _is_other(tool: Legal) -> bool:
    """None of those that the kinds are made of: its own name is its kind."""
    return tool.kind != "react" and tool.kind not in {kind.tool for kind in KINDS}


def _others(tool: Legal) -> list[Option]:
    if tool.kind != "remind":
        return [Option(kind=tool.name, tool=tool, says=tool.required)]
    remind = Option(kind=tool.name, tool=tool, says=("text", "at", REPLY))
    cancel = Option(kind=CANCEL, tool=tool, says=("cancel", REPLY))
    return [remind, cancel] if "cancel" in tool.choices else [remind]


def _work(tools: Sequence[Legal], turn: Turn) -> dict[str, Legal]:
    """The actions that these tools are for, by name; a tool of its own for each, or one for many."""
    found: dict[str, Legal] = {}
    names = work_names(turn)
    for action in [*turn.in_flight(), *turn.completed()]:
        for tool in tools:
            if tool.action == action.key or action.label in tool.choices.get("action", ()):
                found.setdefault(names[action.key], tool)
    return found


def _asking(value: dict[str, Any], likely: float, options: Sequence[Option]) -> Option | None:
    if likely >= SURE or value.get("work") == NOT_SAID:
        return None
    return next((one for one in options if one.kind == value["kind"] and NOT_SAID in one.work), None)


def _together(shapes: list[dict[str, Any]]) -> dict[str, Any]:
    return shapes[0] if len(shapes) == 1 else _object({str(n): shape for n, shape in enumerate(shapes, 1)})


def _exactly(value: dict[str, Any]) -> dict[str, Any]:
    return _object({name: {"const": one} for name, one in value.items()})


def _shape(option: Option) -> dict[str, Any]:
    properties: dict[str, Any] = {"kind": {"const": option.kind}}
    if option.work:
        properties["work"] = {"enum": list(option.work)}
    choices = option.tool.choices if option.tool else {}
    said = {name: {"enum": list(choices[name])} if name in choices else {"type": "string"} for name in option.says}
    return _object({**properties, **said})


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


# --- what it means ---------------------------------------------------------------------------------------------------


def _call(value: dict[str, Any], item: Item, options: Sequence[Option], *, alone: bool) -> RawCall:
    """Raises KeyError, TypeError or StopIteration for what is none of the options."""
    kind, work = value["kind"], value.get("work")
    option = next(one for one in options if one.kind == kind and (not one.work or work in one.work))
    tool = option.work[str(work)] if option.work else option.tool
    assert tool is not None
    arguments = {name: value[name] for name in option.says if name != REPLY}
    if tool.kind == "wait":
        arguments["reason"] = f"{kind}: nothing need be said"
    elif tool.kind == "send_message":
        arguments.setdefault("text", item.text)
        if item.offered and "attach" in tool.optional:
            arguments["attach"] = list(item.offered)
        if not alone:
            arguments["reply_to"] = item.label
    elif tool.kind == "act":
        arguments["query"] = item.text
    elif tool.kind in TEXT_OF and TEXT_OF[tool.kind] in tool.required:
        arguments[TEXT_OF[tool.kind]] = item.text
    if not item.told and "for_message" in tool.optional:
        arguments["for_message"] = item.label
    if "action" in tool.choices and work is not None:
        arguments["action"] = item.labels[work]
        if "question" in tool.required:
            arguments["question"] = item.questions[work]
    return RawCall(name=tool.name, arguments=encode(arguments).decode())


def _reply(text: str, item: Item, *, alone: bool) -> RawCall:
    arguments = {"text": text} if alone else {"text": text, "reply_to": item.label}
    return RawCall(name="send_message", arguments=encode(arguments).decode())
