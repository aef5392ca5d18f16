"""What Linux does for us with a family of processes, and Python has no function for."""

import contextlib
import ctypes
import os
import signal
import socket
import struct
import time

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36
ROUNDS_MAX = 200
ROUND_SECONDS = 0.001

_libc = ctypes.CDLL(None, use_errno=True)


def _control(option: int, value: int) -> None:
    if _libc.prctl(option, value, 0, 0, 0):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def adopt_orphans() -> None:
    """What descendants leave behind becomes our child: nothing can be daemonised out of reach."""
    _control(PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent(parent: int) -> None:
    _control(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)


def show_memory(*, shown: bool) -> None:
    """Whether other processes of the same user may look into this one, change its memory, and use its files."""
    _control(PR_SET_DUMPABLE, int(shown))


def comes_from_outside(sock: socket.socket) -> bool:
    """Whether who has connected is not of our pid namespace: the kernel has no number for it here."""
    pid, _, _ = struct.unpack("iII", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return bool(pid == 0)


def halt_all_below() -> None:
    """Lets everything below stand still. In rounds: what forks meanwhile is met in the next."""
    for _ in range(ROUNDS_MAX):
        moving = [pid for pid, state in _below() if state not in "TtZX"]
        if not moving:
            return
        _signal(moving, signal.SIGSTOP)
        time.sleep(ROUND_SECONDS)


def free_all_below() -> None:
    _signal([pid for pid, _ in _below()], signal.SIGCONT)


def _signal(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def _below() -> list[tuple[int, str]]:
    """All descendants with their states."""
    children: dict[int, list[tuple[int, str]]] = {}
    for entry in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            state, parent = _read(f"/proc/{entry}/stat").rpartition(")")[2].split()[:2]
            children.setdefault(int(parent), []).append((int(entry), state))
    found = list(children.get(os.getpid(), ()))
    for pid, _ in found:
        found.extend(children.get(pid, ()))
    return found


def end_all_below() -> None:
    """Kills the children, then what is orphaned to us by that, until nobody is left. For an adopter of orphans."""
    children = f"/proc/self/task/{os.getpid()}/children"
    try:
        while True:
            for child in _read(children).split():
                os.kill(int(child), signal.SIGKILL)
            os.waitpid(-1, 0)
    except ChildProcessError:
        return


def _read(path: str) -> str:
    with open(path, errors="replace") as file:  # a process can give itself a name of any bytes
        return file.read()
