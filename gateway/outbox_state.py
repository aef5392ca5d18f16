"""What an outbox writes in its journal, and the fold of it. Pure: no clock, no platform.

A message is pending, attempting, or closed: sent, failed, unknown or withdrawn. Its parts are one set: they leave in
order, and the first that does not arrive ends the message. Of a status card only the newest state is pending; what its
message is on the platform is known from its first showing.
"""

import hashlib
from datetime import datetime

import msgspec

from gateway.events import OutboxCommand, Outcome, Ref, Send, SendClosed, ShowCard, WithdrawSend
from gateway.files import Attachment
from gateway.journal import Emitted, Outgoing, Owned, Released, forget_emitted
from gateway.record import Record, Tagged, decode
from gateway.seen import Seen

Room = tuple[str, str, str | None]  # as in `Route.room`
RETURNABLE_KEPT = 500  # of the mails that were sent last: a mail comes back within days, mostly within minutes


class Queued(Tagged, frozen=True, kw_only=True):
    """`parts` are fixed here, so that a restart splits nothing differently; a message's text stands in them alone.
    `withdrew`: the withdrawal came in time.

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
    """`message` is the platform's id of a card that may be edited; without it nobody touches the card again. `mark` is
    by what a message is known that comes back, where that can be."""

    send: Ref
    outcome: Outcome
    why: str = ""
    message: str = ""
    mark: str = ""


class Returned(Tagged, frozen=True, kw_only=True):
    """What had been handed over did not arrive after all."""

    mark: str
    why: str


class Unread(Tagged, frozen=True, kw_only=True):
    """A message that this version cannot read ends as failed: whoever said it can say it in another way."""

    send: Ref
    conversation: str
    why: str


Entry = Queued | Attempting | Deferred | PartSent | Closed | Returned | Unread | Owned | Released | Emitted


def mark_of(account: str, key: str) -> str:
    """Of one part of a message: 16 characters that tell a stranger nothing."""
    return hashlib.sha256(f"{account}/{key}".encode()).hexdigest()[:16]


class Item(msgspec.Struct):
    """One open message, or state of a card. `part` is the next to go, `attempts` are those of that part."""

    send: Send | ShowCard
    parts: tuple[str, ...]
    part: int = 0
    attempting: bool = False
    attempts: int = 0
    carried: tuple[int, ...] = ()
    why: str = ""  # it was deferred last

    def files_of(self, send: Send) -> tuple[Attachment, ...]:
        """That go with the next part."""
        before = sum(self.carried[: self.part])
        return send.files[before : before + sum(self.carried[self.part : self.part + 1])]


class Handed(Record, frozen=True, kw_only=True):
    """A message that is out of our hands, and may come back."""

    send: Ref
    conversation: str
    parts: int


class OutboxFrozen(Record, frozen=True, kw_only=True):
    """An outbox's snapshot."""

    open: list[Item]
    resting: list[tuple[Room, datetime]]
    outgoing: list[Outgoing]
    seen: dict[str, tuple[int, int]]
    batch: int
    cards: dict[str, str] = {}
    returnable: dict[str, Handed] = {}


class OutboxState:
    def __init__(self, account: str) -> None:
        self.account = account
        self.open: dict[Ref, Item] = {}  # in order
        self.resting: dict[Room, datetime] = {}  # the platform asked for a pause until then
        self.outgoing: list[Outgoing] = []
        self.cards: dict[str, str] = {}  # those that were shown and have not ended: the message; "" is never touched
        self.returnable: dict[str, Handed] = {}  # by their marks
        self._seen = Seen()
        self._batch = 0

    def freeze(self) -> OutboxFrozen:
        return OutboxFrozen(
            open=list(self.open.values()),
            resting=list(self.resting.items()),
            outgoing=self.outgoing,
            seen=self._seen.marks,
            batch=self._batch,
            cards=self.cards,
            returnable=self.returnable,
        )

    def thaw(self, frozen: bytes) -> None:
        kept: OutboxFrozen = decode(frozen, OutboxFrozen)
        self.open = {item.send.ref: item for item in kept.open}
        self.resting, self.outgoing = dict(kept.resting), kept.outgoing
        self._seen, self._batch, self.cards = Seen(kept.seen), kept.batch, kept.cards
        self.returnable = kept.returnable

    def knows(self, ref: Ref) -> bool:
        return ref in self._seen

    def pending(self, ref: Ref) -> bool:
        return ref in self.open and not self.open[ref].attempting

    def apply(self, entry: Entry) -> None:
        match entry:
            case Queued(command=Send() as send, parts=parts, carried=carried):
                self._seen.add(send.ref)
                self.open[send.ref] = Item(send=send, parts=parts, carried=carried)
                if not parts:
                    self._close(send.ref, "failed", "there is nothing to send")
            case Queued(command=ShowCard() as show):
                self._seen.add(show.ref)
                self._queue_card(show)
            case Queued(command=command, withdrew=withdrew):
                self._seen.add(command.ref)
                if withdrew and isinstance(command, WithdrawSend):
                    self._close(command.send, "withdrawn")
            case Attempting(send=ref):
                item = self.open[ref]
                item.attempting, item.attempts = True, item.attempts + 1
                self.resting.pop(item.send.route.room, None)
            case Deferred(send=ref, why=why, until=until):
                item = self.open[ref]
                item.attempting, item.why = False, why
                if until is not None:
                    self.resting[item.send.route.room] = until
                if isinstance(item.send, ShowCard) and self._pending_card(item.send.name, but=ref) is not None:
                    del self.open[ref]  # a newer state waits, and is shown instead
                    self._drop_unshown(item.send.name)
            case PartSent(send=ref, part=part):
                item = self.open[ref]
                item.part, item.attempting, item.attempts = part + 1, False, 0
            case Closed(send=ref, message=message) if isinstance(self.open[ref].send, ShowCard):
                self._close_card(ref, message)
            case Closed(send=ref, outcome=outcome, why=why, mark=mark):
                if mark:
                    self._hand_over(mark, self.open[ref])
                self._close(ref, outcome, why)
            case Returned(mark=mark, why=why):
                self._tell_end(self.returnable.pop(mark), "failed", 0, why)
            case Unread(send=ref, conversation=conversation, why=why):
                self._seen.add(ref)
                self._tell_end(Handed(send=ref, conversation=conversation, parts=1), "failed", 0, why)
            case Emitted(through=through):
                forget_emitted(self.outgoing, through)
            case Owned() | Released():
                pass
            case _:
                raise TypeError(f"an outbox's journal holds no {type(entry).__name__}")

    def _close(self, ref: Ref, outcome: Outcome, why: str = "") -> None:
        item = self.open.pop(ref)
        delivered = len(item.parts) if outcome == "sent" else item.part
        handed = Handed(send=ref, conversation=item.send.conversation, parts=len(item.parts))
        self._tell_end(handed, outcome, delivered, why)

    def _hand_over(self, mark: str, item: Item) -> None:
        self.returnable[mark] = Handed(send=item.send.ref, conversation=item.send.conversation, parts=len(item.parts))
        for old in list(self.returnable)[:-RETURNABLE_KEPT]:
            del self.returnable[old]

    def _tell_end(self, handed: Handed, outcome: Outcome, delivered: int, why: str) -> None:
        self._batch += 1
        event = SendClosed(
            ref=Ref(f"out-{self.account}", self._batch, 0),
            conversation=handed.conversation,
            send=handed.send,
            outcome=outcome,
            delivered=delivered,
            parts=handed.parts,
            why=why,
        )
        self.outgoing.append(Outgoing(subject=f"evt.out.{self.account}", ref=event.ref, body=event))

    def rooms(self) -> dict[Room, Ref]:
        """The oldest open message of each room: only that one may be tried. A card's edit lets messages go first."""
        first: dict[Room, Ref] = {}
        for edits in (False, True):
            for ref, item in self.open.items():
                if self.is_edit(item.send) is edits:
                    first.setdefault(item.send.route.room, ref)
        return first

    # --- cards -------------------------------------------------------------------------------------------------------

    def is_edit(self, send: Send | ShowCard) -> bool:
        return isinstance(send, ShowCard) and send.name in self.cards

    def _queue_card(self, show: ShowCard) -> None:
        """In the place of the state that waits, if one does."""
        if self.cards.get(show.name) == "":
            self._forget_ended(show)
            return
        waiting = self._pending_card(show.name)
        if waiting is None:
            self.open[show.ref] = Item(send=show, parts=("",))
        else:
            self.open[waiting].send = msgspec.structs.replace(show, ref=waiting)
        self._drop_unshown(show.name)

    def _pending_card(self, name: str, but: Ref | None = None) -> Ref | None:
        found = (ref for ref, item in self.open.items() if isinstance(item.send, ShowCard) and item.send.name == name)
        return next((ref for ref in found if ref != but and not self.open[ref].attempting), None)

    def _drop_unshown(self, name: str) -> None:
        """What has ended before anybody could see it needs no card."""
        mine = [item for item in self.open.values() if isinstance(item.send, ShowCard) and item.send.name == name]
        waiting = self._pending_card(name)
        if waiting is None or name in self.cards or any(item.attempting for item in mine):
            return
        send = self.open[waiting].send
        if isinstance(send, ShowCard) and send.card.ended:
            del self.open[waiting]

    def _close_card(self, ref: Ref, message: str) -> None:
        show = self.open.pop(ref).send
        assert isinstance(show, ShowCard)
        self.cards[show.name] = message
        newer = self._pending_card(show.name)
        if newer is not None and not message:
            newest = self.open.pop(newer).send
            assert isinstance(newest, ShowCard)
            self._forget_ended(newest)
        self._forget_ended(show)

    def _forget_ended(self, show: ShowCard) -> None:
        if show.card.ended:
            self.cards.pop(show.name, None)
