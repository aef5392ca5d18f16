"""What an outbox writes in its journal, and the fold of it. Pure: no clock, no platform.

A message is pending, attempting, or closed: sent, failed, unknown or withdrawn. Its parts are one set: they leave in
order, and the first that does not arrive ends the message.
"""

from datetime import datetime

import msgspec

from gateway.events import OutboxCommand, Outcome, Ref, Send, SendClosed, WithdrawSend
from gateway.files import Attachment
from gateway.journal import Emitted, Outgoing, Owned, Released, forget_emitted
from gateway.record import Record, Tagged, decode
from gateway.seen import Seen

Room = tuple[str, str, str | None]  # as in `Route.room`


class Queued(Tagged, frozen=True, kw_only=True):
    """`parts` are fixed here, so that a restart splits nothing differently. `withdrew`: the withdrawal came in time.

    `carried` is how many of the message's files go with each part, in order; none where it is left out.
    """

    command: OutboxCommand
    parts: tuple[str, ...] = ()
    withdrew: bool = False
    carried: tuple[int, ...] = ()


class Attempting(Tagged, frozen=True, kw_only=True):
    send: Ref
    part: int = 0


class Deferred(Tagged, frozen=True, kw_only=True):
    """It surely did not happen: back to pending. Nothing goes to its room before `until`, also after a restart."""

    send: Ref
    why: str = ""
    until: datetime | None = None


class PartSent(Tagged, frozen=True, kw_only=True):
    """One of several parts arrived; the next may go."""

    send: Ref
    part: int


class Closed(Tagged, frozen=True, kw_only=True):
    send: Ref
    outcome: Outcome
    why: str = ""


Entry = Queued | Attempting | Deferred | PartSent | Closed | Owned | Released | Emitted


class Item(msgspec.Struct):
    """One open message. `part` is the next to go, `attempts` are those of that part."""

    send: Send
    parts: tuple[str, ...]
    part: int = 0
    attempting: bool = False
    attempts: int = 0
    carried: tuple[int, ...] = ()

    @property
    def files(self) -> tuple[Attachment, ...]:
        """That go with the next part."""
        before = sum(self.carried[: self.part])
        return self.send.files[before : before + sum(self.carried[self.part : self.part + 1])]


class OutboxFrozen(Record, frozen=True, kw_only=True):
    """An outbox's snapshot."""

    open: list[Item]
    resting: list[tuple[Room, datetime]]
    outgoing: list[Outgoing]
    seen: dict[str, tuple[int, int]]
    batch: int


class OutboxState:
    def __init__(self, account: str) -> None:
        self.account = account
        self.open: dict[Ref, Item] = {}  # in order
        self.resting: dict[Room, datetime] = {}  # the platform asked for a pause until then
        self.outgoing: list[Outgoing] = []
        self._seen = Seen()
        self._batch = 0

    def freeze(self) -> OutboxFrozen:
        return OutboxFrozen(
            open=list(self.open.values()),
            resting=list(self.resting.items()),
            outgoing=self.outgoing,
            seen=self._seen.marks,
            batch=self._batch,
        )

    def thaw(self, frozen: bytes) -> None:
        kept: OutboxFrozen = decode(frozen, OutboxFrozen)
        self.open = {item.send.ref: item for item in kept.open}
        self.resting, self.outgoing = dict(kept.resting), kept.outgoing
        self._seen, self._batch = Seen(kept.seen), kept.batch

    def knows(self, command: OutboxCommand) -> bool:
        return command.ref in self._seen

    def pending(self, ref: Ref) -> bool:
        return ref in self.open and not self.open[ref].attempting

    def apply(self, entry: Entry) -> None:
        match entry:
            case Queued(command=Send() as send, parts=parts, carried=carried):
                self._seen.add(send.ref)
                self.open[send.ref] = Item(send=send, parts=parts, carried=carried)
                if not parts:
                    self._close(send.ref, "failed", "there is nothing to send")
            case Queued(command=command, withdrew=withdrew):
                self._seen.add(command.ref)
                if withdrew and isinstance(command, WithdrawSend):
                    self._close(command.send, "withdrawn")
            case Attempting(send=ref):
                item = self.open[ref]
                item.attempting, item.attempts = True, item.attempts + 1
                self.resting.pop(item.send.route.room, None)
            case Deferred(send=ref, until=until):
                item = self.open[ref]
                item.attempting = False
                if until is not None:
                    self.resting[item.send.route.room] = until
            case PartSent(send=ref, part=part):
                item = self.open[ref]
                item.part, item.attempting, item.attempts = part + 1, False, 0
            case Closed(send=ref, outcome=outcome, why=why):
                self._close(ref, outcome, why)
            case Emitted(through=through):
                forget_emitted(self.outgoing, through)
            case Owned() | Released():
                pass
            case _:
                raise TypeError(f"an outbox's journal holds no {type(entry).__name__}")

    def _close(self, ref: Ref, outcome: Outcome, why: str = "") -> None:
        item = self.open.pop(ref)
        self._batch += 1
        delivered = len(item.parts) if outcome == "sent" else item.part
        event = SendClosed(
            ref=Ref(f"out-{self.account}", self._batch, 0),
            conversation=item.send.conversation,
            send=ref,
            outcome=outcome,
            delivered=delivered,
            parts=len(item.parts),
            why=why,
        )
        self.outgoing.append(Outgoing(subject=f"evt.out.{self.account}", ref=event.ref, body=event))

    def rooms(self) -> dict[Room, Ref]:
        """The oldest open message of each room: only that one may be tried."""
        first: dict[Room, Ref] = {}
        for ref, item in self.open.items():
            first.setdefault(item.send.route.room, ref)
        return first
