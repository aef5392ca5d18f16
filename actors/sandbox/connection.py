"""One connection to a process of the sandbox: frames out, and a task that hands each frame in to its owner.

It ends once: by the other side, by a frame that is none, or by `close`. What frames mean is its owner's business.
"""

import asyncio
import os
from collections.abc import Callable
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
        try:
            await self._writer.wait_closed()
        except ConnectionError:
            return

    async def _pump(self) -> None:
        wrong = ""
        try:
            while True:
                self._on_frame(await read(self._reader, self._decoder))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        except NotAFrame as error:
            wrong = str(error)
        self._writer.close()  # not waited for: `close` may cancel us, and would cancel what it waits for itself
        self._on_end(wrong)


async def connect(run: Path, name: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """To the socket `name` in the folder `run`, however long its path is. Raises OSError if nobody listens there."""
    folder = os.open(run, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return await asyncio.open_unix_connection(f"/proc/self/fd/{folder}/{name}")
    finally:
        os.close(folder)
