"""Histories that a provider accepts: repaired (`healed`) and made to fit (`fitted`). Pure: the given list stays.

Here: the pairing of calls and results, blank messages, and what may be left out. Not here: what a message means, and
what one provider insists on beyond that (`quirks`).

The rule that providers enforce with a 400: each call of an assistant message is answered exactly once, directly after
it, and there is no other result. One broken pair makes every later request fail, so it is mended on the way out.
"""

import json
import math
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from gateway.llm.model import Message, parsed_arguments, tool_call
from gateway.record import encode

Count = Callable[[Message], int]

OUTCOME_UNKNOWN = "interrupted, outcome unknown"
NO_OUTPUT = "(no output)"
SHORTENED_CHARS_MIN = 400  # what is left of a shortened text, at least: enough to see what it was
MESSAGE_OVERHEAD_TOKENS = 4


def healed(messages: list[Message]) -> list[Message]:
    """The history with every call answered exactly once, directly after it.

    A result that stands too late is moved; a call without one gets `OUTCOME_UNKNOWN`, which says that it may have run;
    a result without a call, or a second one, is left out. Blank messages are left out; arguments become JSON objects;
    a call id that was used before is replaced. User and system messages keep their order and text. A valid history
    comes back equal to itself.
    """
    results = _Results(messages)
    out: list[Message] = []
    used: set[str] = set()
    for place, message in enumerate(messages):
        if message["role"] == "tool" or _is_blank(message):
            continue
        calls = message.get("tool_calls")
        if not calls:
            out.append({k: v for k, v in message.items() if k != "tool_calls"} if "tool_calls" in message else message)
            continue
        fresh = [_fresh_id(_id_of(call), used) for call in calls]
        out.append({**message, "tool_calls": [_sound(c, i) for c, i in zip(calls, fresh, strict=True)]})
        for call, call_id in zip(calls, fresh, strict=True):
            out.append(_result(call_id, results.take(_id_of(call), place)))
    return out


class _Results:
    """The results of a history, each given out once, to the nearest call before it that has its id."""

    def __init__(self, messages: list[Message]) -> None:
        self._results: dict[str, list[tuple[int, Message]]] = {}
        self._calls: dict[str, list[int]] = {}
        for place, message in enumerate(messages):
            if message["role"] == "tool":
                self._results.setdefault(message.get("tool_call_id") or "", []).append((place, message))
            for call in message.get("tool_calls") or ():
                self._calls.setdefault(_id_of(call), []).append(place)

    def take(self, call_id: str, place: int) -> Message | None:
        until = next((p for p in self._calls[call_id] if p > place), math.inf)
        waiting = self._results.get(call_id, [])
        found = next((entry for entry in waiting if place < entry[0] < until), None)
        if found is None:
            return None
        waiting.remove(found)
        return found[1]


def _id_of(call: dict[str, Any]) -> str:
    return call.get("id") or ""


def _fresh_id(call_id: str, used: set[str]) -> str:
    fresh, n = call_id, len(used)
    while not fresh or fresh in used:
        n += 1
        fresh = f"h{n:08d}"
    used.add(fresh)
    return fresh


def _sound(call: dict[str, Any], call_id: str) -> dict[str, Any]:
    """With a name and arguments that every provider takes back."""
    function = call.get("function") or {}
    written = function.get("arguments")
    sound = tool_call(
        call_id, function.get("name") or "", written if isinstance(written, str) else json.dumps(written or {})
    )
    same = call_id == call.get("id") and function.get("name") == sound["function"]["name"]
    if same and written and isinstance(written, str) and parsed_arguments(written)[1] is not None:
        return call if "type" in call else {"type": "function", **call}
    return {**call, **sound, "function": {**function, **sound["function"]}}


def _result(call_id: str, found: Message | None) -> Message:
    if found is None:
        return {"role": "tool", "tool_call_id": call_id, "content": OUTCOME_UNKNOWN}
    if _is_blank(found):
        return {**found, "tool_call_id": call_id, "content": NO_OUTPUT}
    return found if found.get("tool_call_id") == call_id else {**found, "tool_call_id": call_id}


def _is_blank(message: Message) -> bool:
    content = message.get("content")
    return not message.get("tool_calls") and (not content or (isinstance(content, str) and not content.strip()))


def estimated_tokens(message: Message) -> int:
    """About what a message costs: a token for four characters of English or code, about one for each character of
    Chinese, and a few for its frame. No tokenizer: rather too much than too little, and it never raises."""
    tokens = MESSAGE_OVERHEAD_TOKENS + tokens_of(message.get("content"))
    for call in message.get("tool_calls") or ():
        tokens += MESSAGE_OVERHEAD_TOKENS + tokens_of(call["function"]["name"])
        tokens += tokens_of(call["function"].get("arguments"))
    return tokens


def tokens_of(content: Any) -> int:
    """The estimate for a text, or for any other content as JSON."""
    if content is None:
        return 0
    if not isinstance(content, str):
        return -(-len(msgspec.json.encode(content)) // 4)
    if content.isascii():
        return -(-len(content) // 4)
    beyond_ascii = len(content.encode("utf-8", "surrogatepass")) - len(content)
    return math.ceil(len(content) / 4 + beyond_ascii * 0.4)


def shortened(text: str, chars_max: int, where: str = "") -> str:
    """About `chars_max` characters at most: the beginning, how much was left out (`where` all of it is), the end."""
    if len(text) <= chars_max:
        return text
    kept = max(0, chars_max - 80 - len(where))
    head, tail = kept - kept // 3, kept // 3
    out = f"\n[… {len(text) - kept:,} characters left out{f'; all of it: {where}' if where else ''} …]\n"
    return text[:head] + out + (text[-tail:] if tail else "")


def within(text: str, bytes_max: int) -> str:
    """Shortened until it is no larger where it is stored."""
    kept, characters = text, min(len(text), bytes_max)
    while len(encode(kept)) > bytes_max:
        characters = characters * 3 // 4
        kept = shortened(text, characters)
    return kept


def fitted(messages: list[Message], budget_tokens: int, count: Count = estimated_tokens) -> list[Message]:
    """What fits: a call and its results stay together; the leading system messages and the latest user message survive,
    with the one right before it, if that is a user's too (what happened, and how things stand).

    In this order, as far as needed: results that take more than a quarter of the budget are shortened; what is older
    than the latest user message goes, oldest first; the older work since that message goes; what is left is shortened,
    results first, that user message last, each to no less than a few hundred characters. Only the system messages, and
    what cannot be shortened further, can make the outcome larger than the budget. `messages` must be healed.
    """
    if _total(messages, count) <= budget_tokens:
        return messages
    system = _leading_system(messages)
    groups = _groups([_capped(m, budget_tokens // 4, count) for m in messages[len(system) :]])
    latest = max((i for i, g in enumerate(groups) if g[0]["role"] == "user"), default=0)
    opens = 2 if latest and groups[latest - 1][0]["role"] == "user" else 1
    latest += 1 - opens
    older, current = groups[:latest], groups[latest:]
    room = budget_tokens - _total(system, count)
    if _total(_flat(current), count) <= room:
        kept = _dropped(older, room - _total(_flat(current), count), count)
        while len(kept) < len(older) and kept and kept[0][0]["role"] != "user":
            kept = kept[1:]  # a conversation that opens with an answer confuses a model, and some providers refuse it
        return [*system, *_flat(kept), *_flat(current)]
    opening, work = current[:opens], current[opens:]
    kept = _dropped(work, room - _total(_flat(opening), count), count) or work[-1:]
    return [*system, *_squeezed(_flat([*opening, *kept]), room, count)]


def _leading_system(messages: list[Message]) -> list[Message]:
    end = next((i for i, m in enumerate(messages) if m["role"] not in ("system", "developer")), len(messages))
    return messages[:end]


def _groups(messages: list[Message]) -> list[list[Message]]:
    """Each message with the results that follow it: what may only go together."""
    groups: list[list[Message]] = []
    for message in messages:
        if message["role"] == "tool" and groups:
            groups[-1].append(message)
        else:
            groups.append([message])
    return groups


def _dropped(groups: list[list[Message]], room: int, count: Count) -> list[list[Message]]:
    """The newest groups that fit into the room."""
    first = len(groups)
    while first and (room := room - _total(groups[first - 1], count)) >= 0:
        first -= 1
    return groups[first:]


def _squeezed(messages: list[Message], room: int, count: Count) -> list[Message]:
    """Shorten the largest text again and again, results before user messages, until it fits or nothing gives."""
    out = list(messages)
    for role in ("tool", "assistant", "user"):
        sizes = {i: len(m["content"]) for i, m in enumerate(out) if m["role"] == role and _is_text(m)}
        while sizes and (excess := _total(out, count) - room) > 0:
            largest = max(sizes, key=lambda i: sizes[i])
            size = max(SHORTENED_CHARS_MIN, min(sizes[largest] // 2, sizes[largest] - 4 * excess))
            if size >= sizes[largest]:
                break
            out[largest] = {**out[largest], "content": shortened(out[largest]["content"], size)}
            sizes[largest] = size
    return out


def _capped(message: Message, tokens_max: int, count: Count) -> Message:
    if message["role"] != "tool" or not _is_text(message) or (tokens := count(message)) <= tokens_max:
        return message
    size = max(SHORTENED_CHARS_MIN, len(message["content"]) * tokens_max // tokens)
    return {**message, "content": shortened(message["content"], size)}


def _is_text(message: Message) -> bool:
    return isinstance(message.get("content"), str)


def _flat(groups: list[list[Message]]) -> list[Message]:
    return [message for group in groups for message in group]


def _total(messages: Iterable[Message], count: Count) -> int:
    return sum(count(m) for m in messages)


def cleaned(value: Any) -> Any:
    """The same, with a question mark for each lone half of a surrogate pair: no JSON can carry one."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {cleaned(key): cleaned(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [cleaned(item) for item in value]
    return value
