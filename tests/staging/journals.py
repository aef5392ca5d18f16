"""What is stored, folded afresh: what a gateway that starts now would know. Read only, also while one runs."""

import contextlib
import sqlite3
from collections.abc import AsyncIterator, Callable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from actors.entries import ActionEntry
from actors.journal import ActionState
from brain.entries import LaneEntry
from brain.state import LaneState
from gateway.broker.nats import JetStreamBroker
from gateway.broker.nats_streams import FAMILIES
from gateway.broker.protocol import Stored
from gateway.journal import fold, unstamped
from gateway.record import decode

Reads = Callable[[str], list[Stored]]  # a pattern of subjects, as `Journals.stored` has it


def of_file(path: Path) -> Reads:
    def read(pattern: str) -> list[Stored]:
        if not path.exists():
            return []
        with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
            sql = "select subject, seq, data from entry where subject like ? order by seq"
            return [Stored(subject=s, sequence=n, data=data) for s, n, data in db.execute(sql, (pattern,))]

    return read


@contextlib.asynccontextmanager
async def of_server(url: str) -> AsyncIterator[Reads]:
    """A copy of what the server stores, a moment behind it."""
    found: list[Stored] = []
    broker = await JetStreamBroker.connect(url)

    async def store(message: Any) -> None:
        number = message.metadata.sequence.stream
        found.append(broker._stored(message.subject, number, message.data))

    for family in FAMILIES:
        await broker._js.subscribe(f"frontdesk.{family}.>", ordered_consumer=True, cb=store)
    try:
        yield lambda pattern: [one for one in found if fnmatchcase(one.subject, pattern.replace("%", "*"))]
    finally:
        await broker.close()


class Journals:
    def __init__(self, reads: Reads) -> None:
        self._reads = reads

    def stored(self, pattern: str = "%") -> list[Stored]:
        """`pattern` is SQL's: % for anything."""
        return self._reads(pattern)

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
