"""The tour in a real terminal (a pty), as a new user takes it: Enter, Enter, Enter."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from types import TracebackType

from tests.patience import PATIENCE_SECONDS

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07]*\x07|\x1b[=>]|\r")
_ASK_FOR_CURSOR = "\x1b[6n"


class Terminal:
    """A process on a pty; `text` is what was written to it so far, without the escapes."""

    def __init__(self, *command: str) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 160, 0, 0))
        environment = {**os.environ, "TERM": "xterm-256color"}
        self.process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
        os.close(theirs)
        self.text = ""
        self._seen = 0

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait(timeout=PATIENCE_SECONDS)
        os.close(self._ours)

    def types(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def shows(self, *wanted: str) -> None:
        """Each in this order, after what was waited for before."""
        for text in wanted:
            until = time.monotonic() + PATIENCE_SECONDS
            while (at := self.text.find(text, self._seen)) < 0:
                assert time.monotonic() < until, f"{text!r} was not shown after:\n{self.text[self._seen :][-3000:]}"
                self._read(until)
            self._seen = at + len(text)

    def ends(self) -> int:
        until = time.monotonic() + PATIENCE_SECONDS
        while self.process.poll() is None and time.monotonic() < until:
            self._read(time.monotonic() + 0.05)
        return self.process.wait(timeout=1)

    def _read(self, until: float) -> None:
        ready, _, _ = select.select([self._ours], [], [], max(0.0, until - time.monotonic()))
        if not ready:
            return
        try:
            written = os.read(self._ours, 65536).decode("utf-8", "replace")
        except OSError:  # the other end is closed
            return
        for _ in range(written.count(_ASK_FOR_CURSOR)):
            os.write(self._ours, b"\x1b[1;1R")
        self.text += _ESCAPES.sub("", written)


def test_enter_takes_the_tour_in_the_terminal() -> None:
    command = (sys.executable, "-m", "frontdesk", "demo", "--model", "rehearsal", "--pace", "0.6")
    with Terminal(*command) as terminal:
        terminal.shows("rehearsal model: rules, not a language model", "http://127.0.0.1:", "total February by region")
        terminal.types("\r")
        terminal.shows("On it.", "how far are you?")
        terminal.types("\r")
        terminal.shows("total February by region” · doing:", "net, not gross")
        terminal.types("\r")
        terminal.shows("passed that on", "Total net for February by region", "113,411.85", "great, now do March")
        terminal.types("\r")
        terminal.shows("in memory already", "Total net for March by region", "93,339.28", "send it to Sarah")
        terminal.types("\r")
        terminal.shows("killed with -9 now", "Which Sarah?", "Sarah Okafor")
        terminal.types("\r")
        terminal.shows("In the demo's outbox: a mail to sarah.lind@example.org", "Sent to Sarah Lind")
        terminal.types("\r")
        terminal.shows("left alone: thanks need no answer")
        terminal.types("/code\r")
        terminal.shows("# Total net for February by region", "# Sending it to Sarah")
        terminal.types("/trace\r")
        terminal.shows("stayed silent: thanks need no answer")
        terminal.shows("/quit  (Enter sends this)")
        terminal.types("\r")
        terminal.shows("7 messages, 6 answered, 1 left alone, 0 lost, 0 doubled")
        assert terminal.ends() == 0
