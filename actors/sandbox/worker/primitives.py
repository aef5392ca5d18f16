"""`primitives` as running code sees it: a dotted name called is a question to the host, and a `Call` its answer to be.

Which names there are, and what they may do, only the host knows. Not here: how a call travels (`switchboard`).

Nothing here takes a lock that an interrupt could leave locked for ever: KeyboardInterrupt may strike between any two
lines of the main thread, and the thread that brings answers must never wait for it.
"""

import asyncio
import threading
from collections.abc import Callable, Generator
from typing import Any

UNKNOWN = "outcome unknown"
HOW = "Calls return at once: get the answer with `await`, or with `.result()` in plain code and threads."


class RemoteError(Exception):
    """The host refused the call, or could not do it. Its text says why."""

    __module__ = "__main__"  # where the code finds it, and how tracebacks name it: without our folder


class OutcomeUnknown(RemoteError):
    """The call was begun before a restart, and nobody knows whether it happened. Look before you repeat it."""

    __module__ = "__main__"


def error_of(text: str) -> RemoteError:
    """As the host words it."""
    return OutcomeUnknown(text) if text.startswith(UNKNOWN) else RemoteError(text)


class Call:
    """One call of a primitive, under way. `await call`, or `call.result()` in plain code; both raise RemoteError."""

    def __init__(self, method: str) -> None:
        self.method = method
        self._answered = False
        self._value: Any = None
        self._error: str | None = None
        self.looked_at = False
        self._latch = threading.Lock()
        self._latch.acquire()
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = []

    def done(self) -> bool:
        return self._answered

    def result(self, timeout: float | None = None) -> Any:
        """Waits for the answer, `timeout` seconds at most (then TimeoutError)."""
        self._wait(timeout)
        self.looked_at = True
        if self._error is not None:
            raise error_of(self._error)
        return self._value

    def exception(self, timeout: float | None = None) -> RemoteError | None:
        """Waits as `result` does; the error instead of raising it, None if all went well."""
        self._wait(timeout)
        self.looked_at = True
        return None if self._error is None else error_of(self._error)

    def __await__(self) -> Generator[Any, None, Any]:
        if not self._answered:
            loop = asyncio.get_running_loop()
            arrival = loop.create_future()
            self._waiting.append((loop, arrival))
            if self._answered:  # it came between the two looks
                _arrive(arrival)
            yield from arrival.__await__()
        return self.result()

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"a Call has no {name!r}: get the answer of primitives.{self.__dict__.get('method')} first, "
            "with `await call` or `call.result()`"
        )

    def __repr__(self) -> str:
        state = "answered" if self._answered else "not answered yet"
        return f"<Call of primitives.{self.method}, {state}: `await` it, or take `.result()`>"

    def _wait(self, timeout: float | None) -> None:
        if self._answered:
            return
        if not self._latch.acquire(timeout=-1 if timeout is None else timeout):
            raise TimeoutError(f"primitives.{self.method} has not answered within {timeout} s")
        self._latch.release()

    def answer(self, value: Any, error: str | None) -> None:
        """Once, by the thread that reads from the host."""
        self._value, self._error, self._answered = value, error, True
        self._latch.release()
        while self._waiting:
            loop, arrival = self._waiting.pop()
            try:
                loop.call_soon_threadsafe(_arrive, arrival)
            except RuntimeError:  # a loop of asyncio.run that is closed by now: nobody waits there
                continue


class Handle(Call):
    """The call that started a worker. `await handle` gives its response; the rest steers it meanwhile."""

    def __init__(self, method: str, steer: Callable[[str, str], Call]) -> None:
        super().__init__(method)
        self._steer = steer

    def interject(self, text: str) -> Call:
        """A word to it, in the midst of its work."""
        return self._steer("interject", text)

    def ask(self, question: str = "") -> Call:
        """How it stands: the answer is a text, and the work is not disturbed. Also when it has ended."""
        return self._steer("ask", question)

    def pause(self) -> Call:
        return self._steer("pause", "")

    def resume(self) -> Call:
        return self._steer("resume", "")

    def stop(self, reason: str = "") -> Call:
        """It ends with all that it started; `await handle` then raises RemoteError with what it had done."""
        return self._steer("stop", reason)


def _arrive(arrival: "asyncio.Future[None]") -> None:
    if not arrival.done():
        arrival.set_result(None)


class Primitives:
    """Any attribute path; calling it asks the host. `stubs`: signature and words by dotted name, for `help`."""

    def __init__(
        self,
        ask: Callable[[str, tuple[Any, ...], dict[str, Any]], Call],
        stubs: dict[str, list[str]],
        path: str = "",
    ) -> None:
        self._ask = ask
        self._stubs = stubs
        self._path = path

    def __getattr__(self, name: str) -> "Primitives":
        if name.startswith("_"):
            raise AttributeError(name)
        return Primitives(self._ask, self._stubs, f"{self._path}.{name}" if self._path else name)

    def __dir__(self) -> list[str]:
        inner = [method.removeprefix(f"{self._path}.") if self._path else method for method in self._known()]
        return sorted({method.partition(".")[0] for method in inner if method != self._path})

    @property
    def __doc__(self) -> str:  # type: ignore[override]
        """What there is to know of this call, or of all below."""
        import textwrap

        found = [self._stubs[method] for method in self._known()]
        indent = " " * 4
        text = "\n\n".join(
            f"primitives.{signature}\n{textwrap.fill(doc, 100, initial_indent=indent, subsequent_indent=indent)}"
            for signature, doc in found
        )
        text += f"\n\n{HOW}" if found else ""
        return text or f"there is no primitives.{self._path}; there are: {', '.join(self._stubs)}"

    def _known(self) -> list[str]:
        """The dotted names of this and all below."""
        below = f"{self._path}." if self._path else ""
        return [method for method in self._stubs if method == self._path or method.startswith(below)]

    def __call__(self, *args: Any, **kwargs: Any) -> Call:
        if not self._path:
            raise TypeError("call one of the primitives: primitives.notify(text)")
        return self._ask(self._path, args, kwargs)

    def __repr__(self) -> str:
        return f"<primitives{'.' if self._path else ''}{self._path}>"
