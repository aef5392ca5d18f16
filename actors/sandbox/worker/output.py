"""Text of any length in bounded memory: its first and its last part are kept, and every character has a position.

Used by both sides: the session keeps here what the host has not read yet, the host what the model has not seen yet.
Positions count characters from the start of a cell's output, kept or not. No I/O here.
"""

from collections import deque

HEAD_CHARACTERS = 1 << 17
TAIL_CHARACTERS = 1 << 17
PIECE_CHARACTERS = 1 << 13


def shorten(text: str, limit: int) -> str:
    """At most `limit` (2 or more) characters of `text`, and in their middle a mark that says how many are left out."""
    if len(text) <= limit:
        return text
    return _joined(text[: limit // 2], len(text) - limit, text[limit // 2 - limit :])


class Output:
    """`end` is the position after the last character, `shown` how far it has been shown to the model."""

    def __init__(self) -> None:
        self.end = 0
        self.shown = 0
        self._head: deque[str] = deque()
        self._head_length = 0
        self._tail: deque[str] = deque()
        self._tail_length = 0

    def append(self, text: str, position: int | None = None) -> None:
        """Adds text at its position (None: at the end). What is known already is passed over; a gap stays a gap."""
        position = self.end if position is None else position
        text = text[max(0, self.end - position) :]
        if not text:
            return
        if position > self.end:
            self._tail.clear()
            self._tail_length = 0
            self.end = position
        if self.end < HEAD_CHARACTERS and self.end == self._head_length:
            part = text[: HEAD_CHARACTERS - self.end]
            _grow(self._head, part)
            self._head_length += len(part)
            self.end += len(part)
            text = text[len(part) :]
        if text:
            self._append_to_tail(text)

    def read(self, start: int, limit: int) -> tuple[int, str]:
        """Up to `limit` characters from `start`, or from where the kept tail begins; and the position of the first."""
        if start < self._head_length:
            return start, "".join(self._head)[start : start + limit]
        begin = max(start, self.end - self._tail_length)
        offset = begin - (self.end - self._tail_length)
        return begin, "".join(self._tail)[offset : offset + limit]

    def since(self, start: int, limit: int) -> str:
        """All from `start` on, in at most `limit` characters and a mark for what is left out in the middle."""
        tail_start = self.end - self._tail_length
        head = "".join(self._head)[start:]
        tail = "".join(self._tail)[max(0, start - tail_start) :]
        missing = max(0, tail_start - max(start, self._head_length))
        if missing:
            head, tail = head[: limit // 2], tail[-(limit - limit // 2) :]
            return _joined(head, self.end - start - len(head) - len(tail), tail)
        return shorten(head + tail, limit)

    def _append_to_tail(self, text: str) -> None:
        if len(text) > TAIL_CHARACTERS:
            self._tail.clear()
            self._tail_length = 0
            self.end += len(text) - TAIL_CHARACTERS
            text = text[-TAIL_CHARACTERS:]
        _grow(self._tail, text)
        self._tail_length += len(text)
        self.end += len(text)
        while self._tail_length - len(self._tail[0]) >= TAIL_CHARACTERS:
            self._tail_length -= len(self._tail.popleft())


def _joined(head: str, missing: int, tail: str) -> str:
    return f"{head}\n… {missing} characters left out …\n{tail}"


def _grow(pieces: deque[str], text: str) -> None:
    """Small writes are joined, so that a million of them do not become a million objects."""
    if pieces and len(pieces[-1]) + len(text) <= PIECE_CHARACTERS:
        text = pieces.pop() + text
    pieces.append(text)
