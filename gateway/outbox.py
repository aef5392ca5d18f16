"""The outbox of one medium account: its fold (pure), and the one place where attempt and withdrawal meet.

A message is pending, attempting, or closed: sent, failed, unknown or withdrawn. It is written down before it is tried;
only what surely did not happen is tried again. Messages to one room leave in order, one after the other; rooms do not
wait for each other.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from gateway.addresses import Route
from gateway.broker.protocol import Broker
from gateway.events import OutboxCommand, Outcome, Ref, Send, SendClosed, WithdrawSend
from gateway.holding import Guard
from gateway.journal import Emitted, Journal, Outgoing, Owned, Released, acknowledge, forget_emitted
from gateway.record import Tagged, decode
from gateway.seen import Seen

log = logging.getLogger(__name__)

MAX_ATTEMPTS = 8
RETRY_SECONDS, LONGEST_RETRY_SECONDS = 0.5, 60.0


class SurelyNotSent(Exception):
    """The platform did nothing (429, a refused connection, an outage that it declared): it may be tried again."""

    def __init__(self, why: str, retry_after_seconds: float | None = None) -> None:
        super().__init__(why)
        self.retry_after_seconds = retry_after_seconds


class Rejected(Exception):
    """The platform will not take it, now or later: blocked, no such chat, not allowed."""


class OutcomeUnknown(Exception):
    """Timeout or cut after the request had left."""


class Platform(Protocol):
    """The part of a medium that an outbox needs; `mediums.medium.Medium` says what each promises."""

    @property
    def account(self) -> str: ...
    @property
    def repeatable(self) -> bool: ...
    def split(self, text: str) -> tuple[str, ...]: ...
    async def send(self, route: Route, text: str, key: str) -> None: ...


# --- entries ---------------------------------------------------------------------------------------------------------


class Queued(Tagged, frozen=True, kw_only=True):
    """`parts` are fixed here, so that a restart splits nothing differently. `withdrew`: the withdrawal came in time."""

    command: OutboxCommand
    parts: tuple[str, ...] = ()
    withdrew: bool = False


class Attempting(Tagged, frozen=True, kw_only=True):
    send: Ref
    part: int = 0


class Deferred(Tagged, frozen=True, kw_only=True):
    """It surely did not happen: back to pending."""

    send: Ref
    why: str = ""


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
    """One open message. `part` is the next to go."""

    send: Send
    parts: tuple[str, ...]
    part: int = 0
    attempting: bool = False
    attempts: int = 0


class OutboxState:
    def __init__(self, account: str) -> None:
        self.account = account
        self.open: dict[Ref, Item] = {}  # in order
        self.outgoing: list[Outgoing] = []
        self._seen = Seen()
        self._batch = 0

    def knows(self, command: OutboxCommand) -> bool:
        return command.ref in self._seen

    def pending(self, ref: Ref) -> bool:
        return ref in self.open and not self.open[ref].attempting

    def apply(self, entry: Entry) -> None:
        match entry:
            case Queued(command=Send() as send, parts=parts):
                self._seen.add(send.ref)
                self.open[send.ref] = Item(send=send, parts=parts)
                if not parts:
                    self._close(send.ref, "failed", "there is nothing to send")
            case Queued(command=command, withdrew=withdrew):
                self._seen.add(command.ref)
                if withdrew and isinstance(command, WithdrawSend):
                    self._close(command.send, "withdrawn")
            case Attempting(send=ref):
                self.open[ref].attempting = True
                self.open[ref].attempts += 1
            case Deferred(send=ref):
                self.open[ref].attempting = False
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

    def rooms(self) -> dict[Any, Ref]:
        """The oldest open message of each room: only that one may be tried."""
        first: dict[Any, Ref] = {}
        for ref, item in self.open.items():
            first.setdefault(item.send.route.room, ref)
        return first


# --- the work --------------------------------------------------------------------------------------------------------


class Outbox:
    def __init__(self, broker: Broker, platform: Platform, guard: Guard, worker: str) -> None:
        self._broker, self._platform, self._guard = broker, platform, guard
        account = platform.account
        self.journal: Journal[OutboxState] = Journal(
            broker, f"log.out.{account}", OutboxState(account), Entry, guard, worker
        )
        self._busy: set[Any] = set()

    async def run(self) -> None:
        await self.journal.open()
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self.journal.run())
                group.create_task(self._intake())
                group.create_task(self._deliver(group))
        finally:
            await self.journal.release()

    async def _intake(self) -> None:
        account = self._platform.account
        async for delivery in self._broker.consume(f"cmd.out.{account}", f"out-{account}"):
            command: OutboxCommand = decode(delivery.stored.data, OutboxCommand)
            await self.journal.write(self._queue(command))
            await acknowledge(delivery.ack)

    def _queue(self, command: OutboxCommand) -> Callable[[OutboxState], Queued | None]:
        parts = self._platform.split(command.text) if isinstance(command, Send) else ()

        def decide(state: OutboxState) -> Queued | None:
            if state.knows(command):
                return None
            if isinstance(command, Send):
                return Queued(command=command, parts=parts)
            return Queued(command=command, withdrew=state.pending(command.send))

        return decide

    async def _deliver(self, group: asyncio.TaskGroup) -> None:
        await self._settle_attempts_of_a_former_holder()
        while True:
            state = await self.journal.until(lambda state: state.rooms().keys() - self._busy)
            for room, ref in state.rooms().items():
                if room not in self._busy:
                    self._busy.add(room)
                    group.create_task(self._send(room, ref))

    async def _settle_attempts_of_a_former_holder(self) -> None:
        for ref, item in list(self.journal.state.open.items()):
            if item.attempting and self._platform.repeatable:
                await self.journal.write(lambda _, ref=ref: Deferred(send=ref, why="the holder was interrupted"))  # type: ignore[misc]
            elif item.attempting:
                await self.journal.write(lambda _, ref=ref: Closed(send=ref, outcome="unknown", why="interrupted"))  # type: ignore[misc]

    async def _send(self, room: Any, ref: Ref) -> None:
        try:
            while ref in self.journal.state.open:
                pause_seconds = await self._attempt(ref)
                if pause_seconds:
                    await asyncio.sleep(pause_seconds)
        finally:
            self._busy.discard(room)

    async def _attempt(self, ref: Ref) -> float:
        """One part, tried once. How long to wait before the next."""
        begun = await self.journal.write(lambda state: _begin(state, ref))
        if begun is None:
            return 0  # withdrawn while we looked
        item = self.journal.state.open[ref]
        end: Entry
        pause_seconds = 0.0
        try:
            self._guard.check()
            await self._platform.send(item.send.route, item.parts[item.part], f"{ref}/{item.part}")
            last = item.part + 1 == len(item.parts)
            end = Closed(send=ref, outcome="sent") if last else PartSent(send=ref, part=item.part)
        except SurelyNotSent as error:
            if item.attempts < MAX_ATTEMPTS:
                end = Deferred(send=ref, why=str(error))
                grown = min(RETRY_SECONDS * 2 ** (item.attempts - 1), LONGEST_RETRY_SECONDS)
                pause_seconds = grown if error.retry_after_seconds is None else error.retry_after_seconds
            else:
                end = Closed(send=ref, outcome="failed", why=f"{error} ({MAX_ATTEMPTS} attempts)")
        except Rejected as error:
            end = Closed(send=ref, outcome="failed", why=str(error))
        except OutcomeUnknown as error:
            if self._platform.repeatable and item.attempts < MAX_ATTEMPTS:
                end, pause_seconds = Deferred(send=ref, why=str(error)), RETRY_SECONDS
            else:
                end = Closed(send=ref, outcome="unknown", why=str(error))
        await self.journal.write(lambda _: end)
        if isinstance(end, Closed) and end.outcome != "sent":
            log.warning(
                "%s: a message to %s is %s: %s", self._platform.account, item.send.route.place, end.outcome, end.why
            )
        return pause_seconds


def _begin(state: OutboxState, ref: Ref) -> Attempting | None:
    return Attempting(send=ref, part=state.open[ref].part) if state.pending(ref) else None
