"""What goes wrong between here and Slack, what it means for a message, and the words for it. Pure."""

from typing import Any

from gateway.outbox import OutcomeUnknown, Rejected, SurelyNotSent
from gateway.record import Record

RATE_SECONDS = 30.0  # when Slack does not say how long to wait
TOKEN_SECONDS = 30.0
CONNECTING = "apps.connections.open"
ANSWERING = ("chat.postMessage", "chat.update")

_TOKEN = frozenset({"invalid_auth", "not_authed", "token_revoked", "token_expired", "account_inactive"})
_KIND = "not_allowed_token_type"
_RATE = frozenset({"ratelimited", "rate_limited", "message_limit_exceeded"})
_DECLINED = frozenset({"service_unavailable", "team_added_to_org"})
_PERHAPS_DONE = frozenset({"internal_error", "fatal_error", "request_timeout"})
_LASTING = frozenset({"too_many_websockets", "link_disabled"})

_MENDS = {
    "channel_not_found": "the bot sees no such channel: invite it there with /invite, if the channel still exists",
    "not_in_channel": "the bot is not in this channel: invite it there with /invite",
    "is_archived": "the channel is archived: unarchive it, or write elsewhere",
    "msg_too_long": "the message is too long for Slack: ask for a shorter one",
    "no_text": "nothing of the message would show",
    "restricted_action": "the workspace does not let the bot write here: ask one of its administrators",
    "thread_not_found": "the thread is gone: write in the channel",
    "user_disabled": "this person's account is deactivated",
    "cannot_dm_bot": "this is another bot, and bots cannot write to each other",
    "messages_tab_disabled": "the app takes no direct messages: allow them under App Home, Messages Tab",
}
_ENDS = {
    "closed": "the connection to Slack was closed: it is opened again",
    "silent": "Slack gave no sign on the open connection: it is opened again",
    "warning": "Slack is about to close the connection: another is opened",
    "refresh_requested": "Slack asks for a new connection: it is opened",
    "too_many_websockets": "this app has too many connections to Slack: stop other programs that use its "
    "mediums.slack.app_token",
    "link_disabled": "Socket Mode is off for this app: turn it on in the app's settings, under Socket Mode",
}


class Refusal(Record, frozen=True, kw_only=True):
    """Slack's answer other than "ok": https://docs.slack.dev/apis/web-api/#responses

    `needed` is the scope that a `missing_scope` speaks of.
    """

    method: str
    status: int
    error: str
    needed: str = ""
    retry_after_seconds: float | None = None


class Unreachable(Record, frozen=True, kw_only=True):
    """No answer that can be read. `left` is false when the request surely never reached Slack."""

    why: str
    left: bool


class Disconnected(Record, frozen=True, kw_only=True):
    """The end of an open connection: Slack's own reason, or "closed" or "silent".
    https://docs.slack.dev/apis/events-api/using-socket-mode#disconnect"""

    reason: str

    @property
    def announced(self) -> bool:
        """Slack keeps it open for some seconds yet, for another to be opened beside it."""
        return self.reason in ("warning", "refresh_requested")


Failure = Refusal | Unreachable | Disconnected


class CallFailed(Exception):
    """One call of Slack, or the opening of a connection, did not succeed."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(describe(failure))
        self.failure = failure


def refusal(method: str, status: int, answer: Any, retry_after: str | None) -> Refusal:
    """An answer that is no JSON object (a proxy's page) is described by its status alone."""
    stated: dict[str, Any] = answer if isinstance(answer, dict) else {}
    error = str(stated.get("error") or ("ratelimited" if status == 429 else f"HTTP {status}"))
    return Refusal(
        method=method,
        status=status,
        error=error,
        needed=str(stated.get("needed") or ""),
        retry_after_seconds=_seconds(retry_after) if status == 429 or error in _RATE else None,
    )


def _seconds(retry_after: str | None) -> float:
    """https://docs.slack.dev/apis/web-api/rate-limits: whole seconds, in the header Retry-After"""
    return float(retry_after) if retry_after and retry_after.strip().isdecimal() else RATE_SECONDS


def wait_seconds(failure: Failure) -> float | None:
    """How long to leave Slack alone: as it asks, or until somebody may have mended what is wrong; None for neither."""
    match failure:
        case Refusal(retry_after_seconds=seconds) if seconds is not None:
            return seconds
        case Refusal() if _needs_mending(failure):
            return TOKEN_SECONDS
        case Disconnected(reason=reason) if reason in _LASTING:
            return TOKEN_SECONDS
        case _:
            return None


def describe(failure: Failure) -> str:
    """What is wrong and what mends it, for health, logs and outcomes."""
    match failure:
        case Unreachable(why=why):
            return f"Slack cannot be reached ({why}): check the network; it is tried again"
        case Disconnected(reason=reason):
            return _ENDS.get(reason, f"Slack closed the connection ({reason}): it is opened again")
        case Refusal(retry_after_seconds=seconds) if seconds is not None:
            return f"Slack asks to wait {seconds:g} s ({failure.error})"
        case Refusal() if _needs_mending(failure):
            return _mend(failure)
        case Refusal(error=error):
            mend = _MENDS.get(error)
            return f"Slack refused it ({error}): {mend}" if mend else f"Slack answered {failure.method} with {error}"


def end(failure: Failure) -> SurelyNotSent | Rejected | OutcomeUnknown:
    """What has become of a chat.postMessage. Of some of its errors Slack says itself that part may have been done."""
    why = describe(failure)
    match failure:
        case Unreachable(left=False) | Disconnected():
            return SurelyNotSent(why)
        case Unreachable():
            return OutcomeUnknown(f"Slack did not say whether it arrived ({failure.why})")
        case Refusal(error="missing_scope", method=method) if method not in ANSWERING:
            return Rejected(why)  # it may have been left out for good: no word waits behind an emoji or a file
        case Refusal() if (seconds := wait_seconds(failure)) is not None:
            return SurelyNotSent(why, seconds)
        case Refusal(error=error) if error in _DECLINED:
            return SurelyNotSent(why)
        case Refusal() if failure.error in _PERHAPS_DONE or failure.status >= 500:
            return OutcomeUnknown(why)
        case _:
            return Rejected(why)


def _needs_mending(failure: Refusal) -> bool:
    return failure.error in _TOKEN or failure.error in (_KIND, "missing_scope")


def _mend(failure: Refusal) -> str:
    app = failure.method == CONNECTING
    key, kind = ("app_token", "xapp-…") if app else ("bot_token", "xoxb-…")
    if failure.error == "missing_scope":
        scope = failure.needed or ("connections:write" if app else "the missing one")
        where = "under Basic Information, App-Level Tokens" if app else "under OAuth & Permissions, and reinstall it"
        return f"mediums.slack.{key} lacks the scope {scope} (missing_scope): add it to the app {where}"
    if failure.error == _KIND:
        return f"mediums.slack.{key} is a token of another kind ({_KIND}): set the one that begins with {kind}"
    scope = ", an app-level token with the scope connections:write" if app else ""
    return f"Slack refused the token ({failure.error}): set mediums.slack.{key}{scope}"
