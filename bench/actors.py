"""python -m bench.actors: the figures of actors that are steered, as a table.

The host of actions and its sandboxes are the real ones; models answer over a real wire where their stream is measured,
else at once. Every figure is of this process and the sandboxes' own.
"""

import asyncio
import gc
import json
import logging
import os
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path

from rich.console import Console

from actors.entries import Interjected
from actors.workshop import Limits
from bench.figures import Figure, p, table
from gateway.llm.client import HelperModel, HelperProcess
from gateway.llm.model import Endpoint, Generation, OnSpent, Request
from tests.actors.shop import ScriptedModel, Shop, code
from tests.servers.openai import Received, Reply, ScriptedOpenAI

ROUNDS = 200
SESSIONS, SLEEPERS, WAKES = 100, 1_000, 20
COMPUTE_SECONDS, SPAN_SECONDS = 60.0, 3.0
SPAN = timedelta(days=1)
LATER = Limits(max_live=10_000, hibernate_after=SPAN * 2)
SLEEPY = Limits(max_live=10_000, hibernate_after=SPAN, close_after=SPAN * 1_000)

OBSTINATE = """\
import os, signal, time
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
for n in range(20):
    if os.fork() == 0:
        os.setsid()
        while True: time.sleep(1)
print('all', flush=True)
while True: time.sleep(1)
"""
COMPUTE = """\
import json, time
def compute():
    total = 0
    for n in range(200_000): total += n * n % 7
pieces = []
for _ in range({pieces}):
    began = time.time()
    compute()
    pieces.append((began, time.time() - began))
open('pieces', 'w').write(json.dumps(pieces))
"""


class OnTheWire(ScriptedModel):
    """Asks a server, by way of the helper process."""

    def __init__(self, helper: HelperProcess, base_url: str) -> None:
        super().__init__()
        self._model = HelperModel(helper, Endpoint(name="openai/scripted", api_base=base_url, api_key="sk-bench"))

    async def generate(self, request: Request, on_spent: OnSpent | None = None) -> Generation:
        return await self._model.generate(request, on_spent)


async def interjections(folder: Path) -> list[Figure]:
    """From the command's publication to the end of the old stream at the server, and to the next request there."""
    async with ScriptedOpenAI() as server, HelperProcess("bench") as helper:
        await helper.ready()
        gates: list[asyncio.Event] = []

        def answer(received: Received) -> Reply:
            gates.append(asyncio.Event())
            return Reply(text="word " * 50, chunks=20, gate=gates[-1])

        server.script(answer)
        closed, asked = [], []
        async with Shop(folder, model=OnTheWire(helper, server.base_url), limits=Limits(max_tokens=10**9)) as shop:
            await shop.start("a1", "Write")
            for number in range(ROUNDS):
                stream = await server.arrived(number + 1)
                await stream.streaming.wait()
                began = time.monotonic()
                await shop.interject("a1", f"No, {number}")
                after = await server.arrived(number + 2)
                await stream.over.wait()
                assert stream.closed_at is not None
                closed.append((stream.closed_at - began) * 1000)
                asked.append((after.arrived_at - began) * 1000)
            for gate in gates:
                gate.set()
            await shop.stop("a1")
            await shop.phase("a1", "stopped")
    return [
        Figure(what="interject to the old stream closed, p50", value=p(closed, 50), unit="ms"),
        Figure(what="  p99", value=p(closed, 99), unit="ms", bound=50),
        Figure(what="interject to the new request, p50", value=p(asked, 50), unit="ms"),
        Figure(what="  p99", value=p(asked, 99), unit="ms", bound=30),
    ]


async def stops(folder: Path) -> list[Figure]:
    seconds = []
    for number in range(5):
        async with Shop(folder / f"stop{number}") as shop:
            shop.model.on("Run", code(OBSTINATE), "Never")
            await shop.start("a1", "Run")
            await shop.output("a1", "cell1", "all")
            assert len(list(processes(shop.folder))) > 20
            began = time.monotonic()
            await shop.stop("a1")
            while [*processes(shop.folder)]:
                await asyncio.sleep(0.005)
            seconds.append(time.monotonic() - began)
    what = "stop to no process left, 20 children that ignore signals"
    return [Figure(what=f"{what}, worst of 5", value=max(seconds), unit="s", bound=1.0)]


async def live(folder: Path) -> list[Figure]:
    """Sessions that have run code and wait for their next word: the sandboxes' own memory, and the host's growth."""
    async with Shop(folder, limits=LATER) as shop:
        before = rss_kb(os.getpid())
        for number in range(SESSIONS):
            shop.model.on(f"Task {number}", code("rows = list(range(1000))", stateful=True), "Done")
            await shop.start(f"a{number}", f"Task {number}")
            await shop.phase(f"a{number}", "awaiting_input")
        gc.collect()
        host = (rss_kb(os.getpid()) - before) / 1024 / SESSIONS
        assert len([*processes(shop.folder)]) >= 2 * SESSIONS
        sandboxes = sum(pss_kb(pid) for pid in processes(shop.folder)) / 1024 / SESSIONS
    each = Figure(what=f"{SESSIONS} live sessions: memory each", value=host + sandboxes, unit="MB", bound=25)
    return [each, Figure(what="  of it in the host", value=host, unit="MB")]


async def hibernated(folder: Path) -> list[Figure]:
    async with Shop(folder, limits=SLEEPY) as shop:
        shop.model.on("Task", "Done")
        shop.model.on("Session", code("rows = list(range(1000))", stateful=True), "Done", "Woken")
        shop.model.forgets = True
        gc.collect()
        before = rss_kb(os.getpid())
        for number in range(SLEEPERS):
            await shop.start(f"a{number}", f"Task {number}")
        await shop.until(lambda: _all_at_rest(shop, SLEEPERS))
        shop.clock.advance(days=1)
        await shop.until(lambda: _all_gone(shop))
        gc.collect()
        each = (rss_kb(os.getpid()) - before) / SLEEPERS
        left = len([*processes(shop.folder)])
        wakes = [await wake(shop, f"w{number}") for number in range(WAKES)]
    return [
        Figure(what=f"{SLEEPERS:,} hibernated: processes", value=left, unit="", bound=0),
        Figure(what="  memory each", value=each, unit="KB", bound=50),
        Figure(what="wake with variables, word to next request, p50", value=statistics.median(wakes), unit="ms"),
        Figure(what=f"  worst of {WAKES}", value=max(wakes), unit="ms", bound=500),
    ]


async def wake(shop: Shop, key: str) -> float:
    shop.model.on(f"Session {key}", code("rows = list(range(1000))", stateful=True), "Done", "Woken")
    await shop.start(key, f"Session {key}")
    await shop.phase(key, "awaiting_input")
    shop.clock.advance(days=1)
    await shop.phase(key, "hibernated")
    await shop.until(lambda: _all_gone(shop))
    began = time.monotonic()
    asked = asyncio.Event()
    at: list[float] = []

    def note(request: Request) -> str:
        at.append(time.monotonic())
        asked.set()
        return "Woken"

    shop.model.then(f"Session {key}", note)
    await shop.interject(key, "And now?")
    await asked.wait()
    await shop.entry(key, Interjected)
    await shop.phase(key, "awaiting_input")
    shop.clock.advance(days=1)
    await shop.phase(key, "hibernated")
    return (at[0] - began) * 1000


async def asks(folder: Path) -> list[Figure]:
    """One computation, asked about in every other span of time: its pieces there against those in the spans between, so
    that what else the machine does meanwhile meets both."""
    async with Shop(folder) as shop:
        await computed(shop, "warm", 20)
        pieces = int(20 * COMPUTE_SECONDS / sum(await computed(shop, "paced", 20)))
        spans = [seconds / count for seconds, count in await spanned(shop, "asked", pieces)]
    more = [asked / quiet - 1 for quiet, asked in zip(spans[0:-1:2], spans[1::2], strict=False)]
    what = f"a computation of {COMPUTE_SECONDS:.0f} s, asked about each second: longer by"
    return [Figure(what=what, value=max(statistics.median(more), 0.0) * 100, unit="%", bound=1)]


async def computed(shop: Shop, key: str, pieces: int) -> list[float]:
    shop.model.on(f"Compute {key}", code(COMPUTE.format(pieces=pieces)), "Done")
    await shop.start(key, f"Compute {key}")
    await shop.phase(key, "awaiting_input")
    return [seconds for _, seconds in measured(shop, key)]


async def spanned(shop: Shop, key: str, pieces: int) -> list[tuple[float, int]]:
    """Seconds and number of the pieces in each span, in turn without and with questions."""
    shop.model.on(f"Compute {key}", code(COMPUTE.format(pieces=pieces)), "Done")
    await shop.start(key, f"Compute {key}")
    began, questions = time.time(), 0
    while (await shop.state(key)).phase != "awaiting_input":
        if int((time.time() - began) / SPAN_SECONDS) % 2:
            await shop.ask(key, "How far are you?")
            questions += 1
        await asyncio.sleep(1.0)
    assert questions > COMPUTE_SECONDS / 4
    spans: dict[int, list[float]] = {}
    for at, seconds in measured(shop, key):
        spans.setdefault(int((at - began) / SPAN_SECONDS), []).append(seconds)
    return [(sum(spans[number]), len(spans[number])) for number in sorted(spans)]


def measured(shop: Shop, key: str) -> list[tuple[float, float]]:
    return [tuple(one) for one in json.loads((shop.folder / "actions" / key / "workspace" / "pieces").read_text())]


async def _all_at_rest(shop: Shop, count: int) -> bool:
    idle = [actor for actor in shop.host.open_actors if actor.state.phase == "awaiting_input"]
    return len(idle) == count


async def _all_gone(shop: Shop) -> bool:
    return not shop.host.open_actors


def processes(folder: Path) -> Iterator[int]:
    """Those that work in a folder below this one."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if Path(os.readlink(entry / "cwd")).is_relative_to(folder):
                    yield int(entry.name)
            except OSError:
                continue


def rss_kb(pid: int) -> float:
    return _kb(Path(f"/proc/{pid}/status"), "VmRSS:")


def pss_kb(pid: int) -> float:
    """Memory that it shares with others counts by its share."""
    return _kb(Path(f"/proc/{pid}/smaps_rollup"), "Pss:")


def _kb(path: Path, key: str) -> float:
    return sum(float(line.split()[1]) for line in path.read_text().splitlines() if line.startswith(key))


Part = Callable[[Path], Awaitable[list[Figure]]]
PARTS: tuple[Part, ...] = (interjections, stops, live, hibernated, asks)


async def figures(parts: Sequence[Part] = PARTS) -> list[Figure]:
    found: list[Figure] = []
    for part in parts:
        with tempfile.TemporaryDirectory() as folder:
            found += await part(Path(folder))
    return found


def main() -> None:
    logging.disable(logging.INFO)
    gc.freeze()  # as the gateway does at its start
    found = asyncio.run(figures())
    Console().print(table(found))
    missed = [figure.what.strip() for figure in found if not figure.well]
    print(f"\nMissed: {'; '.join(missed) or 'none'}")


if __name__ == "__main__":
    main()
