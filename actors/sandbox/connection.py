"""One connection to a process of the sandbox: frames out, and a task that hands each frame in to its owner.

It ends once: by the other side, by a frame that is none, or by `close`. What frames mean is its owner's business.
"""

import asyncio
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from actors.sandbox.frames import Frame, NotAFrame, pack, read

T = TypeVar("T")


class Connection(Generic[T]):
    def __init__(
        self,
        streams: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        decoder: msgspec.json.Decoder[T],
        on_frame: Callable[[T], None],
        on_end: Callable[[str], None],
    ) -> None:
        """`on_end` gets what was wrong with the last frame, or "" when the other side has closed; not after `close`."""
        self._reader, self._writer = streams
        self._decoder, self._on_frame, self._on_end = decoder, on_frame, on_end
        self._task = asyncio.create_task(self._pump())

    def send(self, frame: Frame) -> None:
        """Returns at once; to a side that is gone nothing is sent. ValueError over 16 MB, TypeError if not JSON."""
        data = pack(frame)
        if not self._writer.is_closing():
            self._writer.write(data)

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])
        self._writer.close()
        with suppress(OSError):  # how it ended is nothing to whoever closes it
            await self._writer.wait_closed()

    async def _pump(self) -> None:
        wrong = ""
        try:
            while True:
                self._on_frame(await read(self._reader, self._decoder))
        except (asyncio.IncompleteReadError, OSError):
            pass
        except NotAFrame as error:
            wrong = str(error)
        self._writer.close()  # not waited for: `close` may cancel us, and would cancel what it waits for itself
        self._on_end(wrong)


async def connect(run: Path, name: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """To the socket `name` in the folder `run`, however long its path is. Raises OSError if nobody listens there.

    Whoever is in the sandbox can put a link in its place, to a socket of somebody else: it is not followed.
    """
    folder = os.open(run, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        door = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    finally:
        os.close(folder)
    try:
        if not stat.S_ISSOCK(os.fstat(door).st_mode):
            raise ConnectionRefusedError(f"{name} is no socket")
        return await asyncio.open_unix_connection(f"/proc/self/fd/{door}")
    finally:
        os.close(door)
