"""Two hundred messages of fifty chats at once, on either broker: brain, outbox and views in this process."""

import asyncio
import contextlib
import re
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

from bench.holding import GUARD, desk, members
from frontdesk.upkeep import views_file
from gateway.addresses import Address, Route
from gateway.broker.nats import JetStreamBroker
from gateway.broker.protocol import Broker
from gateway.events import MessageReceived, Person
from gateway.keeping import Keeper
from gateway.llm.model import Generation, OnSpent, Request
from gateway.outbox import Outbox
from gateway.record import encode
from tests.servers.nats import NatsServer

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


class Room:
    """A platform that takes everything at once."""

    account, repeatable, may_come_back = "telegram-1", False, False

    def __init__(self) -> None:
        self.arrived: list[tuple[str, str]] = []

    def split(self, text: str) -> tuple[str, ...]:
        return (text,)

    async def send(self, route: Route, text: str, key: str) -> None:
        self.arrived.append((route.place, text))


class Slow:
    """A model of 100 ms that repeats what it heard."""

    name = "slow"

    async def generate(self, request: Request, on_spent: OnSpent | None = None) -> Generation:
        await asyncio.sleep(0.1)
        heard = re.findall(r"word-\d+-\d+", request.messages[-2]["content"])
        return Generation(text=" ".join(heard), finish="stop", model=self.name)


@contextlib.asynccontextmanager
async def shared() -> AsyncIterator[JetStreamBroker]:
    with NatsServer() as server:
        broker = await JetStreamBroker.connect(server.url)
        try:
            yield broker
        finally:
            await broker.close()


async def crowd(
    making: contextlib.AbstractAsyncContextManager[Broker], folder: Path, chats: int = 50, each: int = 4
) -> tuple[float, float]:
    """Seconds until all are answered, and the longest stall of the event loop in ms meanwhile."""
    people = [Address(medium="telegram", user=str(n)) for n in range(chats)]
    room = Room()
    async with making as broker:
        keeper = Keeper(broker, views_file(folder / "crowd.db"))
        works = [
            desk(broker, Slow(), members(people)).run(),
            Outbox(broker, room, GUARD, "bench").run(),
            keeper.run(GUARD),
        ]
        tasks = [asyncio.create_task(work) for work in works]
        began = time.perf_counter()
        saying = [asyncio.create_task(_say(broker, who, n)) for n in range(each) for who in people]
        longest = 0.0
        while sum(text.count("word-") for _, text in room.arrived) < chats * each:
            before = time.perf_counter()
            await asyncio.sleep(0.001)
            longest = max(longest, time.perf_counter() - before - 0.001)
            for failed in (task for task in tasks if task.done()):
                failed.result()
        took = time.perf_counter() - began
        for task in (*tasks, *saying):
            task.cancel()
        await asyncio.wait(tasks)
    words = sorted(word for _, text in room.arrived for word in text.split())
    assert words == sorted({*words}), "answered twice"
    assert all(word.split("-")[1] == place for place, text in room.arrived for word in text.split()), "misrouted"
    return took, longest * 1000


async def _say(broker: Broker, who: Address, n: int) -> None:
    fact = MessageReceived(
        identity=f"telegram-1/message/{who.user}:{n}/0",
        route=Route(medium="telegram", account="telegram-1", place=who.user),
        author=Person(address=who, name=who.user),
        text=f"word-{who.user}-{n}.",
        at=BEGAN,
    )
    await broker.append("evt.medium.telegram-1", encode(fact), msg_id=fact.identity)
