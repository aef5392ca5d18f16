"""A sandbox in memory: the machine where code runs, outside every simulated process, and a process's side of it.

Like a real one it survives its gateway, tells again on attach what nobody recorded, and stands still while suspended.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from actors.sandbox.words import Attached, CellCalled, CellDone, CellLost, Happening, Kept, Name, Restored
from tests.kernel.faults import Gate

TICK_SECONDS = 0.004

Op = tuple[Any, ...]  # ("print", text) | ("tick", n) | ("call", method, arguments) | ("mark", name)
Script = Callable[[str, str], list[Op]]  # cell, code


@dataclass
class Cell:
    name: str
    stateful: bool
    output: str = ""
    shown: int = 0
    told: int = 0  # of the output, what is recorded as shown
    end: Happening | None = None
    calls: dict[str, CellCalled] = field(default_factory=dict)  # waiting for an answer
    answers: dict[str, asyncio.Event] = field(default_factory=dict)
    heard: list[tuple[str, Any, str | None]] = field(default_factory=list)
    task: asyncio.Task[None] | None = None


class Room:
    """One action's processes."""

    def __init__(self, script: Script, mark: Callable[[str], None]) -> None:
        self._script, self._mark = script, mark
        self.cells: dict[str, Cell] = {}
        self.alive = self.session = False
        self.going = asyncio.Event()
        self.going.set()
        self.box: Box | None = None
        self.known: list[Cell] = []  # those that have been, too

    @property
    def running(self) -> bool:
        return any(cell.end is None for cell in self.cells.values())

    def start(self, name: str, code: str, stateful: bool) -> None:
        self.alive = True
        self.session = self.session or stateful
        cell = self.cells[name] = Cell(name, stateful)
        self.known.append(cell)
        cell.task = asyncio.get_running_loop().create_task(self._run(cell, code))

    async def _run(self, cell: Cell, code: str) -> None:
        for place, op in enumerate(self._script(cell.name, code)):
            await self.going.wait()
            match op:
                case ("print", text):
                    cell.output += f"{text}\n"
                case ("tick", count):
                    for _ in range(count):
                        await asyncio.sleep(TICK_SECONDS)
                        await self.going.wait()
                case ("mark", name):
                    self._mark(name)
                case ("call", method, arguments):
                    await self._call(cell, f"{cell.name}.{place}", method, arguments)
        await self.going.wait()
        self._end(cell, CellDone(cell=cell.name, status="ok", value=f"'{cell.name} is done'"))

    async def _call(self, cell: Cell, rpc: str, method: str, arguments: dict[str, Any]) -> None:
        call = CellCalled(cell=cell.name, rpc=rpc, method=method, arguments=arguments)
        cell.calls[rpc], cell.answers[rpc] = call, asyncio.Event()
        self._tell(call)
        await cell.answers[rpc].wait()

    def answer(self, rpc: str, value: Any, error: str | None) -> None:
        cell = self.cells.get(rpc.partition(".")[0])
        if cell is not None and rpc in cell.calls:
            del cell.calls[rpc]
            cell.heard.append((rpc, value, error))
            cell.answers[rpc].set()

    def interrupt(self, name: str) -> None:
        cell = self.cells.get(name)
        if cell is not None and cell.end is None:
            self._stop(cell)
            self._end(cell, CellDone(cell=name, status="interrupted", value=""))

    def lose(self) -> None:
        """The machine was switched off."""
        self.kill()

    def kill(self) -> None:
        for cell in self.cells.values():
            self._stop(cell)
        self.cells.clear()
        self.alive = self.session = False
        self.going.set()

    def _stop(self, cell: Cell) -> None:
        cell.calls.clear()
        if cell.task is not None and cell.task is not asyncio.current_task():
            cell.task.cancel()

    def _end(self, cell: Cell, end: Happening) -> None:
        cell.end = end
        self._tell(end)

    def _tell(self, happening: Happening) -> None:
        if self.box is not None:
            self.box.emit(happening)

    def tell_again(self) -> None:
        for cell in self.cells.values():
            cell.shown = cell.told
            for call in cell.calls.values():
                self._tell(call)
            if cell.end is not None:
                self._tell(cell.end)


class Machine:
    """All sandboxes of a run; `mark` hears where code is."""

    def __init__(self, script: Script, mark: Callable[[str], None]) -> None:
        self._script, self._mark = script, mark
        self.rooms: dict[str, Room] = {}

    def room(self, key: str) -> Room:
        if key not in self.rooms:
            self.rooms[key] = Room(self._script, self._mark)
        return self.rooms[key]

    def lose(self) -> None:
        for room in self.rooms.values():
            room.lose()

    async def close(self) -> None:
        tasks = [cell.task for room in self.rooms.values() for cell in room.cells.values() if cell.task]
        self.lose()
        await asyncio.gather(*tasks, return_exceptions=True)


class Box:
    """A process's side of one sandbox: `actors.workshop.Box`, with a point before and after each effect."""

    def __init__(self, room: Room, emit: Callable[[Happening], None], gate: Gate) -> None:
        self._room, self._gate, self._emit = room, gate, emit
        if not room.alive:
            room.going.set()  # where nothing is, nothing stands still

    def emit(self, happening: Happening) -> None:
        if not self._gate.dead:
            self._emit(happening)

    async def attach(self) -> Attached:
        await self._gate.point("box attach", "before")
        room = self._room
        room.box = self
        attached = Attached(alive=room.alive, stateful=room.session, cells=tuple(room.cells))
        room.tell_again()
        await self._gate.point("box attach", "after")
        return attached

    def is_here(self, moves: int) -> bool:
        return True

    def settle(self, moves: int) -> None:
        return

    async def execute(self, cell: str, code: str, *, stateful: bool) -> None:
        await self._gate.point("box execute", "before")
        self._room.box = self
        if cell in self._room.cells:
            raise ValueError(f"the cell {cell} is there already")
        self._room.start(cell, code, stateful)
        await self._gate.point("box execute", "after")

    def reply(self, rpc: str, value: Any = None, *, error: str | None = None) -> None:
        if self._gate.passes("box reply", "before"):
            self._room.answer(rpc, value, error)
            self._gate.passes("box reply", "after")

    def interrupt(self, cell: str) -> None:
        if self._gate.passes("box interrupt", "before"):
            self._room.interrupt(cell)

    def fresh(self, cell: str) -> str:
        known = self._room.cells.get(cell)
        if known is None:
            return ""
        text, known.shown = known.output[known.shown :], len(known.output)
        return text

    def peek(self, cell: str) -> str:
        known = self._room.cells.get(cell)
        return "" if known is None else known.output

    def shown(self, cell: str) -> int:
        known = self._room.cells.get(cell)
        return 0 if known is None else known.shown

    def show_after(self, cell: str, shown: int) -> None:
        known = self._room.cells.get(cell)
        if known is not None:
            known.shown = max(known.shown, shown)

    def recorded(self, cell: str) -> None:
        known = self._room.cells.get(cell)
        if known is not None and self._gate.passes("box recorded", "before"):
            known.told = known.shown
            if known.end is not None:
                del self._room.cells[cell]
            self._gate.passes("box recorded", "after")

    async def names(self) -> tuple[Name, ...] | None:
        return ()

    async def save(self) -> Kept:
        await self._gate.point("box save", "before")
        kept = Kept(saved=(Name(name="x", kind="int"),)) if self._room.session else Kept()
        await self._gate.point("box save", "after")
        return kept

    async def restore(self) -> Restored:
        await self._gate.point("box restore", "before")
        self._room.box, self._room.alive, self._room.session = self, True, True
        await self._gate.point("box restore", "after")
        return Restored(names=("x",))

    async def suspend(self) -> None:
        await self._gate.point("box suspend", "before")
        self._room.going.clear()
        await self._gate.point("box suspend", "after")

    async def resume(self) -> None:
        await self._gate.point("box resume", "before")
        self._room.going.set()
        await self._gate.point("box resume", "after")

    async def kill(self) -> None:
        await self._gate.point("box kill", "before")
        self._room.kill()
        await self._gate.point("box kill", "after")

    async def close(self) -> None:
        if self._room.box is self:
            self._room.box = None


__all__ = ["Box", "CellLost", "Machine", "Room"]
