"""What the product asks of an event broker, written to the weaker of its engines.

No transaction spans two subjects. A subject is `log.…` (fenced by its holder, kept), `cmd.…` (many writers, one
holder reads) or `evt.…` (facts, upward); a trailing `>` matches every subject below. Signals are beside all that: they
are lost when nobody listens, and only what may be lost (typing, the live panel) is told that way.
"""

from collections.abc import AsyncIterator, Callable
from typing import Protocol

from gateway.record import Record

MAX_ENTRY_BYTES = 256 * 1024


class Stale(Exception):
    """The subject has moved past `expect_last`; nothing was stored by this call."""


class Unconfirmed(Exception):
    """Timeout, full disk or cut connection: it was stored, or was not, or will yet be."""


class Deposed(Exception):
    """Another holder has taken over, or this one can no longer be sure: stop at once."""


class TooLarge(Exception):
    """An entry of more than MAX_ENTRY_BYTES; nothing was stored."""


class Stored(Record, frozen=True, kw_only=True):
    """`sequence` rises within a subject; gaps are normal."""

    subject: str
    sequence: int
    data: bytes


class Delivery(Protocol):
    @property
    def stored(self) -> Stored: ...

    async def ack(self) -> None:
        """Lets the next one come. A lost ack costs a redelivery, which the consumer's fold recognises."""


class Lease(Protocol):
    """`deadline` (seconds) is on the clock that counts suspension, taken before the renewal was sent."""

    @property
    def deadline(self) -> float: ...

    async def renew(self) -> None:
        """Raises Deposed when another holds it, Unconfirmed when nobody answered."""

    async def release(self) -> None: ...


class Broker(Protocol):
    async def append(self, subject: str, data: bytes, *, msg_id: str, expect_last: int | None = None) -> int:
        """Durable when it returns, with the sequence. Raises Stale, Unconfirmed or TooLarge."""

    def consume(self, subject: str, durable: str) -> AsyncIterator[Delivery]:
        """At least once, in order, one outstanding: the next comes after the ack."""

    async def read(self, subject: str, after: int = 0) -> list[Stored]:
        """All that was confirmed before the call, in order. Never from a replica that may lag."""

    async def purge(self, subject: str, below: int) -> None:
        """Forgets the entries of a subject whose sequence is below; its last entry always stays. Raises Unconfirmed."""

    async def subjects(self, pattern: str) -> list[str]:
        """Which journals exist: how a holder finds its work after a crash."""

    async def lease(self, key: str, holder: str, ttl_seconds: float) -> Lease | None: ...

    def signal(self, subject: str, data: bytes) -> None:
        """To whoever watches now. Never waits, never stored."""

    def watch(self, subject: str, heard: Callable[[bytes], None]) -> Callable[[], None]:
        """Calls `heard` for each signal until the returned function is called."""

    async def close(self) -> None: ...
