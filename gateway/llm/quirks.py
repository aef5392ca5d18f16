"""From valid messages to what one provider takes: pure, on a copy for the wire, applied in the helper at each call.

Here: what providers insist on beyond OpenAI's rules and litellm does not mend. Not here: repairing or shortening a
history (`history`), and nothing that is kept: the next request starts again from the caller's own messages.

Each mend maps a longer history to an extension of what it made of the shorter one, up to the last message, so that a
provider's cache holds.
"""

import json
from typing import Any

from gateway.llm.model import Message

OWN_FIELDS: dict[str, frozenset[str]] = {  # what each provider wants back; every other provider refuses or ignores it
    "openai": frozenset({"extra_content"}),
    "anthropic": frozenset({"thinking_blocks", "provider_specific_fields"}),
    "bedrock": frozenset({"thinking_blocks", "provider_specific_fields"}),
    "gemini": frozenset({"provider_specific_fields"}),
    "vertex_ai": frozenset({"thinking_blocks", "provider_specific_fields"}),
    "deepseek": frozenset({"reasoning_content"}),
}
STANDARD_FIELDS = frozenset({"role", "content", "name", "tool_calls", "tool_call_id", "id", "type", "function"})
GEMINI = frozenset({"gemini", "vertex_ai"})


def provider_of(model: str) -> str:
    """The provider in a litellm name: "mistral" of "mistral/mistral-large". A bare name is OpenAI's or Anthropic's."""
    provider, slash, _ = model.partition("/")
    if slash:
        return provider
    return "anthropic" if model.startswith("claude") else "openai"


def for_provider(messages: list[Message], provider: str, *, thinks: bool = False) -> list[Message]:
    """The messages that this provider accepts, in the same order. The given ones are not changed. `thinks`: it wants
    its reasoning back with each call, and some with those of other models."""
    mended = [own_fields_only(m, provider) for m in messages]
    if thinks:
        mended = [with_reasoning(own, message) for own, message in zip(mended, messages, strict=True)]
    if provider == "openai":
        return mended
    mended = opened(mended)
    if provider == "mistral":
        return merged(bridged(mended))
    if provider in GEMINI:
        return [read_as_text(told_apart(m)) for m in mended]
    return mended


def own_fields_only(message: Message, provider: str) -> Message:
    """Without the fields that another provider left: after a switch of models a history holds both kinds."""
    kept = STANDARD_FIELDS | OWN_FIELDS.get(provider, frozenset())
    calls = message.get("tool_calls")
    strange = message.keys() - kept
    if not strange and not any(c.keys() - kept for c in calls or ()):
        return message
    own = {key: value for key, value in message.items() if key in kept}
    if calls:
        own["tool_calls"] = [{key: value for key, value in c.items() if key in kept} for c in calls]
    return own


def with_reasoning(own: Message, message: Message) -> Message:
    """A space where there was none: it may be missing nowhere, and is refused empty."""
    if not message.get("tool_calls"):
        return own
    return {**own, "reasoning_content": message.get("reasoning_content") or " "}


def opened(messages: list[Message]) -> list[Message]:
    """Most providers but OpenAI refuse a conversation that the assistant opens: a user message in front."""
    first = next((i for i, m in enumerate(messages) if m["role"] not in ("system", "developer")), len(messages))
    if first < len(messages) and messages[first]["role"] == "assistant":
        return [*messages[:first], {"role": "user", "content": "(it begins here)"}, *messages[first:]]
    return messages


def bridged(messages: list[Message]) -> list[Message]:
    """Mistral answers 400 (code 3230) to a user message right after a tool result: an assistant message between."""
    out: list[Message] = []
    for message in messages:
        if out and out[-1]["role"] == "tool" and message["role"] == "user":
            out.append({"role": "assistant", "content": "(noted)"})
        out.append(message)
    return out


def merged(messages: list[Message]) -> list[Message]:
    """Neighbouring user messages as one, for templates that insist on alternation."""
    out: list[Message] = []
    for message in messages:
        if out and out[-1]["role"] == message["role"] == "user":
            out[-1] = {**out[-1], "content": _joined(out[-1]["content"], message["content"])}
        else:
            out.append(message)
    return out


def told_apart(message: Message) -> Message:
    """litellm drops the second of two equal calls for Gemini but keeps both results: mark the arguments of others."""
    seen: set[tuple[str, str]] = set()
    calls: list[dict[str, Any]] = []
    for call in message.get("tool_calls") or ():
        function = call["function"]
        if (function["name"], function["arguments"]) in seen:
            marked = {**json.loads(function["arguments"]), "_again": len(seen)}
            function = {**function, "arguments": json.dumps(marked)}
        seen.add((function["name"], function["arguments"]))
        calls.append({**call, "function": function})
    return {**message, "tool_calls": calls} if calls else message


def read_as_text(message: Message) -> Message:
    """litellm takes a result that begins with data:image for an image and parses JSON: a status line keeps it text."""
    content = message.get("content")
    if message["role"] == "tool" and isinstance(content, str) and content.lstrip().startswith(("data:", "{", "[")):
        return {**message, "content": f"result:\n{content}"}
    return message


def _joined(first: Any, second: Any) -> Any:
    if isinstance(first, str) and isinstance(second, str):
        return f"{first}\n\n{second}"
    return [*_parts(first), *_parts(second)]


def _parts(content: Any) -> list[Any]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
