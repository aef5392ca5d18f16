"""What was decided before, as models read it: as calls, as words, and what of it a new action is told. Pure."""

from collections.abc import Iterator
from datetime import tzinfo
from typing import Any
from zoneinfo import ZoneInfo

from brain.emission import ref_of
from brain.entries import (
    Act,
    Decision,
    Quieten,
    React,
    Recalled,
    Remind,
    Speak,
    Steer,
    Unremind,
    Wait,
    Withdraw,
)
from brain.parts import Exchange, Heard
from brain.quoting import indented
from brain.state import LaneState
from brain.telling import events_text, line
from brain.tools import TEXT_OF, tool_name
from gateway.events import MessageReceived
from gateway.llm.model import Message, said, tool_call
from gateway.record import encode

CONTEXT_LINES, CONTEXT_CHARACTERS = 16, 4000
NOT_DELIVERED = {
    "failed": " (it was not delivered)",
    "withdrawn": " (it was withdrawn, unsent)",
    "unknown": " (nobody knows whether it arrived)",
}


def rendered(exchange: Exchange, state: LaneState, zone: ZoneInfo) -> list[Message]:
    """Once: an action may be forgotten later, and what was sent to a provider must stay the same."""
    if exchange.rendered is None:
        exchange.rendered = []
        if exchange.heard:
            text = _aside(exchange) if exchange.is_aside else events_text(exchange.heard, state, zone)
            exchange.rendered.append({"role": "user", "content": text})
        exchange.rendered += _decided(exchange, state, zone)
    return exchange.rendered


def _aside(exchange: Exchange) -> str:
    labels = dict.fromkeys(item.label for item in exchange.heard)
    return "\n".join(f"[{label}, set aside: it could not be dealt with]" for label in labels)


def _decided(exchange: Exchange, state: LaneState, zone: ZoneInfo) -> list[Message]:
    texts, calls, results = [], [], []
    for n, decision in enumerate(exchange.decided.decisions):
        call_id = f"{_letter(exchange, state)}{exchange.decided.turn:06d}{n:02d}"
        if isinstance(decision, Speak) and not decision.by_tool:
            texts.append(decision.text)
        elif (written := _call(decision, state, zone)) is not None:
            calls.append(tool_call(call_id, written[0], encode(written[1]).decode()))
            text = decision.found if isinstance(decision, Recalled) else "Done."
            results.append({"role": "tool", "tool_call_id": call_id, "content": text})
    if not (texts or calls):
        return []
    return [said("\n\n".join(texts), calls), *results]


def _letter(exchange: Exchange, state: LaneState) -> str:
    """Turns that were elsewhere have numbers of their own."""
    return chr(ord("c") + (state.joined.index(exchange.origin) % 20 + 1 if exchange.origin else 0))


def _call(decision: Decision, state: LaneState, zone: ZoneInfo) -> tuple[str, dict[str, Any]] | None:
    match decision:
        case Speak(text=text, route=route, files=attached):
            names = {"attach": [one.name for one in attached]} if attached else {}
            return "send_message", {"text": text, "medium": route.medium, **names}
        case React(emoji=emoji):
            return "react", {"emoji": emoji}
        case Wait(reason=reason):
            return "wait", {"reason": reason}
        case Act(name=name, query=query, persist=persist):
            return "act", {"name": name, "query": query, "persist": persist}
        case Steer(verb=verb, action=key, text=text, question=question):
            action = state.actions.get(key)
            name = tool_name(verb, action, question) if action else verb
            return name, {TEXT_OF[verb]: text} if text and verb in TEXT_OF else {}
        case Recalled(query=query):
            return "recall", {"query": query}
        case Remind(text=text, at=at):
            return "remind", {"text": text, "at": at.astimezone(zone).isoformat(timespec="minutes")}
        case Unremind(label=label):
            return "remind", {"cancel": label}
        case Withdraw() | Quieten():
            return None


def context(state: LaneState, heard: tuple[Heard, ...], zone: tzinfo) -> str:
    """What a new action is told of the conversation: the last lines, who asked, and where."""
    lines: list[str] = []
    for exchange in state.exchanges[-CONTEXT_LINES:]:
        if not exchange.is_aside:
            lines += [line(item, state, zone) for item in exchange.heard if isinstance(item.fact, MessageReceived)]
        lines += spoken(exchange, state)
    lines += [line(item, state, zone) for item in heard if isinstance(item.fact, MessageReceived)]
    return "\n".join(lines[-CONTEXT_LINES:])[-CONTEXT_CHARACTERS:]


def beyond(query: str, told: str) -> str:
    """A context without its last line, where that is what is asked for: said twice, it stands against a correction."""
    asked = f"] {indented(query)}"
    return told.removesuffix(asked).rpartition("\n")[0] if told.endswith(asked) else told


def spoken(exchange: Exchange, state: LaneState) -> Iterator[str]:
    """What was said in it, with what became of it where that was no delivery."""
    for place, decision in enumerate(exchange.decided.decisions):
        if isinstance(decision, Speak):
            send = state.sends.get(ref_of(exchange.origin or state.conversation, exchange.decided, place))
            end = NOT_DELIVERED.get(send.outcome or "sent", "") if send else ""
            yield f"You{end}: {indented(decision.text)}"


def in_words(decision: Decision, state: LaneState) -> str:
    """As a line, of those that were not spoken; empty where there is nothing to tell."""
    match decision:
        case React(emoji=emoji):
            return f"You put {emoji}"
        case Act(name=name, query=query):
            return f"You started {name}: {indented(query)}"
        case Steer(verb=verb, action=key, text=text):
            name = state.actions[key].name if key in state.actions else "an earlier action"
            return f"You: {verb} {name} {indented(text)}".rstrip()
        case Recalled(query=query):
            return f"You looked up “{indented(query)}”."
        case Remind(text=text):
            return f"You set a reminder: {indented(text)}"
        case Speak() | Wait() | Withdraw() | Unremind() | Quieten():
            return ""
