"""A session's side of its socket, in a thread of its own: the only one that reads and sends.

It owns the listening socket, the one connection, and the pipe that all output goes through. It never waits for the
host, and the newest connection takes the place of the one before. Not here: what is kept (`outbox`), running code
(`runner`).
"""

import codecs
import fcntl
import os
import queue
import select
import socket
import struct
import termios
import threading
import time
from typing import Any, Protocol

from .outbox import Outbox
from .system import comes_from_outside
from .whole import WholeOutput
from .wire import Fields, Frame, Peer, checked, pack

READ_BYTES = 1 << 16
PIPE_BYTES = 1 << 20
LINK_FAILED = 70
FIELDS: Fields = {
    "exec": {"cell": str, "code": str},
    "reply": {"rpc": str, "value": object, "error": str | None},
    "interrupt": {"cell": str, "hard": bool},
    "recorded": {"cell": str, "shown": int},
    "names": {},
    "save": {"seconds": int | float},
    "load": {},
    "stop": {},
}


class Listener(Protocol):
    """What comes in, for those it concerns. All of it returns at once."""

    def begin(self, cell: str, code: str) -> None: ...
    def answer(self, rpc: str, value: Any, error: str | None) -> None: ...
    def interrupt(self, cell: str, *, hard: bool) -> None: ...
    def names(self) -> list[tuple[str, str]]: ...
    def save(self, seconds: float) -> None: ...
    def load(self) -> None: ...


class Link(threading.Thread):
    """`keep` and `finish` are for any thread; the rest is this one's."""

    def __init__(self, session: str, door: socket.socket, *, stateful: bool, namespaced: bool) -> None:
        """Takes over file descriptors 1 and 2: one pipe for both, so that their order is kept.

        `namespaced`: the host is seen to be outside, and nobody else is listened to.
        """
        super().__init__(name="link", daemon=True)
        self.listener: Listener | None = None
        self._session, self._stateful, self._door = session, stateful, door
        self._namespaced = namespaced
        self._peer: Peer | None = None
        self._outbox = Outbox()
        self._workspace = os.getcwd()
        self._whole: WholeOutput | None = None  # of the cell that runs
        self._mail: queue.SimpleQueue[tuple[str, bytes, bool]] = queue.SimpleQueue()
        self._woken, self._wake = os.pipe()
        os.set_blocking(self._wake, False)
        # A write end of our own: the pipe does not end when the code closes its standard output.
        self._output, self._output_held = os.pipe()
        fcntl.fcntl(self._output, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        os.dup2(self._output_held, 1)
        os.dup2(self._output_held, 2)
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode

    def keep(self, rpc: str, frame: bytes) -> None:
        """A call: told until it is answered."""
        self._post(rpc, frame, ended=False)

    def finish(self, cell: str, done: bytes) -> None:
        """A cell's end: told until it is recorded, after all that was written before."""
        self._post(cell, done, ended=True)

    def abandon(self) -> None:
        """In a forked child of the session: it must not hold the session's sockets open."""
        self._door.close()
        self._detach()
        for descriptor in (self._woken, self._wake, self._output, self._output_held):
            os.close(descriptor)

    def run(self) -> None:
        try:
            while True:
                self._turn()
        finally:
            os._exit(LINK_FAILED)  # nobody could steer or hear this session any more

    def _turn(self) -> None:
        pause = self._push()
        poll = select.poll()
        for descriptor in (self._door.fileno(), self._woken, self._output):
            poll.register(descriptor, select.POLLIN)
        if self._peer is not None:
            poll.register(self._peer.sock, select.POLLIN | (select.POLLOUT if self._peer.unsent else 0))
        for descriptor, _ in poll.poll(None if pause is None else pause * 1000):
            if descriptor == self._door.fileno():
                self._attach()
            elif descriptor == self._woken:
                self._read_mail()
            elif descriptor == self._output:
                self._read_output(min(self._written(), READ_BYTES))
            else:
                self._read_peer()

    def _attach(self) -> None:
        sock, _ = self._door.accept()
        if self._namespaced and not comes_from_outside(sock):
            sock.close()
            return
        self._part()
        self._peer = Peer(sock)
        self._outbox.rewind()
        self._send(
            {
                "t": "hello",
                "session": self._session,
                "stateful": self._stateful,
                "busy": self._outbox.busy,
                "cells": self._outbox.cells(),
            }
        )

    def _part(self) -> None:
        """From the one before, when all that it has sent is read: a cell, perhaps, just before it went."""
        while self._peer is not None and self._peer.has_sent():
            self._read_peer()
        self._detach()

    def _detach(self) -> None:
        if self._peer is not None:
            self._peer.close()
            self._peer = None

    def _push(self) -> float | None:
        """Sends while the host takes it. Returns the seconds until there is more to send without anything new."""
        try:
            while self._peer is not None:
                self._peer.flush()
                if self._peer.unsent:
                    return None
                if (frame := self._outbox.next(time.monotonic())) is None:
                    return self._outbox.pause(time.monotonic())
                self._peer.send(frame)
        except ConnectionError:
            self._part()
        return None

    def _send(self, frame: Frame) -> None:
        if self._peer is not None:
            self._peer.unsent += pack(frame)

    def _post(self, key: str, frame: bytes, *, ended: bool) -> None:
        self._mail.put((key, frame, ended))
        try:
            os.write(self._wake, b"\0")
        except BlockingIOError:  # full: it is awake
            return

    def _read_mail(self) -> None:
        os.read(self._woken, READ_BYTES)
        while not self._mail.empty():
            key, frame, ended = self._mail.get()
            if not ended:
                self._outbox.keep(key, frame)
                continue
            left = self._written()
            while left > 0:
                left -= self._read_output(min(left, READ_BYTES))
            self._write(self._decode(b"", True))
            if self._whole is not None:
                self._whole.close()
            self._outbox.finish(key, frame)

    def _written(self) -> int:
        """Bytes that wait in the pipe. Never more is read: it would block, and what was there may be read already."""
        (count,) = struct.unpack("i", fcntl.ioctl(self._output, termios.FIONREAD, bytes(4)))
        return int(count)

    def _read_output(self, limit: int) -> int:
        data = os.read(self._output, limit)
        self._write(self._decode(data))
        return len(data)

    def _write(self, text: str) -> None:
        self._outbox.write(text)
        if self._whole is not None:
            self._whole.write(text)

    def _read_peer(self) -> None:
        if self._peer is None:
            return
        try:
            for frame in self._peer.receive():
                self._take(checked(frame, FIELDS))
        except ConnectionError:
            self._detach()

    def _take(self, frame: Frame) -> None:
        listener = self.listener
        if listener is None:
            raise RuntimeError("the link was started before its listener was set")
        match frame["t"]:
            case "exec":
                self._begin(listener, frame["cell"], frame["code"])
            case "reply":
                self._outbox.drop(frame["rpc"])
                listener.answer(frame["rpc"], frame["value"], frame["error"])
            case "interrupt" if frame["cell"] == self._outbox.busy:
                listener.interrupt(frame["cell"], hard=frame["hard"])
            case "recorded":
                self._recorded(frame["cell"], frame["shown"])
            case "names":
                names = None if self._outbox.busy else listener.names()
                self._send({"t": "names", "names": names})
            case "save" if self._outbox.busy is None:
                listener.save(frame["seconds"])
            case "load" if self._outbox.busy is None:
                listener.load()
            case "stop":
                os._exit(0)

    def _begin(self, listener: Listener, cell: str, code: str) -> None:
        if self._outbox.knows(cell):  # told twice, run once
            return
        if self._outbox.busy is not None:
            refusal = f"the session still runs {self._outbox.busy}"
            self._outbox.keep(f"done {cell}", pack({"t": "done", "cell": cell, "status": "error", "value": refusal}))
            return
        self._outbox.begin(cell)
        self._whole = WholeOutput(self._workspace, cell)
        listener.begin(cell, code)

    def _recorded(self, cell: str, shown: int) -> None:
        self._outbox.shown(cell, shown)
        if cell != self._outbox.busy:
            self._outbox.forget(cell)
            if not self._stateful:
                os._exit(0)
