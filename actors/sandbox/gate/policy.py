"""Which hosts, ports and addresses code in a sandbox may reach. Pure.

A host is allowed by its name; an address alone never is. What a name leads to is checked once more, as an address: only
those of the public internet count, however they are written (RFC 6890, and its registries at IANA).
"""

import ipaddress
import re

import msgspec

NAME = re.compile(r"(?=.{1,253}$)([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\.)+[a-z][a-z0-9-]{0,62}")
PUBLIC_6 = ipaddress.IPv6Network("2000::/3")
CARRIERS_OF_4 = (ipaddress.IPv6Network("2002::/16"), ipaddress.IPv6Network("2001::/23"))  # 6to4; Teredo and others


class Refused(Exception):
    """Why a request does not pass; the text goes to the code that made it, and to the log."""


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """A secret that the host uses for the code: requests to `host` get this header. The code never has it."""

    name: str
    host: str
    header: str
    value: str

    def __repr__(self) -> str:
        return f"Grant({self.name} for {self.host})"


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """`allow`: names, `*.` before one for all below it, `*` for all. The hosts of `grants` are allowed too."""

    allow: tuple[str, ...]
    grants: tuple[Grant, ...] = ()
    http_ports: frozenset[int] = frozenset({80})
    tls_ports: frozenset[int] = frozenset({443})

    def host(self, text: str) -> str:
        """The name as it is looked up. Raises Refused for one that is not allowed, and for what is none."""
        name = text.lower().removesuffix(".")
        if not NAME.fullmatch(name):
            raise Refused(f"{text!r} is no name of a host on the internet; addresses are not allowed")
        if self.grant(name) is None and not any(_fits(name, pattern) for pattern in self.allow):
            raise Refused(f"{name} is not allowed here: whoever runs this assistant can add it to [sandbox] allow")
        return name

    def grant(self, host: str) -> Grant | None:
        return next((grant for grant in self.grants if grant.host == host), None)

    def port(self, port: int, *, tls: bool) -> int:
        allowed = self.tls_ports if tls else self.http_ports
        if port not in allowed:
            raise Refused(f"port {port} is not allowed here: {'https' if tls else 'http'} on {sorted(allowed)} is")
        return port

    def addresses(self, name: str, found: list[str]) -> list[str]:
        """All of them, if all are public: a name that also leads inside is not to be trusted at all."""
        if not found:
            raise Refused(f"{name} is not known")
        for address in found:
            if not is_public(address):
                raise Refused(f"{name} leads to {address}, which is not on the public internet")
        return found


def is_public(address: str) -> bool:
    """Whether it is a unicast address of the public internet. IPv6 that stands for IPv4 is not."""
    try:
        known = ipaddress.ip_address(address)
    except ValueError:
        return False
    is_6 = isinstance(known, ipaddress.IPv6Address)
    if is_6 and (known not in PUBLIC_6 or any(known in carrier for carrier in CARRIERS_OF_4)):
        return False
    return known.is_global and not (known.is_multicast or known.is_reserved)


def _fits(name: str, pattern: str) -> bool:
    if pattern.startswith("*."):
        return name.endswith(pattern[1:])
    return pattern in ("*", name)
