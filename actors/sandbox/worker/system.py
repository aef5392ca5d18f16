"""What Linux does for us with a family of processes, and Python has no function for."""

import ctypes
import os
import signal
from pathlib import Path

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36

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


def end_all_below() -> None:
    """Kills the children, then what is orphaned to us by that, until nobody is left. For an adopter of orphans."""
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    try:
        while True:
            for child in children.read_text().split():
                os.kill(int(child), signal.SIGKILL)
            os.waitpid(-1, 0)
    except ChildProcessError:
        return
