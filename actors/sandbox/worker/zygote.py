"""The zygote: the first process of a sandbox, father of its sessions, reaper of all that they leave behind.

It forks a session when the host asks, keeps how each one ended until a host has heard it, and runs no code of a model.
Single-threaded, because it forks. It outlives its host: the next one connects to the socket `z`. When that socket's
folder is gone nobody ever can, and the zygote ends, with all that is below it.

While no host says that it holds the action, all below stands still: it may be somebody else's by now. After a longer
silence it surely is, where others can take it over, and all ends.

Started with a socket as standard input, on which the host sends one frame, `config`: the folders, and the modules to
load before the first fork. Without it (the host died in between) the zygote ends. That socket then is the first host's.
"""

import contextlib
import gc
import importlib
import os
import resource
import select
import signal
import socket
import sys
import time
from typing import NoReturn

from . import relay, session
from .system import adopt_orphans, comes_from_outside, end_all_below, free_all_below, halt_all_below, show_memory
from .wire import Fields, Frame, Peer, checked, pack

BACKLOG = 8
RELAYS_MAX = 20
LOOK_SECONDS_MAX = 60.0
UNSENT_BYTES_MAX = 1 << 20
DOOR = "z"
FIELDS: Fields = {
    "fork": {"stateful": bool},
    "beat": {"holder": str},
    "pause": {},
    "resume": {},
    "heard": {"session": str},
}


def main() -> None:
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    peer = Peer(socket.socket(fileno=os.dup(0)))
    config = _first_frame(peer)
    if config is None:
        return
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    os.close(null)
    show_memory(shown=False)
    adopt_orphans()
    _add_packages(config["packages"])
    for module in config["preload"]:
        importlib.import_module(module)
    os.chdir(config["workspace"])
    for name, limit in config["limits"].items():
        _limit(getattr(resource, f"RLIMIT_{name}"), limit)
    gc.collect()
    gc.freeze()
    Zygote(config["run"], peer, config).serve()


def _add_packages(folders: list[str]) -> None:
    """After what belongs to Python itself, before what is installed for it: these are for the code."""
    installed = (at for at, path in enumerate(sys.path) if path.endswith(("site-packages", "dist-packages")))
    at = next(installed, len(sys.path))
    sys.path[at:at] = folders


def _limit(what: int, limit: int) -> None:
    """Never to be raised again; a bound that is lower already stays."""
    _, hard = resource.getrlimit(what)
    limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    resource.setrlimit(what, (limit, limit))


def _first_frame(peer: Peer) -> Frame | None:
    peer.sock.setblocking(True)
    try:
        while not (frames := peer.receive()):
            continue
    except ConnectionError:
        return None
    peer.sock.setblocking(False)
    return frames[0]


def _now() -> float:
    """Seconds; goes on while the machine sleeps, as a lease does."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Zygote:
    def __init__(self, run: str, peer: Peer, config: Frame) -> None:
        self._run, self._relay = run, config["relay"]
        self._look_seconds: float = config["look_seconds"]
        self._stubs: dict[str, list[str]] = config["stubs"]
        self._holder: str = config["holder"]
        self._freeze_seconds: float = config["freeze_seconds"]
        self._end_seconds: float | None = config["end_seconds"]
        self._beat, self._frozen, self._paused = _now(), False, False
        self._relays_left, self._relay_pid = RELAYS_MAX, 0
        self._gate = None if self._relay is None else relay.open_door()  # the relay comes with the first who asks there
        # Sockets are bound by names in an open folder: the whole path may be longer than the 107 bytes they allow.
        self._folder = os.open(run, os.O_PATH | os.O_DIRECTORY)
        self._peer: Peer | None = peer
        self._door = self._listen(DOOR)
        self._sessions: dict[int, str] = {}
        self._ended: dict[str, int] = {}
        self._count: int = config["made"]
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
            if (gate := self._watched_gate()) is not None:
                poll.register(gate, select.POLLIN)
            if self._peer is not None:
                poll.register(self._peer.sock, select.POLLIN | (select.POLLOUT if self._peer.unsent else 0))
            ready = poll.poll(self._patience() * 1000)
            if self._peer is None and not os.path.exists(f"{self._run}/{DOOR}"):
                end_all_below()
                return
            for descriptor, _ in ready:
                if descriptor == self._door.fileno():
                    self._attach()
                elif descriptor == self._woken:
                    self._reap()
                elif gate is not None and descriptor == gate.fileno():
                    self._start_relay(gate)
                else:
                    self._listen_to_peer()
            self._mind_silence(_now() - self._beat)

    def _patience(self) -> float:
        """Seconds until there is something to look at without a word from anybody."""
        bounds = [None if self._frozen else self._freeze_seconds, self._end_seconds]
        left = [self._beat + bound - _now() for bound in bounds if bound is not None]
        return max(0.01, min(*left, self._look_seconds, LOOK_SECONDS_MAX))

    def _mind_silence(self, seconds: float) -> None:
        if self._end_seconds is not None and seconds > self._end_seconds:
            self._end_all()
        if not self._frozen and seconds > self._freeze_seconds:
            self._frozen = True
            halt_all_below()

    def _end_all(self) -> NoReturn:
        end_all_below()
        os._exit(0)

    def _hear_beat(self, holder: str) -> None:
        if holder != self._holder:  # the action was taken over
            self._end_all()
        self._beat = _now()
        if self._frozen:
            self._frozen = False
            if not self._paused:
                free_all_below()

    def _pause(self, *, paused: bool) -> None:
        self._paused = paused
        if paused:
            halt_all_below()
        elif not self._frozen:
            free_all_below()

    def _listen(self, name: str) -> socket.socket:
        door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        door.bind(f"/proc/self/fd/{self._folder}/{name}")
        door.listen(BACKLOG)
        return door

    def _attach(self) -> None:
        sock, _ = self._door.accept()
        if os.getpid() == 1 and not comes_from_outside(sock):  # the code itself: it would be its own host
            sock.close()
            return
        self._detach()
        self._peer = Peer(sock)
        self._greet()

    def _greet(self) -> None:
        ended = [{"session": name, "code": code} for name, code in self._ended.items()]
        running = [{"session": name, "pid": pid} for pid, name in self._sessions.items()]
        self._send({"t": "ready", "ended": ended, "running": running, "paused": self._paused})

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
                checked(frame, FIELDS)
                if frame["t"] == "fork":
                    self._fork(stateful=frame["stateful"])
                elif frame["t"] == "beat":
                    self._hear_beat(frame["holder"])
                elif frame["t"] in ("pause", "resume"):
                    self._pause(paused=frame["t"] == "pause")
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
            if self._gate is not None:
                self._gate.close()
            try:
                session.serve(name, door, zygote, self._stubs, stateful=stateful)
            finally:
                os._exit(session.FAILED)
        door.close()
        self._sessions[pid] = name
        self._send({"t": "forked", "session": name, "pid": pid})

    def _watched_gate(self) -> socket.socket | None:
        """While nobody serves it, and code runs that may ask there."""
        serves = self._relay_pid or not self._relays_left
        return None if serves or self._paused or self._frozen else self._gate

    def _start_relay(self, gate: socket.socket) -> None:
        """And again when it was ended by the code, some times."""
        self._relays_left -= 1
        zygote = os.getpid()
        self._relay_pid = os.fork()
        if self._relay_pid == 0:
            self._abandon()
            try:
                assert self._relay is not None
                relay.serve(self._relay, zygote, gate)
            finally:
                os._exit(session.FAILED)
        if not self._relays_left:  # whoever asks after that one is refused
            gate.close()

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
                if pid == self._relay_pid:
                    self._relay_pid = 0
                if (name := self._sessions.pop(pid, None)) is not None:
                    self._end(name, os.waitstatus_to_exitcode(status))
        except (ChildProcessError, BlockingIOError):
            return

    def _end(self, name: str, code: int) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{self._run}/{name}")
        self._ended[name] = code
        self._send({"t": "ended", "session": name, "code": code})
