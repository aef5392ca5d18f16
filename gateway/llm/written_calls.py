"""Calls that a model has written into its text, where it should have made them. Pure."""

import json
import re
from collections.abc import Container
from typing import Any

from gateway.llm.model import RawCall

_FENCE = re.compile(r"^\s*(?:```(?:json|tool_call)?\s*)?(\{.*\})\s*(?:```)?\s*$", re.DOTALL)
_TAGS = re.compile(r"\s*<tool_call>\s*(\{.*?\})\s*</tool_call>", re.DOTALL)


def written_calls(text: str, names: Container[str]) -> tuple[RawCall, ...]:
    """When the whole text is one JSON object that names a tool, bare or in a fence, or some in `<tool_call>` tags;
    else none: what only mentions a call is a text."""
    if tagged := _TAGS.findall(text):
        calls = [_call(found, names) for found in tagged] if not _TAGS.sub("", text).strip() else [None]
    else:
        fenced = _FENCE.match(text)
        calls = [_call(fenced[1], names) if fenced else None]
    whole = tuple(call for call in calls if call is not None)
    return whole if len(whole) == len(calls) else ()


def _call(text: str, names: Container[str]) -> RawCall | None:
    try:
        value: dict[str, Any] = json.loads(text)
    except (ValueError, RecursionError):
        return None
    name = value.get("name") or value.get("tool")
    arguments = value.get("arguments", value.get("parameters", {}))
    if not isinstance(name, str) or name not in names or not isinstance(arguments, dict):
        return None
    return RawCall(name=name, arguments=json.dumps(arguments))
