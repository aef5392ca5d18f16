"""What the store costs: `python -m bench.store`. Each figure is measured on this machine's own disk, with its bound.

The crowd comes first: the peak of memory is that of this process until then, with both brokers and the views.
"""

import asyncio
import contextlib
import re
import resource
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bench import ended
from bench.figures import Figure, markdown
from brain.contacts import Contact, Contacts
from brain.entries import Decided, LaneEntry, Speak, Taken
from brain.hold import Pace
from brain.manager import Manager
from brain.state import LaneState
from frontdesk.upkeep import views_file
from gateway import stalls
from gateway.addresses import Address, Route
from gateway.broker.nats import JetStreamBroker
from gateway.broker.protocol import Broker
from gateway.broker.sqlite import SqliteBroker
from gateway.clock import boot_seconds, utc_now
from gateway.events import MessageReceived, Person, Ref, SendClosed
from gateway.folding import Emitted, Folding, stamped
from gateway.holding import Guard
from gateway.keeping import Keeper
from gateway.llm.model import Generation, OnSpent, Request
from gateway.outbox import Outbox
from gateway.record import encode
from gateway.snapshots import Policy, cut
from mediums.local import wire
from mediums.local.client import LocalClient
from tests.servers.nats import NatsServer

ANA = Person(address=Address(medium="telegram", user="42"), name="Ana")
ROUTE = Route(medium="telegram", account="telegram-1", place="42")
SUBJECT = "log.lane.p-ana"
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
TURNS = 150
KILLS = 5


class Held:
    deadline = boot_seconds() + 3600

    async def renew(self) -> None: ...
    async def release(self) -> None: ...


GUARD = Guard(Held())


class Instant:
    """A model that needs no time: what is left is ours."""

    name = "instant"

    async def generate(self, request: Request, on_spent: OnSpent | None = None) -> Generation:
        return Generation(text="It is booked.", finish="stop", model=self.name)


def message(n: int) -> MessageReceived:
    return MessageReceived(
        identity=f"telegram-1/message/42:{n}/0", route=ROUTE, author=ANA, text=f"And number {n}, please.", at=BEGAN
    )


@contextlib.asynccontextmanager
async def opened(path: Path) -> AsyncIterator[SqliteBroker]:
    broker = SqliteBroker(path)
    try:
        yield broker
    finally:
        await broker.close()


async def latency(folder: Path) -> float:
    """Append to handler, median, in ms."""
    async with opened(folder / "latency.db") as broker:
        taken: list[float] = []
        arrived = asyncio.Event()

        async def consume() -> None:
            async for delivery in broker.consume("evt.>", "bench"):
                taken.append(time.perf_counter() - float(delivery.stored.data))
                arrived.set()
                await delivery.ack()

        task = asyncio.create_task(consume())
        for n in range(500):
            arrived.clear()
            await broker.append("evt.a", b"%.9f" % time.perf_counter(), msg_id=str(n))
            await arrived.wait()
        task.cancel()
        await asyncio.wait({task})
        return statistics.median(taken) * 1000


async def rate(folder: Path, publishers: int = 100, each: int = 300) -> float:
    """Durable events in a second."""
    async with opened(folder / "rate.db") as broker:

        async def publish(who: int) -> None:
            for n in range(each):
                await broker.append(f"evt.p{who}", b"x" * 300, msg_id=f"{who}/{n}")

        began = time.perf_counter()
        await asyncio.gather(*map(publish, range(publishers)))
        return publishers * each / (time.perf_counter() - began)


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
        contacts = Contacts([Contact(key="ana", name="Ana", role="owner", addresses=(ANA.address,))])
        manager = Manager(
            self.broker,
            GUARD,
            "bench",
            assistant="Frontdesk",
            contacts=contacts,
            model=Instant(),
            tell=lambda account, signal: None,
            operator=print,
            now=utc_now,
            pace=Pace(),
        )
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
    async with making as broker:
        people = [Address(medium="telegram", user=str(n)) for n in range(chats)]
        contacts = Contacts(
            [Contact(key=f"c{one.user}", name=one.user, role="member", addresses=(one,)) for one in people]
        )
        room = Room()
        manager = Manager(
            broker,
            GUARD,
            "bench",
            assistant="Frontdesk",
            contacts=contacts,
            model=Slow(),
            tell=lambda account, signal: None,
            operator=print,
            now=utc_now,
            pace=Pace(),
        )
        keeper = Keeper(broker, views_file(folder / "crowd.db"))
        works = [manager.run(), Outbox(broker, room, GUARD, "bench").run(), keeper.run(GUARD)]
        tasks = [asyncio.create_task(work) for work in works]
        began = time.perf_counter()

        async def say(who: Address, n: int) -> None:
            route = Route(medium="telegram", account="telegram-1", place=who.user)
            author = Person(address=who, name=who.user)
            identity = f"telegram-1/message/{who.user}:{n}/0"
            word = f"word-{who.user}-{n}."
            fact = MessageReceived(identity=identity, route=route, author=author, text=word, at=BEGAN)
            await broker.append("evt.medium.telegram-1", encode(fact), msg_id=identity)

        saying = [asyncio.create_task(say(who, n)) for n in range(each) for who in people]
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


async def revived(folder: Path) -> float:
    """Seconds from the start of a new process to the answer to a message that a kill -9 left open."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    web = f'[mediums.web]\nlisten = "127.0.0.1:{port}"\ntoken = "bench"\n'
    config = folder / "config.toml"
    config.write_text(f'[model]\nname = "rehearsal"\n[store]\npath = "{folder}/killed.db"\n{web}')
    command = [sys.executable, "-m", "frontdesk", "run", "--config", str(config)]
    async with LocalClient(f"http://127.0.0.1:{port}", "bench") as client:
        first = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.DEVNULL)
        client.say("hello")
        async for event in client:
            if isinstance(event, wire.Accepted):
                break
        first.kill()
        await first.wait()
        began = time.perf_counter()
        second = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.DEVNULL)
        async for event in client:
            if isinstance(event, wire.Post) and event.author == "assistant":
                break
        took = time.perf_counter() - began
        second.terminate()
        await second.wait()
    return took


async def figures(folder: Path) -> list[Figure]:
    rows = []
    for name, making, bound in (
        ("SQLite", opened(folder / "crowd.db"), 1.5),
        ("JetStream", shared(), 2.5),
    ):
        took, longest = await crowd(making, folder)
        what = f"200 messages of 50 chats at once, model 100 ms, {name}: all answered"
        rows.append(Figure(what=what, value=took, unit="s", bound=bound))
        rows.append(Figure(what="  the longest stall of the event loop meanwhile", value=longest, unit="ms", bound=20))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    rows.append(Figure(what="  the peak of memory until then", value=peak, unit="MB", bound=150))
    rows.append(Figure(what="append to handler, durable, p50", value=await latency(folder), unit="ms", bound=2))
    many = await rate(folder)
    rows.append(
        Figure(what="an event of 100 publishers", value=1e6 / many, unit="us", bound=100, note=f"{many:,.0f}/s")
    )
    rows += await conversations(folder)
    rows += await ended.figures(folder)
    killed = [await revived(folder) for _ in range(KILLS)]
    what = f"kill -9, new process, answered: the worst of {KILLS}"
    rows.append(Figure(what=what, value=max(killed), unit="s", bound=3, note=f"p50 {statistics.median(killed):.2f}"))
    return rows


async def main() -> None:
    stalls.keep_short()  # as the gateway does once it has started
    with tempfile.TemporaryDirectory(prefix="frontdesk-bench-") as name:
        print(markdown(await figures(Path(name))))


if __name__ == "__main__":
    asyncio.run(main())
