"""A door on the sandbox's loopback to the host's proxy: TCP in, the host's unix socket out. A process of its own.

Programs know a proxy by an address with a port; the sandbox's network has nothing but its loopback. Bytes are passed on
as they come, and each side's end too; what they mean is the proxy's business. By `poll`, not by asyncio: it is forked
from the zygote, and whatever it runs is memory of its own.
"""

import contextlib
import select
import signal
import socket

from .system import die_with_parent

PORT = 3128
CONNECTIONS_MAX = 64
READ_BYTES = 1 << 16


def open_door() -> socket.socket:
    """Before any code runs: whoever asks from now on is heard, once there is a relay."""
    return socket.create_server(("127.0.0.1", PORT), backlog=CONNECTIONS_MAX)


def serve(path: str, zygote: int, door: socket.socket) -> None:
    """Does not return. `path`: the host's socket."""
    die_with_parent(zygote)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    signal.set_wakeup_fd(-1)
    Relay(path, door).serve()


class Side:
    """One of the two sockets of a connection."""

    other: "Side"

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self.sock = sock
        self.unsent = bytearray()
        self.ended = False

    def wants(self) -> int:
        """What to wait for; no more is read than the other side takes."""
        reads = not self.ended and len(self.other.unsent) < READ_BYTES
        return (select.POLLIN if reads else 0) | (select.POLLOUT if self.unsent else 0)

    def read(self) -> None:
        """Raises OSError when the connection is broken."""
        data = self.sock.recv(READ_BYTES)
        self.other.unsent += data
        self.ended = not data
        self.other.flush()

    def flush(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while self.unsent:
                del self.unsent[: self.sock.send(self.unsent)]
        if self.other.ended and not self.unsent:
            self.sock.shutdown(socket.SHUT_WR)


class Relay:
    def __init__(self, path: str, door: socket.socket) -> None:
        self._path, self._door = path, door
        self._sides: dict[int, Side] = {}

    def serve(self) -> None:
        while True:
            poll = select.poll()
            if len(self._sides) < 2 * CONNECTIONS_MAX:
                poll.register(self._door, select.POLLIN)
            for descriptor, side in self._sides.items():
                if wanted := side.wants():
                    poll.register(descriptor, wanted)
            for descriptor, events in poll.poll():
                if descriptor == self._door.fileno():
                    self._accept()
                elif descriptor in self._sides:
                    self._move(self._sides[descriptor], events)

    def _accept(self) -> None:
        try:
            near, _ = self._door.accept()
        except OSError:  # it has gone again
            return
        far = socket.socket(socket.AF_UNIX)
        pair = Side(near), Side(far)
        try:
            far.connect(self._path)
        except OSError:  # no host, or one that is too busy to take more
            near.close()
            far.close()
            return
        for side, other in (pair, reversed(pair)):
            side.other = other
            self._sides[side.sock.fileno()] = side

    def _move(self, side: Side, events: int) -> None:
        try:
            if side.unsent:
                side.flush()
            if events & ~select.POLLOUT and not side.ended:
                side.read()
            over = side.ended and side.other.ended and not side.unsent and not side.other.unsent
        except BlockingIOError:
            return
        except OSError:
            over = True
        if over:
            for each in (side, side.other):
                del self._sides[each.sock.fileno()]
                each.sock.close()
