"""A `Model` whose tools are called by a JSON schema: for models without reliable calls of their own.

Here: tools as one schema, an answer of that schema as a call, earlier calls and results as plain text. Not here: which
tools there are. Each longer history maps to an extension of what it made of the shorter one, so that a cache holds.
"""

import json
import re
from typing import Any

import msgspec

from gateway.llm.model import Generation, Message, Model, OnSpent, RawCall, Request, Tool

REFERENCES = {"cell": r"\bcell\d+\b", "action": r"\bchild\d+\b"}  # how actors name what a call can be about
ANSWER = "Answer with one JSON object each time. What you can do, with the keys of the object:"


class BySchema:
    """Asks `model` without tools. An answer that is no JSON of the schema stays a text."""

    def __init__(self, model: Model) -> None:
        self._model = model

    @property
    def name(self) -> str:
        return self._model.name

    async def generate(self, request: Request, on_spent: OnSpent | None = None) -> Generation:
        """See `Model.generate`."""
        if not request.tools or request.response_schema is not None:
            return await self._model.generate(request, on_spent)
        free = request.tool_choice == "none"
        asked = msgspec.structs.replace(
            request,
            messages=_written(request.messages, request.tools),
            tools=[],
            tool_choice="auto",
            response_schema=None if free else _schema(request),
        )
        generation = await self._model.generate(asked, on_spent)
        return generation if free else _understood(generation)


def _schema(request: Request) -> dict[str, Any]:
    """Of what can be called now: an argument like `cell` names something that an earlier result has named, as cell3."""
    told = "\n".join(str(one.get("content")) for one in request.messages if one["role"] in ("tool", "user"))
    shapes = []
    for tool in request.tools:
        shape = _shape(tool["function"])
        named = [name for name in REFERENCES if name in shape["properties"]]
        known = {name: sorted(set(re.findall(REFERENCES[name], told))) for name in named}
        if all(known.values()):
            shapes.append(
                {**shape, "properties": {**shape["properties"], **{n: {"enum": k} for n, k in known.items()}}}
            )
    return {"anyOf": shapes}


def _shape(function: dict[str, Any]) -> dict[str, Any]:
    """Only what is required, and what else is said in a word: a small model fills in whatever it may."""
    parameters = function["parameters"]
    properties = {
        name: kind
        for name, kind in parameters["properties"].items()
        if name in parameters.get("required", ()) or kind.get("type") == "boolean"
    }
    return {
        "type": "object",
        "properties": {"tool": {"const": function["name"]}, **properties},
        "required": ["tool", *properties],
        "additionalProperties": False,
    }


def _understood(generation: Generation) -> Generation:
    try:
        value = json.loads(generation.text)
        name = value.pop("tool")
    except (ValueError, KeyError, TypeError, AttributeError):
        return generation
    call = RawCall(name=name, arguments=json.dumps(value, ensure_ascii=False), complete=not generation.cut)
    return msgspec.structs.replace(generation, text="", calls=(call,), finish="tool_calls")


def _written(messages: list[Message], tools: list[Tool]) -> list[Message]:
    written: list[Message] = []
    for message in messages:
        if message["role"] in ("system", "developer") and not written:
            written.append({**message, "content": f"{message['content']}\n\n{_list(tools)}"})
        elif message["role"] == "tool":
            written.append({"role": "user", "content": f"Result: {message['content']}"})
        elif calls := message.get("tool_calls"):
            if message.get("content"):
                written.append({"role": "assistant", "content": message["content"]})
            written += [{"role": "assistant", "content": _as_answer(call["function"])} for call in calls]
        else:
            written.append(message)
    return (
        written if written and written[0]["role"] != "user" else [{"role": "system", "content": _list(tools)}, *written]
    )


def _as_answer(function: dict[str, Any]) -> str:
    return json.dumps({"tool": function["name"], **json.loads(function["arguments"])}, ensure_ascii=False)


def _list(tools: list[Tool]) -> str:
    return "\n".join([ANSWER, *(_line(tool["function"]) for tool in tools)])


def _line(function: dict[str, Any]) -> str:
    keys = {"tool": function["name"], **{name: "…" for name in _shape(function)["properties"] if name != "tool"}}
    return f"{json.dumps(keys, ensure_ascii=False)}: {function['description']}"
