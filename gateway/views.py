"""The views: tables about what the journals say, in a SQLite file of their own, for search and for the operator.

Everything here can be made anew from the journals (`rebuilt`), but for rows whose entries a snapshot has replaced:
those are carried over. Times and ids are text, byte for byte what the platform gave. Used from one thread, never the
event loop's; the journals do not wait for it. Who looks at them does so through `gateway.looking`.
"""

import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from gateway.broker.protocol import Stored
from gateway.broker.sqlite_file import BUSY_SECONDS, LOG_BYTES, mend
from gateway.keeping import ViewsFailed
from gateway.record import Undecodable

if TYPE_CHECKING:
    from sqlite_utils import Database
    from sqlite_utils.db import Table

TABLES: dict[str, dict[str, type]] = {
    "messages": {
        "id": str,  # the platform's identity, or the ref of a send
        "conversation": str,
        "who": str,  # an address; empty for the assistant
        "name": str,
        "medium": str,
        "account": str,
        "place": str,
        "thread": str,
        "reply_to": str,
        "covers": str,  # of the assistant's: the ids of the events that the turn was about, a line each
        "at": str,  # ISO 8601, UTC: sorts as time
        "text": str,
        "outcome": str,  # received; on its way, sent, failed, unknown, withdrawn
        "journal": str,
        "sequence": int,
    },
    "actions": {
        "id": str,
        "conversation": str,
        "name": str,
        "query": str,
        "who": str,
        "phase": str,
        "result": str,
        "journal": str,
        "sequence": int,
    },
    "costs": {
        "id": str,  # journal and sequence
        "conversation": str,
        "action": str,  # empty for the conversation's own turns
        "who": str,  # whose words it followed; empty for an action's, which says that itself
        "at": str,
        "model": str,
        "prompt_tokens": int,
        "completion_tokens": int,
        "usd": float,
        "journal": str,
        "sequence": int,
    },
}


class Projection(Protocol):
    """One kind of journal into rows. Called in order, at least once for each entry: rows are put by their ids."""

    @property
    def pattern(self) -> str:
        """As a prefix of subjects: `log.lane.`"""

    def note(self, rows: "Rows", stored: Stored) -> None:
        """Raises Undecodable for an entry that cannot be read: it is passed over."""


class Rows:
    """What a projection may do."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def put(self, table: str, row: Mapping[str, Any]) -> None:
        """Once for each id; the newest wins, in the columns that it gives."""
        names = [*row]
        assert TABLES[table].keys() >= row.keys()
        changed = ", ".join(f"{name} = excluded.{name}" for name in names if name != "id")
        sql = f"insert into {table} ({', '.join(names)}) values ({', '.join('?' * len(names))})"  # noqa: S608
        self._db.execute(f"{sql} on conflict(id) do update set {changed}", [*row.values()])

    def add(self, table: str, row: Mapping[str, Any]) -> None:
        """Where there is none with that id: what a snapshot still knows of older entries."""
        assert TABLES[table].keys() >= row.keys()
        sql = f"insert into {table} ({', '.join(row)}) values ({', '.join('?' * len(row))})"  # noqa: S608
        self._db.execute(f"{sql} on conflict(id) do nothing", [*row.values()])

    def change(self, table: str, row_id: str, **values: str) -> None:
        """Of a row that is there; otherwise nothing."""
        assert TABLES[table].keys() >= values.keys()
        changed = ", ".join(f"{name} = ?" for name in values)
        self._db.execute(f"update {table} set {changed} where id = ?", [*values.values(), row_id])  # noqa: S608


# --- the file --------------------------------------------------------------------------------------------------------


def path_of(store: Path) -> Path:
    return Path(f"{store}.views.db")


def _first(db: "Database") -> None:
    """`number` is what the search index refers to: it has to survive a VACUUM."""
    for name, columns in TABLES.items():
        texts = {column: "" for column, kind in columns.items() if kind is str}
        table = _table(db, name)
        table.create(
            {"number": int, **columns}, pk="number", defaults=texts, not_null={*texts}, strict=True, if_not_exists=True
        )
        table.create_index(["id"], unique=True, if_not_exists=True)
    messages = _table(db, "messages")
    messages.create_index(["conversation", "at"], if_not_exists=True)
    messages.create_index(["who"], if_not_exists=True)
    messages.enable_fts(["text"], tokenize="unicode61 remove_diacritics 2", create_triggers=True, replace=True)
    _table(db, "position").create({"name": str, "sequence": int}, pk="name", strict=True, if_not_exists=True)


def _who_pays(db: "Database") -> None:
    if "who" not in _table(db, "costs").columns_dict:
        _table(db, "costs").add_column("who", str, not_null_default="")


# Only ever added to. A step may be cut off and begin again: what it has done by then must not be in its way.
MIGRATIONS: Sequence[Callable[["Database"], None]] = (_first, _who_pays)


def _table(db: "Database", name: str) -> "Table":
    return db.table(name)


def _connect(path: Path) -> sqlite3.Connection:
    new = not path.exists()
    path.parent.mkdir(parents=True, exist_ok=True)  # a process with the brain alone has no file of its own there
    db = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    if new:
        os.chmod(path, 0o600)
    db.execute("pragma journal_mode=wal")
    db.execute(f"pragma journal_size_limit={LOG_BYTES}")
    db.execute("pragma synchronous=normal")  # what a power cut takes is fed again
    return db


def _migrate(db: sqlite3.Connection, path: Path) -> None:
    (version,) = db.execute("pragma user_version").fetchone()
    if version > len(MIGRATIONS):
        raise ViewsFailed(
            f"{path} was written by a newer version (schema {version}): start that one again, or delete the file and "
            "run `frontdesk rebuild`."
        )
    if version == len(MIGRATIONS):
        return
    from sqlite_utils import Database

    for number, step in enumerate(MIGRATIONS[version:], version + 1):
        step(Database(db))
        db.execute(f"pragma user_version = {number}")


@contextmanager
def _transaction(db: sqlite3.Connection) -> Iterator[None]:
    db.execute("begin immediate")
    try:
        yield
    except BaseException:
        if db.in_transaction:
            db.execute("rollback")
        raise
    db.execute("commit")


class ViewsFile:
    """The views as the keeper feeds them."""

    def __init__(self, path: Path, projections: Sequence[Projection]) -> None:
        self._path, self._projections = path, projections
        self._db: sqlite3.Connection | None = None

    def open(self) -> int:
        self.close()
        try:
            self._db = _connect(self._path)
            _migrate(self._db, self._path)
            row = self._db.execute("select sequence from position where name = 'log'").fetchone()
        except (sqlite3.Error, OSError) as error:
            self.close()
            raise self._failed(error) from error
        return int(row[0]) if row else 0

    def feed(self, entries: Sequence[Stored]) -> None:
        """With the position, in one transaction."""
        assert self._db is not None
        try:
            with _transaction(self._db):
                self._note(self._db, entries)
                self._move(self._db, entries[-1].sequence)
        except sqlite3.Error as error:
            raise self._failed(error) from error

    def rebuild(self, journals: Iterator[Sequence[Stored]]) -> int:
        """Anew from all entries that there are; rows of entries that a snapshot has replaced are kept.

        `journals` gives each journal whole. Answers with the number of entries. Raises ViewsFailed.
        """
        self.open()
        assert self._db is not None
        number = newest = 0
        try:
            with _transaction(self._db):
                for entries in journals:
                    number, newest = number + len(entries), max(newest, entries[-1].sequence)
                    for table in TABLES:
                        sql = f"delete from {table} where journal = ? and sequence >= ?"  # noqa: S608
                        self._db.execute(sql, (entries[0].subject, entries[0].sequence))
                    self._note(self._db, entries)
                self._move(self._db, newest)
                self._db.execute("insert into messages_fts(messages_fts) values ('rebuild')")
        except sqlite3.Error as error:
            raise self._failed(error) from error
        return number

    def close(self) -> None:
        if self._db is not None:
            self._db.close()
            self._db = None

    def _note(self, db: sqlite3.Connection, entries: Sequence[Stored]) -> None:
        rows = Rows(db)
        for stored in entries:
            for projection in self._projections:
                if stored.subject.startswith(projection.pattern):
                    try:
                        projection.note(rows, stored)
                    except Undecodable:
                        continue  # its holder tells the operator

    def _move(self, db: sqlite3.Connection, sequence: int) -> None:
        sql = "insert into position values ('log', ?) on conflict(name) do update set sequence = excluded.sequence"
        db.execute(sql, (sequence,))

    def _failed(self, error: Exception) -> ViewsFailed:
        return ViewsFailed(f"{mend(self._path, error)} Or delete it and run `frontdesk rebuild`.")
