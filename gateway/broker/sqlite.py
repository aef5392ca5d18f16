"""The default broker: one SQLite file, one writer thread, group commit.

Every append is on the disk (WAL, synchronous=FULL) when it returns. A file lock keeps a second process out, so leases
between the roles of this process live in memory. `msg_id` is ignored: consumers dedupe by their folds. An
acknowledgement is written with the next commit and not waited for: what is lost with it is redelivered.
"""

import asyncio
import logging
import sqlite3
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from gateway.broker.blobs import BlobFolder, blobs_of
from gateway.broker.protocol import MAX_ENTRY_BYTES, Deposed, Stale, Stored, TooLarge, Unconfirmed
from gateway.broker.signals import Signals
from gateway.broker.sqlite_file import StoreUnusable, connect, is_damage, locked, mend, opened
from gateway.broker.sqlite_writer import SqliteWriter
from gateway.clock import boot_seconds

log = logging.getLogger(__name__)

RECENT_ENTRIES, RECENT_BYTES = 512, 4 * 1024 * 1024
READ_AT_ONCE = 256
CALM_SECONDS = 5.0  # without trouble, before it is over
PURGED_AT_ONCE = 500  # rows; other work goes in between

T = TypeVar("T")


class SqliteBroker:
    """Made inside a running loop. Raises StoreUnusable.

    `operator` hears once when the file can no longer be written (a full disk), and once when it can again. Meanwhile
    nothing is confirmed, so that platforms keep what they have.
    """

    def __init__(
        self, path: Path, operator: Callable[[str], None] = log.error, calm_seconds: float = CALM_SECONDS
    ) -> None:
        self._path = path
        self._lock = locked(path)
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[asyncio.Future[int], str] = {}  # for the next entry, of that subject
        self._recent: deque[Stored] = deque()
        self._recent_bytes = 0
        self._held: dict[str, SqliteLease] = {}
        self._signals = Signals()
        self._blobs = BlobFolder(blobs_of(path))
        self._cursors: dict[str, int] = {}  # as acknowledged here; perhaps not yet on the disk
        try:
            db = opened(path)
            (self._recent_after,) = db.execute("select coalesce(max(seq), 0) from entry").fetchone()
        except (StoreUnusable, sqlite3.Error) as error:
            self._lock.close()
            raise error if isinstance(error, StoreUnusable) else StoreUnusable(mend(path, error)) from error
        self._reader = ThreadPoolExecutor(1, "store-reader", initializer=self._open_reader)
        self._writer = SqliteWriter(path, db, self._committed, operator, calm_seconds)

    def _open_reader(self) -> None:
        self._read_db = connect(self._path)

    def _committed(self, outcomes: list[Any]) -> None:
        for outcome in outcomes:
            if isinstance(outcome, Stored):
                self._remember(outcome)
                self._wake(outcome)

    def _wake(self, stored: Stored) -> None:
        for grown, pattern in self._waiting.items():
            if not grown.done() and _matches(pattern, stored.subject):
                grown.set_result(stored.sequence)

    def _remember(self, stored: Stored) -> None:
        """The newest entries stay in memory: whoever follows closely reads no disk."""
        self._recent.append(stored)
        self._recent_bytes += len(stored.data)
        while len(self._recent) > RECENT_ENTRIES or self._recent_bytes > RECENT_BYTES:
            oldest = self._recent.popleft()
            self._recent_after, self._recent_bytes = oldest.sequence, self._recent_bytes - len(oldest.data)

    # --- the protocol ------------------------------------------------------------------------------------------------

    async def append(self, subject: str, data: bytes, *, msg_id: str, expect_last: int | None = None) -> int:
        if len(data) > MAX_ENTRY_BYTES:
            raise TooLarge(f"{subject}: {len(data)} bytes, at most {MAX_ENTRY_BYTES}")

        def work(db: sqlite3.Connection) -> Stored:
            if expect_last is not None:
                (last,) = db.execute("select coalesce(max(seq), 0) from entry where subject = ?", (subject,)).fetchone()
                if last != expect_last:
                    raise Stale(f"{subject} is at {last}, not {expect_last}")
            row = db.execute("insert into entry(subject, data) values (?, ?)", (subject, data)).lastrowid
            return Stored(subject=subject, sequence=row or 0, data=data)

        stored: Stored = await self._writer.do(work)
        return stored.sequence

    async def read(self, subject: str, after: int = 0, limit: int | None = None) -> list[Stored]:
        return (await self._after(subject, after, -1 if limit is None else limit))[:limit]

    async def _after(self, subject: str, after: int, limit: int) -> list[Stored]:
        if after >= self._recent_after:
            return list(_newer(self._recent, subject, after))
        return await self._look(lambda: self._select(subject, after, limit))

    async def _look(self, question: Callable[[], T]) -> T:
        """In the thread that reads. Raises Unconfirmed, and StoreUnusable where the file turns out to be damaged."""
        try:
            return await self._loop.run_in_executor(self._reader, question)
        except sqlite3.OperationalError as error:  # the disk fails, or somebody holds the file
            raise Unconfirmed(str(error)) from error
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise
            raise StoreUnusable(mend(self._path, error)) from error

    def _select(self, subject: str, after: int, limit: int) -> list[Stored]:
        where, values = _matching(subject)
        sql = f"select subject, seq, data from entry where {where} and seq > ? order by seq limit ?"  # noqa: S608
        rows = self._read_db.execute(sql, (*values, after, limit))
        return [Stored(subject=name, sequence=seq, data=data) for name, seq, data in rows]

    async def purge(self, subject: str, below: int, *, whole: bool = False) -> None:
        def work(db: sqlite3.Connection) -> int:
            sql = """delete from entry where seq in (
                select seq from entry where subject = :subject and seq < :below
                and (:whole or seq < (select max(seq) from entry where subject = :subject)) order by seq limit :many)"""
            asked = {"subject": subject, "below": below, "whole": whole, "many": PURGED_AT_ONCE}
            return db.execute(sql, asked).rowcount

        while await self._writer.do(work) == PURGED_AT_ONCE:
            pass
        if not whole:
            newest = max((stored.sequence for stored in self._recent if stored.subject == subject), default=0)
            below = min(below, newest)
        self._replace_recent(lambda stored: None if stored.subject == subject and stored.sequence < below else stored)

    async def rewrite(self, subject: str, sequence: int, data: bytes) -> None:
        """The one exception to append-only, for the erasure of what a person said: another text in the same place.

        Only while no holder runs: a fold that has read the old entry keeps it. Raises Unconfirmed, TooLarge. What was
        there before is gone from the file after `sqlite_file.shrink`.
        """
        if len(data) > MAX_ENTRY_BYTES:
            raise TooLarge(f"{subject}: {len(data)} bytes, at most {MAX_ENTRY_BYTES}")
        sql = "update entry set data = ? where subject = ? and seq = ?"
        await self._writer.do(lambda db: db.execute(sql, (data, subject, sequence)).rowcount)
        new = Stored(subject=subject, sequence=sequence, data=data)
        self._replace_recent(lambda stored: new if stored.sequence == sequence else stored)

    def _replace_recent(self, change: Callable[[Stored], Stored | None]) -> None:
        self._recent = deque(kept for stored in self._recent if (kept := change(stored)) is not None)
        self._recent_bytes = sum(len(stored.data) for stored in self._recent)

    async def subjects(self, pattern: str) -> list[str]:
        where, values = _matching(pattern)
        sql = f"select distinct subject from entry where {where}"  # noqa: S608
        return await self._look(lambda: [name for (name,) in self._read_db.execute(sql, values)])

    async def consume(self, subject: str, durable: str) -> AsyncIterator["SqliteDelivery"]:
        after = self._cursors.get(durable, 0) or await self._look(lambda: self._cursor(durable))
        while True:
            grown: asyncio.Future[int] = self._loop.create_future()
            self._waiting[grown] = subject
            try:
                found = await self._after(subject, after, READ_AT_ONCE)
                if not found:
                    after = await grown - 1  # nothing of ours up to there
            finally:
                del self._waiting[grown]
            for stored in found:
                delivery = SqliteDelivery(self, durable, stored)
                while not delivery.acked:
                    yield delivery
                after = stored.sequence

    def _cursor(self, durable: str) -> int:
        row = self._read_db.execute("select seq from cursor where durable = ?", (durable,)).fetchone()
        return int(row[0]) if row else 0

    def acknowledge(self, durable: str, sequence: int) -> None:
        self._cursors[durable] = sequence
        self._writer.acknowledge(durable, sequence)

    async def lease(self, key: str, holder: str, ttl_seconds: float) -> "SqliteLease | None":
        now = boot_seconds()
        if key in self._held and self._held[key].deadline > now:
            return None
        self._held[key] = SqliteLease(self._held, key, ttl_seconds)
        return self._held[key]

    async def put_blob(self, data: bytes) -> str:
        try:
            return await asyncio.to_thread(self._blobs.put, data)
        except OSError as error:
            raise Unconfirmed(str(error)) from error

    async def get_blob(self, digest: str) -> bytes:
        return await asyncio.to_thread(self._blobs.get, digest)

    async def blobs(self) -> list[str]:
        return await asyncio.to_thread(self._blobs.all)

    async def forget_blob(self, digest: str) -> None:
        await asyncio.to_thread(self._blobs.forget, digest)

    async def held(self) -> list[str]:
        now = boot_seconds()
        return [key for key, lease in self._held.items() if lease.deadline > now]

    def signal(self, subject: str, data: bytes) -> None:
        self._signals.send(subject, data)

    def watch(self, subject: str, heard: Callable[[bytes], None]) -> Callable[[], None]:
        return self._signals.watch(subject, heard)

    async def close(self) -> None:
        """Writes what was asked for, then lets go of the file."""
        await self._writer.close()
        await self._loop.run_in_executor(self._reader, lambda: self._read_db.close())  # noqa: PLW0108 - opened there
        self._reader.shutdown()
        self._lock.close()

    def kill(self) -> None:
        """As a crash would: what the writer thread has not begun is gone. For tests of crashes."""
        self._writer.kill()


class SqliteDelivery:
    def __init__(self, broker: SqliteBroker, durable: str, stored: Stored) -> None:
        self.stored, self.acked = stored, False
        self._broker, self._durable = broker, durable

    async def ack(self) -> None:
        self.acked = True
        self._broker.acknowledge(self._durable, self.stored.sequence)


class SqliteLease:
    def __init__(self, held: dict[str, "SqliteLease"], key: str, ttl_seconds: float) -> None:
        self._held, self._key, self._ttl_seconds = held, key, ttl_seconds
        self.deadline = boot_seconds() + ttl_seconds

    async def renew(self) -> None:
        if self._held.get(self._key) is not self:
            raise Deposed(f"the lease {self._key} has another holder")
        self.deadline = boot_seconds() + self._ttl_seconds

    async def release(self) -> None:
        if self._held.get(self._key) is self:
            del self._held[self._key]


def _newer(recent: deque[Stored], subject: str, after: int) -> Iterable[Stored]:
    found = []
    for stored in reversed(recent):
        if stored.sequence <= after:
            break
        if _matches(subject, stored.subject):
            found.append(stored)
    return reversed(found)


def _matches(pattern: str, subject: str) -> bool:
    return subject.startswith(pattern[:-1]) if pattern.endswith(".>") else subject == pattern


def _matching(subject: str) -> tuple[str, tuple[str, ...]]:
    if subject.endswith(".>"):
        return "subject >= ? and subject < ?", (subject[:-1], subject[:-2] + "/")  # "/" follows "."
    return "subject = ?", (subject,)
