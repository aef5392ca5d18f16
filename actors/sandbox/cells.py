"""What the host knows of each cell: its output, the session that runs it, whether it has ended. Bounded; no I/O.

A cell ends once, by `done` or `lose`, and is kept until its owner has recorded the end.
"""

import asyncio
from collections.abc import Callable

from actors.sandbox.frames import Done, Known, Out
from actors.sandbox.words import CellDone, CellLost, Happening
from actors.sandbox.worker.output import Output, shorten

RUNNING_MAX = 32
ENDED_MAX = 32
VALUE_CHARACTERS = 20_000


class Cell:
    def __init__(self, name: str, session: str | None = None) -> None:
        """`session` is None until there is one that its code was given to."""
        self.name = name
        self.session = session
        self.output = Output()
        self.ended = asyncio.Event()
        self.unwanted = False  # interrupted; perhaps before it began


class Cells:
    """Frames of a session about another session's cell are passed over: running code can forge any frame."""

    def __init__(self, emit: Callable[[Happening], None]) -> None:
        self._emit = emit
        self._cells: dict[str, Cell] = {}

    def add(self, name: str, session: str | None = None) -> Cell:
        """Raises ValueError for a name that was used before."""
        if name in self._cells:
            raise ValueError(f"the cell {name} is there already")
        self._cells[name] = cell = Cell(name, session)
        return cell

    def get(self, name: str) -> Cell | None:
        return self._cells.get(name)

    def running(self) -> tuple[str, ...]:
        return tuple(name for name, cell in self._cells.items() if not cell.ended.is_set())

    def is_foreign(self, session: str, name: str) -> bool:
        """Whether that cell is another session's."""
        cell = self._cells.get(name)
        return cell is not None and cell.session != session

    def of(self, session: str) -> list[Cell]:
        """Those that it has not ended."""
        return [cell for cell in self._cells.values() if cell.session == session and not cell.ended.is_set()]

    def surplus(self) -> list[str]:
        """Ended cells beyond the bound, which nobody has recorded; oldest first."""
        ended = [name for name, cell in self._cells.items() if cell.ended.is_set()]
        return ended[: max(0, len(ended) - ENDED_MAX)]

    def remove(self, name: str) -> None:
        self._cells.pop(name, None)

    def clear(self) -> None:
        """All of them end without a word."""
        for cell in self._cells.values():
            cell.ended.set()
        self._cells.clear()

    def known(self, session: str, known: Known) -> None:
        """A session found again tells how far the output of its cell has been shown."""
        if (cell := self._owned(session, known.cell)) is not None:
            cell.output.shown = max(cell.output.shown, known.shown)

    def out(self, session: str, frame: Out) -> None:
        if (cell := self._owned(session, frame.cell)) is not None:
            cell.output.append(frame.text, frame.position)

    def done(self, session: str, frame: Done) -> None:
        cell = self._owned(session, frame.cell)
        if cell is not None and not cell.ended.is_set():
            cell.ended.set()
            value = shorten(frame.value, VALUE_CHARACTERS)
            self._emit(CellDone(cell=cell.name, status=frame.status, value=value))

    def never_began(self, cell: Cell) -> None:
        """It was interrupted before its code was sent."""
        if not cell.ended.is_set():
            cell.ended.set()
            self._emit(CellDone(cell=cell.name, status="interrupted", value=""))

    def lose(self, cell: Cell, why: str) -> None:
        if not cell.ended.is_set():
            cell.ended.set()
            self._emit(CellLost(cell=cell.name, why=why))

    def _owned(self, session: str, name: str) -> Cell | None:
        cell = self._cells.get(name)
        return cell if cell is not None and cell.session == session else None
