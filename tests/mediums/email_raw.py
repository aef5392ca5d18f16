"""Mails as bytes, for tests of what is read in them."""

from datetime import UTC, datetime

from gateway.events import MessageReceived
from gateway.written import Secret
from mediums.email import Account, Server, wire

ACCOUNT = Account(
    address="bot@bots.example",
    imap=Server(host="127.0.0.1", port=1),
    smtp=Server(host="127.0.0.1", port=1),
    username="bot@bots.example",
    password=Secret("secret"),
    authserv_id="mx.bots.example",
    name="Frontdesk",
)
AT = datetime(2026, 1, 6, 10, 0, tzinfo=UTC)
PASSED = "Authentication-Results: mx.bots.example; dmarc=pass header.from={}\r\n"
BORDER = "Received: from out.example.org by mx.bots.example with ESMTPS id 1; now\r\n"


def raw(*headers: str, body: str = "Hi", passed: str | None = "example.org") -> bytes:
    """As the receiving server stores it. Headers may hold line breaks; `passed` is the domain that it vouches for."""
    vouched = "" if passed is None else PASSED.format(passed)
    return (vouched + BORDER + "".join(f"{header}\r\n" for header in headers) + "\r\n" + body + "\r\n").encode()


def stored(sent: str | bytes, passed: str | None = "example.org") -> bytes:
    """What arrives there as `sent`."""
    vouched = "" if passed is None else PASSED.format(passed)
    return (vouched + BORDER).encode() + (sent if isinstance(sent, bytes) else sent.encode())


def heard(mail: bytes) -> wire.Heard:
    return wire.heard(mail, ACCOUNT, AT)


def fact(mail: bytes) -> MessageReceived:
    found = heard(mail).fact
    assert found is not None
    return found
