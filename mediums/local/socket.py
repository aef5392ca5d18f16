"""One connection: what a client says is handed to the desk, what is new is told to it. No HTTP, no journal.

Frames of one client are taken in order, each answered after it is durable; a look may take longer and holds up nothing.
A client that does not read for WRITE_SECONDS is dropped: it comes back by itself and goes on where it was.
"""

import asyncio
from typing import Protocol

from aiohttp import WSCloseCode, WSMsgType, web

from gateway.files import Attachment
from mediums.local import wire
from mediums.local.hub import Hub

HELLO_SECONDS, WRITE_SECONDS = 10.0, 10.0
REPLIES, LOOKS = 64, 4  # of one client, unread or at work


class DeskClosed(Exception):
    """Nothing more is taken here; the client will say it again elsewhere."""


class Desk(Protocol):
    """Takes what a client says. Each answers once it is durable, the same for the same id. Raises DeskClosed."""

    async def say(self, say: wire.Say, medium: wire.Where) -> wire.Accepted | wire.Refused: ...
    async def press(self, press: wire.Press, medium: wire.Where) -> wire.Accepted | wire.Refused: ...
    async def look(self, look: wire.Look) -> wire.Looked | wire.Refused: ...

    async def take_file(self, name: str, kind: str, data: bytes) -> wire.Upload:
        """Stored when it returns; a `say` may then name it."""

    async def file(self, digest: str) -> tuple[Attachment, bytes] | None:
        """One that was posted in the room."""


class Socket:
    def __init__(self, ws: web.WebSocketResponse, hub: Hub, desk: Desk, write_seconds: float = WRITE_SECONDS) -> None:
        self._ws, self._hub, self._desk, self._write_seconds = ws, hub, desk, write_seconds
        self._medium: wire.Where = "web"
        self._position = 0
        self._replies: asyncio.Queue[wire.ServerFrame] = asyncio.Queue(REPLIES)
        self._looks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Until the client goes, is dropped, or the room closes."""
        if not await self._enter():
            await self._ws.close(code=WSCloseCode.POLICY_VIOLATION, message=b"say hello first")
            return
        both = {asyncio.create_task(self._read()), asyncio.create_task(self._write())}
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in both | self._looks:
                task.cancel()
            ends = await asyncio.gather(*both, *self._looks, return_exceptions=True)
        await self._ws.close(code=WSCloseCode.GOING_AWAY, message=b"come back")
        for end in ends:
            if isinstance(end, Exception) and not isinstance(end, ConnectionError | TimeoutError | DeskClosed):
                raise end

    async def _enter(self) -> bool:
        try:
            enter = wire.read_client(await self._ws.receive_str(timeout=HELLO_SECONDS))
        except (wire.Malformed, TypeError, TimeoutError):  # TypeError: no text, or gone already
            return False
        if not isinstance(enter, wire.Enter):
            return False
        self._medium = enter.medium
        self._position = enter.after if enter.after <= self._hub.room.newest else 0
        self._replies.put_nowait(self._hub.hello())
        return True

    # --- to the client -----------------------------------------------------------------------------------------------

    async def _write(self) -> None:
        actions, typing = None, self._hub.typing if not self._hub.typing.on else None
        while not self._hub.closing:
            changed = self._hub.changed
            while not self._replies.empty():
                await self._tell(self._replies.get_nowait())
            for item in self._hub.room.after(self._position):
                await self._tell(await self._hub.frame(item, self._medium))
                self._position = item.position
            if actions is not self._hub.actions:
                actions = self._hub.actions
                await self._tell(actions)
            if typing is not self._hub.typing:
                typing = self._hub.typing
                await self._tell(typing)
            await changed.wait()

    async def _tell(self, frame: wire.ServerFrame | None) -> None:
        if frame is not None:
            async with asyncio.timeout(self._write_seconds):
                await self._ws.send_str(wire.write(frame))

    # --- from the client ---------------------------------------------------------------------------------------------

    async def _read(self) -> None:
        async for received in self._ws:
            if received.type is not WSMsgType.TEXT:
                return
            try:
                frame = wire.read_client(received.data)
            except wire.Malformed as error:
                await self._reply(wire.Refused(id=error.id, why=str(error)))
                continue
            await self._take(frame)

    async def _take(self, frame: wire.ClientFrame) -> None:
        match frame:
            case wire.Say():
                await self._reply(await self._desk.say(frame, self._medium))
            case wire.Press():
                await self._reply(await self._desk.press(frame, self._medium))
            case wire.Look() if len(self._looks) >= LOOKS:
                await self._reply(wire.Refused(id=frame.id, why="still looking at the earlier ones: try again"))
            case wire.Look():
                looking = asyncio.create_task(self._look(frame))
                self._looks.add(looking)
                looking.add_done_callback(self._looks.discard)
            case wire.Enter():
                await self._reply(wire.Refused(id="", why="hello is said once"))

    async def _look(self, look: wire.Look) -> None:
        await self._reply(await self._desk.look(look))

    async def _reply(self, frame: wire.ServerFrame) -> None:
        await self._replies.put(frame)
        self._hub.wake()
