"""python -m bench.broker: the brokers' figures, as a table, and how long a takeover takes with real processes.

On a machine that does something else besides they are worse: say so beside them.
"""

import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from gateway.broker.nats import JetStreamBroker
from gateway.broker.protocol import Broker
from gateway.broker.sqlite import SqliteBroker
from tests.processes.town import Process, Town, worker
from tests.servers.nats import NatsServer

BYTES = 500
SINGLE, PUBLISHERS, EACH = 500, 100, 100
TAKEOVERS = 5
TARGETS = {
    "SQLite": ("<= 2 ms", ">= 10,000/s"),
    "JetStream": ("<= 2 ms", ""),
    "JetStream, sync always": ("<= 2 ms", ">= 2,000/s"),
}
COUNT = """
import time
for n in range(1000):
    open("marks", "a").write("x")
    time.sleep(0.1)
"""


@asynccontextmanager
async def opened(name: str, folder: Path) -> AsyncIterator[Broker]:
    if name == "SQLite":
        broker: Broker = SqliteBroker(folder / "bench.db")
        yield broker
        await broker.close()
        return
    with NatsServer(sync_always="sync" in name) as server:
        broker = await JetStreamBroker.connect(server.url)
        yield broker
        await broker.close()


async def way(broker: Broker) -> list[float]:
    """Milliseconds from before an append to its delivery, one at a time."""
    began: dict[bytes, float] = {}
    took: list[float] = []
    more = asyncio.Event()

    async def handle() -> None:
        async for delivery in broker.consume("evt.>", "bench"):
            took.append((time.perf_counter() - began[delivery.stored.data[:8]]) * 1000)
            await delivery.ack()
            more.set()

    handling = asyncio.create_task(handle())
    await asyncio.sleep(0.2)
    for n in range(SINGLE):
        more.clear()
        data = b"%08d" % n + b"x" * BYTES
        began[data[:8]] = time.perf_counter()
        await broker.append("evt.medium.a", data, msg_id=f"{n}")
        await more.wait()
    handling.cancel()
    return took[SINGLE // 10 :]


async def rate(broker: Broker) -> float:
    """Durable appends in a second, by many publishers at once."""

    async def publish(who: int) -> None:
        for n in range(EACH):
            await broker.append(f"log.lane.c{who}", b"x" * BYTES, msg_id=f"{who} {n}")

    began = time.perf_counter()
    await asyncio.gather(*(publish(who) for who in range(PUBLISHERS)))
    return PUBLISHERS * EACH / (time.perf_counter() - began)


def fsync(times: int = 200) -> float:
    """Milliseconds: what bounds every durable append that is not made together with others."""
    with tempfile.TemporaryFile(prefix="frontdesk-bench-") as file:
        began = time.perf_counter()
        for _ in range(times):
            file.write(b"x" * BYTES)
            file.flush()
            os.fsync(file.fileno())
        return (time.perf_counter() - began) * 1000 / times


async def takeovers(folder: Path) -> dict[str, list[float]]:
    """Seconds from kill -9 of a holder until the other process on the machine has its journal."""
    took: dict[str, list[float]] = {"brain": [], "actors": []}
    async with Town(folder) as town:
        town.worker.script(worker(COUNT))
        town.start("mediums")
        both = {role: [town.start(role), town.start(role)] for role in took}
        town.client.say("Count the marks")
        await town.until(lambda: [*folder.glob("*/*.actions/*/workspace/marks")])
        for role, subject in (("brain", "log.lane.p-owner"), ("actors", "log.act.p-owner-a1")):
            for _ in range(TAKEOVERS):
                took[role].append(await _takeover(town, both[role], role, subject))
    return took


async def _takeover(town: Town, pair: list[Process], role: str, subject: str) -> float:
    holder = await town.holder(subject)
    pair.sort(key=lambda process: process.pid != holder)
    await town.until(lambda: "standing by" in pair[1].log() or "held here" in pair[1].log())
    await asyncio.sleep(0.5)
    began = time.monotonic()
    await pair[0].kill()
    seconds = await town.holds(pair[1], subject) - began
    pair[0] = town.start(role)
    return seconds


async def main() -> None:
    rows = [("", "append -> handler, p50", "p99", "target", f"events/s, {PUBLISHERS} publishers", "target")]
    for name, (way_target, rate_target) in TARGETS.items():
        with tempfile.TemporaryDirectory(prefix="frontdesk-bench-") as folder:
            async with opened(name, Path(folder)) as broker:
                took, per_second = await way(broker), await rate(broker)
        p99 = statistics.quantiles(took, n=100)[98]
        rows.append(
            (name, f"{statistics.median(took):.2f} ms", f"{p99:.2f} ms", way_target, f"{per_second:,.0f}", rate_target)
        )
    _print(rows)
    print(
        f"One fsync of {BYTES} bytes: {fsync():.2f} ms. With sync always a stream's entries are fsynced one by one.\n"
    )
    with tempfile.TemporaryDirectory(prefix="frontdesk-bench-") as folder:
        seconds = await takeovers(Path(folder))
    rows = [("takeover after kill -9, same machine", "p50", "worst", "target")]
    for role, each in seconds.items():
        rows.append((role, f"{statistics.median(each):.2f} s", f"{max(each):.2f} s", "<= 3 s"))
    _print(rows)


def _print(rows: list[tuple[str, ...]]) -> None:
    for n, row in enumerate(rows):
        print(f"| {' | '.join(row)} |")
        if n == 0:
            print(f"|{'---|' * len(row)}")
    print()


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
