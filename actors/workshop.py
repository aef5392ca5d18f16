"""What all actions of one host share: the model, how a sandbox is made, what running code may call, and the bounds."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from actors.sandbox.words import Attached, Happening, Name
from gateway.clock import Now
from gateway.events import ActionCommand, Person
from gateway.llm.model import Model
from gateway.record import Record


class Box(Protocol):
    """A sandbox as the loop needs it; `actors.sandbox.host.Sandbox` says what each promises."""

    async def attach(self) -> Attached: ...
    async def execute(self, cell: str, code: str, *, stateful: bool) -> None: ...
    def reply(self, rpc: str, value: Any = None, *, error: str | None = None) -> None: ...
    def interrupt(self, cell: str) -> None: ...
    def fresh(self, cell: str) -> str: ...
    def peek(self, cell: str) -> str: ...
    def recorded(self, cell: str) -> None: ...
    async def names(self) -> tuple[Name, ...] | None: ...
    async def suspend(self) -> None: ...
    async def resume(self) -> None: ...
    async def kill(self) -> None: ...
    async def close(self) -> None: ...


class Caller(Record, frozen=True, kw_only=True):
    """For whom code calls a primitive: the action, and the person whose rights it has."""

    action: str
    by: Person


class PrimitiveError(Exception):
    """What a primitive could not do; the text goes to the code that called."""


class Primitive(Record, frozen=True, kw_only=True):
    """Something outside that running code can use. `effect`: it changes the world, so it is never repeated blindly.

    `signature` and `doc` are for the model, as in `actors.sandbox.stubs`.
    """

    signature: str
    doc: str
    run: Callable[[Caller, dict[str, Any]], Awaitable[Any]]
    effect: bool

    @property
    def method(self) -> str:
        return self.signature.partition("(")[0]


class Limits(Record, frozen=True, kw_only=True):
    """Per action, since a person's last word to it; at a bound it asks. `code_refused` says why code may not run."""

    max_steps: int = 60
    max_minutes: float = 120.0
    max_depth: int = 3
    max_children: int = 8
    code_refused: str = ""


class Workshop(msgspec.Struct, frozen=True, kw_only=True):
    model: Model
    box: Callable[[str, Callable[[Happening], None]], Box]  # action's key, where its happenings go
    primitives: Mapping[str, Primitive]
    limits: Limits
    now: Now
    operator: Callable[[str], None]
    waiting: Callable[[str, int], Awaitable[list[tuple[int, ActionCommand]]]]  # action's key, after which sequence
    check: Callable[[], None] = lambda: None  # before every effect; raises Deposed
    sandboxes: Callable[[], Sequence[str]] = lambda: ()  # keys of those that run on this machine; waits for /proc
