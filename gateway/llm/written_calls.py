"""Calls that a model has written into its text, where it should have made them. Pure.

Each family of models has a way to write them, which servers read where they know the model: as JSON in `<tool_call>`
(Qwen, Hermes), behind `[TOOL_CALLS]` (Mistral) or `<|python_tag|>` (Llama), as `<function=…>` with JSON or parameters
in it (Llama, Qwen coder), as `<invoke name=…>`, between marks of their own (Kimi, DeepSeek, GLM), as Python (Gemma).
Small ones write bare JSON, in a fence or without.
"""

import ast
import json
import re
import warnings
from collections.abc import Container
from typing import Any

from gateway.llm.model import RawCall, parsed_arguments

_WRAPPING = (
    r"```(?:json|tool_call|tool_code|python|xml)?|</?(?:tool_calls?|function_calls?)>|\[/?TOOL_CALLS\]|<\|python_tag\|>"
    r"|<\|tool_calls_section_(?:begin|end)\|>|<｜tool▁calls▁(?:begin|end)｜>"
)
_BETWEEN = re.compile(rf"\s+|[,;]|{_WRAPPING}")
_AFTER = re.compile(rf"(?:\s|{_WRAPPING})+$")
_MARKED = (
    re.compile(r"<(function=|invoke name=)\"?(?P<name>[^\">\s]+)\"?>(?P<inside>.*?)</(?:function|invoke)>", re.DOTALL),
    re.compile(
        r"<\|tool_call_begin\|>\s*(?:functions\.)?(?P<name>[\w-]+)(?::\d+)?\s*<\|tool_call_argument_begin\|>"
        r"(?P<inside>.*?)<\|tool_call_end\|>",
        re.DOTALL,
    ),
    re.compile(
        r"<｜tool▁call▁begin｜>(?:function<｜tool▁sep｜>)?(?P<name>[\w-]+)\s*(?:<｜tool▁sep｜>|```json)(?P<inside>.*?)(?:```\s*)?"
        r"<｜tool▁call▁end｜>",
        re.DOTALL,
    ),
    re.compile(r"<tool_call>\s*(?P<name>[\w-]+)\s*(?P<inside>(?:<arg_key>.*?</arg_value>\s*)+)</tool_call>", re.DOTALL),
)
_PARAMETER = re.compile(r"<parameter(?:=| name=)\"?(?P<name>[^\">\s]+)\"?>(?P<value>.*?)</parameter>", re.DOTALL)
_PYTHON = re.compile(r"[\w.]+\(")
_KEY = re.compile(r"<arg_key>(?P<name>.*?)</arg_key>\s*<arg_value>(?P<value>.*?)</arg_value>", re.DOTALL)
_NAMES = ("name", "tool", "tool_name", "function", "action")
_ARGUMENTS = ("arguments", "parameters", "args", "input", "action_input")
_CODE_OR_MARK = re.compile(
    r"```.*?(?:```|$)|`[^`\n]*`|(?P<mark></?tool_calls?>|<function=|<invoke name=|\[TOOL_CALLS\]"
    r"|<\|(?:python_tag|tool_call)|<｜tool▁call)",
    re.DOTALL,
)


def written_calls(text: str, names: Container[str], *, whole: bool = True) -> tuple[RawCall, ...]:
    """When nothing but calls stands in the text, each of a tool of these names; else none: what only mentions a call is
    a text. `whole`: the answer did not break off."""
    calls: list[RawCall | None] = []
    at = 0
    while at < len(text):
        if found := next((one for marked in _MARKED if (one := marked.match(text, at))), None):
            calls.append(_made(found["name"], _inside(found["inside"]), names))
            at = found.end()
        elif between := _BETWEEN.match(text, at):
            at = between.end()
        elif _PYTHON.match(text, at) and (in_python := _in_python(text[at:], names)):
            calls, at = [*calls, *in_python], len(text)
        else:
            try:
                value, at = json.JSONDecoder().raw_decode(text, at)
            except (ValueError, RecursionError):
                return ()
            calls += [_call(one, names) for one in _several(value)]
        if None in calls:
            return ()
    made = [call for call in calls if call is not None]
    return tuple(RawCall(name=call.name, arguments=call.arguments, complete=whole) for call in made)


def has_marks(text: str) -> bool:
    """Part of it was to be a call, and is no text for people. In code, the marks are text like any other."""
    return any(found["mark"] for found in _CODE_OR_MARK.finditer(text))


def before_marks(text: str) -> str:
    """What stands before the first of them."""
    marks = _CODE_OR_MARK.finditer(text)
    return text[: next((found.start() for found in marks if found["mark"]), len(text))].strip()


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
    try:
        return RawCall(name=name, arguments=json.dumps(arguments, default=str))
    except (TypeError, ValueError, RecursionError):  # keys that are no names, from Python
        return None


def _in_python(text: str, names: Container[str]) -> list[RawCall]:
    """`wait(reason="thanks")`, also printed or of a module; nothing else. What stands without a name is left out."""
    if not (text := _AFTER.sub("", text)).endswith(")"):
        return []
    try:
        with warnings.catch_warnings(action="ignore"):
            lines = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    calls: list[RawCall | None] = []
    for line in lines:
        made = line.value if isinstance(line, ast.Expr) else None
        if isinstance(made, ast.Call) and isinstance(made.func, ast.Name) and made.func.id == "print" and made.args:
            made = made.args[0]
        if not isinstance(made, ast.Call):
            return []
        name = made.func.attr if isinstance(made.func, ast.Attribute) else getattr(made.func, "id", None)
        try:
            arguments = {word.arg: ast.literal_eval(word.value) for word in made.keywords if word.arg}
        except (ValueError, TypeError, RecursionError, MemoryError):
            return []
        calls.append(_made(name, arguments, names))
    whole = [call for call in calls if call is not None]
    return whole if len(whole) == len(calls) else []


def _inside(text: str) -> Any:
    """Its parameters, if it is nothing but these; else its JSON."""
    pattern = _KEY if "<arg_key>" in text else _PARAMETER
    if (found := list(pattern.finditer(text))) and not pattern.sub("", text).strip():
        return {one["name"]: one["value"].strip("\n") for one in found}
    return text
