"""Where the gateway runs: in the test's own process, or in one of its own, which can be killed as by a crash."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from actors.sandbox.host import Sandbox
from actors.workshop import Primitive
from brain.hold import Pace
from frontdesk.app import App, Parts
from frontdesk.serve import local_token
from gateway.config import load
from gateway.llm.chain import Chain
from gateway.llm.client import HelperModel, HelperProcess
from gateway.llm.fitting import Fitting
from gateway.llm.model import Model
from gateway.settings import ModelSettings, endpoints

BUDGET_TOKENS = 100_000


class House(Protocol):
    async def start(self) -> None: ...

    async def stop(self) -> None:
        """Cleanly, as at SIGTERM."""

    async def kill(self) -> None:
        """As by a crash."""


class Here:
    """In this process: quick, its parts can be looked at, and waiting between tries of a model takes no time."""

    def __init__(
        self,
        config: Path,
        helper: HelperProcess,
        operator: Callable[[str], None],
        pace: Pace,
        primitives: tuple[Primitive, ...] = (),
    ) -> None:
        self.settings = load(config, {})
        self._helper, self._operator, self._pace, self._primitives = helper, operator, pace, primitives
        self.app: App | None = None
        self._running: asyncio.Task[None] | None = None

    async def start(self) -> None:
        opened = asyncio.Event()
        self.app = App(
            self.settings,
            Parts(
                brain_model=self._model(self.settings.model, "model"),
                actor_model=self._model(self.settings.actor_model, "model.actor"),
                operator=self._operator,
                primitives=self._primitives,
                pace=self._pace,
                token=local_token(self.settings),
                opened=lambda url: opened.set(),
            ),
        )
        self._running = asyncio.create_task(self.app.run(), name="gateway")
        opening = asyncio.create_task(opened.wait())
        await asyncio.wait({self._running, opening}, return_when=asyncio.FIRST_COMPLETED)
        opening.cancel()
        if self._running.done():
            self._running.result()

    async def stop(self) -> None:
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait({self._running})
            if not self._running.cancelled():
                self._running.result()
            self._running = None

    async def kill(self) -> None:
        raise NotImplementedError("only a gateway in a process of its own can be killed")

    def _model(self, settings: ModelSettings, section: str) -> Model:
        models = [HelperModel(self._helper, endpoint) for endpoint in endpoints(settings, section)]
        return Fitting(Chain(models, notice=self._operator, sleep=_at_once), budget_tokens=BUDGET_TOKENS)


async def _at_once(seconds: float) -> None:
    await asyncio.sleep(0)


class Apart:
    """`python -m frontdesk run`, or another command, in a process of its own."""

    def __init__(self, config: Path, command: tuple[str, ...] = ()) -> None:
        self._command = command or (sys.executable, "-m", "frontdesk", "run", "--config", str(config))
        self.log = config.with_name("gateway.log")
        self.process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        with self.log.open("ab") as log:
            before = log.tell()
            self.process = await asyncio.create_subprocess_exec(
                *self._command, stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log
            )
        while b"Open http" not in self.log.read_bytes()[before:]:
            assert self.process.returncode is None, self.log.read_text()
            await asyncio.sleep(0.01)

    async def stop(self) -> None:
        await self._end(signal.SIGTERM)

    async def kill(self) -> None:
        await self._end(signal.SIGKILL)

    async def _end(self, how: signal.Signals) -> None:
        if self.process is not None and self.process.returncode is None:
            self.process.send_signal(how)
            await self.process.wait()


async def end_sandboxes(folder: Path) -> None:
    """They outlive their gateway; here they end with the test."""
    for one in _sandboxes(folder):
        with contextlib.suppress(ProcessLookupError):  # the gateway that was just stopped is ending it itself
            await Sandbox(one, lambda happening: None).kill()


def _sandboxes(folder: Path) -> list[Path]:
    return list(folder.glob("*.actions/*"))


def processes_in(folder: Path) -> list[int]:
    """Those that work in a folder below this one."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if Path(os.readlink(entry / "cwd")).is_relative_to(folder):
                    found.append(int(entry.name))
    return found
