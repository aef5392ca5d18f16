"""One session from the fork on: its file descriptors, its streams, its way to die with the zygote. Then the runner."""

import gc
import os
import signal
import socket
import sys

from .link import Link
from .runner import Runner
from .system import die_with_parent, show_memory

FAILED = 71


def serve(name: str, door: socket.socket, zygote: int, stubs: dict[str, list[str]], *, stateful: bool) -> None:
    """Does not return. `door` listens; `zygote` is the pid of the parent; `stubs` are what `help` says."""
    os.setsid()
    die_with_parent(zygote)
    show_memory(shown=True)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    gc.enable()
    link = Link(name, door, stateful=stateful, namespaced=zygote == 1)
    sys.stdout = os.fdopen(1, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)
    sys.argv = [""]
    sys.path.insert(0, os.getcwd())
    link.listener = runner = Runner(link, stubs, stateful=stateful)
    os.register_at_fork(after_in_child=link.abandon)
    link.start()
    runner.serve()
