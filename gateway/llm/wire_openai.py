"""What OpenAI's protocol says, and what servers that imitate it say instead: bytes to an attempt. Pure, but for the
order in which pieces come.

Here: the lines of a stream, its chunks, errors in any of their shapes. Not here: sockets and statuses.

https://platform.openai.com/docs/api-reference/chat-streaming
"""

import json
import re
from collections.abc import AsyncIterator
from typing import Any, TypeVar

import msgspec

from gateway.llm.assembly import Delta
from gateway.llm.attempt import Attempt
from gateway.llm.model import Token
from gateway.llm.refusals import refusal

T = TypeVar("T")

LINE_BYTES_MAX = 16 << 20
_MARKUP = re.compile(r"<(script|style)\b.*?</\1>|<[^>]*>", re.DOTALL | re.IGNORECASE)


class _Choice(msgspec.Struct, frozen=True):
    error: Any = None
    delta: Delta | None = None
    message: Delta | None = None  # from a server that does not stream
    finish_reason: str | None = None
    logprobs: Any = None  # old servers give it other shapes


class _PromptDetails(msgspec.Struct, frozen=True):
    cached_tokens: int | None = None


class _Usage(msgspec.Struct, frozen=True):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: Any = None


class _Chunk(msgspec.Struct, frozen=True):
    choices: list[_Choice] | None = None
    usage: Any = None  # servers count in ways of their own; an answer is one without it
    error: Any = None
    message: Any = None  # of an error that stands there bare
    detail: Any = None


_chunk = msgspec.json.Decoder(_Chunk, strict=False)


async def events(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The data of each server-sent event; every server here puts one event's data on one line. An error that some put
    there as a line of another name, or of none, is one too. Raises ValueError on a line over the bound."""
    rest = b""
    async for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            if data := _data(line):
                yield data
        if len(rest) > LINE_BYTES_MAX:
            raise ValueError(f"a line over {LINE_BYTES_MAX} bytes")
    if data := _data(rest):
        yield data


async def _once(piece: bytes) -> AsyncIterator[bytes]:
    yield piece


def _data(line: bytes) -> bytes:
    """Empty for what carries nothing."""
    line = line.removeprefix(b"\xef\xbb\xbf").strip()
    if line.startswith(b"error:"):
        return b'{"error": %b}' % line.removeprefix(b"error:")
    return line if line.startswith(b"{") else line.removeprefix(b"data:").strip() if line.startswith(b"data:") else b""


async def take_json(attempt: Attempt, body: bytes) -> None:
    """One answer; or events after all, whatever the server calls them."""
    if body.lstrip().startswith(b"{"):
        take(attempt, body)
    else:
        async for data in events(_once(body)):
            if data != b"[DONE]":
                take(attempt, data)
    if not attempt.assembler.finish and not attempt.assembler.characters:
        raise attempt.cut(f"there is no answer in it: {body[:200].decode(errors='replace')}")


def take(attempt: Attempt, data: bytes) -> None:
    chunk = _decoded(data)
    error = chunk.error or next((choice.error for choice in chunk.choices or () if choice.error), None)
    if not error and chunk.choices is None and (chunk.message or chunk.detail):
        error = msgspec.json.decode(data)
    if error:
        status, code, said = reason(error)
        raise refusal(attempt.endpoint, status, said, code=code, usage=attempt.spent())
    for choice in chunk.choices or ():
        if delta := choice.delta or choice.message:
            attempt.assembler.add(delta)
        attempt.assembler.tokens += _tokens(choice.logprobs)
        attempt.assembler.end(choice.finish_reason)
    if usage := _read(chunk.usage, _Usage):
        details = _read(usage.prompt_tokens_details, _PromptDetails) or _PromptDetails()
        attempt.count(
            prompt=usage.prompt_tokens or 0,
            completion=usage.completion_tokens or 0,
            cache_read=details.cached_tokens or 0,
        )


def _decoded(data: bytes) -> _Chunk:
    """Raises DecodeError or ValueError. Some servers cut an emoji in two, which one JSON text cannot say."""
    try:
        return _chunk.decode(data)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        return msgspec.convert(json.loads(data), _Chunk, strict=False)


def _read(value: Any, kind: type[T]) -> T | None:
    try:
        return msgspec.convert(value, kind, strict=False)
    except msgspec.ValidationError:
        return None


def _tokens(logprobs: Any) -> list[Token]:
    """None for the shapes of old, which come unasked."""
    try:
        found: list[Token] = msgspec.convert(logprobs["content"], list[Token])
    except (TypeError, KeyError, msgspec.ValidationError):
        return []
    return found


def reason(error: Any) -> tuple[int, str, str]:
    """(status, code, sentence) of an error object, in any of the shapes that servers give it."""
    if not isinstance(error, dict):
        return 0, "", str(error)
    code = error.get("code") or error.get("type") or ""
    status = next((int(s) for s in (str(error.get("status")), str(code)) if s.isdigit()), 0)
    return status, f"{code} {error.get('type') or ''}", str(error.get("message") or error.get("detail") or error)


def plain(page: str) -> str:
    """The words of a web page."""
    return " ".join(_MARKUP.sub(" ", page).split())
