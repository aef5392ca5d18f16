"""The words of a sandbox: what it tells its owner. Frozen types only; no behaviour, no I/O."""

from typing import Any, Literal

import msgspec

Status = Literal["ok", "error", "interrupted", "exit"]


class Word(msgspec.Struct, frozen=True, kw_only=True):
    """Anything that a sandbox says to its owner."""


class CellCalled(Word, frozen=True, kw_only=True):
    """Code of `cell` called `primitives.<method>` and waits. After an attach the same `rpc` may come again.

    `arguments` are by name, as the method's stub names them; those left out are missing.
    """

    cell: str
    rpc: str
    method: str
    arguments: dict[str, Any]


class CellDone(Word, frozen=True, kw_only=True):
    """The cell's code has ended; all of its output is in.

    `value`: for ok the repr of its last expression ("" for None), for error and interrupted the traceback, for exit the
    argument of SystemExit. At most about 16,000 characters.
    """

    cell: str
    status: Status
    value: str


class CellLost(Word, frozen=True, kw_only=True):
    """The cell ended with its process, or never began; what it had done by then is not known. `why` is a sentence."""

    cell: str
    why: str


Happening = CellCalled | CellDone | CellLost


class Attached(Word, frozen=True, kw_only=True):
    """What a new gateway found of a sandbox that an earlier one had started.

    `cells` are those whose end is still to be told, or is told again: each ends by `CellDone` or `CellLost`. An open
    cell that is not among them is lost.
    """

    alive: bool
    stateful: bool
    cells: tuple[str, ...]


class Name(Word, frozen=True, kw_only=True):
    """A variable of the stateful session; `kind` is its type's name."""

    name: str
    kind: str


class Lost(Word, frozen=True, kw_only=True):
    """A variable that could not be kept, or did not come back."""

    name: str
    kind: str
    why: str


class Kept(Word, frozen=True, kw_only=True):
    """What the stateful session has left on disk of its variables."""

    saved: tuple[Name, ...] = ()
    lost: tuple[Lost, ...] = ()


class Restored(Word, frozen=True, kw_only=True):
    """What a new stateful session has taken of that."""

    names: tuple[str, ...] = ()
    lost: tuple[Lost, ...] = ()
