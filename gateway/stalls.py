"""What keeps the event loop of a process that serves from standing still, beside not doing there what takes long."""

import gc
import sys

SWITCH_SECONDS = 0.001  # of Python's 5 ms: with three threads that serve the store the loop waited 15 ms for its turn


def keep_short() -> None:
    """Once all is imported. A full collection that walked what was imported took 34 ms."""
    gc.freeze()
    sys.setswitchinterval(SWITCH_SECONDS)
