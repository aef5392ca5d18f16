"""Runs the cells of one session, in the main thread, one at a time. Not here: sockets (`link`), calls (`switchboard`).

Interrupting: SIGINT comes to the main thread. If a cell's frame is on the stack, its code is stopped by
KeyboardInterrupt; otherwise the cell is parked in an `await`, and its task is cancelled. Code without a top-level
`await` runs outside of the loop, so that `asyncio.run` works in it.
"""

import _thread
import ast
import asyncio
import builtins
import gc
import inspect
import os
import signal
import sys
import threading
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from .definitions import Definitions
from .link import Link
from .primitives import Call, OutcomeUnknown, Primitives, RemoteError
from .switchboard import Switchboard
from .tracebacks import CELL_FILE, describe, file_of, remember, said
from .values import kind_of, open_figures, shown
from .whole import kept
from .wire import pack

NAMES_MAX = 1_000


class Runner:
    def __init__(self, link: Link, stubs: dict[str, list[str]], *, stateful: bool) -> None:
        self._link, self._stateful = link, stateful
        self._switchboard = Switchboard(link.keep)
        self._loop = asyncio.new_event_loop()
        self._work: asyncio.Queue[Callable[[], None]] = asyncio.Queue()
        self._main = threading.get_ident()
        self._pid = os.getpid()
        self._cell = ""
        self._interrupted = ""  # the cell that is to stop: a late signal must not hit the one after
        self._waiting = False
        self._task: asyncio.Task[Any] | None = None
        module = types.ModuleType("__main__")
        sys.modules["__main__"] = module
        self._names: dict[str, Any] = module.__dict__
        primitives = Primitives(self._switchboard.ask, stubs)
        self._names.update(primitives=primitives, RemoteError=RemoteError, OutcomeUnknown=OutcomeUnknown)
        self._given = frozenset(self._names)
        self._definitions = Definitions()
        self._folder = os.getcwd()
        builtins.input = _no_input
        builtins.help = _help  # type: ignore[assignment]

    # From the link's thread.

    def begin(self, cell: str, code: str) -> None:
        self._soon(partial(self._serve_cell, cell, code))

    def answer(self, rpc: str, value: Any, error: str | None) -> None:
        self._switchboard.answer(rpc, value, error)

    def interrupt(self, cell: str, *, hard: bool) -> None:
        """`hard` also strikes the programs that the session has started, as Ctrl-C does in a terminal."""
        self._interrupted = cell
        signal.pthread_kill(self._main, signal.SIGINT)
        if hard:
            os.killpg(0, signal.SIGINT)
            _thread.interrupt_main()  # os.system ignores the signal while it waits; this is seen when it returns

    def names(self) -> list[tuple[str, str]]:
        return [
            (name, kind_of(value))
            for name, value in self._variables()
            if not name.startswith("_") and not isinstance(value, types.ModuleType)
        ][:NAMES_MAX]

    def _variables(self) -> list[tuple[str, Any]]:
        """What the code can have named; it may have put other keys among them."""
        all_of_them: list[tuple[Any, Any]] = list(self._names.items())
        return [
            (name, value)
            for name, value in all_of_them
            if isinstance(name, str) and name.isidentifier() and name not in self._given
        ]

    def save(self, seconds: float) -> None:
        self._soon(partial(self._save, seconds))

    def load(self) -> None:
        self._soon(self._load)

    def _soon(self, work: Callable[[], None]) -> None:
        self._loop.call_soon_threadsafe(self._work.put_nowait, work)

    # In the main thread.

    def serve(self) -> None:
        """Does not return: a session ends when the host lets go of it."""
        while True:
            asyncio.set_event_loop(self._loop)
            work = self._loop.run_until_complete(self._work.get())
            work()

    def _serve_cell(self, cell: str, code: str) -> None:
        status, value = self._run(cell, code)
        if os.getpid() != self._pid:  # the code forked, and this is the child
            os._exit(0)
        self._link.finish(cell, pack({"t": "done", "cell": cell, "status": status, "value": value}))

    def _save(self, seconds: float) -> None:
        names = {name: value for name, value in self._variables() if not name.startswith("__")}
        from . import keeping  # with pickle and what it takes: not in the memory of every idle session

        kept, lost = keeping.save(names, self._definitions, keeping.place(self._folder), seconds)
        self._link.keep("saved", pack({"t": "saved", "kept": kept, "lost": lost}))

    def _load(self) -> None:
        from . import keeping

        names, lost = keeping.load(self._names, self._definitions, keeping.place(self._folder))
        self._link.keep("loaded", pack({"t": "loaded", "names": names, "lost": lost}))

    def _run(self, cell: str, code: str) -> tuple[str, str]:
        signal.signal(signal.SIGINT, self._on_interrupt)
        remember(cell, code)
        self._cell = self._switchboard.cell = cell
        try:
            status, value = self._outcome(code, file_of(cell))
            if not self._stateful:
                self._wipe()
            return status, value
        except KeyboardInterrupt as stop:
            return "interrupted", describe(stop)
        finally:
            self._cell = ""
            _flush("".join(f"{complaint}\n" for complaint in self._switchboard.complaints()))

    def _outcome(self, code: str, file: str) -> tuple[str, str]:
        try:
            value = self._evaluate(code, file)
            with self._interruptible():
                if isinstance(value, Call):
                    value = value.result()
                self._switchboard.settle(self._cell, kept_too=not self._stateful)
                text = shown(value, partial(kept, self._folder, f"{self._cell}.value"))
                for line in open_figures():
                    print(line)  # noqa: T201 - part of the cell's output
            return "ok", text
        except KeyboardInterrupt:
            raise
        except SystemExit as end:
            return "exit", said(end)
        except BaseException as error:  # noqa: BLE001 - whatever the code raises is its result, and the model's to read
            return "error", describe(error)

    def _evaluate(self, code: str, file: str) -> Any:
        tree = ast.parse(code, file)
        self._definitions.note(tree, code)
        last = None
        if tree.body and isinstance(end := tree.body[-1], ast.Expr):
            last = ast.Expression(end.value)
            tree.body.pop()
        self._execute(compile(tree, file, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True))
        if last is None:
            return None
        return self._execute(compile(last, file, "eval", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True))

    def _execute(self, code: types.CodeType) -> Any:
        value = eval(code, self._names)  # noqa: S307 - this is what a sandbox is for
        return self._await(value) if code.co_flags & inspect.CO_COROUTINE else value

    def _await(self, coroutine: Any) -> Any:
        self._task = task = self._loop.create_task(coroutine)
        try:
            return self._loop.run_until_complete(task)
        except asyncio.CancelledError as cancelled:
            if self._interrupted == self._cell:
                raise KeyboardInterrupt().with_traceback(cancelled.__traceback__) from None
            raise
        except (KeyboardInterrupt, SystemExit):
            if not task.done():  # it struck a task of an earlier cell, or the loop itself
                task.cancel()
                self._loop.run_until_complete(asyncio.wait([task]))
            if not task.cancelled():
                task.exception()
            raise
        finally:
            self._task = None

    def _wipe(self) -> None:
        """A clean slate ends as a script does: its threads are waited for, its tasks cancelled, its files closed."""
        with self._interruptible():
            for thread in threading.enumerate():
                if not thread.daemon and thread is not threading.main_thread():
                    thread.join()
        if tasks := asyncio.all_tasks(self._loop):
            for task in tasks:
                task.cancel()
            self._loop.run_until_complete(asyncio.wait(tasks, timeout=1))
        self._names.clear()
        gc.collect()

    @contextmanager
    def _interruptible(self) -> Iterator[None]:
        """Where we wait on the code's behalf, with none of its frames on the stack."""
        self._waiting = True
        try:
            yield
        finally:
            self._waiting = False

    def _on_interrupt(self, _signal: int, frame: types.FrameType | None) -> None:
        if not self._cell or self._interrupted != self._cell:
            return
        if self._waiting or _in_a_cell(frame):
            raise KeyboardInterrupt
        if self._task is not None:
            self._loop.call_soon_threadsafe(self._task.cancel)


def _in_a_cell(frame: types.FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith(CELL_FILE):
            return True
        frame = frame.f_back
    return False


def _flush(last_words: str) -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
            if stream is sys.stderr:
                stream.write(last_words)
                stream.flush()
        except (OSError, ValueError, AttributeError):  # the code has closed or replaced it
            continue


def _help(*things: object) -> None:
    """As Python's own, which knows only what a class says, not a call of a primitive."""
    if len(things) == 1 and isinstance(things[0], Primitives):
        print(things[0].__doc__)  # noqa: T201 - that is what help does
    elif things:
        import pydoc  # a megabyte, for what is seldom asked

        pydoc.help(*things)
    else:
        print("help(primitives) shows what can be called; help(thing) explains one thing.")  # noqa: T201


def _no_input(prompt: object = "") -> str:
    raise RuntimeError(
        "input() does not work here: nobody sits at this program. "
        "Ask with `await primitives.request_clarification(question)`."
    )
