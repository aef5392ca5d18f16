"""`openai/…`, and every server that speaks OpenAI's chat completions: one POST, one stream of server-sent events.

Here: the request and its refusal. Not here: what a stream says (`wire_openai`), retries, and other providers (litellm
does those). It exists because litellm needs 5 ms until such a request is out and 12 ms of CPU a call, this 0.3 and 0.5.

https://platform.openai.com/docs/api-reference/chat-streaming
"""

import asyncio
import re
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import msgspec

from gateway.llm.attempt import Attempt
from gateway.llm.model import Endpoint, Generation, ModelError, Request
from gateway.llm.quirks import for_provider
from gateway.llm.refusals import model_error, refusal, without_key
from gateway.llm.wire_openai import events, plain, reason, take, take_json

DEFAULT_BASE = "https://api.openai.com/v1"
CONNECTIONS_MAX = 256
CONNECT_SECONDS_MAX = 10.0
SILENCE_SECONDS_MAX = 300.0  # models that reason can say nothing for minutes
IDLE_SECONDS_MAX = 30.0  # shorter than servers keep theirs: a POST on a connection they just closed is lost
REFUSAL_BYTES_MAX = 64 << 10

_REASONING_MODEL = re.compile(r"(o\d|gpt-5)")  # these take no temperature


class OpenAIProvider:
    """Asks over one pool of connections. Made inside the running loop; `close` it. What says nothing for
    `silence_seconds`, or only that it is still there, is given up."""

    def __init__(self, silence_seconds: float = SILENCE_SECONDS_MAX) -> None:
        self._silence_seconds = silence_seconds
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=CONNECTIONS_MAX, keepalive_timeout=IDLE_SECONDS_MAX),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS_MAX, sock_read=silence_seconds),
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
            if error.kind != "bad_request" or attempt.assembler.characters:
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
                data=msgspec.json.encode(body(endpoint, request, thinks=attempt.thinks)),
                headers=_headers(endpoint),
                proxy=_proxy(base),
            ) as response:
                if response.status == 403 and response.content_type == "text/html":  # by a guard that stands before it
                    raise _no_model_there(attempt, await response.content.read(REFUSAL_BYTES_MAX))
                if response.status != 200:
                    raise _refused(attempt, response, await response.content.read(REFUSAL_BYTES_MAX))
                answering = True
                await _take_all(attempt, response, self._silence_seconds)
        except (aiohttp.ClientConnectionError, aiohttp.InvalidURL, TimeoutError) as error:
            if answering:
                raise attempt.cut(_named(error)) from None
            raise model_error(endpoint, "unreachable", _named(error)) from None
        except (aiohttp.ClientError, msgspec.DecodeError, ValueError) as error:
            raise attempt.cut(_named(error)) from None
        return attempt.generation()


def body(endpoint: Endpoint, request: Request, *, thinks: bool = False) -> dict[str, Any]:
    """The request as the wire has it. Fields that are not needed are left out: small servers refuse what they do not
    know."""
    model = endpoint.name.removeprefix("openai/")
    wire: dict[str, Any] = {
        "model": model,
        "messages": for_provider(request.messages, "openai", thinks=thinks),
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


async def _take_all(attempt: Attempt, response: aiohttp.ClientResponse, silence_seconds: float) -> None:
    """Raises TimeoutError when nothing comes but signs of life."""
    if response.content_type == "text/html":
        raise _no_model_there(attempt, await response.content.read(REFUSAL_BYTES_MAX))
    if response.content_type == "application/json":
        await take_json(attempt, await response.read())
        return
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(silence_seconds) as patience:
        async for data in events(response.content.iter_any()):
            if data == b"[DONE]":
                return
            take(attempt, data)
            patience.reschedule(loop.time() + silence_seconds)
            if attempt.ends_here():
                return
    if not attempt.assembler.finish:
        raise attempt.cut("it ended without a finish reason")


def _refused(attempt: Attempt, response: aiohttp.ClientResponse, data: bytes) -> Exception:
    try:
        answer = msgspec.json.decode(data)
    except msgspec.DecodeError:
        answer = plain(data.decode("utf-8", "replace"))
    while isinstance(answer, list) and answer:
        answer = answer[0]
    inner = answer.get("error", answer) if isinstance(answer, dict) else answer
    _, code, said = reason(inner)
    headers = {name.lower(): value for name, value in response.headers.items()}
    return refusal(attempt.endpoint, response.status, said, code=code, headers=headers)


def _no_model_there(attempt: Attempt, page: bytes) -> Exception:
    said = without_key(attempt.endpoint, plain(page.decode("utf-8", "replace")))
    return model_error(attempt.endpoint, "unreachable", f"a web page answers there: {said}")


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
