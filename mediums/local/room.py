"""The room: everything that was said in it, in order, in a journal of its own, and a fold that knows it again.

A post has an id: the client's for what a person says, the send's key for what the assistant says. The same id twice is
one post, so both can be repeated until they are known to be in. No socket, no rendering and no live state enter here.
"""

from collections import deque
from collections.abc import Callable
from datetime import datetime
from itertools import islice
from typing import Literal, TypeVar

from gateway.broker.protocol import Broker
from gateway.files import Attachment
from gateway.holding import Guard
from gateway.journal import Emitted, Journal, Outgoing, Owned, Released
from gateway.record import Record, Tagged, decode

T = TypeVar("T")

SUBJECT = "log.room.local"
RECENT, RECENT_CHARACTERS = 500, 1_000_000  # what is kept in memory, and told to whoever comes
REMEMBERED = 20_000  # ids; one that is repeated after so many others would be posted again, but never answered again


class Posted(Tagged, frozen=True, kw_only=True):
    """`pressed` names the button, and what it was pressed on, where no message was written."""

    id: str
    author: Literal["you", "assistant"]
    name: str
    medium: str
    text: str
    at: datetime
    reply_to: str = ""
    pressed: str = ""
    files: tuple[Attachment, ...] = ()


class Settled(Tagged, frozen=True, kw_only=True):
    """A turn covered these posts; with `silence` it chose to leave them alone, `passed_on` is what it did unspoken."""

    ids: tuple[str, ...]
    silence: str = ""
    passed_on: str = ""


Kept = Posted | Settled
Entry = Posted | Settled | Owned | Released | Emitted


class Item(Record, frozen=True, kw_only=True):
    """Positions count from 1 without a gap."""

    position: int
    entry: Kept


class RoomFrozen(Record, frozen=True, kw_only=True):
    newest: int
    recent: list[Item]
    positions: dict[str, int]
    settled: dict[str, tuple[str, str]]


class RoomState:
    """`changed` is called after each entry."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self.outgoing: list[Outgoing] = []  # always empty: nothing follows from a room
        self.newest = 0
        self._recent: deque[Item] = deque()
        self._characters = 0
        self._positions: dict[str, int] = {}
        self._settled: dict[str, tuple[str, str]] = {}
        self._changed = changed

    def freeze(self) -> RoomFrozen:
        return RoomFrozen(
            newest=self.newest, recent=list(self._recent), positions=self._positions, settled=self._settled
        )

    def thaw(self, frozen: bytes) -> None:
        kept: RoomFrozen = decode(frozen, RoomFrozen)
        self.newest, self._recent = kept.newest, deque(kept.recent)
        self._characters = sum(_characters(item.entry) for item in kept.recent)
        self._positions, self._settled = kept.positions, kept.settled
        self._changed()

    def position(self, post_id: str) -> int:
        """Where it was posted; 0 for not at all."""
        return self._positions.get(post_id, 0)

    def settled(self, settled: Settled) -> bool:
        return all(self._settled.get(post_id) == (settled.silence, settled.passed_on) for post_id in settled.ids)

    def after(self, position: int) -> list[Item]:
        """What is newer, oldest first, as far as it is in memory. All of it for a position of another room."""
        missing = self.newest - position if position <= self.newest else self.newest
        return list(islice(self._recent, max(0, len(self._recent) - missing), None))

    def file(self, digest: str) -> Attachment | None:
        """One that was posted here, as far as that is in memory."""
        for item in self._recent:
            for file in item.entry.files if isinstance(item.entry, Posted) else ():
                if file.digest == digest:
                    return file
        return None

    def apply(self, entry: Entry) -> None:
        match entry:
            case Posted():
                self._keep(entry)
                _remember(self._positions, entry.id, self.newest)
            case Settled(ids=ids, silence=silence, passed_on=passed_on):
                self._keep(entry)
                for post_id in ids:
                    _remember(self._settled, post_id, (silence, passed_on))
            case Owned() | Released() | Emitted():
                pass
            case _:
                raise TypeError(f"a room's journal holds no {type(entry).__name__}")
        self._changed()

    def _keep(self, entry: Kept) -> None:
        self.newest += 1
        self._recent.append(Item(position=self.newest, entry=entry))
        self._characters += _characters(entry)
        while len(self._recent) > RECENT or self._characters > RECENT_CHARACTERS:
            self._characters -= _characters(self._recent.popleft().entry)


def _characters(entry: Kept) -> int:
    return len(entry.text) if isinstance(entry, Posted) else 0


def _remember(kept: dict[str, T], post_id: str, value: T) -> None:
    kept[post_id] = value
    if len(kept) > REMEMBERED:
        del kept[next(iter(kept))]


class Room:
    """Opened once, by its holder; then `run` for as long as it is held."""

    def __init__(self, broker: Broker, guard: Guard, worker: str, state: RoomState) -> None:
        self.state = state
        self._journal: Journal[RoomState] = Journal(broker, SUBJECT, self.state, Entry, guard, worker)

    async def open(self) -> None:
        """Raises Deposed."""
        await self._journal.open()

    async def run(self) -> None:
        """Raises Deposed, in a group."""
        await self._journal.run()

    async def release(self) -> None:
        await self._journal.release()

    async def post(self, posted: Posted) -> int:
        """Its position once it is durable, the old one for an id that is in already. Raises TooLarge."""
        await self._journal.write(lambda state: None if state.position(posted.id) else posted)
        return self.state.position(posted.id)

    async def settle(self, settled: Settled) -> None:
        await self._journal.write(lambda state: None if state.settled(settled) else settled)
