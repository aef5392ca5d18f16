"""What code in a sandbox can call: signatures and docstrings, for the model to read and for the host to check against.

Pure. Which of these a requester may use, and what they do, is decided where a call arrives, not here.
"""

import ast
import inspect
import textwrap
from collections.abc import Iterable
from typing import Any

import msgspec

NO_DEFAULT: Any = inspect.Parameter.empty


class Stub(msgspec.Struct, frozen=True, kw_only=True):
    """`signature` as Python writes it, with the dotted name: `mail.send(to: str, *, subject: str = "") -> str`."""

    signature: str
    doc: str

    @property
    def method(self) -> str:
        return self.signature.partition("(")[0]


STUBS: tuple[Stub, ...] = (
    Stub(
        signature="request_clarification(question: str, options: list[str] | None = None, default: str | None = None, "
        "hours: float = 72) -> str",
        doc="Ask the person who gave this task, and wait for the answer, which may take hours. Only this call waits. "
        "`default` is the answer if nobody gives one within `hours`; without it, that raises.",
    ),
    Stub(
        signature="act(query: str, name: str | None = None) -> str",
        doc="Give a part of the work to a worker of its own, and wait for its response. `name`: two or three words. "
        "Several work side by side. What it returns is a handle, too.",
    ),
    Stub(
        signature="notify(text: str) -> None",
        doc="Report progress that the person would want to hear before the end. It does not stop the work.",
    ),
    Stub(
        signature="mail.send(to: str, subject: str, text: str) -> str",
        doc="Send a mail. It may have to be approved first.",
    ),
)

RULES = """\
Every call returns a `Call` at once. Get its answer with `await`, which works at the top level, or with `.result()` in
plain code and in threads; several run side by side with `await asyncio.gather(a, b)`:

    answer = await primitives.request_clarification("Which account?", options=["work", "private"])
    answer = primitives.request_clarification("Which account?").result()

A worker is steered by its handle: `h = primitives.act("…")`, then `await h.interject("…")`, `await h.ask("…")`,
`h.pause()`, `h.resume()`, `h.stop()`, and `await h` for its response.

A call whose `Call` you do not keep is waited for when the code ends. One that is kept in a variable of a stateful
session goes on, and can be awaited in a later piece of code. A refusal or failure raises `RemoteError`, whose text says
why; `OutcomeUnknown`, which is one, says that the call was cut off and may have happened. Arguments and answers are
text, numbers, booleans, None, lists and dicts. `help(primitives.…)` says what a call is for.

The value of the last expression is shown, like what is printed. `input()` does not work. Files are kept in the current
folder."""


def inside(stubs: Iterable[Stub] = STUBS) -> str:
    """The text for a model's prompt: the calls as Python signatures with docstrings, and how they are used."""
    calls = "\n\n".join(
        f"primitives.{stub.signature}\n{textwrap.indent(textwrap.fill(stub.doc, 112), '    ')}" for stub in stubs
    )
    return f"{calls}\n\n{RULES}"


class Signatures:
    """Brings a call's arguments into the form that everything behind relies on: a dict by name."""

    def __init__(self, stubs: Iterable[Stub] = STUBS) -> None:
        """Raises SyntaxError for a signature that is not Python."""
        self._signatures = {stub.method: (stub.signature, _parse(stub)) for stub in stubs}

    def bind(self, method: str, args: list[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
        """The arguments by name; those left out are missing.

        Raises TypeError, with the right signature, for a call that does not fit. A method without a stub takes names
        only.
        """
        if method not in self._signatures:
            if args:
                known = ", ".join(self._signatures)
                raise TypeError(
                    f"there is no primitives.{method}, or it takes its arguments by name; there are: {known}"
                )
            return kwargs
        text, signature = self._signatures[method]
        try:
            return dict(signature.bind(*args, **kwargs).arguments)
        except TypeError as error:
            raise TypeError(f"{error}: primitives.{text}") from None


def _parse(stub: Stub) -> inspect.Signature:
    """Names, kinds and whether there is a default. Nothing of the text is run."""
    function = ast.parse(f"def f{stub.signature[len(stub.method) :]}: ...").body[0]
    spec = getattr(function, "args", None)
    if not isinstance(spec, ast.arguments) or spec.vararg or spec.kwarg:
        raise SyntaxError(f"a stub names all of its parameters: {stub.signature}")
    positional = [*spec.posonlyargs, *spec.args]
    required = len(positional) - len(spec.defaults)
    parameters = [
        _parameter(argument.arg, inspect.Parameter.POSITIONAL_OR_KEYWORD, optional=place >= required)
        for place, argument in enumerate(positional)
    ]
    parameters += [
        _parameter(argument.arg, inspect.Parameter.KEYWORD_ONLY, optional=default is not None)
        for argument, default in zip(spec.kwonlyargs, spec.kw_defaults, strict=True)
    ]
    return inspect.Signature(parameters)


def _parameter(name: str, kind: Any, *, optional: bool) -> inspect.Parameter:
    return inspect.Parameter(name, kind, default=None if optional else NO_DEFAULT)
