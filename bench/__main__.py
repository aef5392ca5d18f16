"""python -m bench [--write]: the figures, as a table. `--write` puts them into bench/RESULTS.md too.

The gateway and the floor bot are processes of their own; the servers that they speak to run here.
"""

import argparse
import asyncio
import os
import platform
import statistics
import sys
import tempfile
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from rich.console import Console

from bench import rounds
from bench.figures import Figure, markdown, p, table
from bench.processes import Process, floor, gateway, memory_mb
from bench.rounds import Crowd, Way
from tests.servers.openai import ScriptedOpenAI
from tests.servers.telegram import BotApi, Person
from tests.staging.houses import end_sandboxes
from tests.staging.models import new_to_desk

RESULTS = Path(__file__).with_name("RESULTS.md")
NOTES = "## Where the time goes\n"
STARTS = 3
IDLE_SECONDS = 2.0


class Servers(NamedTuple):
    """What both speak to; `crowd` writes to them."""

    telegram: BotApi
    desk: ScriptedOpenAI
    crowd: list[Person]


class Least(NamedTuple):
    """The floor bot: what no gateway can be quicker than."""

    ready: float
    memory: float
    way: Way
    crowd: Crowd


async def figures(folder: Path) -> list[Figure]:
    async with AsyncExitStack() as stack:
        telegram = await stack.enter_async_context(BotApi())
        desk = await stack.enter_async_context(ScriptedOpenAI())
        worker = await stack.enter_async_context(ScriptedOpenAI())
        crowd = [telegram.person(f"Person {n}") for n in range(rounds.CHATS)]
        servers = Servers(telegram, desk, crowd)
        least = await _least(folder, servers)
        desk.forget()
        newcomer = telegram.person(f"Person {rounds.CHATS}")
        product = gateway(folder, telegram, desk, worker, [*crowd, newcomer])
        try:
            found = await _product(product, least, servers, worker, newcomer)
        except BaseException:
            say((folder / "gateway.log").read_text()[-3000:])
            raise
        finally:
            stopped = await product.stop()
            await end_sandboxes(folder)
        return [*found, Figure(what="a clean stop", value=stopped, unit="s", bound=3.0)]


async def _least(folder: Path, servers: Servers) -> Least:
    telegram, desk, crowd = servers
    say("the floor bot")
    bot = floor(folder, telegram, desk)
    try:
        return Least(
            ready=await _starts(bot),
            memory=memory_mb([bot.pid]),
            way=await rounds.way(bot, telegram, desk, crowd[:10]),
            crowd=await rounds.crowd(telegram, desk, crowd, rounds.last_user),
        )
    finally:
        await bot.stop()


async def _product(
    product: Process, least: Least, servers: Servers, worker: ScriptedOpenAI, newcomer: Person
) -> list[Figure]:
    telegram, desk, crowd = servers
    say("the gateway: start, a hello")
    ready = await _starts(product)
    await asyncio.sleep(IDLE_SECONDS)
    idle, helpers_idle = memory_mb([product.pid]), [memory_mb([one]) for one in product.helpers()]
    hello = await rounds.hello(telegram, desk, newcomer)
    say("one message at a time")
    way = await rounds.way(product, telegram, desk, crowd[:10])
    say("a question while a task works")
    asked = [
        figure
        for kind in ("streaming", "computing")
        for figure in await rounds.question(kind, telegram, desk, worker, crowd[0])
    ]
    say("corrections")
    corrected = await rounds.correction(telegram, desk, worker, crowd[1])
    say("a crowd")
    crowded = await rounds.crowd(telegram, desk, crowd, new_to_desk)
    busy = memory_mb([product.pid])
    return [
        *_way(way, least.way),
        *asked,
        *corrected,
        Figure(what="start to ready", value=ready, unit="s", bound=1.0, floor=least.ready),
        Figure(what="idle memory before the first model call", value=idle, unit="MB", bound=80, floor=least.memory),
        Figure(what="  each helper process", value=max(helpers_idle), unit="MB", note="apart"),
        Figure(what="  the gateway after this run", value=busy, unit="MB"),
        *hello,
        *_crowd(crowded, least.crowd),
    ]


def _way(product: Way, least: Way) -> list[Figure]:
    inward = [("p50", 50, 10.0), ("p95", 95, 25.0)]
    return [
        *(
            Figure(
                what=f"message at the wire to request at the model, {name}",
                value=p(product.inward, percent),
                unit="ms",
                bound=bound,
                floor=p(least.inward, percent),
            )
            for name, percent, bound in inward
        ),
        Figure(
            what="model's last token to send, p50",
            value=p(product.outward, 50),
            unit="ms",
            bound=7.0,
            floor=p(least.outward, 50),
            note="aim 5",
        ),
        Figure(what="  p95", value=p(product.outward, 95), unit="ms", floor=p(least.outward, 95)),
        Figure(what="CPU a message, gateway", value=product.cpu, unit="ms", bound=8.0, floor=least.cpu),
        Figure(what="  helper", value=product.helper_cpu, unit="ms", note="apart"),
    ]


def _crowd(product: Crowd, least: Crowd) -> list[Figure]:
    what = f"{rounds.MESSAGES} messages from {rounds.CHATS} chats at once"
    return [
        Figure(what=f"{what}: all answered", value=product.seconds, unit="s", bound=1.5, floor=least.seconds),
        Figure(what="  lost", value=product.lost, unit="", bound=0),
        Figure(what="  doubled", value=product.doubled, unit="", bound=0),
        Figure(what="  misrouted", value=product.misrouted, unit="", bound=0),
    ]


async def _starts(process: Process) -> float:
    """The median; the last one is left running."""
    seconds = []
    for n in range(STARTS):
        if n:
            await process.stop()
        await process.start()
        seconds.append(process.ready_seconds)
    return statistics.median(seconds)


def written(where: str, found: list[Figure]) -> str:
    """What was written by hand below the table stays."""
    notes = RESULTS.read_text().partition(NOTES)[2] if RESULTS.exists() else "\n"
    day = datetime.now(UTC).date()
    return f"# Figures\n\n{day}, {where}: `python -m bench`\n\n{markdown(found)}\n\n{NOTES}{notes}"


def machine() -> str:
    """Others may be at work on it too: the load says so."""
    cpu = next((line.partition(":")[2].strip() for line in _cpuinfo() if line.startswith("model name")), "")
    load = os.getloadavg()[0]
    return f"{cpu or platform.machine()}, {os.cpu_count()} cores, load {load:.1f}, Python {platform.python_version()}"


def _cpuinfo() -> list[str]:
    path = Path("/proc/cpuinfo")
    return path.read_text().splitlines() if path.exists() else []


def say(text: str) -> None:
    print(f"· {text}", file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description="The figures, as a table.")
    parser.add_argument("--write", action="store_true", help="write bench/RESULTS.md too")
    options = parser.parse_args()
    where = machine()
    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(figures(Path(folder)))
    Console().print(table(found))
    missed = [figure.what.strip() for figure in found if not figure.well]
    print(f"\n{where}\nMissed: {'; '.join(missed) or 'none'}")
    if options.write:
        RESULTS.write_text(written(where, found))


if __name__ == "__main__":
    main()
