"""What the store costs: `python -m bench.store`. Each figure is measured on this machine's own disk, with its bound.

The crowd comes first: the peak of memory is that of this process until then, with both brokers and the views.
"""

import asyncio
import resource
import socket
import statistics
import sys
import tempfile
import time
from pathlib import Path

from bench import ended
from bench.conversations import conversations
from bench.crowd import crowd, shared
from bench.figures import Figure, markdown
from bench.holding import opened
from gateway import stalls
from mediums.local import wire
from mediums.local.client import LocalClient

KILLS = 5


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
