"""Calls that a model has written into its text, where it should have made them. Pure.

Each family of models has a way to write them, which servers read where they know the model: as JSON in `<tool_call>`
(Qwen, Hermes), behind `[TOOL_CALLS]` (Mistral) or `<|python_tag|>` (Llama), as `<function=…>` with JSON or parameters
in it (Llama, Qwen coder), as `<invoke name=…>`. Small ones write bare JSON, in a fence or without.
"""

import json
import re
from collections.abc import Container
from typing import Any

from gateway.llm.model import RawCall, parsed_arguments

_WRAPPING = re.compile(
    r"```(?:json|tool_call|tool_code|xml)?|</?(?:tool_calls?|function_calls?)>|\[/?TOOL_CALLS\]|<\|python_tag\|>"
)
_MARKED = re.compile(
    r"<(?:function=|invoke name=)\"?(?P<name>[^\">\s]+)\"?>(?P<inside>.*?)</(?:function|invoke)>", re.DOTALL
)
_PARAMETER = re.compile(r"<parameter(?:=| name=)\"?(?P<name>[^\">\s]+)\"?>(?P<value>.*?)</parameter>", re.DOTALL)
_NAMES = ("name", "tool", "tool_name", "function", "action")
_ARGUMENTS = ("arguments", "parameters", "args", "input", "action_input")
_MARKS = re.compile(r"</?tool_calls?>|<function=|<invoke name=|\[TOOL_CALLS\]|<\|python_tag\|>")
_CODE = re.compile(r"```.*?(?:```|$)|`[^`\n]*`", re.DOTALL)


def written_calls(text: str, names: Container[str], *, whole: bool = True) -> tuple[RawCall, ...]:
    """When nothing but calls stands in the text, each of a tool of these names; else none: what only mentions a call is
    a text. `whole`: the answer did not break off."""
    rest = _WRAPPING.sub(" ", text).strip()
    calls: list[RawCall | None] = []
    for found in _MARKED.finditer(rest):
        calls.append(_made(found["name"], _inside(found["inside"]), names))
    rest = _MARKED.sub(" ", rest).strip()
    while rest:
        try:
            value, end = json.JSONDecoder().raw_decode(rest)
        except (ValueError, RecursionError):
            return ()
        calls += [_call(one, names) for one in _several(value)]
        rest = rest[end:].strip(" \n\r\t,;")
    made = [call for call in calls if call is not None]
    if len(made) < len(calls):
        return ()
    return tuple(RawCall(name=call.name, arguments=call.arguments, complete=whole) for call in made)


def has_marks(text: str) -> bool:
    """Part of it was to be a call, and is no text for people. In code, the marks are text like any other."""
    return _MARKS.search(_CODE.sub("", text)) is not None


def _several(value: Any) -> list[Any]:
    if isinstance(value, dict) and isinstance(value.get("tool_calls"), list):
        value = value["tool_calls"]
    return value if isinstance(value, list) and value else [value]


def _call(value: Any, names: Container[str]) -> RawCall | None:
    if not isinstance(value, dict):
        return None
    if isinstance(value.get("function"), dict):
        value = value["function"]
    name = next((value[key] for key in _NAMES if isinstance(value.get(key), str)), None)
    return _made(name, next((value[key] for key in _ARGUMENTS if key in value), {}), names)


def _made(name: Any, arguments: Any, names: Container[str]) -> RawCall | None:
    if isinstance(arguments, str):
        arguments = parsed_arguments(arguments)[1]
    if not isinstance(name, str) or name not in names or not isinstance(arguments, dict):
        return None
    return RawCall(name=name, arguments=json.dumps(arguments))


def _inside(text: str) -> Any:
    if found := list(_PARAMETER.finditer(text)):
        return {one["name"]: one["value"].strip("\n") for one in found}
    return text
