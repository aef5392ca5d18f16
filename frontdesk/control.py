"""How the command line asks a running gateway for what only it can do, or must make room for.

With SQLite a socket beside the store, `….control`, for the user who runs the gateway alone: a line of JSON each way.
On a shared broker a signal to all processes, repeated for as long as they shall keep away: one that hears none for
AWAY_SECONDS comes back by itself.
"""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from frontdesk.crew import Crew
from gateway.broker.protocol import Broker, BrokerUnusable
from gateway.clock import boot_seconds
from gateway.record import Record, Undecodable, decode, encode

log = logging.getLogger(__name__)
AWAY, AWAY_EVERY, AWAY_SECONDS = "control.away", 0.5, 30.0
STAY, COME_BACK = b"away", b"back"
PATIENCE_SECONDS = 20.0  # for all processes to keep away
LINE_BYTES = 64 * 1024
WATCHED_SECONDS = 0.2


class Asked(Record, frozen=True, kw_only=True):
    """`what` is a command, `about` its argument."""

    what: str
    about: str


class Answered(Record, frozen=True, kw_only=True):
    well: bool
    text: str


Answer = Callable[[Asked], Awaitable[Answered]]


def path_of(store: Path) -> Path:
    return Path(f"{store}.control")


@asynccontextmanager
async def answering(store: Path, answer: Answer) -> AsyncIterator[None]:
    """While the block runs. A socket that a killed process left is replaced: the store's lock says that it is dead."""
    path = path_of(store)
    path.unlink(missing_ok=True)

    async def heard(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            writer.write(encode(await answer(decode(await reader.readline(), Asked))) + b"\n")
            await writer.drain()
        except (Undecodable, ValueError, OSError) as error:
            log.warning("%s: %s", path, error)
        finally:
            writer.close()

    with _folder(path.parent) as folder:
        server = await asyncio.start_unix_server(heard, f"{folder}/{path.name}", limit=LINE_BYTES)
        await asyncio.to_thread(os.chmod, path, 0o600)
    try:
        yield
    finally:
        server.close()
        path.unlink(missing_ok=True)


async def ask(store: Path, asked: Asked) -> Answered | None:
    """None when no gateway listens there."""
    path = path_of(store)
    try:
        with _folder(path.parent) as folder:
            reader, writer = await asyncio.open_unix_connection(f"{folder}/{path.name}", limit=LINE_BYTES)
    except (FileNotFoundError, ConnectionRefusedError):
        return None
    try:
        writer.write(encode(asked) + b"\n")
        line = await reader.readline()
    finally:
        writer.close()
    if not line:
        return Answered(well=False, text="The gateway ended before it answered: ask again.")
    found: Answered = decode(line, Answered)
    return found


class _folder:  # noqa: N801 - reads as a function
    """A name of that folder that is short: a socket's whole path has at most 107 bytes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __enter__(self) -> str:
        self._number = os.open(self._folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        return f"/proc/self/fd/{self._number}"

    def __exit__(self, *_: object) -> None:
        os.close(self._number)


# --- on a shared broker ----------------------------------------------------------------------------------------------


async def keep_away_when_asked(broker: Broker, crew: Crew) -> None:
    """For ever."""
    heard: asyncio.Queue[bytes] = asyncio.Queue()  # emptied at once
    unwatch = broker.watch(AWAY, heard.put_nowait)
    try:
        while True:
            if await heard.get() != STAY:
                continue
            async with crew.away():
                with suppress(TimeoutError):
                    word = STAY
                    while word == STAY:
                        async with asyncio.timeout(AWAY_SECONDS):
                            word = await heard.get()
    finally:
        unwatch()


@asynccontextmanager
async def all_away(broker: Broker) -> AsyncIterator[None]:
    """Nobody holds anything until the block ends. Raises BrokerUnusable, with who still does."""

    async def signal_forever() -> None:
        while True:
            broker.signal(AWAY, STAY)
            await asyncio.sleep(AWAY_EVERY)

    signalling = asyncio.create_task(signal_forever())
    try:
        deadline = boot_seconds() + PATIENCE_SECONDS
        while held := await broker.held():
            if boot_seconds() > deadline:
                raise BrokerUnusable(f"still at work: {', '.join(sorted(held))}. Stop those processes, and ask again.")
            await asyncio.sleep(WATCHED_SECONDS)
        yield
    finally:
        signalling.cancel()
        broker.signal(AWAY, COME_BACK)
