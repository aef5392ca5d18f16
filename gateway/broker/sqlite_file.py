"""The broker's file itself: opening and locking it, saying what is wrong with it, copying it and shrinking it.

No entry is read or written here, and nothing waits for an event loop.
"""

import errno
import fcntl
import os
import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Any

from gateway.broker.protocol import BrokerUnusable

BUSY_SECONDS = 10.0  # another program may hold the file (a backup, a shell): wait that long before giving up
LOG_BYTES = 8 << 20  # what is left of the log, where somebody's long read has made it grow, once they have read
SCHEMA_VERSION = 1
SCHEMA = f"""
create table if not exists entry(seq integer primary key autoincrement, subject text not null, data blob not null);
create index if not exists by_subject on entry(subject, seq);
create table if not exists cursor(durable text primary key, seq integer not null);
pragma user_version = {SCHEMA_VERSION};
"""
MENDS = (
    ("locked", "another program holds it: close that one"),
    ("full", "the disk is full: make room on it"),
    ("readonly", "it may only be read: give the user who runs this the right to write the file and its folder"),
    ("unable to open", "it cannot be opened: give the user who runs this the right to write the file and its folder"),
    ("not a database", "it is no database, or damaged: restore a backup or give [store] path another file"),
    ("malformed", "it is damaged: restore a backup or give [store] path another file"),
    ("disk i/o", "the disk fails, or is full: look after it, restore a backup if the file is damaged"),
)


class StoreUnusable(BrokerUnusable):
    """The file cannot be used; the text says why and what to do."""


def mend(path: Path, error: Exception) -> str:
    """What is wrong with a file, and what to do."""
    found = next((text for sign, text in MENDS if sign in str(error).lower()), "")
    return f"{path}: {error}. {found[:1].upper()}{found[1:]}." if found else f"{path}: {error}."


def unwritable(path: Path, error: OSError) -> str:
    """The same of a file that is not SQLite's."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    what = "Make room on the disk" if full else "Set [store] path to a file in a folder that can be written"
    return f"{path}: {error.strerror}. {what}."


def is_damage(error: sqlite3.Error) -> bool:
    """It does not go away by itself: the file's own bytes are wrong."""
    code: int = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_OK)
    return code & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def connect(path: Path, busy_seconds: float = BUSY_SECONDS) -> sqlite3.Connection:
    """For any thread, without transactions of its own. Raises sqlite3.Error."""
    db = sqlite3.connect(path, timeout=busy_seconds, isolation_level=None, check_same_thread=False)
    try:
        db.execute("pragma journal_mode=wal")
        db.execute("pragma synchronous=full")
        db.execute(f"pragma journal_size_limit={LOG_BYTES}")
    except sqlite3.Error:
        db.close()
        raise
    return db


def opened(path: Path, busy_seconds: float = BUSY_SECONDS) -> sqlite3.Connection:
    """With its tables. Raises StoreUnusable."""
    with suppress(OSError):  # SQLite says why
        path.touch(mode=0o600)  # conversations are private; SQLite gives its log the same rights
    try:
        db = connect(path, busy_seconds)
    except sqlite3.Error as error:
        raise StoreUnusable(mend(path, error)) from error
    try:
        (version,) = db.execute("pragma user_version").fetchone()
        if version <= SCHEMA_VERSION:
            db.executescript(SCHEMA)
            os.chmod(path, 0o600)  # one that was made otherwise
    except (sqlite3.Error, OSError) as error:
        db.close()
        raise StoreUnusable(mend(path, error)) from error
    if version > SCHEMA_VERSION:
        db.close()
        raise StoreUnusable(f"{path} was written by a newer version (schema {version}): start that one again.")
    return db


def locked(path: Path) -> Any:
    """Held until it is closed: a second process is refused. Raises StoreUnusable."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = open(f"{path}.lock", "a+b", buffering=0)  # noqa: SIM115 - held for life
    except OSError as error:
        raise StoreUnusable(unwritable(path, error)) from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.seek(0)
        owner = (lock.read() or b"?").decode().strip()
        lock.close()
        raise StoreUnusable(
            f"{path} is in use by process {owner}: stop it, or give [store] path another file."
        ) from None
    try:
        lock.truncate(0)
        lock.write(b"%d" % os.getpid())
    except OSError:
        pass  # a full disk: the lock holds all the same, and the database says the rest
    return lock


def copy(path: Path, target: Path) -> None:
    """A consistent copy, also while a gateway writes: one read of one moment. Raises StoreUnusable."""
    if target.exists():
        raise StoreUnusable(f"{target} is there already: a backup goes into a new file.")
    if not path.exists():
        raise StoreUnusable(f"{path}: there is no such file.")
    os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        source = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=BUSY_SECONDS)
        copied = sqlite3.connect(target)
        try:
            source.backup(copied)
            copied.execute("pragma journal_mode=delete")  # one file, nothing beside it
            (well,) = copied.execute("pragma quick_check").fetchone()
        finally:
            source.close()
            copied.close()
    except sqlite3.Error as error:
        target.unlink(missing_ok=True)
        which = path if is_damage(error) else Path(f"{path} to {target}")
        raise StoreUnusable(mend(which, error)) from error
    if well != "ok":
        target.unlink(missing_ok=True)
        raise StoreUnusable(f"{path} is damaged ({well}): nothing was backed up.")


def shrink(path: Path) -> None:
    """Writes the file anew, without anything that was deleted or overwritten, and empties its log.

    Raises sqlite3.Error.
    """
    db = connect(path)
    try:
        db.execute("pragma secure_delete=on")
        db.execute("vacuum")
        db.execute("pragma wal_checkpoint(truncate)")
    finally:
        db.close()
