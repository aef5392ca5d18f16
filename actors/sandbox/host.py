"""The sandbox of one action, as its owner holds it: cells of code, their output, their calls, and how to stop them.

It owns the processes and the connections to them. What a call does, and what is written to a journal, is the owner's.
Nothing here waits for the code: whatever takes long comes back as a happening.
"""

import asyncio
import os
from collections.abc import Callable, Coroutine, Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from actors.sandbox import handover
from actors.sandbox.calls import Calls
from actors.sandbox.cells import RUNNING_MAX, Cell, Cells
from actors.sandbox.crew import Crew
from actors.sandbox.folder import Folder
from actors.sandbox.frames import Exec, Interrupt, Recorded, Stop
from actors.sandbox.gate.outside import Outside
from actors.sandbox.gate.policy import Policy
from actors.sandbox.gate.proxy import INTERNET, Proxy
from actors.sandbox.isolation.words import Isolation, Launch
from actors.sandbox.stubs import STUBS, Stub
from actors.sandbox.watch import Watch
from actors.sandbox.words import Attached, Happening, Kept, Lost, Name, Restored
from actors.sandbox.worker import whole
from actors.sandbox.zygote import Hold, SandboxFailed, Setting

FRESH_CHARACTERS = 20_000
NAMES_SECONDS = 1.0
SAVE_SECONDS = 20.0
LOAD_SECONDS = 20.0
PATIENCE_SECONDS = (2.0, 5.0)
LOOK_SECONDS = 30.0
NOWHERE = Policy(allow=())
FOR_EVER = Hold()
PRELOAD = ("asyncio", "collections", "datetime", "json", "math", "re", "subprocess")
ALWAYS = {
    "LANG": "C.UTF-8",
    "MPLBACKEND": "Agg",  # no display
    "OPENBLAS_NUM_THREADS": "1",  # numpy would start threads at import, before the fork
}
OBSTINATE = "it did not stop when it was interrupted, so its session was ended"


class Sandbox:
    """One action's. `emit` is called in the loop, must return at once and must not raise.

    A cell's name is used once. Whatever a cell does, it ends by one `CellDone` or `CellLost`, unless `kill` or `close`
    comes first. The owner calls `recorded` when it has written down what it was told: until then a later gateway is
    told again.
    """

    def __init__(
        self,
        directory: Path,
        emit: Callable[[Happening], None],
        isolation: Isolation,
        *,
        stubs: Iterable[Stub] = STUBS,
        environment: Mapping[str, str] | None = None,
        policy: Policy = NOWHERE,
        outside: Outside = INTERNET,
        preload: tuple[str, ...] = PRELOAD,
        patience_seconds: tuple[float, float] = PATIENCE_SECONDS,
        look_seconds: float = LOOK_SECONDS,
        hold: Hold = FOR_EVER,
    ) -> None:
        """`directory` is for this sandbox alone, its `workspace` is where the code runs.

        `environment` is added to the few variables that the code gets; nothing of the gateway's own is passed on.
        `policy`: what its proxy lets through, where its isolation has one; `outside`: by which way.
        `patience_seconds`: from the first interrupt to the second, and from that to the end of the session.
        `look_seconds`: how often a sandbox without a gateway looks whether `directory` is still there; it ends when
        that is gone.
        `hold`: while its holder does not hold the action all stands still; when another comes, or after too long a
        silence, all ends.
        """
        directory = directory.absolute()  # the zygote's current folder is another
        self.workspace = directory / "workspace"
        self._folder = Folder(directory)
        self.tier = isolation.tier
        self._patience = patience_seconds
        stubs = tuple(stubs)
        self._cells, self._calls = Cells(emit), Calls(stubs, emit)
        launch = _with(isolation.launch(self._folder), environment or {})
        proxy = Proxy(policy, directory / "network.log", key=self._folder.authority, outside=outside)
        setting = Setting(
            preload=preload,
            look_seconds=look_seconds,
            hold=hold,
            stubs={stub.method: (stub.signature, stub.doc) for stub in stubs},
        )
        self._crew = Crew(
            self._folder,
            launch=launch,
            setting=setting,
            proxy=None if launch.relay is None else proxy,
            cells=self._cells,
            calls=self._calls,
        )
        self._watch = Watch(launch.quota, self._folder, self._crew, self._cells)
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Optional: makes the first cell quick. Raises SandboxFailed."""
        await self._crew.start()

    def is_here(self, moves: int) -> bool:
        """Its workspace is on this machine, and has been where the action worked since it moved so many times."""
        return self._folder.moves() == moves

    def settle(self, moves: int) -> None:
        """It works here after so many moves: what an earlier stay has left here is not its own."""
        self._folder.remember_moves(moves)

    async def put_files(self, folder: str, files: list[tuple[str, bytes]]) -> list[str]:
        """Into a new folder of the workspace, under safe names; their paths there. Raises Refused, SandboxFailed."""
        if not self.workspace.is_dir():
            await self.start()
        return await asyncio.to_thread(handover.put_in, self.workspace, folder, files)

    async def take_file(self, path: str, limit: int) -> bytes:
        """Of the workspace. Raises Refused."""
        return await asyncio.to_thread(handover.take_out, self.workspace, path, limit)

    async def execute(self, cell: str, code: str, *, stateful: bool) -> None:
        """Returns before the code runs. ValueError for a cell that is there already; other failures: `CellLost`."""
        for old in self._cells.surplus():
            self.recorded(old)
        full = len(self._cells.running()) >= RUNNING_MAX
        known = self._cells.add(cell)
        self._watch.begin()
        if full:
            why = f"it did not begin: {RUNNING_MAX} cells run already"
            asyncio.get_running_loop().call_soon(self._cells.lose, known, why)
        else:
            self._soon(self._begin(known, code, stateful=stateful))

    def reply(self, rpc: str, value: Any = None, *, error: str | None = None) -> None:
        """Answers a call; with `error` it raises RemoteError in the code. A second answer to it is passed over."""
        self._calls.answer(rpc, value, error)

    def interrupt(self, cell: str) -> None:
        """Once per cell: interrupts it, again with its programs after 2 s, and after 5 s more ends its session."""
        known = self._cells.get(cell)
        if known is not None and not known.ended.is_set() and not known.unwanted:
            known.unwanted = True
            self._soon(self._stop(known))

    def fresh(self, cell: str, limit: int = FRESH_CHARACTERS) -> str:
        """Output that this has not returned before, at most `limit` characters of it: its beginning and its end, and
        where all of it is, if that is more."""
        if (known := self._cells.get(cell)) is None:
            return ""
        text = known.output.since(known.output.shown, limit)
        if known.output.end - known.output.shown > limit and known.output.end > whole.SHOWN_CHARACTERS:
            text += whole.where(f"{cell}.txt")
        known.output.shown = max(known.output.shown, known.output.end)
        return text

    def peek(self, cell: str, limit: int = FRESH_CHARACTERS) -> str:
        """All output so far, without marking it as shown."""
        known = self._cells.get(cell)
        return "" if known is None else known.output.since(0, limit)

    def shown(self, cell: str) -> int:
        """How far `fresh` has returned its output, in characters."""
        known = self._cells.get(cell)
        return 0 if known is None else known.output.shown

    def show_after(self, cell: str, shown: int) -> None:
        """After `attach`: so far its output was shown by an earlier owner, who knows better than the cell."""
        if (known := self._cells.get(cell)) is not None:
            known.output.shown = max(known.output.shown, shown)

    def recorded(self, cell: str) -> None:
        """What `fresh` has returned is written down, and the end if there was one: an ended cell is forgotten."""
        if (known := self._cells.get(cell)) is None:
            return
        if (session := self._crew.get(known.session)) is not None:
            session.line.send(Recorded(cell=cell, shown=known.output.shown))
        if known.ended.is_set():
            self._cells.remove(cell)
            self._folder.forget_cell(cell)

    def running(self) -> tuple[str, ...]:
        """Cells that have not ended, oldest first; those that have not begun yet are among them."""
        return self._cells.running()

    async def names(self) -> tuple[Name, ...] | None:
        """The variables of the stateful session, () if there is none; None while it runs a cell or stands still."""
        if self._crew.stands_still:
            return None
        session = self._crew.stateful()
        return () if session is None else await session.names(NAMES_SECONDS)

    async def save(self) -> Kept:
        """Leaves the variables of the stateful session on disk, for `restore` after a `kill`. While no cell runs."""
        session = self._crew.stateful()
        if session is None:
            return Kept()
        names = await self.names() or ()
        if (kept := await session.save(SAVE_SECONDS)) is not None:
            return kept
        there = self._folder.kept()
        why = f"saving it was not done after {SAVE_SECONDS:.0f} s"
        return Kept(
            saved=tuple(name for name in names if name.name in there),
            lost=tuple(Lost(name=one.name, kind=one.kind, why=why) for one in names if one.name not in there),
        )

    async def restore(self) -> Restored:
        """Begins the stateful session with what `save` has left. Again harmless. Raises SandboxFailed or OSError."""
        session = await self._crew.session(stateful=True)
        restored = await session.load(LOAD_SECONDS)
        if restored is None:
            raise SandboxFailed(f"the session did not take its variables back within {LOAD_SECONDS:.0f} s")
        return restored

    async def suspend(self) -> None:
        """All of it stands still until `resume`. Cells given meanwhile begin after it."""
        await self._crew.suspend()

    async def resume(self) -> None:
        await self._crew.resume()

    async def kill(self) -> None:
        """Ends every process, whatever it ignores, also of a sandbox never attached. Its cells end without a word."""
        await self._stop_tasks()
        await self._watch.end()
        await self._crew.kill()
        self._cells.clear()

    async def close(self) -> None:
        """Lets go of it without ending it: a later gateway can attach."""
        await self._stop_tasks()
        await self._watch.end()
        await self._crew.close()

    async def attach(self) -> Attached:
        """Takes over what an earlier gateway has left. Before anything else; happenings may come before it returns."""
        attached = await self._crew.attach()
        self._watch.begin()
        return attached

    async def _begin(self, known: Cell, code: str, *, stateful: bool) -> None:
        if why := self._watch.news():
            return self._cells.lose(known, f"it did not begin: before it, {why}")
        try:
            session = await self._crew.session(stateful=stateful)
        except (SandboxFailed, OSError) as error:
            return self._cells.lose(known, f"it did not begin: {error}")
        if known.unwanted:
            self._cells.never_began(known)
        elif others := self._cells.of(session.name):
            self._cells.lose(known, f"it did not begin: the stateful session still runs {others[0].name}")
        else:
            known.session = session.name
            self._folder.remember_cell(known.name, session.name)
            try:
                return session.line.send(Exec(cell=known.name, code=code))
            except ValueError as error:
                self._cells.lose(known, f"it did not begin: {error}")
        if not stateful:
            session.line.send(Stop())
        return None

    async def _stop(self, known: Cell) -> None:
        for hard, seconds in zip((False, True), self._patience, strict=True):
            await self._crew.going()
            if (session := self._crew.get(known.session)) is not None:
                session.line.send(Interrupt(cell=known.name, hard=hard))
            if await self._is_over(known, seconds):
                return
        if (session := self._crew.get(known.session)) is not None:
            await self._crew.end(session, OBSTINATE)

    async def _is_over(self, known: Cell, seconds: float) -> bool:
        """Whether the cell ends within that time, in which the sandbox does not stand still."""
        while True:
            try:
                await asyncio.wait_for(known.ended.wait(), seconds)
            except TimeoutError:
                if not self._crew.stands_still:
                    return False
                await self._crew.going()
            else:
                return True

    def _soon(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _stop_tasks(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)


def _with(launch: Launch, environment: Mapping[str, str]) -> Launch:
    """With all the variables that the code gets."""
    imports = {"PYTHONPATH": os.pathsep.join(launch.packages)}  # for the programs that the code starts
    return msgspec.structs.replace(launch, environment={**launch.environment, **imports, **ALWAYS, **environment})
