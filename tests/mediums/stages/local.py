import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from tempfile import TemporaryDirectory

from gateway.broker.sqlite import SqliteBroker
from gateway.holding import Guard
from mediums.local import wire
from mediums.local.adapter import LocalMedium
from mediums.local.client import LocalClient
from mediums.local.room import Posted
from tests.mediums.stages import Stage
from tests.patience import PATIENCE_SECONDS

TOKEN = "a-token-of-the-tests"


class LocalStage(Stage):
    """The platform is the room itself; what a person says waits in their client until a room accepts it."""

    def __init__(self, broker: SqliteBroker, guard: Guard, port: int) -> None:
        self.route = wire.route("web")
        self.client = LocalClient(f"http://127.0.0.1:{port}", TOKEN, "web")
        self._broker, self._guard, self._port = broker, guard, port
        self._shown: set[str] = set()
        self._heard = asyncio.Event()
        self._current = self.medium()

    def medium(self) -> LocalMedium:
        self._current = LocalMedium(
            self._broker,
            self._guard,
            "tests",
            listen=("127.0.0.1", self._port),
            token=TOKEN,
            person="Ana",
            assistant="Frontdesk",
        )
        return self._current

    async def hear(self) -> None:
        async for event in self.client:
            if isinstance(event, wire.Post) and event.author == "assistant":
                self._shown.add(event.text)
            self._heard.set()
            self._heard = asyncio.Event()

    async def says(self, text: str) -> None:
        self.client.say(text)

    async def sees(self, text: str) -> None:
        await self._until(lambda: text in self._shown)

    def seen(self) -> list[str]:
        entries = [item.entry for item in self._current._hub.room.after(0)]
        return [one.text for one in entries if isinstance(one, Posted) and one.author == "assistant"]

    async def settled(self) -> None:
        await self._until(lambda: not self.client.unsent)

    async def _until(self, true) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not true():
                await self._heard.wait()


@contextlib.asynccontextmanager
async def open_stage() -> AsyncIterator[LocalStage]:
    with TemporaryDirectory() as folder, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        broker = SqliteBroker(Path(folder) / "room.db")
        lease = await broker.lease("local", "tests", 600)
        assert lease
        stage = LocalStage(broker, Guard(lease), port)
        async with stage.client:
            hearing = asyncio.create_task(stage.hear())
            yield stage
            hearing.cancel()
            await asyncio.wait({hearing})
        await broker.close()
