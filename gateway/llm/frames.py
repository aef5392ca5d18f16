"""What the gateway and its helper process say to each other, and how it is framed: 4 bytes of length, then msgpack.

Here: the frames and their codec. Not here: who sends what when (`client`, `helper`). A frame may carry a key, so no
frame is ever logged or shown.
"""

import asyncio
import struct

import msgspec

from gateway.llm.history import cleaned
from gateway.llm.model import Endpoint, ErrorKind, Generation, Request, Usage

FRAME_BYTES_MAX = 64 << 20


class Frame(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """One thing said. `id` numbers a call; it is the gateway's, and never used twice."""


class Warm(Frame, frozen=True, kw_only=True):
    """Load what these models need, before it is asked for."""

    names: tuple[str, ...]


class Ask(Frame, frozen=True, kw_only=True):
    id: int
    endpoint: Endpoint
    request: Request


class Cancel(Frame, frozen=True, kw_only=True):
    id: int


class Ready(Frame, frozen=True, kw_only=True):
    """The helper is up; it has listened all along."""


class Answered(Frame, frozen=True, kw_only=True):
    id: int
    generation: Generation


class Failed(Frame, frozen=True, kw_only=True):
    id: int
    kind: ErrorKind
    for_operator: str
    retryable: bool
    retry_after_seconds: float | None
    usage: Usage | None


class Cancelled(Frame, frozen=True, kw_only=True):
    """The connection is closed. `usage` is what it had cost by then, None if the provider had not been asked yet."""

    id: int
    usage: Usage | None


ToHelper = Warm | Ask | Cancel
ToGateway = Ready | Answered | Failed | Cancelled

_to_helper = msgspec.msgpack.Decoder(ToHelper)
_to_gateway = msgspec.msgpack.Decoder(ToGateway)
_encoder = msgspec.msgpack.Encoder()


def encoded(frame: Frame) -> bytes:
    """The frame's bytes; half of a surrogate pair is a question mark. Raises ValueError on a frame over the bound,
    OverflowError on a number that is none."""
    try:
        data = _encoder.encode(frame)
    except UnicodeEncodeError:
        data = _encoder.encode(cleaned(msgspec.to_builtins(frame)))
    if len(data) > FRAME_BYTES_MAX:
        raise ValueError(f"a frame of {len(data)} bytes; at most {FRAME_BYTES_MAX}")
    return struct.pack(">I", len(data)) + data


async def read_for_helper(reader: asyncio.StreamReader) -> ToHelper:
    """The next frame. Raises IncompleteReadError when the gateway is gone."""
    return _to_helper.decode(await _payload(reader))


async def read_for_gateway(reader: asyncio.StreamReader) -> ToGateway:
    """The next frame. Raises IncompleteReadError when the helper is gone."""
    return _to_gateway.decode(await _payload(reader))


async def _payload(reader: asyncio.StreamReader) -> bytes:
    (length,) = struct.unpack(">I", await reader.readexactly(4))
    return await reader.readexactly(length)
