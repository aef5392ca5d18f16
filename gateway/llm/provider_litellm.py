"""Every provider that litellm knows, through litellm's own streaming call.

Here: the one place that imports litellm, its switches, its chunks and its exceptions. Not here: retries, counting
tokens, building messages: litellm's own versions of these are off. Importing this module takes five seconds and 200 MB,
so only the helper imports it, in a thread, when a model needs it.
"""

import importlib
import logging
import re
from typing import Any

import aiohttp
import httpx
from openai import OpenAIError

from gateway.llm.assembly import CallDelta, Delta, FunctionDelta
from gateway.llm.attempt import Attempt
from gateway.llm.model import Generation, ModelError
from gateway.llm.provider_openai import SILENCE_SECONDS_MAX, response_format
from gateway.llm.quirks import for_provider
from gateway.llm.refusals import model_error, refusal, without_key

litellm: Any = importlib.import_module("litellm")  # untyped on purpose: the checker would read all of it

MAY_BE_DROPPED = ("temperature", "tool_choice")  # never the tools or the schema


def quieten() -> None:
    """No telemetry, no callbacks, no payload in any log, no advice on standard output."""
    litellm.telemetry = False
    litellm.suppress_debug_info = True
    litellm.turn_off_message_logging = True
    litellm.disable_streaming_logging = True
    litellm.disable_token_counter = True
    litellm.cache = None
    for name in ("callbacks", "success_callback", "failure_callback", "service_callback", "input_callback"):
        setattr(litellm, name, [])
    logging.disable(logging.CRITICAL)


quieten()


async def generate(attempt: Attempt) -> Generation:
    """The whole answer. Raises ModelError; cancelling it closes the connection at once."""
    attempt.asked = True
    try:
        stream = await litellm.acompletion(**_arguments(attempt))
        try:
            async for chunk in stream:
                _take(attempt, chunk)
                if attempt.ends_here():
                    break
        finally:
            await stream.aclose()
    except (OpenAIError, httpx.HTTPError, aiohttp.ClientError, TimeoutError) as error:
        raise _as_model_error(attempt, error) from None
    if not (stream.received_any_finish_reason or stream.received_finish_reason):  # then litellm has written "stop"
        attempt.assembler.finish = ""
    return attempt.generation()


def _arguments(attempt: Attempt) -> dict[str, Any]:
    endpoint, request = attempt.endpoint, attempt.request
    temperature = endpoint.temperature if request.temperature is None else request.temperature
    optional: dict[str, Any] = {"stream_options": {"include_usage": True}}
    if request.tools:
        optional |= {"tools": request.tools, "tool_choice": request.tool_choice}
    if request.response_schema is not None:
        optional["response_format"] = response_format(request.response_schema)
    if request.max_tokens is not None:
        optional["max_tokens"] = request.max_tokens
    if temperature is not None:
        optional["temperature"] = temperature
    known = litellm.get_supported_openai_params(model=endpoint.name) or MAY_BE_DROPPED
    for name in MAY_BE_DROPPED:
        if name not in known:
            optional.pop(name, None)
    return {
        "model": endpoint.name,
        "api_base": endpoint.api_base,
        "api_key": endpoint.api_key,
        "messages": for_provider(request.messages, attempt.provider, thinks=attempt.thinks),
        "stream": True,
        "timeout": SILENCE_SECONDS_MAX,
        "num_retries": 0,
        "max_retries": 0,
        "no-log": True,
        **optional,
    }


def _take(attempt: Attempt, chunk: Any) -> None:
    for choice in chunk.choices:
        attempt.assembler.add(_delta(choice.delta))
        attempt.assembler.end(choice.finish_reason)
    if usage := getattr(chunk, "usage", None):  # litellm writes 0 where nobody counted
        details = getattr(usage, "prompt_tokens_details", None)
        attempt.count(
            prompt=usage.prompt_tokens or 0,
            completion=usage.completion_tokens or 0,
            cache_read=getattr(details, "cached_tokens", None) or 0,
            cache_written=getattr(usage, "cache_creation_input_tokens", None) or 0,
        )


def _delta(delta: Any) -> Delta:
    return Delta(
        content=delta.content,
        refusal=getattr(delta, "refusal", None),
        tool_calls=[_call(call) for call in delta.tool_calls or ()],
        reasoning_content=getattr(delta, "reasoning_content", None),
        thinking_blocks=[dict(block) for block in getattr(delta, "thinking_blocks", None) or ()],
    )


def _call(call: Any) -> CallDelta:
    return CallDelta(
        index=call.index,
        id=call.id,
        function=FunctionDelta(name=call.function.name, arguments=call.function.arguments),
        provider_specific_fields=getattr(call, "provider_specific_fields", None),
    )


def _as_model_error(attempt: Attempt, error: Exception) -> ModelError:
    """litellm's exceptions carry a status, also where there was none; what it raises in mid-stream has a cause."""
    cause = getattr(error, "original_exception", None) or error
    answering = attempt.assembler.characters > 0 or type(error).__name__ == "MidStreamFallbackError"
    usage = attempt.spent() if answering else None
    raw = str(getattr(cause, "message", "") or cause)
    said = without_key(attempt.endpoint, _sentence(raw))
    status = getattr(cause, "status_code", None)
    match type(cause).__name__:
        case "ContextWindowExceededError":
            return model_error(attempt.endpoint, "context_too_long", said, usage=usage)
        case "ContentPolicyViolationError":
            return model_error(attempt.endpoint, "content_filtered", said, usage=usage)
    connection = type(cause).__name__ in ("APIConnectionError", "Timeout") or _NO_CONNECTION.search(said)
    if connection or not isinstance(status, int):
        return attempt.cut(said) if answering else model_error(attempt.endpoint, "unreachable", said)
    headers = {k.lower(): v for k, v in (getattr(error, "litellm_response_headers", None) or {}).items()}
    code = _CODE.search(raw)
    return refusal(attempt.endpoint, status, said, code=code[1] if code else "", headers=headers, usage=usage)


_WRAPPING = re.compile(r"^(litellm\.)?\w+(Error|Exception|Timeout)( -|:) ?")
_MESSAGE = re.compile(r'"message": ?"((?:[^"\\]|\\.)*)"')
_CODE = re.compile(r'"code": ?"([^"]*)"')
_NO_CONNECTION = re.compile(
    r"cannot connect|connect call failed|connection (error|refused|attempts failed)", re.IGNORECASE
)


def _sentence(raw: str) -> str:
    """The provider's own words, out of the names that litellm wraps them in."""
    while (shorter := _WRAPPING.sub("", raw)) != raw:
        raw = shorter
    match = _MESSAGE.search(raw)
    return match[1] if match else raw
