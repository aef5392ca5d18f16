"""A short conversation and a long one: how soon each is open, and what a turn of it costs."""

import asyncio
import contextlib
import statistics
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bench.figures import Figure
from bench.holding import GUARD, desk, opened
from brain.contacts import Contact
from brain.entries import Decided, LaneEntry, Speak, Taken
from brain.state import LaneState
from frontdesk.upkeep import views_file
from gateway.addresses import Address, Route
from gateway.broker.sqlite import SqliteBroker
from gateway.events import MessageReceived, Person, Ref, SendClosed
from gateway.folding import Emitted, Folding, stamped
from gateway.keeping import Keeper
from gateway.llm.model import Generation, OnSpent, Request
from gateway.record import encode
from gateway.snapshots import Policy, cut

ANA = Person(address=Address(medium="telegram", user="42"), name="Ana")
ROUTE = Route(medium="telegram", account="telegram-1", place="42")
SUBJECT = "log.lane.p-ana"
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
TURNS = 150


class Instant:
    """A model that needs no time: what is left is ours."""

    name = "instant"

    async def generate(self, request: Request, on_spent: OnSpent | None = None) -> Generation:
        return Generation(text="It is booked.", finish="stop", model=self.name)


def message(n: int) -> MessageReceived:
    return MessageReceived(
        identity=f"telegram-1/message/42:{n}/0", route=ROUTE, author=ANA, text=f"And number {n}, please.", at=BEGAN
    )


async def written(path: Path, events: int) -> None:
    """A conversation (message, decision, sent, …) as its holder and the keeper leave it, compacted by the policy."""
    async with opened(path) as broker:
        folding = Folding(LaneState("p-ana"), LaneEntry)
        waiting: list[Any] = []

        async def put(entry: Any) -> None:
            data = stamped(1, "bench", entry)
            folding.take(1, entry, len(data))
            waiting.append(asyncio.ensure_future(broker.append(SUBJECT, data, msg_id="")))
            if len(waiting) >= 500:
                await asyncio.gather(*waiting)
                waiting.clear()

        for n in range(events // 3):
            at = BEGAN + timedelta(minutes=n)
            fact = message(n)
            await put(Taken(event=fact, at=at))
            said = Speak(route=ROUTE, text="It is booked.", answers=(fact.identity,))
            await put(Decided(turn=n + 1, at=at, covers=(fact.identity,), decisions=(said,), model="instant"))
            send = folding.state.outgoing[-1].ref
            await put(Emitted(through=send))
            closed = SendClosed(ref=Ref("out-telegram-1", n + 1, 0), conversation="p-ana", send=send, outcome="sent")
            await put(Taken(event=closed, at=at, attention="keep"))
            if folding.due(Policy()):
                for part in cut(encode(folding.state.freeze())):
                    await put(part)
        await asyncio.gather(*waiting)
        keeper = Keeper(broker, views_file(path), lag_seconds=0.01)
        task = asyncio.create_task(keeper.run(GUARD))
        await keeper.caught_up()
        task.cancel()
        await asyncio.wait({task})


class Conversation:
    """Open, and asked one thing at a time."""

    start_seconds: float

    def __init__(self, broker: SqliteBroker, said: int) -> None:
        self.broker, self.said = broker, said
        self.taken: list[float] = []  # seconds from a message to the command that answers it
        self._answers: asyncio.Queue[float] = asyncio.Queue()

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator["Conversation"]:
        began = time.perf_counter()
        ana = Contact(key="ana", name="Ana", role="owner", addresses=(ANA.address,))
        manager = desk(self.broker, Instant(), [ana])
        tasks = [asyncio.create_task(manager.run()), asyncio.create_task(self._hear())]
        while not (lanes := manager.lanes()) or not lanes[0].journal.state.turns:
            await asyncio.sleep(0.001)
        self.start_seconds = time.perf_counter() - began
        try:
            yield self
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    async def _hear(self) -> None:
        async for delivery in self.broker.consume("cmd.out.>", "bench"):
            self._answers.put_nowait(time.perf_counter())
            await delivery.ack()

    async def turn(self) -> None:
        self.said += 1
        began = time.perf_counter()
        await self.broker.append("evt.medium.telegram-1", encode(message(self.said)), msg_id=str(self.said))
        self.taken.append(await self._answers.get() - began)


async def conversations(folder: Path) -> list[Figure]:
    """A short one and a long one, asked in turn, so that both meet the same disk."""
    short, long = folder / "short.db", folder / "long.db"
    await written(short, 100)
    await written(long, 100_000)
    async with (
        opened(short) as one,
        opened(long) as other,
        Conversation(one, 100).open() as first,
        Conversation(other, 100_000).open() as second,
    ):
        for _ in range(TURNS):
            await first.turn()
            await second.turn()
    few, many = (statistics.median(each.taken[10:]) * 1000 for each in (first, second))
    return [
        Figure(what="start of a conversation of 100,000 events", value=second.start_seconds, unit="s", bound=2.0),
        Figure(what="a turn at 100 events, p50", value=few, unit="ms"),
        Figure(what="a turn at 100,000 events, p50", value=many, unit="ms", bound=1.2 * few, note="+ 20 %"),
    ]
