"""Runs the story under many faults, several at once. Which faults there are is what a run without one has passed."""

import asyncio
import itertools
import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from tests.kernel.faults import ANSWERED, Fault, Mode, When
from tests.kernel.rules import violations
from tests.kernel.steps import Steps
from tests.kernel.tree_rules import broken_tree
from tests.kernel.world import Knobs, Played, play

AT_ONCE = 16
RUN_SECONDS = 120.0
_numbers = itertools.count()
_counted: dict[Knobs, Counter[tuple[str, When]]] = {}


async def points(folder: Path, knobs: Knobs, mode: Mode) -> list[Fault]:
    """Every point of a run without a fault; for answers that are lost or late those where there is one."""
    if knobs not in _counted:
        _counted[knobs] = (await run(folder, knobs, None)).gate.counts
    return faults_of(_counted[knobs], mode)


def faults_of(counts: Counter[tuple[str, When]], mode: Mode) -> list[Fault]:
    found = [Fault(label, n, when, mode) for (label, when), most in counts.items() for n in range(1, most + 1)]
    if mode == "crash":
        return found
    found = [fault for fault in found if fault.label.startswith(ANSWERED)]
    if mode == "lost":
        return found
    kinds = ("append",) if mode == "deposed" else ("append", "send")
    return [fault for fault in found if fault.when == "before" and fault.label.startswith(kinds)]


async def run(folder: Path, knobs: Knobs, fault: Fault | None) -> Played:
    path = folder / f"run{next(_numbers)}.db"
    async with asyncio.timeout(RUN_SECONDS):
        return await play(path, knobs, fault)


async def sweep(folder: Path, knobs: Knobs, faults: Iterable[Fault], at_once: int = AT_ONCE) -> tuple[int, list[str]]:
    """How many faults struck, and what was found broken."""
    slots, fired, failures = asyncio.Semaphore(at_once), 0, []

    async def one(fault: Fault) -> None:
        nonlocal fired
        async with slots:
            try:
                played = await run(folder, knobs, fault)
            except Exception as error:  # noqa: BLE001 - a broken run is a finding
                failures.append(f"{fault}: {error!r}")
                return
        fired += bool(played.faults)
        failures.extend(f"{fault}: {text}" for text in violations(played))

    await asyncio.gather(*(one(fault) for fault in faults))
    return fired, failures


async def sweep_tree(folder: Path, faults: Iterable[Fault], at_once: int = AT_ONCE) -> tuple[int, list[str]]:
    """The same for the tree of actions."""
    slots, fired, failures = asyncio.Semaphore(at_once), 0, []

    async def one(fault: Fault) -> None:
        nonlocal fired
        async with slots:
            tree = Steps(folder / f"tree{next(_numbers)}.db", fault)
            try:
                broken = await broken_tree(tree)
            except Exception as error:  # noqa: BLE001 - a broken run is a finding
                broken = [repr(error)]
        fired += tree.first is not None and tree.first.strikes > 0
        failures.extend(f"{fault}: {text}" for text in broken)

    await asyncio.gather(*(one(fault) for fault in faults))
    return fired, failures


async def tree_points(folder: Path, mode: Mode) -> list[Fault]:
    tree = Steps(folder / f"tree{next(_numbers)}.db", None)
    if broken := await broken_tree(tree):
        raise AssertionError(broken)
    assert tree.first is not None
    return faults_of(tree.first.counts, mode)


async def seeds(folder: Path, numbers: Iterable[int]) -> tuple[int, list[str]]:
    """A fault anywhere, and everything delayed by chance."""
    total, failures = 0, []
    everywhere = await points(folder, Knobs(), "crash")
    for number in numbers:
        dice = random.Random(number)
        knobs = Knobs(dice.random() < 0.5, dice.random() < 0.5, dice.choice((0.002, 0.01, 0.02)), seed=number)
        fault = replace(dice.choice(everywhere), mode=dice.choice(("crash", "crash", "lost", "late", "outage")))
        if fault.mode == "late":  # what has arrived cannot be late
            fault = replace(fault, when="before")
        fired, broken = await sweep(folder, knobs, [fault])
        total += fired
        failures += [f"seed {number} {knobs}: {text}" for text in broken]
    return total, failures
