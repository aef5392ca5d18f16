"""Messages for the tests, in short."""

import json
import random
from typing import Any

Message = dict[str, Any]

SYSTEM: Message = {"role": "system", "content": "You are the front desk."}


def user(text: str) -> Message:
    return {"role": "user", "content": text}


def made(call_id: str, name: str = "ping", arguments: str = '{"h": "a"}') -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def said(*calls: dict[str, Any], text: str | None = None) -> Message:
    return {"role": "assistant", "content": text, **({"tool_calls": list(calls)} if calls else {})}


def result(call_id: str, text: str = "ok") -> Message:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def valid_history(seed: int) -> list[Message]:
    """A random history that keeps every rule: system, then turns of a person with work of several calls each."""
    chance = random.Random(seed)
    history, minted = [SYSTEM], 0
    for turn in range(chance.randrange(1, 6)):
        history.append(user(f"request {turn} " + "x" * chance.choice((3, 50, 800))))
        for _ in range(chance.randrange(0, 4)):
            calls = []
            for _ in range(chance.randrange(1, 4)):
                minted += 1
                calls.append(made(f"c{minted:08d}", arguments=json.dumps({"n": minted})))
            history.append(said(*calls, text=chance.choice((None, "working on it"))))
            history += [result(c["id"], "r" * chance.choice((2, 100, 4000))) for c in calls]
        if chance.random() < 0.7:
            history.append(said(text=f"answer {turn}"))
    if history[-1]["role"] == "assistant":
        history.append(user("and now?"))
    return history


def spoiled_history(seed: int) -> list[Message]:
    """A valid one after a crash, a bug or an older version: messages lost, doubled, moved, blanked, arguments cut."""
    chance = random.Random(seed)
    history = json.loads(json.dumps(valid_history(seed)))
    for _ in range(chance.randrange(1, 5)):
        at = chance.randrange(1, len(history))
        match chance.randrange(5):
            case 0 if history[at]["role"] != "user":
                del history[at]
            case 1:
                history.insert(chance.randrange(1, len(history)), dict(history[at]))
            case 2:
                history.insert(chance.randrange(1, len(history)), history.pop(at))
            case 3 if history[at]["role"] != "user":
                history[at]["content"] = chance.choice(("", "  \n", None))
            case 4 if history[at].get("tool_calls"):
                call = chance.choice(history[at]["tool_calls"])
                call["function"]["arguments"] = chance.choice(("", '{"cmd": "rm', "[1]", "null"))
    return history
