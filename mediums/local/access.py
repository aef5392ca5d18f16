"""Who may in: the token, and where a request says that it comes from. Pure.

The room belongs to whoever has the token. The browser has it in a cookie; `Host` is checked so that a foreign name that
resolves to this machine reaches nothing (DNS rebinding), `Origin` so that a foreign page cannot open the socket with
that cookie. Docs: https://developer.mozilla.org/docs/Web/API/WebSockets_API/Writing_WebSocket_servers
"""

import hmac
import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit

LOOPBACK = ("localhost", "127.0.0.1", "::1")


class Access:
    """`host` and `port` are what is listened on, `token` must not be empty."""

    def __init__(self, host: str, port: int, token: str) -> None:
        if not token:
            raise ValueError("the local room needs a token: set mediums.web.token")
        self._host, self._port, self._token = host.lower(), port, token
        self.cookie = f"frontdesk_{port}"  # cookies know no ports

    def misplaced(self, headers: Mapping[str, str]) -> str | None:
        """Why a request is not for us, or None: it names another host, or comes from another site's page."""
        host = headers.get("Host", "")
        if not self._is_ours(host):
            return f"This is not {host or 'a host without a name'}: set mediums.web.listen to the address you use."
        origin = headers.get("Origin")
        if origin is not None and origin.lower() != f"http://{host.lower()}":
            return f"Pages of {origin} may not talk to this one."
        return None

    def admits(self, headers: Mapping[str, str], cookies: Mapping[str, str], *, socket: bool) -> bool:
        """By the cookie or by `Authorization: Bearer`. A socket by cookie must also say its origin."""
        scheme, _, given = headers.get("Authorization", "").partition(" ")
        if scheme.lower() == "bearer" and self.is_token(given.strip()):
            return True
        return self.is_token(cookies.get(self.cookie, "")) and (not socket or "Origin" in headers)

    def is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(errors="replace"), self._token.encode())

    def _is_ours(self, host: str) -> bool:
        try:
            parts = urlsplit(f"//{host.lower()}")
            name, port = parts.hostname or "", parts.port or 80
        except ValueError:
            return False
        if port != self._port:
            return False
        if name == self._host or name in LOOPBACK:
            return True
        return self._host not in LOOPBACK and _is_literal(name)  # no name that someone else could make point here


def _is_literal(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
