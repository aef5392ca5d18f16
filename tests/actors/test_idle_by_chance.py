"""Sessions that hibernate, wake and are closed while somebody commands at random awaits and the process dies: the rules
of every tree of actions hold, and at rest there is neither a process nor an open action."""

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from actors.workshop import Limits, Workshop
from gateway.events import Ref, Start
from tests.actors.shop import Clock
from tests.kernel.faults import Gate
from tests.kernel.platform import ANA
from tests.kernel.tree import DEPTH_MAX, LANE, ROOT, Tree
from tests.kernel.tree_rules import broken_tree

SUITE, SOAK, CHUNK, AT_ONCE = 30, 400, 15, 10
LIMITS = Limits(
    max_steps=12,
    max_depth=DEPTH_MAX,
    max_children=3,
    max_live=1,
    hibernate_after=timedelta(hours=1),
    close_after=timedelta(hours=20),
    remind_after=timedelta(hours=2),
    answer_within=timedelta(hours=30),
)


class Idlers(Tree):
    """Hours pass at random."""

    def __init__(self, path: Path, seed: int) -> None:
        super().__init__(path, seed)
        self.clock = Clock()

    async def start(self) -> None:
        same: dict[str, Any] = {"ref": Ref(LANE, 1), "conversation": LANE, "action": ROOT, "by": ANA}
        await self._publish(Start(**same, name="root", query="part 0"))

    async def command(self, kinds: tuple[str, ...]) -> None:
        if self.dice.random() < 0.5:
            self.clock.advance(hours=self.dice.choice([0.5, 1.5, 1.5, 13]))
        await super().command(kinds)

    def _workshop(self, gate: Gate) -> Workshop:
        work = super()._workshop(gate)
        return msgspec.structs.replace(work, limits=LIMITS, now=self.clock.now, sleep=self.clock.sleep)


@pytest.mark.parametrize("first", range(0, SUITE, CHUNK))
async def test_sessions_that_come_and_go(tmp_path: Path, first: int) -> None:
    assert await _broken(tmp_path, range(first, first + CHUNK)) == []


@pytest.mark.soak
@pytest.mark.parametrize("first", range(SUITE, SUITE + SOAK, 2 * CHUNK))
async def test_many_sessions_that_come_and_go(tmp_path: Path, first: int) -> None:
    assert await _broken(tmp_path, range(first, first + 2 * CHUNK)) == []


async def _broken(folder: Path, seeds: range) -> list[str]:
    slots = asyncio.Semaphore(AT_ONCE)

    async def one(seed: int) -> list[str]:
        async with slots:
            tree = Idlers(folder / f"tree{seed}.db", seed)
            found = [f"seed {seed}: {text}" for text in await broken_tree(tree)]
            if running := [key for key, room in tree.machine.rooms.items() if room.alive]:
                found.append(f"seed {seed}: there are processes of {running}")
            return found

    return [text for texts in await asyncio.gather(*map(one, seeds)) for text in texts]
