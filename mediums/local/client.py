"""A client of the room for programs: the terminal, the plain demo, tests. No printing and no prompt enter here.

It connects again by itself for as long as it is open. What it says has an id and is said again after each connection
until the room has accepted it; what it hears is told once, in order, from the position it was given.
"""

import asyncio
import io
import uuid
from collections.abc import AsyncIterator, Sequence
from types import TracebackType

import aiohttp

from gateway.files import size_text
from gateway.record import Record, decode
from mediums.local import wire

FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.05, 0.5  # on this machine it costs next to nothing
HEARTBEAT_SECONDS = 20.0
UNSENT, UNHEARD = 1_000, 1_000
REFUSING = (401, 403)


class AccessDenied(Exception):
    """The room does not know this token, or not this address; connecting again would not help."""


class TooManyUnsent(Exception):
    """UNSENT frames wait for a connection: no more are taken."""


class NotTaken(Exception):
    """The room did not take a file."""


class Disconnected(Record, frozen=True, kw_only=True):
    """The room cannot be reached now; it is tried again in `retry_seconds`."""

    why: str
    retry_seconds: float


Event = wire.ServerFrame | Disconnected  # a wire.Hello means connected


class LocalClient:
    """`url` as in http://127.0.0.1:8765, without the token. Open it with `async with`; iterate over it once.

    Iterating yields events for ever, and raises AccessDenied. Whoever does not iterate is not disconnected, but hears
    nothing more after UNHEARD events.
    """

    def __init__(self, url: str, token: str, medium: wire.Where = "terminal", after: int = 0) -> None:
        self.position = after
        self.connected = False
        self._url, self._token, self._medium = url.rstrip("/"), token, medium
        self._unanswered: dict[str, wire.Say | wire.Press | wire.Look] = {}
        self._fresh = asyncio.Event()
        self._events: asyncio.Queue[Event | AccessDenied] = asyncio.Queue(UNHEARD)

    async def __aenter__(self) -> "LocalClient":
        self._running = asyncio.create_task(self._run(), name="local client")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._running.cancel()
        await asyncio.wait({self._running})
        if not self._running.cancelled():
            self._running.result()

    @property
    def unsent(self) -> tuple[wire.Say, ...]:
        """What was said and is not yet accepted, in order."""
        return tuple(frame for frame in self._unanswered.values() if isinstance(frame, wire.Say))

    def say(self, text: str, files: Sequence[wire.Upload] = ()) -> str:
        """Its id, at once; `Accepted` or `Refused` with it follows. Raises TooManyUnsent."""
        return self._queue(wire.Say(id=_new_id(), text=text, files=tuple(files)))

    async def upload(self, name: str, kind: str, data: bytes) -> wire.Upload:
        """For a `say`. Raises NotTaken with words for the person."""
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": kind}
        try:
            async with (
                aiohttp.ClientSession(headers=headers) as session,
                session.post(f"{self._url}/files", params={"name": name}, data=io.BytesIO(data)) as answer,
            ):
                body = await answer.read()
        except (aiohttp.ClientError, OSError) as error:
            raise NotTaken(f"{name} could not be handed over: {error}") from None
        if answer.status != 200:
            raise NotTaken(f"{name} was not taken: {body.decode(errors='replace')[:200]}")
        upload: wire.Upload = decode(body, wire.Upload)
        return upload

    def line_of(self, file: wire.Upload) -> str:
        """With the address at which a browser that knows the room can open it."""
        return f"[file {file.name}, {size_text(file.size)}: {self._url}/files/{file.digest}]"

    def press(self, verb: wire.PressVerb, action: str, *, question: str = "", text: str = "") -> str:
        """As `say`."""
        return self._queue(wire.Press(id=_new_id(), verb=verb, action=action, question=question, text=text))

    def look(self, what: wire.LookAt, about: str = "") -> str:
        """As `say`; `Looked` or `Refused` with the id follows."""
        return self._queue(wire.Look(id=_new_id(), what=what, about=about))

    async def __aiter__(self) -> AsyncIterator[Event]:
        while True:
            event = await self._events.get()
            if isinstance(event, AccessDenied):
                raise event
            yield event

    def _queue(self, frame: wire.Say | wire.Press | wire.Look) -> str:
        if len(self._unanswered) >= UNSENT:
            raise TooManyUnsent(f"{UNSENT} messages wait for {self._url}: is frontdesk running?")
        self._unanswered[frame.id] = frame
        self._fresh.set()
        return frame.id

    # --- the connection ----------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        pause = FIRST_PAUSE_SECONDS
        headers = {"Authorization": f"Bearer {self._token}"}
        async with aiohttp.ClientSession(headers=headers) as session:
            while True:
                try:
                    await self._connect(session)
                    why, heard = "the room closed the connection", True
                except aiohttp.WSServerHandshakeError as error:
                    if error.status in REFUSING:
                        await self._events.put(AccessDenied(f"{self._url} refused the token: see mediums.web.token"))
                        return
                    why, heard = f"the room answered {error.status}", False
                except (aiohttp.ClientError, OSError, TimeoutError) as error:
                    why, heard = str(error) or type(error).__name__, self.connected
                self.connected = False
                pause = FIRST_PAUSE_SECONDS if heard else pause
                await self._events.put(Disconnected(why=why, retry_seconds=pause))
                await asyncio.sleep(pause)
                pause = min(pause * 2, LONGEST_PAUSE_SECONDS)

    async def _connect(self, session: aiohttp.ClientSession) -> None:
        """One connection, to its end."""
        async with session.ws_connect(f"{self._url}/socket", heartbeat=HEARTBEAT_SECONDS, max_msg_size=0) as ws:
            await ws.send_str(wire.write(wire.Enter(after=self.position, medium=self._medium)))
            telling = asyncio.create_task(self._tell(ws))
            try:
                async for received in ws:
                    if received.type is not aiohttp.WSMsgType.TEXT:
                        return
                    try:
                        frame = wire.read_server(received.data)
                    except wire.Malformed:
                        continue  # a newer room tells more than this client can show
                    await self._hear(frame)
            finally:
                telling.cancel()
                await asyncio.gather(telling, return_exceptions=True)  # the reader says why it ended

    async def _tell(self, ws: aiohttp.ClientWebSocketResponse) -> None:
        told: set[str] = set()  # on this connection
        while True:
            self._fresh.clear()
            for frame in list(self._unanswered.values()):
                if frame.id not in told:
                    told.add(frame.id)
                    await ws.send_str(wire.write(frame))
            told &= self._unanswered.keys()
            await self._fresh.wait()

    async def _hear(self, frame: wire.ServerFrame) -> None:
        match frame:
            case wire.Hello(newest=newest):
                self.connected = True
                self.position = 0 if newest < self.position else self.position
            case wire.Post() | wire.Decided():
                if frame.position <= self.position:
                    return
                self.position = frame.position
            case wire.Accepted(id=frame_id) | wire.Refused(id=frame_id) | wire.Looked(id=frame_id):
                if self._unanswered.pop(frame_id, None) is None:
                    return
            case wire.Typing() | wire.Actions():
                pass
        await self._events.put(frame)


def _new_id() -> str:
    return uuid.uuid4().hex
