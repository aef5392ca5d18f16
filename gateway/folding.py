"""The fold of a journal, for whoever holds it and for whoever only looks: entries into a state, in their order.

Entries are stored as `Stamped`: with the epoch of the ownership that wrote them, and a nonce by which their writer
knows them again.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, Generic, Protocol, TypeVar

from gateway.broker.protocol import Broker, Stored
from gateway.events import ActionCommand, Fact, OutboxCommand, Ref
from gateway.record import Record, Tagged, Undecodable, decode, encode
from gateway.snapshots import Gathering, Policy, Snapshot


class Owned(Tagged, frozen=True, kw_only=True):
    worker: str


class Released(Tagged, frozen=True, kw_only=True):
    """A clean end: does not count towards poison."""


class Emitted(Tagged, frozen=True, kw_only=True):
    """All that follows from this journal up to here was published."""

    through: Ref


class Outgoing(Record, frozen=True, kw_only=True):
    """What the fold says must be published: the same ref and body, whoever works it out and whenever."""

    subject: str
    ref: Ref
    body: Fact | OutboxCommand | ActionCommand


class State(Protocol):
    """A fold: mutable behind `apply`, which raises for an entry that does not belong in this journal."""

    outgoing: list[Outgoing]

    def apply(self, entry: Any) -> None: ...

    def freeze(self) -> Any:
        """All that later entries build on, as one struct; what it is made of must not change while it is encoded."""

    def thaw(self, frozen: bytes) -> None:
        """Into a fresh state: as if all entries before the snapshot had been applied. Raises Undecodable."""


S = TypeVar("S", bound=State)


def stamped(epoch: int, nonce: str, entry: Any) -> bytes:
    return encode((epoch, nonce, entry))


def unstamped(stored: Stored, entries: Any) -> tuple[int, str, Any]:
    """Epoch, nonce, entry. Raises Undecodable."""
    epoch, nonce, entry = decode(stored.data, tuple[int, str, entries])
    return epoch, nonce, entry


class Folding(Generic[S]):
    """Entries into a state, whether or not they begin with a snapshot; `entries` is the union of what may come."""

    def __init__(self, state: S, entries: Any, *, skips: bool = False) -> None:
        """`skips`: what lies before a snapshot may have been forgotten before it was read."""
        self.state, self.entries, self._skips = state, entries | Snapshot, skips
        self._snapshots = Gathering()
        self._fresh = True
        self._since, self._since_bytes, self._last_bytes = 0, 0, 0

    def due(self, policy: Policy) -> bool:
        return policy.due(self._since, self._since_bytes, self._last_bytes)

    def read(self, stored: Stored) -> tuple[int, str, Any]:
        """Epoch, nonce, entry. Raises Undecodable, with where it stands."""
        try:
            return unstamped(stored, self.entries)
        except Undecodable as error:
            raise Undecodable(f"{stored.subject}, entry {stored.sequence}: {error}") from error

    def take(self, sequence: int, entry: Any, size_bytes: int) -> None:
        if not isinstance(entry, Snapshot):
            self._snapshots.interrupt()
            self._fresh = False
            self._since, self._since_bytes = self._since + 1, self._since_bytes + size_bytes
            self.state.apply(entry)
        elif (whole := self._snapshots.take(sequence, entry)) is not None:
            self._since, self._since_bytes, self._last_bytes = 0, 0, len(whole)
            if self._fresh or self._skips:  # else all that it holds was folded one by one
                self.state.thaw(whole)
            self._fresh = False


async def fold_stored(broker: Broker, subject: str, state: S, entries: Any) -> S:
    """A journal as it is now, for whoever only looks. Raises Unconfirmed, Undecodable."""
    return fold_all(await broker.read(subject), state, entries)


def fold_all(journal: list[Stored], state: S, entries: Any) -> S:
    """A whole journal as it is stored. Raises Undecodable; `state` is then as it was before."""
    folding = Folding(state, entries)
    for stored in newest(journal):
        folding.take(stored.sequence, folding.read(stored)[2], len(stored.data))
    return state


def newest(journal: list[Stored]) -> list[Stored]:
    """From the newest complete snapshot on, if there is one: what is left before it says nothing more."""
    gathering = Gathering()
    for stored in journal:
        if (part := snapshot_part(stored)) is None:
            gathering.interrupt()
        else:
            gathering.take(stored.sequence, part)
    return [stored for stored in journal if stored.sequence >= gathering.below]


def snapshot_part(stored: Stored) -> Snapshot | None:
    """Without decoding what is none."""
    if b'{"type":"Snapshot"' not in stored.data[:100]:
        return None
    try:
        found: tuple[int, str, Snapshot] = decode(stored.data, tuple[int, str, Snapshot])
    except Undecodable:
        return None
    return found[2]


class Follower(Generic[S]):
    """The fold of somebody else's journal: read only, never owned."""

    def __init__(self, broker: Broker, subject: str, state: S, entries: Any) -> None:
        self._broker, self._subject = broker, subject
        self._folding = Folding(state, entries, skips=True)
        self._tail = 0
        self._turn = asyncio.Lock()

    async def now(self) -> S:
        """With all that was confirmed before the call. Raises Unconfirmed."""
        async with self._turn:
            stored_now = await self._broker.read(self._subject, after=self._tail)
            for stored in stored_now if self._tail else newest(stored_now):
                self._folding.take(stored.sequence, self._folding.read(stored)[2], len(stored.data))
                self._tail = stored.sequence
            return self._folding.state


def fold(state: S, entries: Sequence[Any]) -> S:
    for entry in entries:
        state.apply(entry)
    return state


def forget_emitted(outgoing: list[Outgoing], through: Ref) -> None:
    """What `Emitted` does to a fold."""
    outgoing[:] = [item for item in outgoing if item.ref > through]
