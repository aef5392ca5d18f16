"""Stream deltas to one Generation: pure, no I/O, the same for every provider.

Here: how pieces of text and calls are put together, and what of them is hidden reasoning. Not here: bytes, sockets,
prices. Assembled by hand because litellm's own builder merges two parallel calls that share an index.
"""

import re
from typing import Any

import msgspec

from gateway.llm.model import Generation, RawCall, Token, Usage


class FunctionDelta(msgspec.Struct, frozen=True):
    name: str | None = None
    arguments: Any = None  # a piece of text; some servers send the finished object instead


class CallDelta(msgspec.Struct, frozen=True):
    index: int | None = None
    id: str | None = None
    function: FunctionDelta | None = None
    provider_specific_fields: dict[str, Any] | None = None
    extra_content: dict[str, Any] | None = None  # Gemini's thought signatures on its OpenAI-compatible endpoint


class Delta(msgspec.Struct, frozen=True):
    content: Any = None  # text, null, or a list of parts
    tool_calls: list[CallDelta] | None = None
    reasoning_content: str | None = None
    thinking_blocks: list[dict[str, Any]] | None = None


class _Call:
    """A call that is still being written."""

    def __init__(self, delta: CallDelta) -> None:
        self.index = delta.index
        self.id = delta.id
        self.name = ""
        self.arguments: list[str] = []
        self.fields: dict[str, Any] = {}

    def is_continued_by(self, delta: CallDelta) -> bool:
        """A new id or a new index is a new call: parallel calls may share an index, and some servers send none."""
        same_index = delta.index is None or delta.index == self.index
        return same_index and (not delta.id or delta.id == self.id)

    def add(self, delta: CallDelta) -> None:
        if delta.function:
            self.name += delta.function.name or ""
            self.arguments.append(_text_of_arguments(delta.function.arguments))
        if delta.provider_specific_fields:
            self.fields["provider_specific_fields"] = delta.provider_specific_fields
        if delta.extra_content:
            self.fields["extra_content"] = delta.extra_content

    def finished(self, complete: bool) -> RawCall:
        return RawCall(name=self.name, arguments="".join(self.arguments), fields=self.fields or None, complete=complete)


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
        text = _text_of_content(delta.content)
        if text:
            self._text.append(text)
            self.characters += len(text)
        if delta.reasoning_content:
            self._reasoning.append(delta.reasoning_content)
            self.characters += len(delta.reasoning_content)
        for call in delta.tool_calls or ():
            self._add_call(call)
        for block in delta.thinking_blocks or ():
            self._add_thinking(block)

    def _add_call(self, delta: CallDelta) -> None:
        call = next((c for c in reversed(self._calls) if c.is_continued_by(delta)), None)
        if call is None:
            call = _Call(delta)
            self._calls.append(call)
        call.add(delta)
        if delta.function:
            self.characters += len(_text_of_arguments(delta.function.arguments))

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
        cut = self.finish in ("", "length")
        fields: dict[str, Any] = {}
        if blocks := [block for block in self._thinking if _is_whole(block)]:
            fields["thinking_blocks"] = blocks
        if keeps_reasoning and self._reasoning and self._calls:
            fields["reasoning_content"] = "".join(self._reasoning)
        return Generation(
            text=shown("".join(self._text)),
            calls=tuple(call.finished(complete=not cut) for call in self._calls),
            finish=self.finish,
            cut=cut,
            usage=usage,
            model=model,
            fields=fields or None,
            tokens=tuple(self.tokens),
        )


_THOUGHT_OR_CODE = re.compile(r"(```.*?(?:```|$)|`[^`\n]*`)|<think(?:ing)?>.*?(?:</think(?:ing)?>|$)", re.DOTALL)
_UNOPENED = re.compile(r"(?<!`)</think(?:ing)?>(?!`)")


def shown(text: str) -> str:
    """The text without `<think>…</think>`, closed or not, and without what stands before a closing tag that nothing
    opened (some templates open it in the prompt). In code, the tags are text like any other."""
    if "think" not in text:
        return text
    closing = _UNOPENED.search(text)
    if closing and not re.search(r"<think(?:ing)?>", text[: closing.start()]):
        text = text[closing.end() :]
    return _THOUGHT_OR_CODE.sub(lambda match: match.group(1) or "", text).strip()


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
