"""The log of a process: one line for each record on stderr, readable by people, and no secret in any of them.

Whatever leaves a process as text for its operator comes through here: records of all libraries, tracebacks, exceptions
that nobody caught, and the notices that an operator must see. What is logged is decided where it is logged.
"""

import base64
import contextlib
import html
import json
import logging
import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from types import TracebackType
from typing import TextIO
from urllib.parse import quote, quote_plus

from gateway.clock import boot_seconds

HIDDEN = "***"
NOTICE_SECONDS = 600.0
NOTICES_KEPT = 200

# They log every request, some of them at INFO and with its URL.
_TALKATIVE = (
    "LiteLLM",
    "LiteLLM Proxy",
    "LiteLLM Router",
    "aiohttp.access",
    "botocore",
    "httpcore",
    "httpx",
    "markdown_it",
    "openai",
    "slack_sdk",
    "telegram",
    "urllib3",
)
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029]")
_LEAST_ENCODED = 8  # shorter pieces of base64 are found by chance
_LEAST_PART = 16


class Scrubber:
    """Hides what it was told to: as it is, and as libraries write it (URL, JSON, repr, HTML, within any base64).

    A Telegram token is also hidden without the bot's number before it.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._forms: tuple[str, ...] = ()
        self.add(*secrets)

    def add(self, *secrets: str) -> None:
        forms = {*self._forms, *(form for secret in secrets for form in _forms(secret))}
        self._forms = tuple(sorted(forms, key=len, reverse=True))

    def __call__(self, text: str) -> str:
        for form in self._forms:
            if form in text:
                text = text.replace(form, HIDDEN)
        return text


def setup(scrub: Scrubber, *, verbose: bool = False) -> None:
    """Takes over the log of this process, and what nobody catches in it. Called again, replaces what it set up.

    `verbose` shows debugging, and what the libraries say of each request.
    """
    handler = _Stderr()
    handler.setFormatter(OneLine(scrub))
    root = logging.getLogger()
    for old in root.handlers[:]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(logging.DEBUG if verbose else logging.INFO)
    for name in _TALKATIVE:
        logging.getLogger(name).setLevel(logging.INFO if verbose else logging.WARNING)
    logging.captureWarnings(True)
    sys.excepthook = _uncaught
    sys.unraisablehook = _unraisable
    threading.excepthook = _uncaught_in_thread


class OneLine(logging.Formatter):
    """Time (UTC), level, logger, message. A traceback follows indented, so that no text can pass for another record."""

    def __init__(self, scrub: Scrubber) -> None:
        super().__init__()
        self._scrub = scrub

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(sep=" ", timespec="milliseconds")[:-6]
        lines = [f"{at}Z {record.levelname} {record.name}: {self._visible(record.getMessage())}"]
        below = [self.formatException(record.exc_info)] if record.exc_info else []
        below += [self.formatStack(record.stack_info)] if record.stack_info else []
        for text in below:
            lines += [f"    {self._visible(line)}" for line in self._scrub(text).split("\n")]
        return "\n".join(lines)

    def _visible(self, text: str) -> str:
        return _CONTROL.sub(lambda found: repr(found.group())[1:-1], self._scrub(text))


class Notices:
    """What the operator must see, said once in NOTICE_SECONDS for each text; the next time with how often it came."""

    def __init__(self, now: Callable[[], float] = boot_seconds) -> None:
        self._now = now
        self._log = logging.getLogger("frontdesk.operator")
        self._said: dict[str, tuple[float, int]] = {}  # the oldest first

    def __call__(self, text: str) -> None:
        now = self._now()
        at, unsaid = self._said.get(text, (now - NOTICE_SECONDS, 0))
        if now - at < NOTICE_SECONDS:
            self._said[text] = (at, unsaid + 1)
            return
        self._said.pop(text, None)
        self._said[text] = (now, 0)
        if len(self._said) > NOTICES_KEPT:
            del self._said[next(iter(self._said))]
        self._log.warning("%s%s", text, f" ({unsaid} more times since it was last said)" if unsaid else "")


operator = Notices()


class _Stderr(logging.StreamHandler[TextIO]):
    """Writes to what sys.stderr is now: a terminal prompt puts itself before it while it is open."""

    def emit(self, record: logging.LogRecord) -> None:
        self.stream = sys.stderr
        super().emit(record)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's name
        """The standard one would print the arguments, and with them what `emit` hides."""
        with contextlib.suppress(OSError, ValueError):  # stderr is closed
            sys.stderr.write(f"a record of {record.name} cannot be written ({record.pathname}:{record.lineno})\n")


_log = logging.getLogger("frontdesk")


def _uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        return
    _log.critical("ended by an error that nobody expected", exc_info=(kind, error, trace))


def _uncaught_in_thread(args: threading.ExceptHookArgs) -> None:
    name = args.thread.name if args.thread else "?"
    if args.exc_value and not isinstance(args.exc_value, SystemExit):
        _log.critical("thread %s ended by an error", name, exc_info=args.exc_value)


def _unraisable(args: "sys.UnraisableHookArgs") -> None:
    _log.error("%s: %r", args.err_msg or "an error that could not be raised", args.object, exc_info=args.exc_value)


def _forms(secret: str) -> Iterator[str]:
    if not secret:
        return
    yield from _written(secret)
    yield from (form for form in _in_base64(secret.encode("utf-8", "surrogatepass")) if len(form) >= _LEAST_ENCODED)
    for part in secret.split(":")[1:]:
        if len(part) >= _LEAST_PART:
            yield from _written(part)


def _written(secret: str) -> Iterator[str]:
    data = secret.encode("utf-8", "surrogatepass")
    yield secret
    yield from (repr(secret)[1:-1], ascii(secret)[1:-1], repr(data)[2:-1])
    yield from (json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1])
    yield html.escape(secret)
    for url in (quote(data, safe=""), quote(data), quote_plus(data)):
        yield url
        yield re.sub("%..", lambda found: found.group().lower(), url)


def _in_base64(data: bytes) -> Iterator[str]:
    """The characters that only `data` decides, for each of the three places where it may start in a longer text."""
    for before in range(3):
        encoded = base64.b64encode(b"\0" * before + data).decode()
        own = encoded[-(before * 8 // -6) : (before + len(data)) * 8 // 6]
        yield own
        yield own.translate(str.maketrans("+/", "-_"))
