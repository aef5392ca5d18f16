"""Stream deltas to one Generation: pure, no I/O, the same for every provider.

Here: how pieces of text and calls are put together, and how an answer ended. Not here: what of its text is for people
(`thoughts`); bytes, sockets, prices. Assembled by hand because litellm's own builder merges two parallel calls that
share an index.
"""

from typing import Any

import msgspec

from gateway.llm.model import Generation, RawCall, Token, Usage, parsed_arguments
from gateway.llm.thoughts import shown
from gateway.record import whole_text

# How servers say that an answer broke off: at its length, or because what they made of it was no answer.
CUT = frozenset(
    {"", "length", "max_tokens", "max_output_tokens", "model_length", "incomplete", "malformed_function_call"}
)
FILTERED = frozenset(
    {"content_filter", "content_filtered", "safety", "recitation", "prohibited_content", "blocklist", "spii"}
    | {"sensitive", "refusal"}
)
FAILED = frozenset({"error", "abort", "network_error", "insufficient_system_resource"})


class FunctionDelta(msgspec.Struct, frozen=True):
    name: str | None = None
    arguments: Any = None  # a piece of text; some servers send the finished object instead


class CallDelta(msgspec.Struct, frozen=True):
    index: int | str | None = None
    id: str | int | None = None
    function: FunctionDelta | None = None
    provider_specific_fields: dict[str, Any] | None = None
    extra_content: dict[str, Any] | None = None  # Gemini's thought signatures on its OpenAI-compatible endpoint


class Delta(msgspec.Struct, frozen=True):
    content: Any = None  # text, null, or a list of parts
    refusal: str | None = None  # what is said instead of an answer
    tool_calls: list[CallDelta] | None = None
    reasoning_content: Any = None
    thinking_blocks: list[dict[str, Any]] | None = None


class _Call:
    """A call that is still being written."""

    def __init__(self, delta: CallDelta) -> None:
        self.index = delta.index
        self.id = delta.id
        self.name = ""
        self.arguments = ""
        self.fields: dict[str, Any] = {}

    @property
    def is_whole(self) -> bool:
        return bool(self.name) and bool(self.arguments.strip()) and parsed_arguments(self.arguments)[1] is not None

    def is_another(self, delta: CallDelta) -> bool:
        """Some servers give all calls one id: where this one is whole, and a name comes with other arguments."""
        if not (self.is_whole and delta.function and delta.function.name):
            return False
        return bool(_text_of_arguments(delta.function.arguments)) or delta.index not in (None, self.index)

    def add(self, delta: CallDelta) -> None:
        if delta.function:
            name, arguments = delta.function.name or "", _text_of_arguments(delta.function.arguments)
            said_again = bool(name) and arguments == self.arguments and self.is_whole
            self.name += name if name != self.name else ""
            self.arguments += "" if said_again else arguments
        if delta.provider_specific_fields:
            self.fields["provider_specific_fields"] = delta.provider_specific_fields
        if delta.extra_content:
            self.fields["extra_content"] = delta.extra_content

    def finished(self, complete: bool) -> RawCall:
        return RawCall(
            name=self.name, arguments=whole_text(self.arguments), fields=self.fields or None, complete=complete
        )


class Assembler:
    """Takes the deltas of one answer in order. `characters` is what has been generated so far, reasoning included."""

    def __init__(self) -> None:
        self.characters = 0
        self.finish = ""
        self.tokens: list[Token] = []
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._calls: list[_Call] = []
        self._thinking: list[dict[str, Any]] = []

    def add(self, delta: Delta) -> None:
        text = _text_of_content(delta.content) or delta.refusal
        if text:
            self._text.append(text)
            self.characters += len(text)
        if delta.reasoning_content and isinstance(delta.reasoning_content, str):
            self._reasoning.append(delta.reasoning_content)
            self.characters += len(delta.reasoning_content)
        begun: list[_Call] = []
        for call in delta.tool_calls or ():
            self._add_call(call, begun)
        for block in delta.thinking_blocks or ():
            self._add_thinking(block)

    def end(self, reason: str | None) -> None:
        """How it ended, as far as that is said. What broke off has done so, whatever is said afterwards."""
        if reason and (not self.finish or self.finish.lower() not in CUT | FILTERED | FAILED):
            self.finish = reason

    def _add_call(self, delta: CallDelta, begun: list[_Call]) -> None:
        """`begun` are those that this very chunk has begun."""
        call = self._continued_by(delta, begun)
        if call is None:
            call = _Call(delta)
            self._calls.append(call)
            begun.append(call)
        call.add(delta)
        if delta.function:
            self.characters += len(_text_of_arguments(delta.function.arguments))

    def _continued_by(self, delta: CallDelta, begun: list[_Call]) -> _Call | None:
        """The call that it goes on with; None for a new one, which has a name. Servers leave out the index or the id,
        give parallel calls one index, one call several of either, and say its name again with each piece."""
        name = delta.function.name if delta.function else None
        newest = self._calls[::-1]
        if delta.id and (same := next((call for call in newest if call.id == delta.id), None)) is not None:
            return None if same.is_another(delta) else same
        same = next((call for call in newest if delta.index in (None, call.index)), None)
        if not name:
            return same if same is not None or delta.id else next(iter(newest), None)
        if same is None or same in begun or (delta.id and same.id):
            return None
        says_nothing = same.name == name and not (delta.function and delta.function.arguments)
        if same.is_whole:
            return same if says_nothing and delta.index is not None else None
        return same if delta.index is not None or (same.name == name and same.arguments) else None

    def _add_thinking(self, block: dict[str, Any]) -> None:
        """Anthropic's blocks come in pieces: a thinking block is whole once its signature is there."""
        if block.get("type") == "redacted_thinking":
            self._thinking.append({"type": "redacted_thinking", "data": block.get("data")})
            return
        if not self._thinking or _is_whole(self._thinking[-1]):
            self._thinking.append({"type": "thinking", "thinking": "", "signature": ""})
        self._thinking[-1]["thinking"] += block.get("thinking") or ""
        self._thinking[-1]["signature"] = block.get("signature") or ""

    def generation(self, *, usage: Usage, model: str, keeps_reasoning: bool) -> Generation:
        """All that came. `keeps_reasoning`: this provider wants its reasoning sent back with the calls it led to."""
        cut = self.finish.lower() in CUT
        fields: dict[str, Any] = {}
        if blocks := [block for block in self._thinking if _is_whole(block)]:
            fields["thinking_blocks"] = blocks
        if keeps_reasoning and self._reasoning and self._calls:
            fields["reasoning_content"] = "".join(self._reasoning)
        return Generation(
            text=shown(whole_text("".join(self._text))),
            calls=tuple(call.finished(complete=not cut) for call in _once(self._calls)),
            finish=self.finish,
            cut=cut,
            usage=usage,
            model=model,
            fields=fields or None,
            tokens=tuple(self.tokens),
        )


def _once(calls: list[_Call]) -> list[_Call]:
    """Without those that were said again, whole."""
    first = {(call.id or place, call.name, call.arguments): call for place, call in reversed(list(enumerate(calls)))}
    return [call for call in calls if call in first.values()]


def _text_of_content(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(p["text"] for p in content if isinstance(p, dict) and isinstance(p.get("text"), str))
    return ""


def _text_of_arguments(arguments: Any) -> str:
    if isinstance(arguments, str):
        return arguments
    return "" if arguments is None else msgspec.json.encode(arguments).decode()


def _is_whole(block: dict[str, Any]) -> bool:
    return bool(block["type"] == "redacted_thinking" or block["signature"])
