"""The values of config.toml as an operator writes them: their types, and a function for each that reads it.

Each function raises ValueError for what it cannot read, in words that go behind the key's name.
"""

import re
from datetime import timedelta
from typing import NewType
from urllib.parse import urlsplit

import msgspec

from gateway.addresses import Address
from gateway.package_names import wanted


class Secret:
    """A value that no log, no traceback and no printed settings show. `reveal` is for the one call that needs it."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        return self._value

    def __repr__(self) -> str:
        return "Secret(***)"

    def __str__(self) -> str:
        return "***"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash(self._value)


_USERS = {
    "telegram": (r"-?\d+", "their number, as in telegram:42"),
    "slack": (r"[A-Z0-9]+/[A-Z0-9]+", "the workspace's id and theirs, as in slack:T024BE7LD/U023BECGF"),
    "email": (r"[^@\s]+@[^@\s]+", "as in email:ana@example.org"),
    "web": (r"\S+", "as in web:owner"),
    "terminal": (r"\S+", "as in terminal:owner"),
}


def contact_address(text: str) -> Address:
    """One that somebody can write from: its medium is there, and would name them so. Raises ValueError."""
    address = Address.parse(text)
    if address.medium not in _USERS:
        raise ValueError(f"there is no medium {address.medium!r}: write one of {', '.join(_USERS)}")
    form, write = _USERS[address.medium]
    if not re.fullmatch(form, address.user):
        raise ValueError(f"nobody can have the address {str(address)!r}: write {write}")
    return address


HttpUrl = NewType("HttpUrl", str)


def http_url(text: str) -> HttpUrl:
    """An http or https address, without a slash at its end. Raises ValueError for any other, and for a password in it.

    The error does not repeat the text: a key may stand in it.
    """
    url = urlsplit(text)
    if url.username or url.password:
        raise ValueError("has a name or a password in it: leave them out; a key has its own place")
    if url.scheme not in ("http", "https") or not url.hostname:
        raise ValueError('is no address of a server: write "https://host" or "http://host:port"')
    return HttpUrl(text.rstrip("/"))


MailAddress = NewType("MailAddress", str)


def mail_address(text: str) -> MailAddress:
    local, at, domain = text.strip().rpartition("@")
    if not (local and at and domain) or any(character in ' ,;<>"' for character in text.strip()):
        raise ValueError(f'"{text}" is no mail address: write it as in "desk@example.org"')
    return MailAddress(text.strip())


_DURATION = re.compile(r"(\d{1,6}(?:\.\d+)?)\s*(s|min|m|h|d)")
_SECONDS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}


def duration(text: str) -> timedelta:
    """A number and its unit: `90s`, `15min`, `12h`, `30d`."""
    found = _DURATION.fullmatch(text.strip().lower())
    if found is None or float(found[1]) == 0:
        raise ValueError(f'"{text}" is no duration: write a number and s, min, h or d, as in "12h"')
    return timedelta(seconds=float(found[1]) * _SECONDS[found[2]])


HostPattern = NewType("HostPattern", str)


def host_pattern(text: str) -> HostPattern:
    """A host's name; `*.` and a name, for all below it; `*` for all. Raises ValueError for anything else."""
    name = text.lower().removeprefix("*.")
    if text != "*" and not re.fullmatch(r"([a-z0-9_]([a-z0-9_-]*[a-z0-9_])?\.)+[a-z][a-z0-9-]*", name):
        raise ValueError(f'"{text}" is no name of a host: write it as in "api.example.org" or "*.example.org"')
    return HostPattern(text.lower())


Place = NewType("Place", str)


def place(text: str) -> Place:
    """`slack:C024BE91L`, `telegram:-1001234`."""
    medium, colon, room = text.strip().partition(":")
    if not (medium in ("slack", "telegram", "email") and colon and room):
        raise ValueError(f'"{text}" is no place: write medium:room, as in "slack:C024BE91L" or "telegram:-1001234"')
    return Place(text.strip())


HostName = NewType("HostName", str)


def host_name(text: str) -> HostName:
    """One host's own name. Raises ValueError for a pattern, and for anything else."""
    if "*" in text:
        raise ValueError(f'"{text}" is several hosts: write the name of the one that it is for')
    return HostName(host_pattern(text))


PackageName = NewType("PackageName", str)


def package_name(text: str) -> PackageName:
    """With versions, if need be; `*` for any."""
    return PackageName(text if text == "*" else wanted(text))


BrokerUrl = NewType("BrokerUrl", str)


def broker_url(text: str) -> BrokerUrl:
    """ "sqlite", or the address of a NATS server. Raises ValueError, without the text: a password may stand in it."""
    if text == "sqlite":
        return BrokerUrl(text)
    url = urlsplit(text)
    if url.username or url.password:
        raise ValueError("has a name or a password in it: leave them out; a token has its own place, broker.token")
    if url.scheme not in ("nats", "tls") or not url.hostname or url.path.strip("/"):
        raise ValueError('must be "sqlite", or where a NATS server listens: write "nats://host:4222"')
    return BrokerUrl(text.rstrip("/"))


class Listen(msgspec.Struct, frozen=True):
    """Where a server listens. Port 0 lets the system choose."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @classmethod
    def parse(cls, text: str) -> "Listen":
        """`host:port`, with an IPv6 host in brackets."""
        host, colon, port = text.rpartition(":")
        if not (colon and host and port.isascii() and port.isdigit() and int(port) < 65536):
            raise ValueError(f'"{text}" is not host:port: write it as in "127.0.0.1:8765"')
        return cls(host.removeprefix("[").removesuffix("]"), int(port))
