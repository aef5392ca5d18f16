"""Mails of ours that came back: which one it was, and why. Pure.

Whoever knows the Message-ID of a mail can say that it came back. All that comes of it is that it counts as not
delivered.
"""

import re
from collections.abc import Iterator
from email.message import Message

from gateway.outbox import CameBack
from mediums.email.account import Account
from mediums.email.headers import Fields, text_of

NAMED = 6  # people whom it did not reach
WHY_LENGTH = 200
_NOT_YET = re.compile(r"\b(delayed|warning|still being retried)\b", re.IGNORECASE)


def came_back(message: "Message[str, str]", fields: Fields, raw: bytes, account: Account) -> CameBack | None:
    """None for what is no failure (a delay, a receipt), and for a mail that we did not send.
    https://www.rfc-editor.org/rfc/rfc3464"""
    if not _has_failed(message, fields):
        return None
    ours = rb"\s*<fd\.[0-9a-f]{16}\.([0-9a-f]{16})@%s>" % re.escape(account.domain.encode())
    found = re.findall(rb"^message-id:" + ours, raw, re.IGNORECASE | re.MULTILINE)
    if not found:  # it may come without the mail, as an answer to it
        found = re.findall(ours, fields.first("in-reply-to").encode("utf-8", "surrogateescape"), re.IGNORECASE)
    if not found:
        return None
    reasons = [text_of(str(one.get("diagnostic-code", ""))).partition(";")[2].strip() for one in _reports(message)]
    why = next((one for one in reasons if one), "it could not be delivered")
    return CameBack(
        mark=found[-1].decode().lower(), why=f"the mail came back{failed_to(message, fields)}: {why[:WHY_LENGTH]}"
    )


def failed_to(message: "Message[str, str]", fields: Fields) -> str:
    """Whom it did not reach, for a reader: https://www.rfc-editor.org/rfc/rfc3464#section-2.3.2"""
    named = (text_of(str(one.get("final-recipient", ""))).rpartition(";")[2].strip() for one in _reports(message))
    to = ", ".join([one for one in named if one][:NAMED]) or fields.text("x-failed-recipients")
    return f" (to {to[:WHY_LENGTH]})" if to else ""


def _has_failed(message: "Message[str, str]", fields: Fields) -> bool:
    actions = [str(one["action"]).strip().casefold() for one in _reports(message) if "action" in one]
    if message.get_content_type() == "multipart/report":
        return "failed" in actions
    return not _NOT_YET.search(fields.text("subject"))


def _reports(message: "Message[str, str]") -> "Iterator[Message[str, str]]":
    """The groups of fields of a delivery status."""
    for part in message.walk():
        if part.get_content_type() == "message/delivery-status" and isinstance(groups := part.get_payload(), list):
            yield from (one for one in groups if isinstance(one, Message))
