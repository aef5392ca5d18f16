"""The calls of primitives that wait for an answer, and the connection that each came by. No I/O of its own."""

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from actors.sandbox.connection import Connection
from actors.sandbox.frames import FromSession, Reply, Rpc
from actors.sandbox.stubs import Signatures, Stub
from actors.sandbox.words import CellCalled, Happening

OPEN_MAX = 1_000
EARLY_MAX = 1_000
METHOD_CHARACTERS = 100
ARGUMENT_BYTES, DEPTH_MAX = 512 << 10, 50  # they are written down, and go on as JSON

Line = Connection[FromSession]


class Calls:
    def __init__(self, stubs: Iterable[Stub], emit: Callable[[Happening], None]) -> None:
        self._signatures = Signatures(stubs)
        self._emit = emit
        self._open: dict[str, Line] = {}
        self._early: dict[str, Reply] = {}

    def arrived(self, line: Line, frame: Rpc) -> None:
        """Emits `CellCalled`, or answers at once a call that does not fit its stub or is one too many."""
        if frame.rpc in self._open:
            return
        if (early := self._early.pop(frame.rpc, None)) is not None:
            line.send(early)
            return
        if len(self._open) >= OPEN_MAX:
            _send(line, Reply(rpc=frame.rpc, value=None, error=f"{OPEN_MAX} calls wait for an answer already"))
            return
        try:
            _check(frame)
            arguments = self._signatures.bind(frame.method, frame.args, frame.kwargs)
        except (TypeError, ValueError) as error:
            _send(line, Reply(rpc=frame.rpc, value=None, error=str(error)))
            return
        self._open[frame.rpc] = line
        self._emit(CellCalled(cell=frame.cell, rpc=frame.rpc, method=frame.method, arguments=arguments))

    def answer(self, rpc: str, value: Any, error: str | None) -> None:
        """An answer that comes before its call is told again (after an attach) is kept for it."""
        reply = Reply(rpc=rpc, value=value, error=error)
        if (line := self._open.pop(rpc, None)) is not None:
            _send(line, reply)
            return
        self._early[rpc] = reply
        if len(self._early) > EARLY_MAX:
            del self._early[next(iter(self._early))]

    def drop(self, line: Line) -> None:
        """Nobody waits at the other end any more."""
        self._open = {rpc: other for rpc, other in self._open.items() if other is not line}


def _check(frame: Rpc) -> None:
    """Raises ValueError for what nobody means."""
    if len(frame.method) > METHOD_CHARACTERS:
        raise ValueError(f"there is no primitive with a name of {len(frame.method)} characters")
    given = [frame.args, frame.kwargs]
    if not _is_flat(given, DEPTH_MAX):
        raise ValueError(f"the arguments are nested more than {DEPTH_MAX} deep")
    if len(msgspec.json.encode(given)) > ARGUMENT_BYTES:
        raise ValueError(f"the arguments take more than {ARGUMENT_BYTES >> 10} KB: put what is large in a file")


def _is_flat(value: Any, depth: int) -> bool:
    if not isinstance(value, dict | list):
        return True
    return depth > 0 and all(_is_flat(one, depth - 1) for one in (value.values() if isinstance(value, dict) else value))


def _send(line: Line, reply: Reply) -> None:
    """A value that cannot be sent becomes an error that says so: the code must not wait for ever."""
    try:
        line.send(reply)
    except (TypeError, ValueError) as error:
        line.send(Reply(rpc=reply.rpc, value=None, error=f"the answer cannot be passed on: {error}"))
