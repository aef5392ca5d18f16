"""What a session has to tell the host, and tells again to one that attaches later. Pure: no sockets, no clock.

Output may be skipped when a cell writes faster than the host reads (the first and the last part of it are kept). Ends
of cells and open calls are kept whole until they are acknowledged. The end of a cell comes after all of its output.
"""

from collections import deque
from typing import Any

from .output import HEAD_CHARACTERS, Output
from .wire import pack

CHUNK_CHARACTERS = 1 << 16
FLOOD_PAUSE_SECONDS = 0.05  # between chunks once a cell has written more than a head: it spares the host
BETWEEN_CHARACTERS = 1 << 14
ENDED_CELLS_MAX = 32


class Outbox:
    def __init__(self) -> None:
        self.busy: str | None = None
        self._outputs: dict[str, Output] = {}
        self._sent: dict[str, int] = {}
        self._between = ""
        self._kept: dict[str, bytes] = {}
        self._unsent: deque[str] = deque()
        self._goal: dict[str, int] | None = None
        self._quiet_until = 0.0

    def knows(self, cell: str) -> bool:
        return cell in self._outputs

    def begin(self, cell: str) -> None:
        """What was written since the cell before (by a thread, by a child) comes first in its output."""
        ended = [known for known in self._outputs if known != self.busy]
        for old in ended[: len(ended) - ENDED_CELLS_MAX + 1]:
            self.forget(old)
        self.busy = cell
        self._outputs[cell], self._sent[cell] = Output(), 0
        self._outputs[cell].append(self._between)
        self._between = ""

    def write(self, text: str) -> None:
        if self.busy is None:
            self._between = (self._between + text)[-BETWEEN_CHARACTERS:]
        else:
            self._outputs[self.busy].append(text)

    def finish(self, cell: str, done: bytes) -> None:
        self.busy = None
        self.keep(f"done {cell}", done)

    def keep(self, key: str, frame: bytes) -> None:
        """To be sent now and after each attach, until `drop`."""
        self._kept[key] = frame
        self._unsent.append(key)

    def drop(self, key: str) -> None:
        self._kept.pop(key, None)

    def shown(self, cell: str, position: int) -> None:
        if cell in self._outputs:
            self._outputs[cell].shown = position

    def forget(self, cell: str) -> None:
        self.drop(f"done {cell}")
        self._outputs.pop(cell, None)
        self._sent.pop(cell, None)

    def cells(self) -> list[dict[str, Any]]:
        """For the greeting: what is kept of each cell, oldest first."""
        return [
            {"cell": cell, "shown": output.shown, "ended": cell != self.busy} for cell, output in self._outputs.items()
        ]

    def rewind(self) -> None:
        """Somebody new listens: all that is kept is told again, then a frame `caughtup`."""
        self._sent = dict.fromkeys(self._outputs, 0)
        self._unsent = deque(self._kept)
        self._goal = {cell: output.end for cell, output in self._outputs.items()}

    def next(self, now: float) -> bytes | None:
        """The frame to send next. None: nothing, or nothing before `pause`."""
        for cell, output in self._outputs.items():
            if self._sent[cell] < output.end and not self._pause(cell, now):
                return self._out(cell, output, now)
        while self._unsent:
            if (frame := self._kept.get(self._unsent.popleft())) is not None:
                return frame
        if self._goal is not None:
            self._goal = None
            return pack({"t": "caughtup"})
        return None

    def pause(self, now: float) -> float | None:
        """Seconds until `next` has something to say again by itself; None if only something new can make it."""
        pauses = [self._pause(cell, now) for cell, output in self._outputs.items() if self._sent[cell] < output.end]
        return min(pauses, default=None)

    def _pause(self, cell: str, now: float) -> float:
        behind = self._goal is not None and self._sent[cell] < self._goal.get(cell, 0)
        if cell != self.busy or behind or self._sent[cell] < HEAD_CHARACTERS:
            return 0.0
        return max(0.0, self._quiet_until - now)

    def _out(self, cell: str, output: Output, now: float) -> bytes:
        position, text = output.read(self._sent[cell], CHUNK_CHARACTERS)
        self._sent[cell] = position + len(text)
        self._quiet_until = now + FLOOD_PAUSE_SECONDS
        return pack({"t": "out", "cell": cell, "position": position, "text": text})
