"""The zygote: the first process of a sandbox, father of its sessions, reaper of all that they leave behind.

It forks a session when the host asks, keeps how each one ended until a host has heard it, and runs no code of a model.
Single-threaded, because it forks. It outlives its host: the next one connects to the socket `z`. When that socket's
folder is gone nobody ever can, and the zygote ends, with all that is below it.

Started with a socket as standard input, on which the host sends one frame, `config`: the folders, and the modules to
load before the first fork. Without it (the host died in between) the zygote ends. That socket then is the first host's.
"""

import gc
import importlib
import os
import select
import signal
import socket
from pathlib import Path

from . import session
from .system import adopt_orphans, end_all_below
from .wire import Frame, Peer, pack

BACKLOG = 8
UNSENT_BYTES_MAX = 1 << 20
DOOR = "z"


def main() -> None:
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    peer = Peer(socket.socket(fileno=os.dup(0)))
    config = _first_frame(peer)
    if config is None:
        return
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    adopt_orphans()
    for module in config["preload"]:
        importlib.import_module(module)
    os.chdir(config["workspace"])
    gc.collect()
    gc.freeze()
    Zygote(Path(config["run"]), peer, config["look_seconds"]).serve()


def _first_frame(peer: Peer) -> Frame | None:
    peer.sock.setblocking(True)
    try:
        while not (frames := peer.receive()):
            continue
    except ConnectionError:
        return None
    peer.sock.setblocking(False)
    return frames[0]


class Zygote:
    def __init__(self, run: Path, peer: Peer, look_seconds: float) -> None:
        self._run, self._look_seconds = run, look_seconds
        # Sockets are bound by names in an open folder: the whole path may be longer than the 107 bytes they allow.
        self._folder = os.open(run, os.O_PATH | os.O_DIRECTORY)
        self._peer: Peer | None = peer
        self._door = self._listen(DOOR)
        self._sessions: dict[int, str] = {}
        self._ended: dict[str, int] = {}
        self._count = 0
        self._woken, wake = os.pipe()
        os.set_blocking(self._woken, False)
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        self._wake = wake
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)

    def serve(self) -> None:
        self._greet()
        while True:
            poll = select.poll()
            poll.register(self._door, select.POLLIN)
            poll.register(self._woken, select.POLLIN)
            if self._peer is not None:
                poll.register(self._peer.sock, select.POLLIN | (select.POLLOUT if self._peer.unsent else 0))
            ready = poll.poll(self._look_seconds * 1000 if self._peer is None else None)
            if self._peer is None and not (self._run / DOOR).exists():
                end_all_below()
                return
            for descriptor, _ in ready:
                if descriptor == self._door.fileno():
                    self._attach()
                elif descriptor == self._woken:
                    self._reap()
                else:
                    self._listen_to_peer()

    def _listen(self, name: str) -> socket.socket:
        door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        door.bind(f"/proc/self/fd/{self._folder}/{name}")
        door.listen(BACKLOG)
        return door

    def _attach(self) -> None:
        sock, _ = self._door.accept()
        if self._peer is not None:
            self._peer.close()
        self._peer = Peer(sock)
        self._greet()

    def _greet(self) -> None:
        self._send({"t": "ready", "ended": [{"session": name, "code": code} for name, code in self._ended.items()]})

    def _send(self, frame: Frame) -> None:
        try:
            if self._peer is not None:
                self._peer.send(pack(frame))
                if len(self._peer.unsent) > UNSENT_BYTES_MAX:
                    raise ConnectionAbortedError("the host does not read")
        except ConnectionError:
            self._detach()

    def _detach(self) -> None:
        if self._peer is not None:
            self._peer.close()
            self._peer = None

    def _listen_to_peer(self) -> None:
        try:
            if self._peer is None:
                return
            self._peer.flush()
            for frame in self._peer.receive():
                if frame["t"] == "fork":
                    self._fork(stateful=frame["stateful"])
                elif frame["t"] == "heard":
                    self._ended.pop(frame["session"], None)
        except ConnectionError:
            self._detach()

    def _fork(self, *, stateful: bool) -> None:
        self._count += 1
        name = f"{'s' if stateful else 'c'}{self._count}"
        door = self._listen(name)
        zygote = os.getpid()
        pid = os.fork()
        if pid == 0:
            self._abandon()
            try:
                session.serve(name, door, zygote, stateful=stateful)
            finally:
                os._exit(session.FAILED)
        door.close()
        self._sessions[pid] = name
        self._send({"t": "forked", "session": name, "pid": pid})

    def _abandon(self) -> None:
        """In the child: the zygote's sockets are not its own."""
        self._door.close()
        self._detach()
        for descriptor in (self._folder, self._woken, self._wake):
            os.close(descriptor)

    def _reap(self) -> None:
        """Sessions, and orphans of whatever depth."""
        try:
            os.read(self._woken, 4096)
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                if (name := self._sessions.pop(pid, None)) is not None:
                    self._end(name, os.waitstatus_to_exitcode(status))
        except (ChildProcessError, BlockingIOError):
            return

    def _end(self, name: str, code: int) -> None:
        (self._run / name).unlink(missing_ok=True)
        self._ended[name] = code
        self._send({"t": "ended", "session": name, "code": code})
