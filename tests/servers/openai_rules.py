"""What OpenAI refuses of a request, in its words where known: pairs of calls and results, names, blank messages."""

import json
import re
from collections.abc import Collection
from typing import Any

TOOL_NAME = r"[a-zA-Z0-9_-]{1,64}"


def text_of(message: dict[str, Any]) -> str:
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", "") for part in content)


def broken_rule(body: dict[str, Any], knows: Collection[str] = ()) -> str | None:
    """The first of the provider's rules that a request breaks, in its words where known; None if it is fine. `knows`
    are the fields of messages that this one takes beside OpenAI's."""
    waiting: list[str] = []
    messages = body.get("messages")
    if not messages:
        return "'messages' must not be empty"
    for place, message in enumerate(messages):
        role = message["role"]
        if role == "tool":
            if message["tool_call_id"] not in waiting:
                return f"messages[{place}]: 'tool' must be a response to a preceding message with 'tool_calls'"
            waiting.remove(message["tool_call_id"])
        elif waiting:
            return f"messages[{place}]: 'tool_calls' must be followed by tool messages; no response for {waiting}"
        elif role == "assistant":
            if complaint := _broken_assistant(message):
                return f"messages[{place}]: {complaint}"
            waiting = [made["id"] for made in message.get("tool_calls") or ()]
        elif role not in ("system", "developer", "user"):
            return f"messages[{place}]: role {role!r}"
        elif not text_of(message).strip() and isinstance(message.get("content"), str | None):
            return f"messages[{place}]: empty {role} message"
        extra = message.keys() - {"role", "content", "name", "tool_calls", "tool_call_id", *knows}
        if extra:
            return f"messages[{place}]: additional properties are not allowed: {sorted(extra)}"
    if waiting:
        return f"'tool_calls' must be followed by tool messages; no response for {waiting}"
    return _broken_tools(body)


def _broken_assistant(message: dict[str, Any]) -> str | None:
    calls = message.get("tool_calls")
    if "tool_calls" in message and not calls:
        return "'tool_calls' must not be empty"
    if not calls and not text_of(message).strip():
        return "an assistant message needs content or tool_calls"
    ids = [made["id"] for made in calls or ()]
    if len(ids) != len(set(ids)):
        return f"call ids {ids} are not unique"
    for made in calls or ():
        if not re.fullmatch(TOOL_NAME, made["function"]["name"]):
            return f"name of {made['id']}: string does not match pattern"
        try:
            if not isinstance(json.loads(made["function"]["arguments"]), dict):
                return f"arguments of {made['id']} are no object"
        except ValueError:
            return f"arguments of {made['id']} are not valid JSON"
    return None


def _broken_tools(body: dict[str, Any]) -> str | None:
    tools = body.get("tools", [])
    if "tools" in body and not tools:
        return "'tools' must not be empty"
    if "tool_choice" in body and not tools:
        return "'tool_choice' is only allowed when 'tools' are specified"
    if len(tools) > 128:
        return f"{len(tools)} tools; at most 128"
    names = [tool["function"]["name"] for tool in tools]
    if len(names) != len(set(names)):
        return f"tool names {names} are not unique"
    return next((f"tool name {n!r}" for n in names if not re.fullmatch(TOOL_NAME, n)), None)
