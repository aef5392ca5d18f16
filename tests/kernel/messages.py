"""What every provider takes: a strict validator for OpenAI's chat shape. Raises AssertionError with the broken rule."""

import json
import re
from typing import Any


def valid(messages: list[dict[str, Any]]) -> None:
    """Calls are answered exactly once directly after them, nothing is empty, and a person or a result comes last."""
    assert messages, "no messages"
    assert messages[0]["role"] in ("system", "user"), "begins with system or user"
    seen: set[str] = set()
    waiting: list[str] = []
    for place, message in enumerate(messages):
        role, content = message["role"], message.get("content")
        assert role == "tool" or not waiting, f"{place}: {role} while {waiting} have no result"
        match role:
            case "assistant":
                calls = message.get("tool_calls")
                assert calls != [], f"{place}: tool_calls is empty"
                assert calls or (isinstance(content, str) and content.strip()), f"{place}: empty assistant"
                for call in calls or ():
                    _valid_call(call, place, seen)
                    waiting.append(call["id"])
            case "tool":
                assert message["tool_call_id"] in waiting, f"{place}: a result that nobody waits for"
                waiting.remove(message["tool_call_id"])
                assert isinstance(content, str), f"{place}: a result is text"
                assert content.strip(), f"{place}: empty result"
            case "user":
                assert isinstance(content, str), f"{place}: a message is text"
                assert content.strip(), f"{place}: empty user"
            case _:
                assert (role, place) == ("system", 0), f"{place}: {role}"
    assert not waiting, f"ends while {waiting} have no result"
    assert messages[-1]["role"] in ("user", "tool"), "ends with a message or a result"


def _valid_call(call: dict[str, Any], place: int, seen: set[str]) -> None:
    assert call["id"] not in seen, f"{place}: {call['id']} twice"
    assert re.fullmatch(r"[a-zA-Z0-9]{9}", call["id"]), f"{place}: id {call['id']}"
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", call["function"]["name"]), f"{place}: name {call['function']['name']!r}"
    assert isinstance(json.loads(call["function"]["arguments"]), dict), f"{place}: arguments"
    seen.add(call["id"])


def problem(messages: list[dict[str, Any]]) -> str:
    try:
        valid(messages)
    except AssertionError as rule:
        return str(rule).partition("\n")[0]
    return ""
