"""What holds secrets keeps them from its neighbours: other processes of the same user, and files of crashes."""

import ctypes
import sys

PR_SET_DUMPABLE = 4


def hide_memory() -> None:
    """From now on nobody but root reads this process's memory or environment, and it leaves no core dump (prctl(2))."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
