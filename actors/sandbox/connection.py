"""One connection to a process of the sandbox: frames out, and a task that hands each frame in to its owner.

It ends once: by the other side, by a frame that is none, or by `close`. What frames mean is its owner's business.
"""

import asyncio
import os
import re
import socket
import stat
import struct
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from actors.sandbox.frames import Frame, NotAFrame, pack, read

UNREAD_BYTES_MAX = 32 << 20  # two frames of the largest kind
NAME = re.compile(r"[a-z]\d{0,9}")
TRIES, PAUSE_SECONDS = 100, 0.02
NOBODY = 0

T = TypeVar("T")


class Connection(Generic[T]):
    def __init__(
        self,
        streams: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        decoder: msgspec.json.Decoder[T],
        on_frame: Callable[[T], None],
        on_end: Callable[[str], None],
    ) -> None:
        """`on_end` gets what the other side has done wrong, as a sentence's end, "" if nothing; not after `close`."""
        self._reader, self._writer = streams
        self._wrong = ""
        self._decoder, self._on_frame, self._on_end = decoder, on_frame, on_end
        self._task = asyncio.create_task(self._pump())

    def send(self, frame: Frame) -> None:
        """Returns at once; to a side that is gone nothing is sent. ValueError over 16 MB, TypeError if not JSON."""
        data = pack(frame)
        if self._writer.is_closing():
            return
        self._writer.write(data)
        if self._writer.transport.get_write_buffer_size() > UNREAD_BYTES_MAX:
            self._wrong = "did not read what it was sent"
            self.hang_up()

    def hang_up(self) -> None:
        """As if the other side had: what has come in is still heard, then it ends."""
        self._writer.transport.abort()

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])
        self._writer.close()
        with suppress(OSError):  # how it ended is nothing to whoever closes it
            await self._writer.wait_closed()

    async def _pump(self) -> None:
        try:
            while True:
                self._on_frame(await read(self._reader, self._decoder))
        except (asyncio.IncompleteReadError, OSError):
            pass
        except NotAFrame as error:
            self._wrong = f"sent what is not a frame ({error})"
        self._writer.close()  # not waited for: `close` may cancel us, and would cancel what it waits for itself
        self._on_end(self._wrong)


async def connect(run: Path, name: str, listener: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """To the socket `name` in the folder `run`, however long its path is. Raises OSError if nobody listens there.

    Whoever is in the sandbox can put a link in its place, to a socket of somebody else, or a socket of its own: no link
    is followed, and only what the process `listener` has opened is the zygote's or a session's.
    """
    if not NAME.fullmatch(name):
        raise ConnectionRefusedError(f"{name} is no name of a socket")
    folder = os.open(run, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        door = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    finally:
        os.close(folder)
    try:
        if not stat.S_ISSOCK(os.fstat(door).st_mode):
            raise ConnectionRefusedError(f"{name} is no socket")
        streams = await _opened(f"/proc/self/fd/{door}")
    finally:
        os.close(door)
    if _listener(streams[1]) != listener:
        streams[1].close()
        raise ConnectionRefusedError(f"{name} is somebody else's")
    return streams


async def _opened(path: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Where too many wait to be accepted, asyncio takes the system's "not now" for a connection without another end."""
    for _ in range(TRIES):
        streams = await asyncio.open_unix_connection(path)
        if _listener(streams[1]) != NOBODY:
            return streams
        streams[1].close()
        await asyncio.sleep(PAUSE_SECONDS)
    raise ConnectionRefusedError("too many wait there already")


def _listener(writer: asyncio.StreamWriter) -> int:
    """The process that began to listen at the other end, as a number here."""
    seen: bytes = writer.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    pid, _, _ = struct.unpack("iII", seen)
    return int(pid)
