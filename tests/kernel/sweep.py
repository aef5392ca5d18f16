"""Runs the story under many faults, several at once. Which faults there are is what a run without one has passed."""

import asyncio
import itertools
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from pathlib import Path

from tests.kernel.faults import ANSWERED, Fault, Mode, When
from tests.kernel.rules import violations
from tests.kernel.steps import Steps
from tests.kernel.tree_rules import broken_tree
from tests.kernel.world import Knobs, Played, play

AT_ONCE, FEW = 10, 3
RUN_SECONDS = 300.0
Strike = Callable[[Fault], Awaitable[tuple[bool, list[str]]]]  # whether it struck, and what it broke
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

    async def strike(fault: Fault) -> tuple[bool, list[str]]:
        played = await run(folder, knobs, fault)
        return bool(played.faults), violations(played)

    return await _swept(faults, strike, at_once)


async def sweep_tree(folder: Path, faults: Iterable[Fault], at_once: int = AT_ONCE) -> tuple[int, list[str]]:
    """The same for the tree of actions."""

    async def strike(fault: Fault) -> tuple[bool, list[str]]:
        tree = Steps(folder / f"tree{next(_numbers)}.db", fault)
        broken = await broken_tree(tree)
        return tree.first is not None and tree.first.strikes > 0, broken

    return await _swept(faults, strike, at_once)


async def _swept(faults: Iterable[Fault], strike: Strike, at_once: int) -> tuple[int, list[str]]:
    """Among many others a run may go another way than the one that was counted; what it did not reach gets a second
    one, with few beside it."""
    failures: list[str] = []

    async def missed(faults: Iterable[Fault], at_once: int) -> list[Fault]:
        slots = asyncio.Semaphore(at_once)

        async def reaches(fault: Fault) -> bool:
            async with slots:
                try:
                    struck, broken = await strike(fault)
                except Exception as error:  # noqa: BLE001 - a broken run is a finding
                    struck, broken = True, [repr(error)]
            failures.extend(f"{fault}: {text}" for text in broken)
            return struck

        faults = list(faults)
        reached = await asyncio.gather(*map(reaches, faults))
        return [fault for fault, struck in zip(faults, reached, strict=True) if not struck]

    faults = list(faults)
    unreached = await missed(await missed(faults, at_once), FEW)
    return len(faults) - len(unreached), failures


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
