"""The host's half of the zygote: started, found again, asked for sessions, and heard about their ends."""

import asyncio
import os
import signal
import socket
from collections import deque
from collections.abc import Callable, Mapping, Sequence

from actors.sandbox import processes
from actors.sandbox.connection import Connection, connect
from actors.sandbox.folder import Birth, Folder
from actors.sandbox.frames import Config, Ended, Fork, Forked, FromZygote, Heard, Ready, from_zygote

START_SECONDS = 20.0
REAP_SECONDS = 0.1  # its sockets close a little before it can be reaped
DOOR = "z"


class SandboxFailed(Exception):
    """The sandbox could not be started. The text says why, for an operator."""


class Zygote:
    """Made by `spawn` or `find`."""

    def __init__(
        self,
        birth: Birth,
        streams: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        on_end: Callable[[], None],
    ) -> None:
        self.birth = birth
        self._on_end = on_end
        self._ready = asyncio.Event()
        self._gone = False
        self._forks: deque[asyncio.Future[Forked]] = deque()
        self._codes: dict[str, asyncio.Future[int]] = {}
        self.connection = Connection(streams, from_zygote, self._hear, self._lose)

    @property
    def stands_still(self) -> bool:
        seen = processes.look(self.birth.pid)
        return seen is not None and seen.state in "Tt"

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
        del self._codes[session]
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
                self._ready.set()
            case Forked():
                answer = self._forks.popleft()
                if not answer.done():
                    answer.set_result(frame)
            case Ended():
                ended_future = self._ended(frame.session)
                if not ended_future.done():
                    ended_future.set_result(frame.code)

    def _lose(self, _wrong: str) -> None:
        self._gone = True
        self._ready.set()
        asyncio.get_running_loop().call_later(REAP_SECONDS, processes.reap, self.birth.pid)
        for answer in self._forks:
            if not answer.done():
                answer.set_exception(ConnectionResetError("the sandbox has ended"))
        self._on_end()


async def spawn(
    folder: Folder,
    command: Sequence[str],
    environment: Mapping[str, str],
    preload: tuple[str, ...],
    look_seconds: float,
    on_end: Callable[[], None],
) -> Zygote:
    """A zygote that has greeted. Raises SandboxFailed, with what the program said."""
    folder.prepare()
    ours, theirs = socket.socketpair()
    with theirs:
        try:
            birth = _start(folder, command, environment, theirs)
        except OSError as error:
            ours.close()
            raise SandboxFailed(f"{command[0]} cannot be run: {error.strerror}") from error
    zygote = Zygote(birth, await asyncio.open_unix_connection(sock=ours), on_end)
    # Not before its identity is on disk: without this frame the zygote ends by itself.
    run, workspace = str(folder.run), str(folder.workspace)
    zygote.connection.send(Config(run=run, workspace=workspace, preload=preload, look_seconds=look_seconds))
    if not await zygote.ready(START_SECONDS):
        await asyncio.to_thread(processes.kill, birth.pid, birth.started)
        await zygote.connection.close()
        raise SandboxFailed(f"the sandbox did not start: {folder.last_words() or 'it said nothing'}")
    return zygote


async def find(folder: Folder, on_end: Callable[[], None]) -> Zygote | None:
    """The zygote that an earlier gateway started, if it still is that process. It may stand still."""
    birth = folder.zygote()
    if birth is None or not processes.is_running(birth.pid, birth.started):
        return None
    try:
        streams = await connect(folder.run, DOOR)
    except OSError:  # it died just now, or its socket was removed: nobody can reach it
        return None
    return Zygote(birth, streams, on_end)


def _start(folder: Folder, command: Sequence[str], environment: Mapping[str, str], theirs: socket.socket) -> Birth:
    log = os.open(folder.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        pid = os.posix_spawnp(
            command[0],
            list(command),
            environment,
            file_actions=[
                (os.POSIX_SPAWN_DUP2, theirs.fileno(), 0),
                (os.POSIX_SPAWN_DUP2, log, 1),
                (os.POSIX_SPAWN_DUP2, log, 2),
            ],
            setsid=True,
            setsigmask=(),
            setsigdef=(signal.SIGPIPE, signal.SIGINT, signal.SIGTERM, signal.SIGHUP),
        )
    finally:
        os.close(log)
    seen = processes.look(pid)
    if seen is None:
        raise ProcessLookupError(0, "it was gone at once")
    birth = Birth(pid=pid, started=seen.started)
    folder.remember_zygote(birth)
    return birth
