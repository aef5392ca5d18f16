"""What providers insist on, for a request that litellm has translated to their form. Each raises AssertionError with
the rule that is broken."""

import re
from itertools import pairwise
from typing import Any


def anthropic(body: dict[str, Any]) -> None:
    messages = body["messages"]
    assert messages[0]["role"] == "user", "the first is the user's"
    assert messages[-1]["role"] == "user", "the last is the user's (no prefill)"
    asked: list[str] = []
    for place, message in enumerate(messages):
        blocks = message["content"]
        assert place == 0 or messages[place - 1]["role"] != message["role"], f"{place}: roles alternate"
        assert isinstance(blocks, list), f"{place}: content is a list"
        assert blocks, f"{place}: empty content"
        assert all(b["type"] != "text" or b["text"].strip() for b in blocks), f"{place}: empty text"
        results = [b["tool_use_id"] for b in blocks if b["type"] == "tool_result"]
        assert sorted(results) == sorted(asked), f"{place}: results {results} for {asked}"
        assert all(b["type"] == "tool_result" for b in blocks[: len(results)]), f"{place}: results come first"
        asked = [b["id"] for b in blocks if b["type"] == "tool_use"]
        assert all(isinstance(b["input"], dict) for b in blocks if b["type"] == "tool_use"), f"{place}: input"
    assert not asked, f"ends while {asked} have no result"


def gemini(body: dict[str, Any]) -> None:
    contents: list[dict[str, Any]] = body["contents"]
    asked: list[str] = []
    assert contents[0]["role"] == "user", "the first is the user's"
    for place, content in enumerate(contents):
        assert content["parts"], f"{place}: empty parts"
        assert all(p.get("text", "x") for p in content["parts"]), f"{place}: empty text"
        answers = [p["function_response"]["name"] for p in content["parts"] if "function_response" in p]
        assert sorted(answers) == sorted(asked), f"{place}: responses {answers} for calls {asked}"
        asked = [p["function_call"]["name"] for p in content["parts"] if "function_call" in p]
        assert not asked or contents[place - 1]["role"] == "user", f"{place}: a call follows a user turn"
    assert not asked
    assert contents[-1]["role"] == "user", "the last is the user's"


def mistral(messages: list[dict[str, Any]]) -> None:
    for before, after in pairwise(messages):
        pair = (before["role"], after["role"])
        assert pair not in (("tool", "user"), ("user", "user")), f"{pair[1]} after {pair[0]}"
        for made in before.get("tool_calls") or ():
            assert re.fullmatch(r"[a-zA-Z0-9]{9}", made["id"]), made["id"]
