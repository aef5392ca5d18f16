"""The outbox of one medium account at work: the one place where attempt and withdrawal meet.

A message is written down before it is tried; only what surely did not happen is tried again. Messages to one room leave
in order, one after the other; rooms do not wait for each other, and accounts know nothing of each other. Every message
ends: by its deadline at the latest, and a platform that says nothing is given `SEND_SECONDS`.

A status card goes the same way: its first state in its place among the messages, the later ones, as edits, behind them.
An edit may be repeated; a card that perhaps stands there, without an id that tells, is left alone.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Protocol

import msgspec

from gateway.addresses import Route
from gateway.broker.protocol import Broker, Unconfirmed
from gateway.cards import Card
from gateway.clock import Now, utc_now
from gateway.events import OutboxCommand, Ref, Send, ShowCard, WithdrawSend
from gateway.files import Attachment
from gateway.holding import Guard
from gateway.journal import Journal, acknowledge
from gateway.keeping import Consumed
from gateway.outbox_state import (
    Attempting,
    Closed,
    Deferred,
    Entry,
    Item,
    OutboxState,
    PartSent,
    Queued,
    Returned,
    Room,
    Unread,
    mark_of,
)
from gateway.record import Record, Undecodable, decode

log = logging.getLogger(__name__)

MAX_ATTEMPTS = 8  # of one part, where the message has no deadline, or its outcome is unknown and it may be repeated
RETRY_SECONDS, LONGEST_RETRY_SECONDS = 0.5, 60.0
IN_A_ROW = 3  # who asks for no wait at all, again and again, is not asked without end
LONG_CHARACTERS = 2_000
SEND_SECONDS = 120.0  # a medium has bounds of its own; this one is for those that hang all the same
UNREAD = "it could not be read here: a newer version wrote it, or it is damaged"
TOO_LATE = "too late: it could not be delivered in time, and is not sent any more"


class SurelyNotSent(Exception):
    """The platform did nothing (429, a refused connection, an outage that it declared): it may be tried again."""

    def __init__(self, why: str, retry_after_seconds: float | None = None) -> None:
        super().__init__(why)
        self.retry_after_seconds = retry_after_seconds


class Rejected(Exception):
    """The platform will not take it, now or later: blocked, no such chat, not allowed."""


class OutcomeUnknown(Exception):
    """Timeout or cut after the request had left."""


class Head(Record, frozen=True, kw_only=True):
    """Of any command, whatever else it holds."""

    type: str
    ref: Ref
    conversation: str


class CameBack(Record, frozen=True, kw_only=True):
    """A message that had been handed over did not arrive. `mark` is as in `mark_of`."""

    mark: str
    why: str


class Carried(Record, frozen=True, kw_only=True):
    """A file with its bytes, on its way out."""

    file: Attachment
    data: bytes


class Platform(Protocol):
    """The part of a medium that an outbox needs; `mediums.medium.Medium` says what each promises."""

    @property
    def account(self) -> str: ...
    @property
    def repeatable(self) -> bool: ...
    @property
    def may_come_back(self) -> bool: ...
    def split(self, text: str) -> tuple[str, ...]: ...
    @property
    def files_with_text(self) -> bool: ...
    async def send(self, route: Route, text: str, key: str) -> None: ...
    async def send_files(self, route: Route, text: str, files: Sequence[Carried], key: str) -> None: ...
    async def react(self, route: Route, emoji: str, key: str) -> None: ...
    async def show_card(self, route: Route, card: Card, message: str | None) -> str: ...


class Outbox:
    def __init__(
        self,
        broker: Broker,
        platform: Platform,
        guard: Guard,
        worker: str,
        now: Now = utc_now,
        send_seconds: float = SEND_SECONDS,
    ) -> None:
        self._broker, self._platform, self._guard, self._now = broker, platform, guard, now
        self._send_seconds = send_seconds
        account = platform.account
        self.journal: Journal[OutboxState] = Journal(
            broker, f"log.out.{account}", OutboxState(account), Entry, guard, worker
        )
        self._busy: set[Room] = set()

    async def run(self) -> None:
        await self.journal.open()
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self.journal.run())
                group.create_task(self._intake())
                group.create_task(self._deliver(group))
        finally:
            await self.journal.release()

    async def take_back(self, returned: CameBack) -> None:
        """Durable when it returns; nothing where it is told again, or of a message that is long gone."""
        entry = Returned(mark=returned.mark, why=returned.why)
        await self.journal.write(lambda state: entry if returned.mark in state.returnable else None)

    async def _intake(self) -> None:
        account = self._platform.account
        consumed = Consumed(self._broker)
        async for delivery in self._broker.consume(f"cmd.out.{account}", f"out-{account}"):
            try:
                command: OutboxCommand = decode(delivery.stored.data, OutboxCommand)
            except Undecodable as error:
                log.error("%s: a stored command cannot be read and is set aside: %s", account, error)  # noqa: TRY400
                await self._tell_unread(delivery.stored.data)
            else:
                await self.journal.write(await self._queue(command))
            await acknowledge(delivery.ack)
            await consumed.forget(delivery.stored)

    async def _tell_unread(self, data: bytes) -> None:
        """Whoever said it, where that much can be read."""
        try:
            head: Head = decode(data, Head)
        except Undecodable:
            return
        entry = Unread(send=head.ref, conversation=head.conversation, why=UNREAD)
        if head.type == Send.__name__:
            await self.journal.write(lambda state: None if state.knows(head.ref) else entry)

    async def _queue(self, command: OutboxCommand) -> Callable[[OutboxState], Queued | None]:
        parts, carried = await self._split(command) if isinstance(command, Send) else ((), ())

        def decide(state: OutboxState) -> Queued | None:
            if state.knows(command.ref):
                return None
            if isinstance(command, WithdrawSend):
                return Queued(command=command, withdrew=state.pending(command.send))
            once = msgspec.structs.replace(command, text="") if parts and isinstance(command, Send) else command
            return Queued(command=once, parts=parts, carried=carried)

        return decide

    async def _split(self, send: Send) -> tuple[tuple[str, ...], tuple[int, ...]]:
        """A text of marks that nobody closes takes seconds to be understood: not in the loop, where all wait."""
        if len(send.text) > LONG_CHARACTERS:
            return await asyncio.to_thread(self._parts, send)
        return self._parts(send)

    def _parts(self, send: Send) -> tuple[tuple[str, ...], tuple[int, ...]]:
        """The texts, and how many of the files go with each: all with the last, or each as a part after the text."""
        if send.reaction:
            return (send.reaction,), ()
        texts = self._platform.split(send.text)
        if not send.files:
            return texts, ()
        if self._platform.files_with_text:
            texts = texts or ("",)
            return texts, (*(0 for _ in texts[1:]), len(send.files))
        return (*texts, *("" for _ in send.files)), (*(0 for _ in texts), *(1 for _ in send.files))

    async def _deliver(self, group: asyncio.TaskGroup) -> None:
        await self._settle_attempts_of_a_former_holder()
        while True:
            state = await self.journal.until(lambda state: state.rooms().keys() - self._busy)
            for room in state.rooms().keys() - self._busy:
                self._busy.add(room)
                group.create_task(self._send_all(room))

    async def _settle_attempts_of_a_former_holder(self) -> None:
        for ref, item in list(self.journal.state.open.items()):
            if item.attempting and (self._platform.repeatable or self.journal.state.is_edit(item.send)):
                await self.journal.write(lambda _, ref=ref: Deferred(send=ref, why="the holder was interrupted"))  # type: ignore[misc]
            elif item.attempting:
                await self.journal.write(lambda _, ref=ref: Closed(send=ref, outcome="unknown", why="interrupted"))  # type: ignore[misc]

    # --- one room, until nothing waits in it -------------------------------------------------------------------------

    async def _send_all(self, room: Room) -> None:
        state = self.journal.state
        try:
            while (ref := state.rooms().get(room)) is not None:
                seconds = self._rest_seconds(room, state.open[ref])
                if seconds > 0:
                    with suppress(TimeoutError):  # a withdrawal ends the pause; the room goes on resting
                        async with asyncio.timeout(seconds):
                            await self.journal.until(lambda state, ref=ref: state.rooms().get(room) != ref)  # type: ignore[misc]
                else:
                    await self._attempt(ref)
        finally:
            self._busy.discard(room)

    def _rest_seconds(self, room: Room, item: Item) -> float:
        """As long as the platform asked for, but not beyond the message's deadline."""
        due = self.journal.state.resting.get(room)
        if due is not None and item.send.until is not None:
            due = min(due, item.send.until)
        return (due - self._now()).total_seconds() if due is not None else 0.0

    async def _attempt(self, ref: Ref) -> None:
        """One part, tried once."""
        begun = await self.journal.write(lambda state: self._begin(state, ref))
        if isinstance(begun, Attempting):
            item = self.journal.state.open[ref]
            end = await self._try(ref, item)
            await self.journal.write(lambda _: end)
            if isinstance(end, Deferred) and item.attempts == 1:
                log.info("%s: a message (%s) waits and is tried again: %s", self._platform.account, ref, end.why)
        else:  # withdrawn while we looked, or too late
            end = begun
        if isinstance(end, Closed) and end.outcome != "sent":
            log.warning("%s: a message (%s) is %s: %s", self._platform.account, ref, end.outcome, end.why)

    def _begin(self, state: OutboxState, ref: Ref) -> Attempting | Closed | None:
        if not state.pending(ref):
            return None
        item = state.open[ref]
        if item.send.until is not None and self._now() >= item.send.until:
            shown = state.cards.get(item.send.name, "") if isinstance(item.send, ShowCard) else ""
            why = f"{TOO_LATE} ({item.why})" if item.why else TOO_LATE
            return Closed(send=ref, outcome="failed", why=why, message=shown)
        return Attempting(send=ref, part=item.part)

    async def _try(self, ref: Ref, item: Item) -> Entry:
        """What came of it."""
        shown = self.journal.state.cards.get(item.send.name, "") if isinstance(item.send, ShowCard) else ""
        try:
            self._guard.check()
            async with asyncio.timeout(self._send_seconds):
                if isinstance(item.send, ShowCard):
                    shown = await self._platform.show_card(item.send.route, item.send.card, shown or None)
                else:
                    await self._leave(item, item.send, _key(ref, item))
        except SurelyNotSent as error:
            if item.send.until is None and item.attempts >= MAX_ATTEMPTS:
                why = f"{error} ({MAX_ATTEMPTS} attempts)"
                return Closed(send=ref, outcome="failed", why=why, message=shown)
            grown = min(RETRY_SECONDS * 2 ** min(item.attempts - 1, 10), LONGEST_RETRY_SECONDS)
            asked = error.retry_after_seconds
            patient = asked is not None and (asked > 0 or item.attempts < IN_A_ROW)
            return self._deferred(ref, error, asked if asked is not None and patient else grown)
        except Rejected as error:
            return Closed(send=ref, outcome="failed", why=str(error))
        except (OutcomeUnknown, TimeoutError) as error:
            if (self._platform.repeatable or shown) and item.attempts < MAX_ATTEMPTS:
                return self._deferred(ref, error, RETRY_SECONDS)
            why = str(error) or f"no answer in {self._send_seconds:.0f} s"
            return Closed(send=ref, outcome="unknown", why=why, message=shown, mark=self._mark(ref, item))
        if item.part + 1 < len(item.parts):
            return PartSent(send=ref, part=item.part)
        return Closed(send=ref, outcome="sent", message=shown, mark=self._mark(ref, item))

    def _mark(self, ref: Ref, item: Item) -> str:
        return mark_of(self._platform.account, _key(ref, item)) if self._platform.may_come_back else ""

    async def _leave(self, item: Item, send: Send, key: str) -> None:
        route, text = send.route, item.parts[item.part]
        if send.reaction:
            await self._platform.react(route, text, key)
        elif files := item.files_of(send):
            await self._platform.send_files(route, text, [await self._carried(file) for file in files], key)
        else:
            await self._platform.send(route, text, key)

    async def _carried(self, file: Attachment) -> Carried:
        try:
            return Carried(file=file, data=await self._broker.get_blob(file.digest))
        except LookupError:
            raise Rejected(f"the file {file.name} is not in the store any more") from None
        except Unconfirmed as error:
            raise SurelyNotSent(f"the file {file.name} cannot be read from the store now: {error}") from None

    def _deferred(self, ref: Ref, error: Exception, pause_seconds: float) -> Deferred:
        return Deferred(send=ref, why=str(error), until=self._now() + timedelta(seconds=pause_seconds))


def _key(ref: Ref, item: Item) -> str:
    """The same for each try of one part."""
    return f"{ref}/{item.part}"
