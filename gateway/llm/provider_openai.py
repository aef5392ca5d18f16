"""`openai/…`, and every server that speaks OpenAI's chat completions: one POST, one stream of server-sent events.

Here: the request's body, the stream's lines, the refusals. Not here: retries, and any other provider (litellm does
those). It exists because litellm needs 5 ms until such a request is out and 12 ms of CPU a call, this 0.3 and 0.5.

https://platform.openai.com/docs/api-reference/chat-streaming
"""

import re
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import msgspec

from gateway.llm.assembly import Delta
from gateway.llm.attempt import Attempt
from gateway.llm.model import Endpoint, Generation, ModelError, Request, Token
from gateway.llm.prices import Tokens
from gateway.llm.quirks import for_provider
from gateway.llm.refusals import model_error, refusal

DEFAULT_BASE = "https://api.openai.com/v1"
CONNECTIONS_MAX = 256
CONNECT_SECONDS_MAX = 10.0
SILENCE_SECONDS_MAX = 300.0  # models that reason can say nothing for minutes
IDLE_SECONDS_MAX = 30.0  # shorter than servers keep theirs: a POST on a connection they just closed is lost
LINE_BYTES_MAX = 16 << 20
REFUSAL_BYTES_MAX = 64 << 10

_REASONING_MODEL = re.compile(r"(o\d|gpt-5)")  # these take no temperature


class _Choice(msgspec.Struct, frozen=True):
    delta: Delta | None = None
    message: Delta | None = None  # from a server that does not stream
    finish_reason: str | None = None
    logprobs: Any = None  # old servers give it other shapes


class _PromptDetails(msgspec.Struct, frozen=True):
    cached_tokens: int | None = None


class _Usage(msgspec.Struct, frozen=True):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _PromptDetails | None = None


class _Chunk(msgspec.Struct, frozen=True):
    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    error: Any = None


_chunk = msgspec.json.Decoder(_Chunk, strict=False)


class OpenAIProvider:
    """Asks over one pool of connections. Made inside the running loop; `close` it."""

    def __init__(self) -> None:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=CONNECTIONS_MAX, keepalive_timeout=IDLE_SECONDS_MAX),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS_MAX, sock_read=SILENCE_SECONDS_MAX),
        )
        self._without_logprobs: set[tuple[str, str | None]] = set()

    async def close(self) -> None:
        await self._session.close()

    async def generate(self, attempt: Attempt) -> Generation:
        """The whole answer. Raises ModelError; cancelling it closes the connection at once. Servers that refuse to say
        how likely tokens are get the request without."""
        where, request = (attempt.endpoint.name, attempt.endpoint.api_base), attempt.request
        plain = msgspec.structs.replace(request, logprobs=False)
        if not request.logprobs or where in self._without_logprobs:
            return await self._generate(attempt, plain)
        try:
            return await self._generate(attempt, request)
        except ModelError as error:
            if error.kind != "bad_request":
                raise
        generation = await self._generate(attempt, plain)
        self._without_logprobs.add(where)
        return generation

    async def _generate(self, attempt: Attempt, request: Request) -> Generation:
        endpoint = attempt.endpoint
        base = (endpoint.api_base or DEFAULT_BASE).rstrip("/")
        attempt.asked = True
        answering = False
        try:
            async with self._session.post(
                f"{base}/chat/completions",
                data=msgspec.json.encode(body(endpoint, request)),
                headers=_headers(endpoint),
                proxy=_proxy(base),
            ) as response:
                if response.status != 200:
                    raise _refused(attempt, response, await response.content.read(REFUSAL_BYTES_MAX))
                answering = True
                await _take_all(attempt, response)
        except (aiohttp.ClientConnectionError, aiohttp.InvalidURL, TimeoutError) as error:
            if answering:
                raise attempt.cut(_named(error)) from None
            raise model_error(endpoint, "unreachable", _named(error)) from None
        except (aiohttp.ClientError, msgspec.DecodeError, ValueError) as error:
            raise attempt.cut(_named(error)) from None
        return attempt.generation()


def body(endpoint: Endpoint, request: Request) -> dict[str, Any]:
    """The request as the wire has it. Fields that are not needed are left out: small servers refuse what they do not
    know."""
    model = endpoint.name.removeprefix("openai/")
    wire: dict[str, Any] = {
        "model": model,
        "messages": for_provider(request.messages, "openai"),
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if request.tools:
        wire |= {"tools": request.tools, "tool_choice": request.tool_choice}
    if request.response_schema is not None:
        wire["response_format"] = response_format(request.response_schema)
    if request.logprobs:
        wire["logprobs"] = True
    if request.max_tokens is not None:
        own = endpoint.api_base is None or "openai.com" in endpoint.api_base
        wire["max_completion_tokens" if own else "max_tokens"] = request.max_tokens
    temperature = endpoint.temperature if request.temperature is None else request.temperature
    if temperature is not None and not _REASONING_MODEL.match(model):
        wire["temperature"] = temperature
    return wire


def response_format(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema as OpenAI wants it; strict where the schema is one that it accepts as strict."""
    return {
        "type": "json_schema",
        "json_schema": {"name": "answer", "schema": schema, "strict": _can_be_strict(schema)},
    }


def _can_be_strict(schema: Any) -> bool:
    """Strict needs every object closed and all its properties required."""
    if isinstance(schema, list):
        return all(_can_be_strict(part) for part in schema)
    if not isinstance(schema, dict):
        return True
    properties = schema.get("properties")
    if schema.get("type") == "object" and (
        schema.get("additionalProperties") is not False or set(schema.get("required", ())) != set(properties or ())
    ):
        return False
    return all(_can_be_strict(part) for part in schema.values())


def _headers(endpoint: Endpoint) -> dict[str, str]:
    headers = {"Content-Type": "application/json", "Accept": "text/event-stream"}
    if endpoint.api_key:
        headers["Authorization"] = f"Bearer {endpoint.api_key}"
    return headers


def _proxy(base: str) -> str | None:
    """The proxy that the environment names for this address, as other programs on the machine would use."""
    url = urlsplit(base)
    proxies = getproxies()
    if not proxies or proxy_bypass(url.netloc):
        return None
    return proxies.get(url.scheme) or proxies.get("all")


async def _take_all(attempt: Attempt, response: aiohttp.ClientResponse) -> None:
    if response.content_type == "application/json":
        _take(attempt, await response.read())
        return
    async for data in events(response.content.iter_any()):
        if data == b"[DONE]":
            return
        _take(attempt, data)
    if not attempt.assembler.finish:
        raise attempt.cut("it ended without a finish reason")


async def events(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The data of each server-sent event; every server here puts one event's data on one line. Raises ValueError on a
    line over the bound."""
    rest = b""
    async for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            if line.startswith(b"data:"):
                yield line[5:].strip()
        if len(rest) > LINE_BYTES_MAX:
            raise ValueError(f"a line over {LINE_BYTES_MAX} bytes")
    if rest.startswith(b"data:"):
        yield rest[5:].strip()


def _take(attempt: Attempt, data: bytes) -> None:
    chunk = _chunk.decode(data)
    if chunk.error:
        status, code, said = _reason(chunk.error)
        raise refusal(attempt.endpoint, status, said, code=code, usage=attempt.spent())
    for choice in chunk.choices or ():
        if delta := choice.delta or choice.message:
            attempt.assembler.add(delta)
        attempt.assembler.tokens += _tokens(choice.logprobs)
        attempt.assembler.finish = choice.finish_reason or attempt.assembler.finish
    if chunk.usage and chunk.usage.prompt_tokens:
        details = chunk.usage.prompt_tokens_details
        attempt.counted = Tokens(
            prompt=chunk.usage.prompt_tokens,
            completion=chunk.usage.completion_tokens or 0,
            cache_read=(details.cached_tokens or 0) if details else 0,
        )


def _tokens(logprobs: Any) -> list[Token]:
    """None for the shapes of old, which come unasked."""
    try:
        found: list[Token] = msgspec.convert(logprobs["content"], list[Token])
    except (TypeError, KeyError, msgspec.ValidationError):
        return []
    return found


def _refused(attempt: Attempt, response: aiohttp.ClientResponse, data: bytes) -> Exception:
    try:
        answer = msgspec.json.decode(data)
    except msgspec.DecodeError:
        answer = data.decode("utf-8", "replace")
    while isinstance(answer, list) and answer:
        answer = answer[0]
    inner = answer.get("error", answer) if isinstance(answer, dict) else answer
    _, code, said = _reason(inner)
    headers = {name.lower(): value for name, value in response.headers.items()}
    return refusal(attempt.endpoint, response.status, said, code=code, headers=headers)


def _reason(error: Any) -> tuple[int, str, str]:
    """(status, code, sentence) of an error object, in any of the shapes that servers give it."""
    if not isinstance(error, dict):
        return 0, "", str(error)
    code = error.get("code") or error.get("type") or ""
    status = next((int(s) for s in (str(error.get("status")), str(code)) if s.isdigit()), 0)
    return status, f"{code} {error.get('type') or ''}", str(error.get("message") or error.get("detail") or error)


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
