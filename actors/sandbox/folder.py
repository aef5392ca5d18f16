"""What a sandbox leaves on disk, so that the next gateway finds it: sockets, the zygote's identity, a ledger of cells.

    workspace/      the code's own
    run/            the sockets: `z` of the zygote, `s<n>` of a stateful session, `c<n>` of a clean slate
    gate/           the host's socket that the proxy listens on; whom programs inside trust
    authority.pem   the key with which the proxy speaks as a host that a secret is for
    cells/<cell>    the session that a cell was given to; here until the cell's end is recorded
    packages/       what the host has installed for this sandbox alone
    moves           how often the action had gone to another machine when it came to this folder
    zygote.json     pid and start time: a pid alone may be somebody else's by now
    zygote.log      what the zygote said before it was ready

Only `workspace` and `run` are the sandbox's to touch; what is found there may be a link, and is never followed. No
sockets are opened and no processes looked at here.
"""

import contextlib
import os
import re
import shutil
import stat
from pathlib import Path
from urllib.parse import quote, unquote

import msgspec

LOG_CHARACTERS = 1_000
SESSIONS_MAX = 200
SESSION = re.compile(r"[sc]\d{1,9}")
KEPT = ".session"  # see worker/keeping.py
WORKER = Path(__file__).with_name("worker")


class Birth(msgspec.Struct, frozen=True, kw_only=True):
    """A process, for ever: `started` is in clock ticks since boot.

    `keeper`: the process around it, which waits for its end; it then is the first of a pid namespace, and its end is
    the end of all in there.
    """

    pid: int
    started: int
    keeper: int | None = None


class Folder:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.workspace = directory / "workspace"
        self.run = directory / "run"
        self.gate = directory / "gate"
        self.gate_socket, self.trusted = self.gate / "proxy", self.gate / "trusted.pem"
        self.authority = directory / "authority.pem"
        self.packages = directory / "packages"
        self.log = directory / "zygote.log"
        self._cells = directory / "cells"
        self._zygote = directory / "zygote.json"
        self._moves = directory / "moves"

    def clear(self) -> None:
        """As before the first start; the workspace stays."""
        for old in (self.run, self._cells):
            shutil.rmtree(old, ignore_errors=True)
        self._zygote.unlink(missing_ok=True)

    def prepare(self) -> None:
        self.clear()
        for needed in (self.directory, self.workspace, self.run, self.gate, self._cells):
            needed.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.packages.mkdir(mode=0o755, exist_ok=True)

    def moves(self) -> int | None:
        """None: there is nothing of it here."""
        if not self.workspace.is_dir():
            return None
        try:
            return int(self._moves.read_text())
        except (FileNotFoundError, ValueError):
            return 0

    def remember_moves(self, moves: int) -> None:
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._moves.write_text(str(moves))

    def remember_zygote(self, birth: Birth) -> None:
        fresh = self._zygote.with_suffix(".new")
        fresh.write_bytes(msgspec.json.encode(birth))
        fresh.replace(self._zygote)

    def zygote(self) -> Birth | None:
        try:
            return msgspec.json.decode(self._zygote.read_bytes(), type=Birth)
        except (FileNotFoundError, msgspec.DecodeError):
            return None

    def remember_cell(self, cell: str, session: str) -> None:
        """In the way of every call: plain calls of the system, a third of the time of those of `Path`."""
        file = os.open(self._entry(cell), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            os.write(file, session.encode())
        finally:
            os.close(file)

    def forget_cell(self, cell: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._entry(cell))

    def _entry(self, cell: str) -> str:
        return f"{self._cells}/{quote(cell, safe='')}"

    def cells(self) -> dict[str, str]:
        """Cell to session, oldest first."""
        if not self._cells.is_dir():
            return {}
        entries = sorted(self._cells.iterdir(), key=lambda entry: entry.stat().st_mtime_ns)
        return {unquote(entry.name): entry.read_text() for entry in entries}

    def sessions(self) -> list[str]:
        """The names of the sockets of sessions, living or not."""
        if not self.run.is_dir():
            return []
        with os.scandir(self.run) as entries:
            found = [entry.name for entry in entries if SESSION.fullmatch(entry.name) and _is_socket(entry)]
        return sorted(found)[:SESSIONS_MAX]

    def kept(self) -> set[str]:
        """Names of the variables that the stateful session has left in the workspace."""
        try:
            place = os.open(self.workspace / KEPT, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return set()
        try:
            return {Path(name).stem for name in os.listdir(place) if not name.endswith(".new")}
        finally:
            os.close(place)

    def last_words(self) -> str:
        """The end of the log: why a zygote did not start."""
        if not self.log.is_file():
            return ""
        return self.log.read_text(errors="replace")[-LOG_CHARACTERS:].strip()


def _is_socket(entry: "os.DirEntry[str]") -> bool:
    try:
        return stat.S_ISSOCK(entry.stat(follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return False
