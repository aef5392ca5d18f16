"""The words for asking a language model, and the `Model` protocol that the brain and the actors hold.

Here: what goes in, what comes out, what goes wrong. Not here: any provider, any process, any retry, any socket; nothing
that would make this module slow to import.
"""

import json
import re
from collections.abc import Callable
from typing import Any, Literal, Protocol

import msgspec

from gateway.record import whole_text

Message = dict[str, Any]  # OpenAI's chat shape: the one dict that crosses packages, because it is the wire's own form
Tool = dict[str, Any]  # {"type": "function", "function": {"name", "description", "parameters"}}

ErrorKind = Literal[
    "key_refused",
    "model_unknown",
    "rate_limited",
    "overloaded",
    "unreachable",
    "context_too_long",
    "bad_request",
    "stream_cut",
    "content_filtered",
    "helper_died",
]


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """Where a model is and how to get in.

    `name` is litellm's: "openai/gpt-…", "anthropic/claude-…". `section` is the table of config.toml that it was read
    from, so that an error can name the key to mend. `repr` never shows the key.
    """

    name: str
    api_base: str | None = None
    api_key: str | None = None
    temperature: float | None = None
    section: str = "model"

    def __repr__(self) -> str:
        return f"Endpoint({self.name!r}, api_base={self.api_base!r}, section={self.section!r})"


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One question to a model. `messages` must satisfy the pairing rule of `history.healed`; they are never changed."""

    messages: list[Message]
    tools: list[Tool] = []
    tool_choice: str = "auto"  # "auto", "none", "required"; not sent without tools
    response_schema: dict[str, Any] | None = None  # a JSON schema that the text must satisfy
    logprobs: bool = False  # how likely each token of the text was, where the server says so
    max_tokens: int | None = None
    temperature: float | None = None  # None: the endpoint's own


class RawCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call as the model wrote it. Run it only with what `parsed` returns.

    `complete` is False when the generation was cut off: then the arguments may be half of what was meant, even if they
    happen to be valid JSON. `fields` are the provider's own (thought signatures); `tool_call` sends them back.
    """

    name: str
    arguments: str
    fields: dict[str, Any] | None = None
    complete: bool = True

    def parsed(self) -> dict[str, Any] | None:
        """The arguments; None if the call was cut off or they are no JSON object: such a call must not run."""
        return parsed_arguments(self.arguments)[1] if self.complete else None


class Token(msgspec.Struct, frozen=True):
    """A piece of a text, and the natural logarithm of its probability there."""

    token: str
    logprob: float


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """What one call cost. `usd` is None where the price is not known; `estimated` if the provider gave no count."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    usd: float | None = None
    estimated: bool = False


class Generation(msgspec.Struct, frozen=True, kw_only=True):
    """What a model answered: all of it, never a part.

    `text` holds no hidden reasoning and may be blank. `finish` is the provider's word ("stop", "tool_calls", "length";
    "" if it gave none). `cut` says that the answer broke off (length, or no finish reason): then no call is complete.
    `fields` belong into the assistant message when it is sent back (see `said`). `model` is the name that answered.
    `tokens` are those of the text as it came, if `Request.logprobs` was set and the server gave them.
    """

    text: str = ""
    calls: tuple[RawCall, ...] = ()
    finish: str = ""
    cut: bool = False
    usage: Usage = Usage()
    model: str = ""
    fields: dict[str, Any] | None = None
    tokens: tuple[Token, ...] = ()


OnSpent = Callable[[str, Usage], None]  # (model name, usage) of a call that brought no Generation


class Model(Protocol):
    """What the brain and the actors hold of a language model."""

    @property
    def name(self) -> str: ...

    async def generate(self, request: Request, on_spent: OnSpent | None = None) -> Generation:
        """Ask once and wait for the whole answer. Raises ModelError, and nothing else of its own.

        Cancelling it closes the provider's connection within 50 ms. What a cancelled or failed call has cost is
        told to `on_spent`, so that it is never lost and never counted twice.
        """
        ...


class ModelError(Exception):
    """A call brought no answer. `str()` and `for_operator` say what failed, where, and the key to mend; never the key's
    value. `usage` repeats what `on_spent` was told, and must not be counted again."""

    def __init__(
        self,
        kind: ErrorKind,
        for_operator: str,
        *,
        retryable: bool,
        retry_after_seconds: float | None = None,
        usage: Usage | None = None,
    ) -> None:
        super().__init__(for_operator)
        self.kind: ErrorKind = kind
        self.for_operator = for_operator
        self.retryable = retryable
        self.retry_after_seconds = retry_after_seconds
        self.usage = usage


_NO_NAME = re.compile(r"[^a-zA-Z0-9_-]")


def parsed_arguments(text: str) -> tuple[str, dict[str, Any] | None]:
    """(text that is safe to send back, the arguments, or None if what the model wrote is no JSON object).

    Never closes a brace, never strips a fence: half a command must not run. An empty text is a call without arguments;
    an object that was encoded twice is the object. The first part is always a JSON object, so that a bad call does not
    spoil every later request; and both hold only what every store and wire can carry.
    """
    try:
        value = json.loads(text.strip() or "{}", parse_constant=_no_constant)
        if isinstance(value, str):
            value = json.loads(value, parse_constant=_no_constant)
        if isinstance(value, dict):
            safe = json.dumps(value, ensure_ascii=False, allow_nan=False)  # 1e999 is read as infinite
            sound = whole_text(safe)
            return sound, value if sound == safe else json.loads(sound)
    except (ValueError, RecursionError):
        pass
    return json.dumps({"unparsed": whole_text(text)}, ensure_ascii=False), None


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")  # Python would read NaN, and write it back for the provider to refuse


def tool_call(call_id: str, name: str, arguments: str, fields: dict[str, Any] | None = None) -> dict[str, Any]:
    """One entry of an assistant message's `tool_calls`, with its name and arguments made safe to send back."""
    function = {"name": _NO_NAME.sub("_", name)[:64] or "unnamed", "arguments": parsed_arguments(arguments)[0]}
    return {"id": call_id, "type": "function", "function": function, **(fields or {})}


def said(text: str, tool_calls: list[dict[str, Any]], fields: dict[str, Any] | None = None) -> Message:
    """The assistant message to send back for a generation; one with neither text nor calls must not be sent at all."""
    message: Message = {"role": "assistant", "content": text if text.strip() else None}
    if tool_calls:
        message["tool_calls"] = tool_calls
    return {**message, **(fields or {})}
