"""How stored entries get another text in the place of a person's words: SQLite writes over them, JetStream cannot.

There, what is only on its way (`evt.…`, `cmd.…`) is removed, and stored once more without the words where nobody has
taken it yet. A journal gets a snapshot of the fold without the words, under a new ownership, and what lies before it is
removed, each entry that had a word of theirs overwritten by the server. Cut off anywhere, it can be done again: a fold
begins at the newest snapshot.
"""

import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, cast

import msgspec

from actors.entries import ActionEntry
from actors.frozen import ActionFrozen
from actors.journal import ActionState
from brain.entries import LaneEntry
from brain.frozen import LaneFrozen
from brain.people import PeopleEntry, PeopleFrozen, PeopleState
from brain.state import LaneState
from gateway.broker.protocol import Broker, Stored
from gateway.broker.sqlite import SqliteBroker
from gateway.folding import Owned, Released, State, fold_all, stamped
from gateway.outbox_state import Entry as OutboxEntry
from gateway.outbox_state import OutboxFrozen, OutboxState
from gateway.record import Record, encode
from gateway.snapshots import Snapshot, cut
from mediums.local.room import Entry as RoomEntry
from mediums.local.room import RoomFrozen, RoomState


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """Of journals: what may stand in one, what its snapshot is, and a state for its key."""

    entries: Any
    frozen: Any
    fresh: Callable[[str], State]


KINDS: Mapping[str, Kind] = {
    "log.lane.": Kind(entries=LaneEntry | Snapshot, frozen=LaneFrozen, fresh=LaneState),
    "log.act.": Kind(entries=ActionEntry | Snapshot, frozen=ActionFrozen, fresh=ActionState),
    "log.out.": Kind(entries=OutboxEntry | Snapshot, frozen=OutboxFrozen, fresh=OutboxState),
    "log.people.": Kind(entries=PeopleEntry | Snapshot, frozen=PeopleFrozen, fresh=lambda _: PeopleState()),
    "log.room.": Kind(entries=RoomEntry | Snapshot, frozen=RoomFrozen, fresh=lambda _: RoomState(lambda: None)),
}


def kind_of(subject: str) -> tuple[str, Kind] | None:
    """With its prefix."""
    return next(((prefix, kind) for prefix, kind in KINDS.items() if subject.startswith(prefix)), None)


class Changed(Record, frozen=True, kw_only=True):
    """A subject with all of its entries; `new` are the texts by sequence of those that change."""

    subject: str
    entries: list[Stored]
    new: dict[int, bytes]

    @property
    def after(self) -> list[Stored]:
        return [
            Stored(subject=one.subject, sequence=one.sequence, data=self.new.get(one.sequence, one.data))
            for one in self.entries
        ]


class Overwriting(Protocol):
    """What JetStream offers for it."""

    async def erase(self, stored: Stored) -> None: ...
    async def taken_through(self, family: str) -> dict[str, int]: ...


async def rewrite(broker: Broker, changes: Sequence[Changed]) -> None:
    """Nobody holds any of it. Raises Unconfirmed, and Stale where somebody writes all the same."""
    if isinstance(broker, SqliteBroker):
        for change in changes:
            for sequence, data in change.new.items():
                await broker.rewrite(change.subject, sequence, data)
        return
    snapshots = {change.subject: _snapshot(change) for change in changes}
    for change in changes:
        if (parts := snapshots[change.subject]) is not None:
            await _begin_anew(broker, change, parts)
        else:
            await _store_again(broker, change)


def _snapshot(change: Changed) -> tuple[Snapshot, ...] | None:
    """Of the fold without the words; None for what is no journal with one holder. Raises Undecodable."""
    if (found := kind_of(change.subject)) is None:
        return None
    prefix, kind = found
    state = fold_all(change.after, kind.fresh(change.subject.removeprefix(prefix)), kind.entries)
    return cut(encode(state.freeze()))


async def _begin_anew(broker: Broker, change: Changed, parts: tuple[Snapshot, ...]) -> None:
    epoch = 1 + max(msgspec.json.decode(one.data, type=tuple[int, str, msgspec.Raw])[0] for one in change.entries)
    tail = change.entries[-1].sequence
    begins = 0
    for entry in (Owned(worker="erasure"), *parts, Released()):
        nonce = uuid.uuid4().hex
        data = stamped(epoch, nonce, entry)
        tail = await broker.append(change.subject, data, msg_id=nonce, expect_last=tail)
        if isinstance(entry, Snapshot) and not begins:
            begins = tail
    for stored in change.entries:
        if stored.sequence in change.new:
            await cast(Overwriting, broker).erase(stored)
    await broker.purge(change.subject, begins)


async def _store_again(broker: Broker, change: Changed) -> None:
    """Notes, whose numbers are their places, all of them; of facts and commands what nobody has taken yet."""
    family = change.subject.partition(".")[0]
    taken = 0
    if family != "log":
        found = await cast(Overwriting, broker).taken_through(family)
        taken = min((at for pattern, at in found.items() if _matches(pattern, change.subject)), default=0)
    for stored in change.after:
        if family == "log" or (stored.sequence in change.new and stored.sequence > taken):
            await broker.append(change.subject, stored.data, msg_id=uuid.uuid4().hex)
    for stored in change.entries:
        if family == "log" or stored.sequence in change.new:
            await cast(Overwriting, broker).erase(stored)


def _matches(pattern: str, subject: str) -> bool:
    return subject.startswith(pattern[:-1]) if pattern.endswith(".>") else subject == pattern
