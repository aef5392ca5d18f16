"""The processes of one sandbox as the host holds them: the zygote, its sessions, and everything below.

Starting, suspending, resuming, killing and attaching happen one at a time, in the order they were asked for; walks
through /proc are done in a thread. Not here: cells' states (`cells`), what frames mean (`session`).
"""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from actors.sandbox import processes
from actors.sandbox import zygote as zygotes
from actors.sandbox.calls import Calls
from actors.sandbox.cells import Cells
from actors.sandbox.connection import connect
from actors.sandbox.folder import Folder
from actors.sandbox.frames import Beat, Pause, Resume
from actors.sandbox.gate.proxy import Proxy
from actors.sandbox.isolation.words import Launch
from actors.sandbox.session import Session
from actors.sandbox.words import Attached
from actors.sandbox.zygote import Setting, Zygote

CATCH_UP_SECONDS = 1.0
POST_MORTEM_SECONDS = 1.0
EMPTY_SECONDS = 0.5
NAMES = 100_000_000  # of sessions, before the first comes again
BEATS = 5  # in the time after which silence means that nobody holds it


class Crew:
    def __init__(
        self,
        folder: Folder,
        *,
        launch: Launch,
        setting: Setting,
        proxy: Proxy | None,
        cells: Cells,
        calls: Calls,
    ) -> None:
        self._folder, self._launch, self._setting = folder, launch, setting
        self._hold, self._proxy = setting.hold, proxy
        self._beating: asyncio.Task[None] | None = None
        self._cells, self._calls = cells, calls
        self._zygote: Zygote | None = None
        self._sessions: dict[str, Session] = {}
        self._made = 0  # the highest number of a session, of any zygote
        self._turn = asyncio.Lock()
        self._going = asyncio.Event()
        self._going.set()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def lives(self) -> bool:
        """Whether there is a zygote, and perhaps more."""
        return self._zygote is not None

    @property
    def stands_still(self) -> bool:
        return not self._going.is_set()

    async def going(self) -> None:
        """Returns when it does not stand still."""
        await self._going.wait()

    def tmp(self) -> Path | None:
        """Its own `/tmp`, if it has one."""
        birth = None if self._zygote is None else self._zygote.birth
        return None if birth is None or birth.keeper is None else Path("/proc", str(birth.pid), "root", "tmp")

    def get(self, name: str | None) -> Session | None:
        return None if name is None else self._sessions.get(name)

    def stateful(self) -> Session | None:
        return next((session for session in self._sessions.values() if session.stateful), None)

    async def start(self) -> None:
        """Raises SandboxFailed."""
        async with self._turn:
            await self._started()

    async def session(self, *, stateful: bool) -> Session:
        """A new one, or the stateful one that lives. Raises SandboxFailed, or OSError if it goes meanwhile."""
        while True:
            await self._going.wait()
            async with self._turn:
                if self.stands_still:
                    continue
                zygote = await self._started()
                if stateful and (living := self.stateful()) is not None:
                    return living
                forked = await zygote.fork(stateful=stateful)
                return await self._meet(zygote, forked.session, found=False)

    async def suspend(self) -> None:
        async with self._turn:
            self._going.clear()
            if self._zygote is not None:
                self._zygote.connection.send(Pause())
                await asyncio.to_thread(processes.suspend_below, self._zygote.birth.pid)

    async def resume(self) -> None:
        async with self._turn:
            self._beat()
            if self._zygote is not None:
                self._zygote.connection.send(Resume())
                if self._hold.holds():  # or the zygote keeps it frozen, until somebody does
                    await asyncio.to_thread(processes.resume, self._zygote.birth.pid)
            self._going.set()

    async def kill(self) -> None:
        async with self._turn:
            await self._let_go()
            await self._kill_recorded()
            await asyncio.to_thread(_remove, self._launch.cgroups)
            self._folder.clear()
            self._going.set()

    async def close(self) -> None:
        async with self._turn:
            await self._let_go()

    async def attach(self) -> Attached:
        async with self._turn:
            self._zygote = zygote = await zygotes.find(self._folder, self)
            if zygote is None:
                await self._kill_recorded()
                self._folder.clear()
                return Attached(alive=False, stateful=False, cells=())
            await self._take_hold()
            await zygote.ready(CATCH_UP_SECONDS)
            if zygote.paused:
                self._going.clear()
            ledger = self._folder.cells()
            for cell, session in ledger.items():
                self._cells.add(cell, session)
            await self._meet_all(zygote)
            for session in {*ledger.values()} - {*self._sessions}:
                self._soon(self._find_dead(session))
            return Attached(alive=True, stateful=self.stateful() is not None, cells=tuple(ledger))

    async def _keep_beating(self) -> None:
        while True:
            await asyncio.sleep(self._hold.freeze_seconds / BEATS)
            self._beat()

    def _beat(self) -> None:
        if self._zygote is not None and self._hold.holds():
            self._zygote.connection.send(Beat(holder=self._hold.holder))

    async def end(self, session: Session, why: str) -> None:
        """Kills it with what it has started; its cells are lost."""
        session.why = why
        zygote = self._zygote
        if zygote is not None and (pid := zygote.pids.get(session.name)) is not None:
            await asyncio.to_thread(processes.kill_branch, zygote.birth.pid, pid)

    async def _started(self) -> Zygote:
        if self._zygote is None:
            await self._kill_recorded()  # one that nobody has attached to
            self._zygote = await zygotes.spawn(self._folder, self._launch, self._setting, self, self._made)
            await self._take_hold()
        return self._zygote

    async def _take_hold(self) -> None:
        """Of a zygote that is there: it hears from now on that it has a holder, and its proxy answers."""
        self._beat()
        if self._beating is None:
            self._beating = asyncio.create_task(self._keep_beating(), name="beat")
        if self._proxy is not None:
            await self._proxy.open(self._folder.gate_socket, self._folder.trusted)

    async def _kill_recorded(self) -> None:
        if (birth := self._folder.zygote()) is not None:
            await asyncio.to_thread(zygotes.end, birth)

    async def _meet(self, zygote: Zygote, name: str, *, found: bool) -> Session:
        """Raises OSError if it does not listen."""
        self._made = max(self._made, int(name[1:])) % NAMES
        streams = await connect(self._folder.run, name, zygote.birth.pid)
        self._sessions[name] = session = Session(name, streams, self._cells, self._calls, self._line_ended, found=found)
        return session

    async def _meet_all(self, zygote: Zygote) -> None:
        """Those of an earlier gateway; if they run, until they have told all that they kept, or a second has passed."""
        for name in self._folder.sessions():
            try:
                await self._meet(zygote, name, found=True)
            except OSError:  # what is left of one that has ended
                continue
        if self._sessions and not self.stands_still:
            caught_up = [asyncio.create_task(session.caught_up.wait()) for session in self._sessions.values()]
            _, late = await asyncio.wait(caught_up, timeout=CATCH_UP_SECONDS)
            for task in late:
                task.cancel()

    def zygote_ended(self) -> None:
        self._zygote = None

    def session_ended(self, name: str) -> None:
        """Its process has. What it has left running may hold its line open for ever."""
        if (session := self._sessions.get(name)) is not None:
            asyncio.get_running_loop().call_later(POST_MORTEM_SECONDS, session.line.hang_up)

    def _line_ended(self, session: Session) -> None:
        self._sessions.pop(session.name, None)
        self._soon(self._bury(session))

    async def _bury(self, session: Session) -> None:
        code = None if session.why else await self._code(session.name)
        if code is None:  # it may still run, and nobody hears it
            await self.end(session, session.why)
            await self._code(session.name)
        self._mourn(session.name, session.why or _describe(code))

    async def _find_dead(self, session: str) -> None:
        self._mourn(session, _describe(await self._code(session)))

    async def _code(self, session: str) -> int | None:
        """How it ended, None if that is not known."""
        return None if self._zygote is None else await self._zygote.code(session, POST_MORTEM_SECONDS)

    def _mourn(self, session: str, why: str) -> None:
        """Its cells are lost."""
        gone = " The variables of the stateful session are gone." if session.startswith("s") else ""
        for cell in self._cells.of(session):
            self._cells.lose(cell, f"{why}.{gone}")

    async def _let_go(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        for session in tuple(self._sessions.values()):
            await session.line.close()
        self._sessions.clear()
        if self._beating is not None:
            self._beating.cancel()
            await asyncio.wait([self._beating])
            self._beating = None
        if self._proxy is not None:
            await self._proxy.close()
        if self._zygote is not None:
            await self._zygote.connection.close()
            self._zygote = None

    def _soon(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _remove(cgroups: tuple[str, ...]) -> None:
    """If they were made at all. The kernel empties them a little after the last process has ended."""
    deadline = time.monotonic() + EMPTY_SECONDS
    for path in cgroups:
        while os.path.isdir(path):
            with contextlib.suppress(OSError):
                os.rmdir(path)
            if time.monotonic() > deadline:
                break
            time.sleep(0.005)


def _describe(code: int | None) -> str:
    if code is None:
        return "the connection to its process was lost"
    if code >= 0:
        return f"its process ended with exit code {code}"
    cause = ", perhaps for want of memory" if code == -signal.SIGKILL else ""
    try:
        name = signal.Signals(-code).name
    except ValueError:  # one of those for real time, which have no names
        name = f"signal {-code}"
    return f"its process was ended by {name}{cause}"
