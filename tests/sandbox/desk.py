"""A sandbox's owner for tests: remembers what it was told, and waits for it, never for a time."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from actors.sandbox import processes
from actors.sandbox.folder import Folder
from actors.sandbox.host import Sandbox
from actors.sandbox.isolation.bare import Bare
from actors.sandbox.isolation.hardened import Hardened
from actors.sandbox.isolation.probe import probe
from actors.sandbox.isolation.words import Network, Unavailable
from actors.sandbox.words import CellCalled, CellDone, CellLost, Happening
from actors.sandbox.zygote import Hold
from tests.patience import PATIENCE_SECONDS

POLL_SECONDS = 0.005


class Desk:
    def __init__(self, directory: Path, **options: Any) -> None:
        self.told: list[Happening] = []
        self._news = asyncio.Event()
        self._count = 0
        hold = Hold(**{name: options.pop(name) for name in Hold.__struct_fields__ if name in options})
        self.sandbox = Sandbox(directory, self._hear, **{"isolation": Bare(), "hold": hold, **options})

    def _hear(self, happening: Happening) -> None:
        self.told.append(happening)
        self._news.set()

    async def until(self, find: Callable[[list[Happening]], Any]) -> Any:
        """What `find` makes of all that was told, once it is something."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not (found := find(self.told)):
                self._news.clear()
                await self._news.wait()
            return found

    async def begin(self, code: str, *, stateful: bool = False, cell: str = "") -> str:
        self._count += 1
        cell = cell or f"cell{self._count}"
        await self.sandbox.execute(cell, code, stateful=stateful)
        return cell

    async def end(self, cell: str) -> CellDone | CellLost:
        return await self.until(
            lambda told: next((h for h in told if isinstance(h, CellDone | CellLost) and h.cell == cell), None)
        )

    async def call(self, number: int = 1) -> CellCalled:
        """The `number`th call that was told."""
        return await self.until(
            lambda told: ([h for h in told if isinstance(h, CellCalled)] + [None] * number)[number - 1]
        )

    async def run(self, code: str, *, stateful: bool = False) -> CellDone:
        """The end of a cell that must not be lost."""
        ended = await self.end(await self.begin(code, stateful=stateful))
        assert isinstance(ended, CellDone), ended
        return ended

    def outside(self, pid: int) -> int:
        """What the code calls process `pid`, as this test sees it."""
        birth = Folder(self.sandbox.workspace.parent).zygote()
        assert birth is not None
        found = processes.outside(birth.pid, pid)
        assert found is not None
        return found

    async def output(self, cell: str, text: str) -> str:
        """All of a cell's output, once `text` is in it."""
        await eventually(lambda: text in self.sandbox.peek(cell))
        return self.sandbox.peek(cell)


async def hardened(network: Network = "none", python: str | None = None) -> Hardened:
    found = await probe(python, network=network)
    if isinstance(found, Unavailable):
        pytest.skip(f"needs isolation: {found}")
    return found


async def eventually(condition: Callable[[], Any]) -> Any:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not (found := condition()):
            await asyncio.sleep(POLL_SECONDS)
        return found


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"
