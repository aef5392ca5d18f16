"""The host's half of one session: what its frames mean for cells and calls. Not here: starting and stopping it."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from actors.sandbox.calls import Calls
from actors.sandbox.cells import Cells
from actors.sandbox.connection import Connection
from actors.sandbox.frames import (
    CaughtUp,
    Done,
    Frame,
    FromSession,
    Hello,
    Load,
    Loaded,
    Names,
    Out,
    Rpc,
    Save,
    Saved,
    Stop,
    from_session,
)
from actors.sandbox.words import Kept, Lost, Name, Restored

NAMES_MAX = 1_000
WORD_CHARACTERS = 200
GRACE_SECONDS = 2.0
A = TypeVar("A")
NEVER_ARRIVED = "the gateway stopped before its code had reached the sandbox"


class Session:
    """The name says what it is: `s…` or `c…`."""

    def __init__(
        self,
        name: str,
        streams: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        cells: Cells,
        calls: Calls,
        on_end: Callable[["Session"], None],
        *,
        found: bool,
    ) -> None:
        """`found`: an earlier gateway has started it."""
        self.name = name
        self.stateful = name.startswith("s")
        self.caught_up = asyncio.Event()
        self.why = ""  # what is known of why it ended
        self._cells, self._calls, self._on_end, self._found = cells, calls, on_end, found
        self._names: list[asyncio.Future[tuple[Name, ...] | None]] = []
        self._saved: list[asyncio.Future[Kept | None]] = []
        self._loaded: list[asyncio.Future[Restored | None]] = []
        self.line = Connection(streams, from_session, self._hear, self._lost)

    async def names(self, seconds: float) -> tuple[Name, ...] | None:
        """Its variables; None while a cell runs, or if it does not answer in time."""
        return await self._asked(Names(), self._names, seconds)

    async def save(self, seconds: float) -> Kept | None:
        """Its variables on disk; None if it does not answer in time: then some may be there, and some not."""
        return await self._asked(Save(seconds=seconds), self._saved, seconds + GRACE_SECONDS)

    async def load(self, seconds: float) -> Restored | None:
        return await self._asked(Load(), self._loaded, seconds)

    async def _asked(self, frame: Frame, waiting: "list[asyncio.Future[A | None]]", seconds: float) -> A | None:
        answer: asyncio.Future[A | None] = asyncio.get_running_loop().create_future()
        waiting.append(answer)
        self.line.send(frame)
        await asyncio.wait([answer], timeout=seconds)
        return answer.result() if answer.done() else None

    def _hear(self, frame: FromSession) -> None:
        match frame:
            case Hello():
                self._greeted(frame)
            case CaughtUp():
                self.caught_up.set()
            case Out():
                self._cells.out(self.name, frame)
            case Done():
                self._cells.done(self.name, frame)
            case Rpc() if not self._cells.is_foreign(self.name, frame.cell):
                self._calls.arrived(self.line, frame)
            case Names():
                self._named(frame)
            case Saved():
                _answer(self._saved, Kept(saved=_names(frame.kept), lost=_lost(frame.lost)))
            case Loaded():
                names = tuple(_short(name) for name in frame.names[:NAMES_MAX])
                _answer(self._loaded, Restored(names=names, lost=_lost(frame.lost)))

    def _greeted(self, frame: Hello) -> None:
        if not self._found:
            return
        told = {known.cell: known for known in frame.cells}
        for cell in self._cells.of(self.name):
            if cell.name in told:
                self._cells.known(self.name, told[cell.name])
            else:
                self._cells.lose(cell, NEVER_ARRIVED)
        if not told and not self.stateful:
            self.line.send(Stop())

    def _named(self, frame: Names) -> None:
        _answer(self._names, None if frame.names is None else _names(frame.names))

    def _lost(self, wrong: str) -> None:
        if wrong:
            self.why = f"its session {wrong}, and was ended"
        self.caught_up.set()
        self._named(Names())
        _answer(self._saved, None)
        _answer(self._loaded, None)
        self._calls.drop(self.line)
        self._on_end(self)


def _answer(waiting: "list[asyncio.Future[A | None]]", value: A | None) -> None:
    for answer in waiting:
        if not answer.done():
            answer.set_result(value)
    waiting.clear()


def _names(names: list[tuple[str, str]]) -> tuple[Name, ...]:
    return tuple(Name(name=_short(name), kind=_short(kind)) for name, kind in names[:NAMES_MAX])


def _lost(lost: list[tuple[str, str, str]]) -> tuple[Lost, ...]:
    return tuple(Lost(name=_short(name), kind=_short(kind), why=_short(why)) for name, kind, why in lost[:NAMES_MAX])


def _short(text: str) -> str:
    return text[:WORD_CHARACTERS]
