"""The one thread that writes the broker's file: what is asked for while it commits is the next commit, all of it.

An acknowledgement goes with the next commit, and makes none of its own: what is lost with it is redelivered.
"""

import asyncio
import queue
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gateway.broker.protocol import Stale, Unconfirmed
from gateway.broker.sqlite_file import mend
from gateway.clock import boot_seconds

MAX_BATCH = 512
MOVE = "insert into cursor values (?, ?) on conflict(durable) do update set seq = max(seq, excluded.seq)"

Work = Callable[[sqlite3.Connection], Any]
Job = tuple[Work, "asyncio.Future[Any]"]


class SqliteWriter:
    """Made inside a running loop. `committed` is called in it with what the works of a commit came to, in their order,
    before their callers hear; `operator` once when the file can no longer be written, and once when it can again."""

    def __init__(
        self,
        path: Path,
        db: sqlite3.Connection,
        committed: Callable[[list[Any]], None],
        operator: Callable[[str], None],
        calm_seconds: float,
    ) -> None:
        self._path, self._committed, self._operator, self._calm_seconds = path, committed, operator, calm_seconds
        self._loop = asyncio.get_running_loop()
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._acknowledged: dict[str, int] = {}
        self._troubled_at: float | None = None
        self._troubles = 0
        self._dead = False
        self._thread = threading.Thread(target=self._write_forever, args=(db,), name="store-writer", daemon=True)
        self._thread.start()

    async def do(self, work: Work) -> Any:
        """What `work` returns, once it is on the disk. It writes with one statement at most, which SQLite undoes alone
        if it fails, so that no other of its commit does. Raises Stale, Unconfirmed."""
        future: asyncio.Future[Any] = self._loop.create_future()
        self._jobs.put((work, future))
        return await future

    def acknowledge(self, durable: str, sequence: int) -> None:
        self._acknowledged[durable] = sequence

    async def close(self) -> None:
        """Writes what was asked for."""
        self._jobs.put(None)
        await self._loop.run_in_executor(None, self._thread.join)

    def kill(self) -> None:
        """As a crash would: what the thread has not begun is gone."""
        self._dead = True

    # --- in the thread -----------------------------------------------------------------------------------------------

    def _write_forever(self, db: sqlite3.Connection) -> None:
        goes_on = True
        while goes_on:
            batch = [self._jobs.get()]
            while len(batch) < MAX_BATCH and not self._jobs.empty():
                batch.append(self._jobs.get())
            goes_on = None not in batch and not self._dead
            if not self._dead:
                self._commit(db, [job for job in batch if job is not None])
        db.close()

    def _commit(self, db: sqlite3.Connection, batch: list[Job]) -> None:
        outcomes: list[Any] = []
        trouble: sqlite3.Error | None = None
        try:
            db.execute("begin immediate")
            while self._acknowledged:
                db.execute(MOVE, self._acknowledged.popitem())
            for work, _ in batch:
                try:
                    outcomes.append(work(db))
                except Stale as error:
                    outcomes.append(error)
                except sqlite3.Error as error:
                    if not db.in_transaction:  # a full disk has undone all of it
                        raise
                    outcomes.append(Unconfirmed(str(error)))
                    trouble = error
            db.execute("commit")
        except sqlite3.Error as error:  # full disk, I/O: nobody knows what is on it
            if db.in_transaction:
                db.execute("rollback")
            outcomes = [Unconfirmed(str(error)) for _ in batch]
            trouble = error
        if not self._dead:
            self._loop.call_soon_threadsafe(self._settle, [future for _, future in batch], outcomes, trouble)

    # --- in the loop -------------------------------------------------------------------------------------------------

    def _settle(self, futures: list["asyncio.Future[Any]"], outcomes: list[Any], trouble: sqlite3.Error | None) -> None:
        self._committed(outcomes)
        for future, outcome in zip(futures, outcomes, strict=True):
            if future.done():
                continue
            if isinstance(outcome, Exception):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)
        self._tell_trouble(trouble)

    def _tell_trouble(self, trouble: sqlite3.Error | None) -> None:
        """On a disk that is nearly full small rows still fit now and then: it works again when all of them did."""
        now = boot_seconds()
        if trouble:
            if self._troubled_at is None:
                self._troubles += 1
                text = f"Nothing can be stored, so nothing new is confirmed or answered. {mend(self._path, trouble)}"
                self._operator(text + self._times())
            self._troubled_at = now
        elif self._troubled_at is not None and now - self._troubled_at > self._calm_seconds:
            self._operator(f"{self._path} can be written again; everything goes on.{self._times()}")
            self._troubled_at = None

    def _times(self) -> str:
        """So that the same trouble is new each time: a notice is not repeated within the hour."""
        return f" (For the {self._troubles}. time since the start.)" if self._troubles > 1 else ""
