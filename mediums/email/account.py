"""Whose mailbox it is and where its servers are. Nothing here connects."""

import re
import ssl
from pathlib import Path
from typing import Literal

from gateway.record import Record
from gateway.written import Secret

MEDIUM = "email"

Security = Literal["tls", "starttls", "none"]

_NOT_IN_A_TOKEN = re.compile(r"[^a-z0-9]+")


class Server(Record, frozen=True, kw_only=True):
    """`tls` from the first byte, `starttls` before the password leaves, or `none`: it leaves in the clear."""

    host: str
    port: int
    security: Security = "tls"

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class Account(Record, frozen=True, kw_only=True):
    """The assistant's own mailbox. `authserv_id` is the name under which the receiving server states what it has
    checked (RFC 8601); `ca_file` holds the certificates to trust, else the system's."""

    address: str
    imap: Server
    smtp: Server
    username: str
    password: Secret
    authserv_id: str
    name: str = ""
    ca_file: Path | None = None

    @property
    def key(self) -> str:
        """One subject token: `email-desk-example-org`."""
        return f"{MEDIUM}-{_NOT_IN_A_TOKEN.sub('-', self.address.casefold()).strip('-')}"

    @property
    def domain(self) -> str:
        return self.address.rpartition("@")[2].casefold()

    def is_own(self, address: str) -> bool:
        """Also in other case, and with a tag: `Desk+orders@example.org`."""
        local, _, domain = address.casefold().rpartition("@")
        own_local, _, own_domain = self.address.casefold().rpartition("@")
        return domain == own_domain and local.partition("+")[0] == own_local.partition("+")[0]

    def tls(self) -> ssl.SSLContext:
        """Raises OSError (ssl.SSLError too) when `ca_file` cannot be used."""
        return ssl.create_default_context(cafile=None if self.ca_file is None else str(self.ca_file))
