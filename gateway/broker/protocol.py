"""What the product asks of an event broker, written to the weaker of its engines: one suite of tests holds for both.

A subject is `log.…` (fenced by its holder, kept), `cmd.…` (many writers, one holder reads) or `evt.…` (facts, upward);
a trailing `>` matches every subject below. Its tokens are letters, digits, dashes and underscores.

- Order: within a subject, and between subjects with the same first token, as the sequences rise; gaps are normal.
  Nothing is promised between first tokens, and no transaction spans two subjects.
- An append is on the disk when it returns; with `expect_last` only if the subject still is where its writer believes it
  to be. One that raised Unconfirmed was stored, or was not, or will yet be.
- A delivery comes again and again until it is acknowledged, also after a crash of whoever had it; the next one only
  after that. Not that it comes once: a consumer knows by its own fold what it has taken.
- A read has all that was confirmed before the call.
- A lease has at most one holder whose `deadline` has not passed. Not that a holder notices at once that it has lost it:
  so its appends are fenced, and it checks the deadline before each effect.
- A blob is on the disk when `put_blob` returns. A signal may be lost.

With SQLite durable means that the file was fsynced. With JetStream it means that the server has acknowledged it: on one
server that is a write, and an fsync only with `sync_interval: always`; on three replicas a majority has it.
Every call may raise Unconfirmed where nobody answered in time; what else it raises stands with it.
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


class Misfiled(Exception):
    """The id of this entry was used on another subject, and the engine dropped it: a mistake of whoever made the id."""


class BrokerUnusable(Exception):
    """The store cannot be used; the text says why and what to do."""


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
        """Raises Deposed when another holds it or it has run out, Unconfirmed when nobody answered."""

    async def release(self) -> None:
        """The next one can have it at once. Raises nothing."""


class Claim(Record, frozen=True, kw_only=True):
    """Something held under a lease of that key; not `alive`: that lease is gone, and whoever asks first has it."""

    lease: str
    alive: bool


class Broker(Protocol):
    async def append(self, subject: str, data: bytes, *, msg_id: str, expect_last: int | None = None) -> int:
        """Durable when it returns, with the sequence. `expect_last` is the sequence of the subject's last entry, 0 for
        none. The same `msg_id` on the same subject may be stored once or twice. Raises Stale, Unconfirmed, TooLarge or
        Misfiled."""

    def consume(self, subject: str, durable: str) -> AsyncIterator[Delivery]:
        """At least once, in order, one outstanding: the next comes after the ack. What is not acknowledged is asked
        for again by whoever consumes next under that name, here or elsewhere. One reader a name in each process."""

    async def read(self, subject: str, after: int = 0, limit: int | None = None) -> list[Stored]:
        """All that was confirmed before the call, in order, or so many of the first. Never from a replica that may
        lag."""

    async def purge(self, subject: str, below: int, *, whole: bool = False) -> None:
        """Forgets the entries of a subject whose sequence is below. Its last entry always stays, except where nobody
        writes with a fence, and `whole` says so. Raises Unconfirmed."""

    async def subjects(self, pattern: str) -> list[str]:
        """Which journals exist: how a holder finds its work after a crash."""

    async def lease(self, key: str, holder: str, ttl_seconds: float) -> Lease | None:
        """None while another holds it. `holder` is a nonce: who asks with the same one has the same lease."""

    async def put_blob(self, data: bytes) -> str:
        """Its digest (SHA-256, in hex), under which it can be had; durable when it returns."""

    async def get_blob(self, digest: str) -> bytes:
        """Raises LookupError when there is none."""

    async def blobs(self) -> list[str]:
        """The digests of all that there are."""

    async def forget_blob(self, digest: str) -> None:
        """Also one that is not there. Its bytes are gone from the store."""

    async def held(self) -> list[str]:
        """The keys of all leases that somebody has now."""

    def signal(self, subject: str, data: bytes) -> None:
        """To whoever watches now, in this process or another. Never waits, never stored."""

    def watch(self, subject: str, heard: Callable[[bytes], None]) -> Callable[[], None]:
        """Calls `heard` for each signal until the returned function is called."""

    async def close(self) -> None: ...


class Shared(Protocol):
    """What an engine offers beyond, on which several processes work beside each other."""

    async def claim(self, key: str, lease: Lease) -> bool:
        """Holds `key` for as long as that lease lasts, without a renewal of its own. False while another does."""

    async def disclaim(self, key: str, lease: Lease) -> None: ...

    async def claims(self) -> dict[str, Claim]:
        """All of them, by key."""

    def consume_many(self, subject: str, durable: str) -> AsyncIterator[Delivery]:
        """As `consume`, but several are outstanding, in whichever process, so that a slow one holds up no other. In
        order as long as none is repeated: not to be relied upon."""

    signal: Callable[[str, bytes], None]
    watch: Callable[[str, Callable[[bytes], None]], Callable[[], None]]
