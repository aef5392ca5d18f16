"""A real gateway process with a scripted model, to be killed. It is talked to as a person's client does."""

import asyncio
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from mediums.local import wire
from mediums.local.client import LocalClient
from tests.patience import PATIENCE_SECONDS
from tests.servers.openai import Received, Reply, ScriptedOpenAI, call
from tests.staging.houses import processes_in

TOKEN = "a-token-of-the-tests"
CONFIG = """
[assistant]
name = "Frontdesk"
[model]
name = "openai/scripted"
api_base = "{api_base}"
api_key = "sk-test"
[store]
path = "{folder}/store.db"
[mediums.web]
listen = "127.0.0.1:{port}"
token = "{token}"
[sandbox]
allow_unisolated = true
{more}
"""


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


class Gateway:
    """One store, started as often as it has to be. `errors` is all that it wrote for its operator."""

    def __init__(self, folder: Path, server: ScriptedOpenAI, more: str = "") -> None:
        self.folder, self.port = folder, free_port()
        self.store = folder / "store.db"
        text = CONFIG.format(api_base=server.base_url, folder=folder, port=self.port, token=TOKEN, more=more)
        (folder / "config.toml").write_text(text)
        self.errors = ""
        self.started_at = 0.0
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Returns when its page listens."""
        self.started_at = time.monotonic()
        self._process = process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "frontdesk", "run", "--config", str(self.folder / "config.toml")),
            stderr=asyncio.subprocess.PIPE,
            stdin=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
        assert process.stderr is not None
        while (line := (await process.stderr.readline()).decode()) and not line.startswith("Open "):
            self.errors += line
        assert line, f"it did not start: {self.errors}"
        self._reading = asyncio.create_task(self._read(process.stderr))

    async def _read(self, stream: asyncio.StreamReader) -> None:
        while line := await stream.readline():
            self.errors += line.decode()

    async def kill(self) -> None:
        """As a power cut ends a process: nothing is said, nothing is finished."""
        await self._end(signal.SIGKILL)

    async def stop(self) -> float:
        """As systemd does; how many seconds it took."""
        began = time.monotonic()
        await self._end(signal.SIGTERM)
        return time.monotonic() - began

    async def _end(self, number: signal.Signals) -> None:
        if self._process is None:
            return
        process, self._process = self._process, None
        with suppress(ProcessLookupError):
            process.send_signal(number)
        async with asyncio.timeout(PATIENCE_SECONDS):
            await process.wait()
            await self._reading
        self.exit_code = process.returncode

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def died(self) -> None:
        """Waits for a kill that a script gave it."""
        assert self._process is not None
        async with asyncio.timeout(PATIENCE_SECONDS):
            await self._process.wait()
        await self._end(signal.SIGKILL)

    def shoot(self) -> None:
        """At once, from a script of the model."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGKILL)

    def client(self) -> LocalClient:
        return LocalClient(f"http://127.0.0.1:{self.port}", TOKEN)

    def sandboxes(self) -> list[int]:
        """The processes of this store's sandboxes, isolated or not; they outlive a gateway."""
        return processes_in(self.folder)


@asynccontextmanager
async def gateway(folder: Path, server: ScriptedOpenAI, more: str = ""):
    """Not started yet; ended with all that it began when the block ends."""
    made = Gateway(folder, server, more)
    try:
        yield made
    finally:
        await made.kill()
        for process in made.sandboxes():
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)


def is_actor(request: Received) -> bool:
    return "execute_code" in request.tool_names


def heard(request: Received) -> str:
    """The events of a turn, without the live state after them."""
    return str(request.messages[-2]["content"])


async def told(client: LocalClient, wanted: Callable[[str], bool], seconds: float = PATIENCE_SECONDS) -> str:
    """The first such message of the assistant."""
    async with asyncio.timeout(seconds):
        async for event in client:
            if isinstance(event, wire.Post) and event.author == "assistant" and wanted(event.text):
                return event.text
    raise AssertionError("the client ended")


__all__ = ["Gateway", "Reply", "ScriptedOpenAI", "call", "gateway", "heard", "is_actor", "told"]
