"""A snapshot: the whole fold of a journal, written into it, so that nobody has to read what lies before.

It is one frozen struct, cut in parts that each fit an entry, appended one after the other by the journal's writer. It
counts once its last part is there; parts that a crash left alone are passed over. What lies below its first part may
be forgotten, by whoever has fed the views with it (`gateway.keeping`), never by the journal itself.
"""

from gateway.record import Record, Tagged

PART_BYTES = 180_000  # as base64 and with its stamp still below the broker's bound for an entry


class Snapshot(Tagged, frozen=True, kw_only=True):
    """One part, counted from 0."""

    part: int
    parts: int
    data: bytes


class Policy(Record, frozen=True, kw_only=True):
    """When a snapshot is due: after so many entries or bytes since the last, and never before as many bytes as half of
    the last one were written, so that a long memory is not copied again and again. It waits for `quiet_seconds`
    without an entry, but not longer than `patience_seconds`."""

    entries: int = 1000
    size_bytes: int = 1024 * 1024
    quiet_seconds: float = 1.0
    patience_seconds: float = 30.0

    def due(self, entries: int, size_bytes: int, last_bytes: int) -> bool:
        return (entries >= self.entries or size_bytes >= self.size_bytes) and size_bytes >= last_bytes // 2


class Gathering:
    """The parts of the newest snapshot as they are met; `below` is where the newest complete one begins."""

    def __init__(self) -> None:
        self.below = 0
        self._first = 0
        self._parts: list[bytes] = []

    def take(self, sequence: int, part: Snapshot) -> bytes | None:
        """The whole, with its last part."""
        if part.part == 0:
            self._first, self._parts = sequence, []
        if part.part != len(self._parts):
            return None
        self._parts.append(part.data)
        if len(self._parts) < part.parts:
            return None
        whole, self._parts, self.below = b"".join(self._parts), [], self._first
        return whole

    def interrupt(self) -> None:
        """Another entry came between: the parts so far belong to no whole."""
        self._parts = []


def cut(data: bytes, parts: int = 0) -> tuple[Snapshot, ...]:
    """In `parts` parts, or as few as it takes."""
    count = max(parts, -(-len(data) // PART_BYTES), 1)
    size = -(-len(data) // count)
    pieces = [data[n * size : (n + 1) * size] for n in range(count)]
    return tuple(Snapshot(part=n, parts=count, data=piece) for n, piece in enumerate(pieces))
