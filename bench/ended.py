"""The start of a process that runs actions, with few and with many that have ended long ago."""

import asyncio
import time
import tracemalloc
from datetime import UTC, datetime
from pathlib import Path

from actors.entries import Briefed, Responded
from actors.sharing import Alone
from bench.figures import Figure
from bench.holding import GUARD
from gateway.broker.sqlite import SqliteBroker
from gateway.events import Ref, Start
from gateway.folding import Owned, Released, stamped
from gateway.journal import publish
from tests.broker.acting import ANA, run_actions, told

FEW, MANY = 10, 10_000
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


def _start(key: str) -> Start:
    same = {"ref": Ref(f"p-{key}", 1, 0), "conversation": "p-ana", "action": key, "by": ANA}
    return Start(**same, name="work", query="Count", persist=False)


async def _written(broker: SqliteBroker, actions: int) -> None:
    """Ended ones, as their holder leaves them: a log, and no commands."""
    waiting = []
    for n in range(actions):
        start = _start(f"e{n}")
        for entry in (
            Owned(worker="bench"),
            Briefed(start=start, through=1, at=BEGAN),
            Responded(text="Done.", ended=True, at=BEGAN),
            Released(),
        ):
            data = stamped(1, "bench", entry)
            waiting.append(broker.append(f"log.act.e{n}", data, msg_id=""))
    await asyncio.gather(*waiting)


async def _started(path: Path, actions: int) -> tuple[float, float]:
    """Seconds until a new action has ended, and the peak of memory meanwhile in MB."""
    broker = SqliteBroker(path)
    await _written(broker, actions)
    await broker.close()
    broker = SqliteBroker(path)
    tracemalloc.start()
    began = time.perf_counter()
    role = asyncio.create_task(run_actions(broker, GUARD, "bench", Alone(broker), print))
    await publish(broker, "cmd.act.new", _start("new"), "new")
    while not (await told(broker, "new")).get("ended"):
        await asyncio.sleep(0.001)
    took, (_, peak) = time.perf_counter() - began, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    role.cancel()
    await asyncio.wait({role})
    await broker.close()
    return took, peak / 1e6


async def figures(folder: Path) -> list[Figure]:
    few, less = await _started(folder / "few.db", FEW)
    many, more = await _started(folder / "many.db", MANY)
    return [
        Figure(what=f"start of the actors to a first action done, {FEW} ended ones", value=few * 1000, unit="ms"),
        Figure(what=f"  {MANY:,} ended ones", value=many * 1000, unit="ms", bound=few * 1000 + 100),
        Figure(what="  memory that it took", value=more, unit="MB", bound=less + 1, note=f"with {FEW}: {less:.1f}"),
    ]
