"""The host's half of the zygote: started, found again, asked for sessions, and heard about their ends."""

import asyncio
import os
import re
import signal
import socket
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol

import msgspec

from actors.sandbox import processes
from actors.sandbox.connection import Connection, connect
from actors.sandbox.folder import Birth, Folder
from actors.sandbox.frames import Config, Ended, Fork, Forked, FromZygote, Heard, Ready, from_zygote
from actors.sandbox.isolation.words import Launch

START_SECONDS = 20.0
NUMBER_FD, NUMBER_BYTES = 3, 4096
LOOK_SECONDS = 0.002
REAP_SECONDS = 0.1  # its sockets close a little before it can be reaped
DOOR = "z"


class Hold(msgspec.Struct, frozen=True, kw_only=True):
    """Who holds the action, how long it may be silent before all stands still, before all ends (None: it never does),
    and whether it holds it now."""

    holder: str = ""
    freeze_seconds: float = 10.0  # as long as a lease: then somebody else may hold it
    end_seconds: float | None = None
    holds: Callable[[], bool] = lambda: True


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """What a zygote is told at its start, beside where it runs; `frames.Config` says what each is."""

    preload: tuple[str, ...]
    look_seconds: float
    hold: Hold
    stubs: dict[str, tuple[str, str]]


class Owner(Protocol):
    """Who hears of ends. Both return at once."""

    def zygote_ended(self) -> None: ...
    def session_ended(self, name: str) -> None: ...


class SandboxFailed(Exception):
    """The sandbox could not be started. The text says why, for an operator."""


class Zygote:
    """Made by `spawn` or `find`."""

    def __init__(
        self,
        birth: Birth,
        streams: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        owner: Owner,
    ) -> None:
        """`pids`: the sessions that live, by their numbers in their own pid namespace."""
        self.birth = birth
        self._owner = owner
        self.paused = False
        self.pids: dict[str, int] = {}
        self._ready = asyncio.Event()
        self._gone = False
        self._forks: deque[asyncio.Future[Forked]] = deque()
        self._codes: dict[str, asyncio.Future[int]] = {}
        self.connection = Connection(streams, from_zygote, self._hear, self._lose)

    async def ready(self, seconds: float) -> bool:
        """Whether it has greeted within that time."""
        try:
            await asyncio.wait_for(self._ready.wait(), seconds)
        except TimeoutError:
            return False
        return not self._gone

    async def fork(self, *, stateful: bool) -> Forked:
        """A session that listens already. Raises ConnectionError if the zygote goes meanwhile."""
        if self._gone:
            raise ConnectionResetError("the sandbox has ended")
        answer: asyncio.Future[Forked] = asyncio.get_running_loop().create_future()
        self._forks.append(answer)
        self.connection.send(Fork(stateful=stateful))
        return await answer

    async def code(self, session: str, seconds: float) -> int | None:
        """How the session ended: exit status, minus the signal's number, None if that is not known in time."""
        ended = self._ended(session)
        await asyncio.wait([ended], timeout=seconds)
        if not ended.done():
            return None
        self._codes.pop(session, None)  # somebody else may have waited for it too
        self.connection.send(Heard(session=session))
        return ended.result()

    def _ended(self, session: str) -> "asyncio.Future[int]":
        if session not in self._codes:
            self._codes[session] = asyncio.get_running_loop().create_future()
        return self._codes[session]

    def _hear(self, frame: FromZygote) -> None:
        match frame:
            case Ready():
                for ended in frame.ended:
                    self._hear(ended)
                self.pids = {one.session: one.pid for one in frame.running}
                self.paused = frame.paused
                self._ready.set()
            case Forked():
                self.pids[frame.session] = frame.pid
                answer = self._forks.popleft()
                if not answer.done():
                    answer.set_result(frame)
            case Ended():
                ended_future = self._ended(frame.session)
                if not ended_future.done():
                    ended_future.set_result(frame.code)
                self.pids.pop(frame.session, None)
                self._owner.session_ended(frame.session)

    def _lose(self, _wrong: str) -> None:
        self._gone = True
        self._ready.set()
        asyncio.get_running_loop().call_later(REAP_SECONDS, processes.reap, self.birth.keeper or self.birth.pid)
        for answer in self._forks:
            if not answer.done():
                answer.set_exception(ConnectionResetError("the sandbox has ended"))
        self._owner.zygote_ended()


async def spawn(folder: Folder, launch: Launch, setting: Setting, owner: Owner, made: int) -> Zygote:
    """A zygote that has greeted; `made` is as in `Config`. Raises SandboxFailed, with what the program said."""
    folder.prepare()
    ours, theirs = socket.socketpair()
    try:
        with theirs:
            birth = await _born(folder, launch, theirs)
    except BaseException:
        ours.close()
        raise
    folder.remember_zygote(birth)
    zygote = Zygote(birth, await asyncio.open_unix_connection(sock=ours), owner)
    zygote.connection.send(
        _config(launch, setting, made)
    )  # now that it is on disk: without this frame it ends by itself
    try:
        greeted = await zygote.ready(START_SECONDS)
    except asyncio.CancelledError:  # it is on disk: whoever attaches finds it
        await zygote.connection.close()
        raise
    if not greeted:
        await asyncio.to_thread(end, birth)
        await zygote.connection.close()
        raise _did_not_start(folder)
    return zygote


async def _born(folder: Folder, launch: Launch, theirs: socket.socket) -> Birth:
    """The first process, which waits for its first frame. Raises SandboxFailed.

    Its number comes in memory, not by a pipe: a broken one, where this process was killed, stops bubblewrap half way,
    and leaves a child of it that nobody knows.
    """
    number = os.memfd_create("number")
    try:
        pid = _start(folder, launch, theirs, number)
        try:
            birth = await _birth(pid, number if launch.namespaced else None)
        except asyncio.CancelledError:
            _give_up(pid)
            raise
    except OSError as error:
        raise SandboxFailed(f"{launch.command[0]} cannot be run: {error.strerror}") from error
    finally:
        os.close(number)
    if birth is None:
        await asyncio.to_thread(_give_up, pid)
        raise _did_not_start(folder)
    return birth


def _config(launch: Launch, setting: Setting, made: int) -> Config:
    return Config(
        run=launch.run,
        workspace=launch.workspace,
        preload=setting.preload,
        look_seconds=setting.look_seconds,
        limits=dict(launch.limits),
        relay=launch.relay,
        holder=setting.hold.holder,
        freeze_seconds=setting.hold.freeze_seconds,
        end_seconds=setting.hold.end_seconds,
        stubs=setting.stubs,
        packages=launch.packages,
        made=made,
    )


def _did_not_start(folder: Folder) -> SandboxFailed:
    return SandboxFailed(f"the sandbox did not start: {folder.last_words() or 'it said nothing'}")


def end(birth: Birth) -> None:
    """Everything that it has started, and itself. For a thread."""
    if birth.keeper is None:
        processes.kill(birth.pid, birth.started)
    else:
        processes.kill_namespace(birth.pid, birth.started, birth.keeper)


async def find(folder: Folder, owner: Owner) -> Zygote | None:
    """The zygote that an earlier gateway started, if it still is that process. It may stand still."""
    birth = folder.zygote()
    if birth is None or not processes.is_running(birth.pid, birth.started):
        return None
    try:
        streams = await connect(folder.run, DOOR, birth.pid)
    except OSError:  # it died just now, or its socket was removed: nobody can reach it
        return None
    return Zygote(birth, streams, owner)


def _start(folder: Folder, launch: Launch, theirs: socket.socket, number: int) -> int:
    """Its pid. Nothing of ours is inherited but the standard streams, and 3 for the number of the first process."""
    log = os.open(folder.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        return os.posix_spawnp(
            launch.command[0],
            list(launch.command),
            launch.environment,
            file_actions=[
                (os.POSIX_SPAWN_DUP2, theirs.fileno(), 0),
                (os.POSIX_SPAWN_DUP2, log, 1),
                (os.POSIX_SPAWN_DUP2, log, 2),
                *([(os.POSIX_SPAWN_DUP2, number, NUMBER_FD)] if launch.namespaced else ()),
            ],
            setsid=True,
            setsigmask=(),
            setsigdef=(signal.SIGPIPE, signal.SIGINT, signal.SIGTERM, signal.SIGHUP),
        )
    finally:
        os.close(log)


async def _birth(pid: int, number: int | None) -> Birth | None:
    """None if there is no such process. Waits for bubblewrap's word: `number` is where it comes from."""
    first, keeper = (pid, None) if number is None else (await _first_inside(pid, number), pid)
    seen = None if first is None else processes.look(first)
    return None if seen is None else Birth(pid=seen.pid, started=seen.started, keeper=keeper)


async def _first_inside(pid: int, number: int) -> int | None:
    """The `child-pid` that it tells, all of which has to be read; None if it ends or takes too long."""
    deadline = time.monotonic() + START_SECONDS
    while b"}" not in os.pread(number, NUMBER_BYTES, 0) and _runs(pid) and time.monotonic() < deadline:
        await asyncio.sleep(LOOK_SECONDS)
    found = re.search(rb'"child-pid":\s*(\d+)\D', os.pread(number, NUMBER_BYTES, 0))
    return int(found[1]) if found else None


def _runs(pid: int) -> bool:
    seen = processes.look(pid)
    return seen is not None and seen.state not in "ZX"


def _give_up(pid: int) -> None:
    seen = processes.look(pid)
    if seen is not None:
        processes.kill(pid, seen.started)
    processes.reap(pid)
