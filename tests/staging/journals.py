"""What is on the disk, folded afresh: what a gateway that starts now would know. Read only, also while one runs."""

import contextlib
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

from actors.entries import ActionEntry
from actors.journal import ActionState
from brain.entries import LaneEntry
from brain.state import LaneState
from gateway.broker.protocol import Stored
from gateway.journal import fold, unstamped
from gateway.record import decode


class Journals:
    def __init__(self, path: Path) -> None:
        self._path = path

    def stored(self, pattern: str = "%") -> list[Stored]:
        """`pattern` is SQL's: % for anything."""
        if not self._path.exists():
            return []
        with contextlib.closing(sqlite3.connect(f"file:{self._path}?mode=ro", uri=True)) as db:
            sql = "select subject, seq, data from entry where subject like ? order by seq"
            return [Stored(subject=s, sequence=n, data=data) for s, n, data in db.execute(sql, (pattern,))]

    def entries(self, subject: str, kind: Any) -> list[Any]:
        return [unstamped(stored, kind)[2] for stored in self.stored(subject)]

    def words(self, subject: str, kind: Any) -> list[Any]:
        """Facts or commands."""
        return [decode(stored.data, kind) for stored in self.stored(subject)]

    def subjects(self, pattern: str) -> list[str]:
        return sorted({stored.subject for stored in self.stored(pattern)})

    def lane(self, conversation: str) -> LaneState:
        return fold(LaneState(conversation), self.entries(f"log.lane.{conversation}", LaneEntry))

    def action(self, key: str) -> ActionState:
        return fold(ActionState(key), self.entries(f"log.act.{key}", ActionEntry))

    def action_entries(self, key: str, keep: Callable[[Any], bool] = lambda entry: True) -> list[Any]:
        return [entry for entry in self.entries(f"log.act.{key}", ActionEntry) if keep(entry)]
