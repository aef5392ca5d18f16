"""What goes wrong between here and the Bot API, what it means for a message, and the words for it. Pure."""

import re
from typing import Any

import msgspec

from gateway.outbox import OutcomeUnknown, Rejected, SurelyNotSent
from gateway.record import Record

TOKEN_RETRY_SECONDS = 30.0

_WAIT = re.compile(r"retry after (\d{1,6})\b", re.IGNORECASE)


class Refusal(Record, frozen=True, kw_only=True):
    """Telegram's answer other than "ok": https://core.telegram.org/bots/api#making-requests"""

    status: int
    description: str
    retry_after_seconds: float | None = None
    migrate_to: int | None = None


class Unreachable(Record, frozen=True, kw_only=True):
    """No answer that can be read. `left` is false when the request surely never reached Telegram."""

    why: str
    left: bool


Failure = Refusal | Unreachable


class CallFailed(Exception):
    """One call of the Bot API did not succeed."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(describe(failure))
        self.failure = failure

    @property
    def retry_after_seconds(self) -> float | None:
        return self.failure.retry_after_seconds if isinstance(self.failure, Refusal) else None


def refusal(status: int, body: bytes) -> Refusal:
    """An answer that is no JSON (a proxy's page) is described by its status alone."""
    try:
        answer: Any = msgspec.json.decode(body)
        parameters = answer.get("parameters") or {}
        description = str(answer.get("description", ""))
        said = _WAIT.search(description) if status == 429 else None
        return Refusal(
            status=status,
            description=description,
            retry_after_seconds=parameters.get("retry_after", float(said[1]) if said else None),
            migrate_to=parameters.get("migrate_to_chat_id"),
        )
    except (msgspec.DecodeError, AttributeError):
        return Refusal(status=status, description=f"HTTP {status}")


_NEVER_WROTE = ("chat not found", "can't initiate conversation")


def describe(failure: Failure) -> str:
    """What is wrong and what mends it, for health, logs and outcomes."""
    match failure:
        case Unreachable(why=why):
            return f"Telegram cannot be reached ({why}): check the network; it is tried again"
        case Refusal(status=401 | 404):
            return f"Telegram refused the token ({failure.status}): set mediums.telegram.token"
        case Refusal(status=409) if "webhook" in failure.description:
            return "Telegram sends this bot's messages to a webhook (409): delete that webhook, or use another bot"
        case Refusal(status=409):
            return "another program receives this bot's messages (409): stop it, or use another bot"
        case Refusal(status=400 | 403) if any(words in failure.description.lower() for words in _NEVER_WROTE):
            return "a bot cannot write first on Telegram: they have to open its chat there and press Start"
        case Refusal(status=429) if failure.retry_after_seconds is None:
            return "Telegram asks to wait, and does not say how long (429)"
        case Refusal(status=429):
            return f"Telegram asks to wait {failure.retry_after_seconds:g} s (429)"
        case _:
            return f"Telegram answered {failure.status}: {failure.description}"


def is_same(failure: Failure) -> bool:
    """An edit found the message as it was to be: after an answer that was lost, for one."""
    return isinstance(failure, Refusal) and failure.status == 400 and "is not modified" in failure.description.lower()


def end(failure: Failure) -> SurelyNotSent | Rejected | OutcomeUnknown:
    """What has become of a sendMessage. An error of the server may come after the message has gone out."""
    why = describe(failure)
    match failure:
        case Unreachable(left=False):
            return SurelyNotSent(why)
        case Unreachable():
            return OutcomeUnknown(f"Telegram did not say whether it arrived ({failure.why})")
        case Refusal(status=429):
            return SurelyNotSent(why, failure.retry_after_seconds)
        case Refusal(status=401 | 404):
            return SurelyNotSent(why, TOKEN_RETRY_SECONDS)
        case Refusal() if failure.status >= 500:
            return OutcomeUnknown(why)
        case _:
            return Rejected(why)
