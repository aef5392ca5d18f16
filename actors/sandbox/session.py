"""The host's half of one session: what its frames mean for cells and calls. Not here: starting and stopping it."""

import asyncio
from collections.abc import Callable

from actors.sandbox.calls import Calls
from actors.sandbox.cells import Cells
from actors.sandbox.connection import Connection
from actors.sandbox.frames import CaughtUp, Done, FromSession, Hello, Names, Out, Rpc, Stop, from_session
from actors.sandbox.words import Name

NEVER_ARRIVED = "the gateway stopped before its code had reached the sandbox"


class Session:
    """`pid` is its number in its own pid namespace, None until known. The name says what it is: `s…` or `c…`."""

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
        self.pid: int | None = None
        self.caught_up = asyncio.Event()
        self.why = ""  # what is known of why it ended
        self._cells, self._calls, self._on_end, self._found = cells, calls, on_end, found
        self._names: list[asyncio.Future[tuple[Name, ...] | None]] = []
        self.line = Connection(streams, from_session, self._hear, self._lost)

    async def names(self, seconds: float) -> tuple[Name, ...] | None:
        """Its variables; None while a cell runs, or if it does not answer in time."""
        answer: asyncio.Future[tuple[Name, ...] | None] = asyncio.get_running_loop().create_future()
        self._names.append(answer)
        self.line.send(Names())
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

    def _greeted(self, frame: Hello) -> None:
        self.pid = frame.pid
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
        names = None if frame.names is None else tuple(Name(name=name, kind=kind) for name, kind in frame.names)
        for answer in self._names:
            if not answer.done():
                answer.set_result(names)
        self._names.clear()

    def _lost(self, wrong: str) -> None:
        if wrong:
            self.why = f"its session sent what is not a frame ({wrong}) and was ended"
        self.caught_up.set()
        self._named(Names())
        self._calls.drop(self.line)
        self._on_end(self)
