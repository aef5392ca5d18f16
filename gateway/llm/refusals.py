"""A provider's refusal to a ModelError: pure, one table for every way that a call is made.

Here: what a status, a code or a sentence means, and what the operator is told. Not here: retrying. A sentence from a
provider can hold the key it refused, so it passes `without_key` first.
"""

import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

from gateway.llm.model import Endpoint, ErrorKind, ModelError, Usage

RETRYABLE: frozenset[ErrorKind] = frozenset({"rate_limited", "overloaded", "unreachable", "stream_cut", "helper_died"})
SENTENCE_CHARS_MAX = 300
RETRY_AFTER_SECONDS_MAX = 3600.0

_TOO_LONG = re.compile(
    r"context.?length|maximum context|context.?window|prompt is too long|input is too long|too many (input )?tokens"
    r"|exceeds? the (available )?context|reduce the length|maximum (input )?token|input token count",
    re.IGNORECASE,
)
_LARGER_THAN_THE_RATE = re.compile(r"request too large", re.IGNORECASE)  # no pause makes it small enough
_FILTERED = re.compile(r"content_?filter|content.?policy|content management policy|responsible.?ai", re.IGNORECASE)
_NO_CREDIT = re.compile(r"insufficient_quota|insufficient.?balance|credit balance|billing", re.IGNORECASE)
_OF_A_KEY = re.compile(r"invalid.?api.?key|api key not valid|incorrect api key|authentication_error", re.IGNORECASE)
_OF_A_MODEL = re.compile(r"model.?not.?found|model .{1,80}(does not exist|not found)", re.IGNORECASE)
_OF_THE_RATE = re.compile(r"rate.?limit|too many requests", re.IGNORECASE)
# "Please try again in 7m12.5s", "Please retry in 250ms": with no header beside it.
_WAIT = re.compile(
    r"try(?: again)? (?:in|after) (?=\d)(?:(\d{1,2})h)?(?:(\d{1,4})m(?!s))?(?:(\d{1,6}(?:\.\d+)?) ?(ms|s))?",
    re.IGNORECASE,
)
_KEYLIKE = re.compile(r"\b(sk|pk|key|gsk|xai|AIza)[-_A-Za-z0-9*]{8,}|Bearer \S+")


def refusal(
    endpoint: Endpoint,
    status: int,
    said: str,
    *,
    code: str = "",
    headers: Mapping[str, str] | None = None,
    usage: Usage | None = None,
) -> ModelError:
    """The error for an answer that is none. `status` is HTTP's, or the one that a streamed error names (0 if none)."""
    kind = _kind(status, f"{code} {said}")
    out_of_credit = status in (402, 429) and bool(_NO_CREDIT.search(f"{code} {said}"))
    return model_error(
        endpoint,
        kind,
        f"{status or 'in the stream'}: {without_key(endpoint, said) or 'no reason given'}",
        mend="top up the account, or set another {section}.api_key" if out_of_credit else None,
        retryable=kind in RETRYABLE and not out_of_credit,
        retry_after_seconds=retry_after(headers or {}, said if status in (0, 429, 503) else ""),
        usage=usage,
    )


def model_error(
    endpoint: Endpoint,
    kind: ErrorKind,
    said: str,
    *,
    mend: str | None = None,
    retryable: bool | None = None,
    retry_after_seconds: float | None = None,
    usage: Usage | None = None,
) -> ModelError:
    """What failed, for which model, where, and what to do about it."""
    section = endpoint.section
    where = f"{endpoint.name} at {endpoint.api_base or 'its default address'}"
    return ModelError(
        kind,
        f"{_WHAT[kind].format(where=where)} ({said}): {(mend or _MEND[kind]).format(section=section)}",
        retryable=kind in RETRYABLE if retryable is None else retryable,
        retry_after_seconds=retry_after_seconds,
        usage=usage,
    )


_WHAT: dict[ErrorKind, str] = {
    "key_refused": "{where} refused the key",
    "model_unknown": "{where} is not known there",
    "rate_limited": "{where} limits how often it is asked",
    "overloaded": "{where} is overloaded",
    "unreachable": "{where} cannot be reached",
    "context_too_long": "{where} was sent more than it can read",
    "bad_request": "{where} refused the request",
    "stream_cut": "{where} broke off in the middle of its answer",
    "content_filtered": "{where} withheld its answer by its content filter",
    "helper_died": "the process that talks to {where} ended",
}
_MEND: dict[ErrorKind, str] = {
    "key_refused": "set {section}.api_key in config.toml",
    "model_unknown": "set {section}.name or {section}.api_base in config.toml",
    "rate_limited": "wait, or add a model to {section}.fallbacks in config.toml",
    "overloaded": "wait, or add a model to {section}.fallbacks in config.toml",
    "unreachable": "check the network and {section}.api_base in config.toml",
    "context_too_long": "the conversation is shortened and asked again; a {section}.name that reads more helps",
    "bad_request": "if it stays, set {section}.tool_calls or another {section}.name in config.toml",
    "stream_cut": "it is asked again; if it stays, check the network and {section}.api_base",
    "content_filtered": "rephrase, or add a model to {section}.fallbacks in config.toml",
    "helper_died": "it is started again; if it stays, run `frontdesk doctor`",
}


def without_key(endpoint: Endpoint, said: str) -> str:
    """A provider's sentence on one line, shortened, and free of the key and of anything that looks like one."""
    text = " ".join(said.split())
    if endpoint.api_key:
        text = re.sub(rf"(?<!\w){re.escape(endpoint.api_key)}(?!\w)", "…", text)
    return _KEYLIKE.sub("…", text)[:SENTENCE_CHARS_MAX]


def retry_after(headers: Mapping[str, str], said: str = "") -> float | None:
    """Seconds until it may be asked again, by RFC 9110 10.2.3 (seconds or a date), OpenAI's `retry-after-ms`, or what
    is said; an hour at most, as a wrong one would silence it for ever."""
    asked = _asked(headers)
    if asked is None:
        asked = _in_words(said)
    return None if asked is None else min(asked, RETRY_AFTER_SECONDS_MAX)


def _asked(headers: Mapping[str, str]) -> float | None:
    if (ms := headers.get("retry-after-ms")) and _is_number(ms):
        return float(ms) / 1000
    value = headers.get("retry-after")
    if not value:
        return None
    if _is_number(value):
        return float(value)
    try:
        date = parsedate_to_datetime(value)
        sent = parsedate_to_datetime(headers["date"])
    except (ValueError, KeyError, TypeError):
        return None
    return max(0.0, (date - sent).total_seconds())


def _in_words(said: str) -> float | None:
    if (found := _WAIT.search(said)) is None:
        return None
    hours, minutes, rest, unit = found.groups()
    seconds = 3600 * int(hours or 0) + 60 * int(minutes or 0) + float(rest or 0) / (1000 if unit == "ms" else 1)
    return seconds or None


def _is_number(text: str) -> bool:
    return bool(re.fullmatch(r"\s*\d+(\.\d+)?\s*", text))


def _kind(status: int, said: str) -> ErrorKind:
    if status in (0, 400, 413, 422, 500) and _TOO_LONG.search(said):
        return "context_too_long"
    if status in (0, 429) and _LARGER_THAN_THE_RATE.search(said):
        return "context_too_long"
    if status in (0, 400, 403) and _FILTERED.search(said):
        return "content_filtered"
    if status in (0, 400) and _OF_A_KEY.search(said):
        return "key_refused"
    if status in (0, 400) and _OF_A_MODEL.search(said):
        return "model_unknown"
    if status == 0 and _OF_THE_RATE.search(said):
        return "rate_limited"
    match status:
        case 401 | 403:
            return "key_refused"
        case 404:
            return "model_unknown"
        case 402 | 429:
            return "rate_limited"
        case 413:
            return "context_too_long"
        case 0 | 408 | 409 | 425:
            return "overloaded"
        case _:
            return "overloaded" if status >= 500 else "bad_request"
