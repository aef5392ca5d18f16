"""What must hold of every request that an action makes, and of every prefix of its log."""

import json
import re
from typing import Any

from actors.entries import ActionEntry, Compacted
from actors.journal import ActionState
from gateway.actions import BY_ITSELF, LEADS_TO
from gateway.llm.model import Message, Request


def valid(messages: list[Message]) -> None:
    """OpenAI's rules for a history, which all others are made from."""
    waiting: list[str] = []
    seen: set[str] = set()
    for place, message in enumerate(messages):
        role = message["role"]
        assert role == "tool" or not waiting, f"{place}: {role} while {waiting} have no result"
        match role:
            case "system":
                assert place == 0, "the system message is the first"
            case "user":
                assert isinstance(message["content"], str), f"{place}: content"
                assert message["content"].strip(), f"{place}: empty"
            case "assistant":
                assert message.get("content") or message.get("tool_calls"), f"{place}: empty"
                for made in message.get("tool_calls") or ():
                    assert made["id"] not in seen, f"{place}: {made['id']} twice"
                    assert re.fullmatch(r"c\d{8}", made["id"]), made["id"]
                    assert isinstance(json.loads(made["function"]["arguments"]), dict), f"{place}: arguments"
                    seen.add(made["id"])
                    waiting.append(made["id"])
            case _:
                assert message["tool_call_id"] in waiting, f"{place}: a result that nobody waits for"
                assert message["content"], f"{place}: an empty result"
                waiting.remove(message["tool_call_id"])
    assert not waiting, f"ends while {waiting} have no result"
    assert messages[-1]["role"] in ("user", "tool"), "ends with a user's message or a result"


def each_extends_the_last(requests: list[Request], compactions: int = 0) -> None:
    """But at a compaction. Side calls extend it too, and are extended by none."""
    last: list[Message] = []
    broken = 0
    for request in requests:
        valid(request.messages)
        broken += request.messages[: len(last)] != last
        if request.tool_choice != "none":
            last = request.messages
    assert broken <= compactions, f"{broken} requests do not extend the one before, {compactions} compactions"


def every_prefix(key: str, entries: list[ActionEntry]) -> ActionState:
    """Of a log folds, and renders validly whenever no call is open; phases follow the table."""
    state = ActionState(key)
    legal = {(at, to) for (at, _), to in {**LEADS_TO, **BY_ITSELF}.items()}  # type: ignore[dict-item]
    for entry in entries:
        before, length = state.phase, len(state.transcript.messages)
        state.apply(entry)
        assert before == state.phase or (before, state.phase) in legal, f"{before} → {state.phase} by {entry}"
        t = state.transcript
        if not t.open and t.messages and (t.messages[-1]["role"] != "assistant"):
            valid(t.messages)
        assert len(t.messages) >= length or isinstance(entry, Compacted)
    return state


def texts(state: ActionState) -> list[str]:
    """The transcript as lines: role and content."""
    return [f"{message['role']}: {_content(message)}" for message in state.transcript.messages]


def _content(message: dict[str, Any]) -> str:
    made = [f"{one['function']['name']}({one['function']['arguments']})" for one in message.get("tool_calls") or ()]
    return " ".join([str(message.get("content") or ""), *made]).strip()
