"""The calls of primitives that are under way: each has an rpc id, and its answer finds it by that.

Rule: a cell ends when the calls that nobody kept are answered too, so that a bare `primitives.notify(...)` is surely
done, and its error seen. A call kept in a variable of a stateful session may be looked at in a later cell.
"""

import os
import queue
import weakref
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any

from .primitives import Call, Handle
from .wire import pack


class Switchboard:
    """Calls are made in any thread and answered in the one that reads from the host; no locks (see `primitives`)."""

    def __init__(self, post: Callable[[str, bytes], None]) -> None:
        """`post(rpc, frame)` sends a frame, and again after each new attach, until it is answered."""
        self.cell = ""
        self._post = post
        self._pid = os.getpid()
        self._numbers = count(1)
        self._open: dict[str, tuple[str, str, weakref.ref[Call]]] = {}
        self._failed: queue.SimpleQueue[tuple[Call | None, str]] = queue.SimpleQueue()
        self._ticks: queue.SimpleQueue[None] = queue.SimpleQueue()

    def ask(self, method: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        """Raises TypeError or ValueError for arguments that do not fit JSON or 16 MB."""
        if os.getpid() != self._pid:
            raise RuntimeError("primitives can be called in the session's own process only, not in a child of it")
        rpc = f"{self._pid}.{next(self._numbers)}.{os.urandom(4).hex()}"
        frame = {"t": "rpc", "rpc": rpc, "cell": self.cell, "method": method, "args": args, "kwargs": kwargs}
        data = pack(frame, _plain)
        call = Handle(method, partial(self._steer, rpc)) if _starts_a_worker(method) else Call(method)
        self._open[rpc] = (self.cell, method, weakref.ref(call))
        self._post(rpc, data)
        return call

    def _steer(self, rpc: str, verb: str, text: str) -> Call:
        return self.ask("steer", (), {"handle": rpc, "verb": verb, "text": text})

    def answer(self, rpc: str, value: Any, error: str | None) -> None:
        """An unknown id is passed over: it was answered before."""
        if (entry := self._open.pop(rpc, None)) is None:
            return
        _, method, reference = entry
        call = reference()
        if call is not None:
            call.answer(value, error)
        if error is not None:
            self._failed.put((call, f"primitives.{method} failed, and nobody waited for it: {error}"))
        self._ticks.put(None)

    def settle(self, cell: str, *, kept_too: bool) -> None:
        """Waits until the calls of this cell are answered: those that nobody kept, or all. An interrupt ends it."""
        while any(
            owner == cell and (kept_too or reference() is None) for owner, _, reference in list(self._open.values())
        ):
            self._ticks.get()
        while not self._ticks.empty():
            self._ticks.get()

    def complaints(self) -> list[str]:
        """The errors that no code has looked at, each told once."""
        found: list[str] = []
        while not self._failed.empty():
            call, text = self._failed.get()
            if call is None or not call.looked_at:
                found.append(text)
        return found


def _starts_a_worker(method: str) -> bool:
    return method == "act" or method.endswith(".ask")


def _plain(value: Any) -> Any:
    """What JSON has no word for, as something that it has: a path as text, a set as a list, an array as lists.

    What knows such values is imported here: most code has none, and every idle session would keep it in memory.
    """
    import datetime
    import decimal
    import pathlib
    import uuid

    match value:
        case pathlib.PurePath() | uuid.UUID() | decimal.Decimal():
            return str(value)
        case datetime.date() | datetime.time():
            return value.isoformat()
        case set() | frozenset():
            return list(value)
    if hasattr(value, "tolist"):  # arrays and numbers of numpy, columns of pandas
        return value.tolist()
    if isinstance(value, Call):
        raise TypeError(f"{value!r}: pass its answer")
    raise TypeError(f"a {type(value).__name__} cannot be passed to a primitive: pass text, numbers, lists or dicts")
