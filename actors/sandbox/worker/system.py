"""The two things of Linux that Python has no function for."""

import ctypes
import os
import signal

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
