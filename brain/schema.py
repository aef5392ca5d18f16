"""`tool_calls = "schema"`: the same table of legal tools as one JSON schema, for models without reliable native calls.

The model says first what a message is (`kind`), then which work it is about, then its own words where it speaks; each
kind has one tool. A correction is passed on in the person's words and a result in the worker's: a small model would
only spoil them. Several events in a turn are decided each by itself. Pure.
"""

import json
from collections.abc import Collection, Sequence
from typing import Any

import msgspec

from brain.schema_doubt import SURE, SURE_OF_KIND, chances
from brain.schema_kinds import KINDS, NEW_WORK, NOT_SAID, SILENT, TELL
from brain.schema_words import Item, items, messages, work_names
from brain.tools import TEXT_OF, Legal
from brain.turn import Turn
from brain.working import IDLE
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
    schema = _together([_any_of(_options(item, turn, tools)) for item in decided])
    more = [tool for tool in tools if _is_other(tool)]
    return Request(
        messages=messages(system, turn, decided, more, day, sees=sees), response_schema=schema, logprobs=True
    )


def doubted(
    generation: Generation, asked: Request, turn: Turn, tools: tuple[Legal, ...], *, first: bool
) -> Request | None:
    """To ask once more, where the model was not sure; what it was sure of stays. None where nothing is in doubt, or the
    server does not tell. Of the `first` answer also the kind can be in doubt."""
    decided = items(turn)
    try:
        values, of_kinds = _values(generation, decided), iter(chances(generation, "kind"))
        of_works = iter(chances(generation, "work"))
        instead: list[list[Option]] = []
        for item, value in zip(decided, values, strict=True):
            of_kind, of_work = next(of_kinds), next(of_works) if "work" in value else 1.0
            options = _options(item, turn, tools)
            other = _other_kinds(value["kind"], of_kind, item, options, turn) if first else []
            instead.append(other or (_other_work(value, item, options) if of_work < SURE else []))
    except NO_ANSWER:
        return None
    if not any(instead):
        return None
    shapes = [_any_of(options) if options else _exactly(value) for options, value in zip(instead, values, strict=True)]
    return msgspec.structs.replace(asked, response_schema=_together(shapes))


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


def _other_kinds(kind: str, sure: float, item: Item, options: Sequence[Option], turn: Turn) -> list[Option]:
    """Where a doubtful answer would leave a message alone: what else work can be told, which is to stand still only in
    place of silence. Where new work would be done with a result that is there, the work that
    has it is told. Among people silence is right in doubt. What has finished is not stopped in doubt."""
    names = work_names(turn)
    finished = {names[action.key] for action in turn.in_flight() if action.phase in IDLE}
    if item.in_thread or sure >= SURE:
        return []
    if kind == NEW_WORK and item.points and finished:
        either = {*finished, NOT_SAID} if len(finished) > 1 else finished
        return _narrowed([one for one in options if one.kind == "change"], either)
    if sure >= SURE_OF_KIND.get(kind, 0.0) or (kind == NEW_WORK and not item.named):
        return []
    without = ("ask", "stop") if kind == "nothing" else ("ask", "stop", "pause")
    others = [one for one in options if one.kind not in without]
    stops = [one for one in options if one.kind == "stop"]
    return _narrowed(others, {*names.values(), NOT_SAID}) + _narrowed(stops, {*names.values(), NOT_SAID} - finished)


def _narrowed(options: Sequence[Option], names: Collection[str]) -> list[Option]:
    """To this work; without those that are about none."""
    found = [{name: tool for name, tool in one.work.items() if name in names} for one in options]
    return [msgspec.structs.replace(one, work=work) for one, work in zip(options, found, strict=True) if work]


def _other_work(value: dict[str, Any], item: Item, options: Sequence[Option]) -> list[Option]:
    """The one that the message names, else to ask which; nothing, where that is what was answered."""
    kind, work = value["kind"], value["work"]
    if work in (NOT_SAID, item.named):
        return []
    for one in options:
        if one.kind == kind and item.named in one.work:
            return _narrowed([one], [item.named])
    return [one for one in options if one.kind == kind and NOT_SAID in one.work]


def _together(shapes: list[dict[str, Any]]) -> dict[str, Any]:
    return shapes[0] if len(shapes) == 1 else _object({str(n): shape for n, shape in enumerate(shapes, 1)})


def _any_of(options: Sequence[Option]) -> dict[str, Any]:
    return {"anyOf": [_shape(one) for one in options]}


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
