"""Processes below a sandbox's first one: found by /proc, and reached by signals whatever they ignore.

A process group is not enough: `setsid` leaves it. The zygote adopts what is orphaned, so all of it stays below. Every
function here walks /proc and may take milliseconds: call them in a thread.

Where the first process has a pid namespace of its own, the kernel ends all of it with that one: `kill_namespace`.
"""

import os
import select
import signal
import time
from pathlib import Path

import msgspec

ROUNDS_MAX = 200
ROUND_SECONDS = 0.001
REAP_SECONDS = 0.2
END_SECONDS = 2.0
STANDING = frozenset("TtZX")


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """One line of /proc. `started` is in clock ticks since boot: with the pid it names a process for ever."""

    pid: int
    parent: int
    state: str
    started: int


def look(pid: int) -> Seen | None:
    """None if there is no such process."""
    try:
        rest = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return Seen(pid=pid, parent=int(rest[1]), state=rest[0].decode(), started=int(rest[19]))


def is_running(pid: int, started: int) -> bool:
    """That process, not a later one with its number, and not what is left of it."""
    seen = look(pid)
    return seen is not None and seen.started == started and seen.state not in "ZX"


def below(root: int) -> list[Seen]:
    """All descendants, the dead that nobody has reaped included, parents first."""
    children: dict[int, list[Seen]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit() and (seen := look(int(entry))) is not None:
            children.setdefault(seen.parent, []).append(seen)
    found = list(children.get(root, ()))
    for seen in found:
        found.extend(children.get(seen.pid, ()))
    return found


def suspend(root: int) -> None:
    """Stops `root` and all below. In rounds: what forks while it is being stopped is met in the next."""
    for _ in range(ROUNDS_MAX):
        _send(root, signal.SIGSTOP)
        moving = [seen.pid for seen in below(root) if seen.state not in STANDING]
        if not moving and _stands(root):
            return
        for pid in moving:
            _send(pid, signal.SIGSTOP)
        time.sleep(ROUND_SECONDS)


def suspend_below(root: int) -> None:
    """The same without `root` itself."""
    for _ in range(ROUNDS_MAX):
        moving = [seen.pid for seen in below(root) if seen.state not in STANDING]
        if not moving:
            return
        for pid in moving:
            _send(pid, signal.SIGSTOP)
        time.sleep(ROUND_SECONDS)


def resume(root: int) -> None:
    for seen in below(root):
        _send(seen.pid, signal.SIGCONT)
    _send(root, signal.SIGCONT)


def kill(root: int, started: int) -> None:
    """Everything. `root` goes last: while it lives, nothing can be orphaned away from it."""
    if not is_running(root, started):
        if (seen := look(root)) is not None and seen.started == started:
            reap(root)
        return
    for _ in range(ROUNDS_MAX):
        suspend(root)
        if not kill_below(root):
            break
    _send(root, signal.SIGCONT)
    _wait_until_reaped(root)
    try:
        ending = os.pidfd_open(root)
    except ProcessLookupError:  # it ended by itself, just now
        return
    try:
        _send(root, signal.SIGKILL)
        poll = select.poll()
        poll.register(ending, select.POLLIN)
        poll.poll(END_SECONDS * 1000)
    finally:
        os.close(ending)
    reap(root)


def kill_namespace(first: int, started: int, keeper: int) -> None:
    """`first` is process 1 of a pid namespace, `keeper` the process outside that waits for it."""
    try:
        ending = os.pidfd_open(first)
    except ProcessLookupError:
        return _collect(keeper, started)
    try:
        seen = look(first)
        if seen is None or seen.started != started:  # the number is somebody else's by now
            return _collect(keeper, started)
        signal.pidfd_send_signal(ending, signal.SIGKILL)
        poll = select.poll()
        poll.register(ending, select.POLLIN)
        poll.poll(END_SECONDS * 1000)
    except ProcessLookupError:
        pass
    finally:
        os.close(ending)
    return _collect(keeper, started)


def _collect(keeper: int, started: int) -> None:
    """It ends by itself when its first process has; an earlier gateway's is none of ours to wait for."""
    seen = look(keeper)
    if seen is None or seen.started > started:  # younger than its child: the number is somebody else's by now
        return
    deadline = time.monotonic() + END_SECONDS
    try:
        while os.waitpid(keeper, os.WNOHANG) == (0, 0) and time.monotonic() < deadline:
            time.sleep(ROUND_SECONDS)
    except ChildProcessError:
        return


def kill_below(root: int) -> bool:
    """Whether there was anybody left to kill."""
    alive = [seen.pid for seen in below(root) if seen.state not in "ZX"]
    for pid in alive:
        _send(pid, signal.SIGKILL)
    return bool(alive)


def kill_branch(root: int, inner: int) -> None:
    """One process of the tree, with what it has started. `inner` is its number as its own pid namespace counts."""
    if (pid := outside(root, inner)) is None:
        return
    suspend(pid)
    kill_below(pid)
    _send(pid, signal.SIGKILL)


def outside(root: int, inner: int) -> int | None:
    """The number here of the process below `root` that has the number `inner` in its own pid namespace."""
    return next((seen.pid for seen in below(root) if _inner(seen.pid) == inner), None)


def reap(pid: int) -> None:
    """Takes note of a child's end; one that an earlier gateway started is none of ours."""
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return


def _inner(pid: int) -> int | None:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return next((int(line.split()[-1]) for line in lines if line.startswith("NSpid:")), None)


def _stands(pid: int) -> bool:
    seen = look(pid)
    return seen is None or seen.state in STANDING


def _wait_until_reaped(root: int) -> None:
    """Lets it collect its dead, or they would be left to whoever is process 1, who may not care."""
    deadline = time.monotonic() + REAP_SECONDS
    while below(root) and time.monotonic() < deadline:
        kill_below(root)
        time.sleep(ROUND_SECONDS)


def _send(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return
