"""The host's half of the wire: frames as frozen types, and reading them from a stream. Not here: who says what when.

What comes in was written by a process that runs a stranger's code, and can be anything: it is checked here, once.
"""

import asyncio
from typing import Annotated, Any, TypeVar

import msgspec

from actors.sandbox.words import Status
from actors.sandbox.worker.wire import FRAME_BYTES_MAX, HEADER

Position = Annotated[int, msgspec.Meta(ge=0, le=1 << 53)]
Id = Annotated[str, msgspec.Meta(max_length=200)]


class Frame(msgspec.Struct, frozen=True, kw_only=True, tag_field="t", tag=str.lower):
    """One thing said."""


class Exec(Frame, frozen=True, kw_only=True):
    cell: str
    code: str


class Reply(Frame, frozen=True, kw_only=True):
    """The answer to a call; `error` None means that all went well."""

    rpc: str
    value: Any
    error: str | None


class Interrupt(Frame, frozen=True, kw_only=True):
    """`hard`: the programs that the session has started, too."""

    cell: str
    hard: bool


class Recorded(Frame, frozen=True, kw_only=True):
    """The output up to `shown` need not be shown again; an ended cell is forgotten."""

    cell: str
    shown: int


class Names(Frame, frozen=True, kw_only=True):
    """Asked without names; answered with pairs of name and type, None while a cell runs."""

    names: list[tuple[str, str]] | None = None


class Save(Frame, frozen=True, kw_only=True):
    """To the stateful session while no cell runs: keep your variables on disk; begin none after `seconds`."""

    seconds: float


class Saved(Frame, frozen=True, kw_only=True):
    """`kept` are pairs of name and type; `lost` say why, too."""

    kept: list[tuple[str, str]]
    lost: list[tuple[str, str, str]]


class Load(Frame, frozen=True, kw_only=True):
    """To a new stateful session: take the variables that an earlier one has kept."""


class Loaded(Frame, frozen=True, kw_only=True):
    names: list[str]
    lost: list[tuple[str, str, str]]


class Stop(Frame, frozen=True, kw_only=True):
    """To a session that is not needed."""


class Known(msgspec.Struct, frozen=True, kw_only=True):
    cell: str
    shown: Position
    ended: bool


class Hello(Frame, frozen=True, kw_only=True):
    """A session's greeting."""

    session: str
    stateful: bool
    busy: str | None
    cells: list[Known]


class CaughtUp(Frame, frozen=True, kw_only=True):
    """All that was kept before the attach has been told."""


class Out(Frame, frozen=True, kw_only=True):
    """`position` is that of the first character of `text` in the cell's whole output; a gap was left out."""

    cell: str
    position: Position
    text: str


class Rpc(Frame, frozen=True, kw_only=True):
    rpc: Id
    cell: str
    method: str
    args: list[Any]
    kwargs: dict[str, Any]


class Done(Frame, frozen=True, kw_only=True):
    cell: str
    status: Status
    value: str


class Config(Frame, frozen=True, kw_only=True):
    """The first frame to a zygote: its folders, and the modules to load before the first fork.

    Without a host it looks each `look_seconds` whether its folder is still there, and ends if not. `limits` are for it
    and all that it starts. `relay`: the socket of the host's proxy, for which it keeps a door on the loopback. `stubs`
    are signature and words by dotted name, for `help`. `packages`: folders from which code can import. `made` sessions
    there were before it: their names do not come again, as some of their ends may still be on the way.
    """

    run: str
    workspace: str
    preload: tuple[str, ...]
    look_seconds: float
    limits: dict[str, int]
    relay: str | None
    holder: str
    freeze_seconds: float
    end_seconds: float | None
    stubs: dict[str, tuple[str, str]]
    packages: tuple[str, ...]
    made: int


class Pause(Frame, frozen=True, kw_only=True):
    """All below the zygote is to stand still, whoever holds it, until `Resume`. A second one changes nothing."""


class Resume(Frame, frozen=True, kw_only=True):
    """What `Pause` has halted goes on."""


class Beat(Frame, frozen=True, kw_only=True):
    """The host holds the action still. Without it for `freeze_seconds` all stands still, until the next; without it for
    `end_seconds`, if there is such a bound, the sandbox ends: somebody elsewhere has the action by then.

    From another `holder` than the first it means that the action was taken over: the sandbox ends.
    """

    holder: str


class Fork(Frame, frozen=True, kw_only=True):
    stateful: bool


class Heard(Frame, frozen=True, kw_only=True):
    """That this session has ended is known."""

    session: str


class Forked(Frame, frozen=True, kw_only=True):
    session: str
    pid: int


class Ended(Frame, frozen=True, kw_only=True):
    """`code`: the exit status, or minus the signal's number."""

    session: str
    code: int


class Ready(Frame, frozen=True, kw_only=True):
    """A zygote's greeting, with the sessions that live, those whose end nobody has heard, and whether it is paused."""

    ended: list[Ended]
    running: list[Forked] = []
    paused: bool = False


FromSession = Hello | CaughtUp | Out | Rpc | Done | Names | Saved | Loaded
FromZygote = Ready | Forked | Ended

T = TypeVar("T")

from_session: msgspec.json.Decoder[FromSession] = msgspec.json.Decoder(FromSession)
from_zygote: msgspec.json.Decoder[FromZygote] = msgspec.json.Decoder(FromZygote)


class NotAFrame(Exception):
    """The other side sent what is not a frame of ours. The text says what was wrong."""


def pack(frame: Frame) -> bytes:
    """Raises ValueError for a frame over 16 MB, TypeError for a value that JSON has no word for."""
    body = msgspec.json.encode(frame)
    if len(body) > FRAME_BYTES_MAX:
        raise ValueError(f"{len(body)} bytes are more than the {FRAME_BYTES_MAX} that fit a frame")
    return HEADER.pack(len(body)) + body


async def read(reader: asyncio.StreamReader, decoder: msgspec.json.Decoder[T]) -> T:
    """The next frame. Raises IncompleteReadError or ConnectionError at the end, NotAFrame for anything else."""
    (length,) = HEADER.unpack(await reader.readexactly(HEADER.size))
    if length > FRAME_BYTES_MAX:
        raise NotAFrame(f"a frame of {length} bytes, more than the {FRAME_BYTES_MAX} allowed")
    try:
        return decoder.decode(await reader.readexactly(length))
    except (msgspec.DecodeError, RecursionError) as error:
        raise NotAFrame(str(error)) from error
