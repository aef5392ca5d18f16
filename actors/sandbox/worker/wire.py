"""Frames on a unix socket: 4 bytes of length (big-endian), then a JSON object. Used by both sides; no meaning here.

A frame says what it is in its key `t`. The host's side of the vocabulary is `actors/sandbox/frames.py`.
"""

import select
import socket
import struct
from collections.abc import Callable
from json import dumps, loads  # now: the code may put something else in their place
from typing import Any

HEADER = struct.Struct(">I")
FRAME_BYTES_MAX = 16 << 20
READ_BYTES = 1 << 18

Frame = dict[str, Any]
Fields = dict[str, dict[str, Any]]  # by what a frame says it is: the types of what else is in it


def checked(frame: Frame, fields: Fields) -> Frame:
    """Raises ConnectionAbortedError for one that is not among them: whoever sent it is no host."""
    needed = fields.get(frame["t"]) if isinstance(frame.get("t"), str) else None
    if needed is None or not all(name in frame and isinstance(frame[name], kind) for name, kind in needed.items()):
        raise ConnectionAbortedError("no frame of a host")
    return frame


def clean(text: str) -> str:
    """Without lone surrogates, which JSON readers and databases refuse."""
    return text.encode("utf-8", "backslashreplace").decode()


def pack(frame: Frame, plain: Callable[[Any], Any] | None = None) -> bytes:
    """`plain` turns what JSON has no word for into what it has.

    Raises TypeError if it cannot, ValueError for NaN, lone surrogates and a frame over 16 MB.
    """
    text = dumps(frame, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=plain)
    body = text.encode()
    if len(body) > FRAME_BYTES_MAX:
        raise ValueError(f"{len(body)} bytes are more than the {FRAME_BYTES_MAX} that fit a frame")
    return HEADER.pack(len(body)) + body


class Peer:
    """One connection, never waited for: what the other side does not read stays in `unsent`."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self.sock = sock
        self.unsent = bytearray()
        self._received = bytearray()

    def receive(self) -> list[Frame]:
        """What has come in whole. Raises ConnectionError at the end, and for a frame that is none."""
        try:
            data = self.sock.recv(READ_BYTES)
        except BlockingIOError:
            return []
        if not data:
            raise ConnectionResetError("the other side has closed")
        self._received += data
        frames: list[Frame] = []
        while (frame := self._next()) is not None:
            frames.append(frame)
        return frames

    def has_sent(self) -> bool:
        """Whether `receive` would find something: bytes, or the end."""
        poll = select.poll()
        poll.register(self.sock, select.POLLIN)
        return bool(poll.poll(0))

    def send(self, data: bytes) -> None:
        self.unsent += data
        self.flush()

    def flush(self) -> None:
        """Raises ConnectionError if the other side is gone."""
        while self.unsent:
            try:
                del self.unsent[: self.sock.send(self.unsent)]
            except BlockingIOError:
                return

    def close(self) -> None:
        self.sock.close()

    def _next(self) -> Frame | None:
        if len(self._received) < HEADER.size:
            return None
        (length,) = HEADER.unpack_from(self._received)
        if length > FRAME_BYTES_MAX:
            raise ConnectionAbortedError(f"a frame of {length} bytes")
        end = HEADER.size + length
        if len(self._received) < end:
            return None
        body = bytes(self._received[HEADER.size : end])
        del self._received[:end]
        try:
            frame = loads(body)
        except (ValueError, RecursionError) as error:
            raise ConnectionAbortedError("not JSON") from error
        if not isinstance(frame, dict):
            raise ConnectionAbortedError("not a JSON object")
        return frame
