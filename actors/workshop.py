"""What all actions of one host share: the model, how a sandbox is made, what running code may call, and the bounds."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Protocol

import msgspec

from actors.sandbox.words import Attached, Happening, Kept, Name, Restored
from gateway.clock import Now
from gateway.events import ActionCommand, Person
from gateway.files import Keep
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
    def shown(self, cell: str) -> int: ...
    def show_after(self, cell: str, shown: int) -> None: ...
    def recorded(self, cell: str) -> None: ...
    async def names(self) -> tuple[Name, ...] | None: ...
    async def save(self) -> Kept: ...
    async def restore(self) -> Restored: ...
    def is_here(self, moves: int) -> bool: ...
    def settle(self, moves: int) -> None: ...
    async def put_files(self, folder: str, files: list[tuple[str, bytes]]) -> list[str]: ...
    async def take_file(self, path: str, limit: int) -> bytes: ...
    async def suspend(self) -> None: ...
    async def resume(self) -> None: ...
    async def kill(self) -> None: ...
    async def close(self) -> None: ...


class Caller(Record, frozen=True, kw_only=True):
    """For whom code calls a primitive: the action, the person whose rights it has, and the conversation that will
    hear what comes of it."""

    action: str
    by: Person
    name: str = ""
    conversation: str = ""

    @property
    def root(self) -> str:
        """The action that a person started, of which this is a part."""
        return self.action.partition("--")[0]


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
    """`max_steps` to `max_minutes`: of an action with all below it, since a person's last word to it; there it asks.

    `code_refused` says why code may not run. The times are those of an idle session and of an open question.
    `code_tag` stands in every result of code: what there is to know about how it ran.
    """

    max_steps: int = 60
    max_tokens: int = 3_000_000
    max_usd: float = 5.0
    max_minutes: float = 120.0
    max_live: int = 20
    hibernate_after: timedelta = timedelta(hours=12)
    close_after: timedelta = timedelta(days=30)
    remind_after: timedelta = timedelta(hours=4)
    answer_within: timedelta = timedelta(days=3)
    compact_tokens: int = 60_000
    max_depth: int = 3
    max_children: int = 8
    code_refused: str = ""
    code_tag: str = ""


async def _no_notes(person: Person, conversation: str) -> tuple[str, ...]:
    return ()


async def nowhere(data: bytes) -> str:
    raise PrimitiveError("files are not kept here")


async def nothing(digest: str) -> bytes:
    raise LookupError(digest)


class Workshop(msgspec.Struct, frozen=True, kw_only=True):
    model: Model
    box: Callable[[str, Callable[[Happening], None]], Box]  # action's key, where its happenings go
    primitives: Mapping[str, Primitive]
    limits: Limits
    now: Now
    operator: Callable[[str], None]
    notes: Callable[[Person, str], Awaitable[tuple[str, ...]]] = _no_notes  # person, conversation; see `gateway.notes`
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    waiting: Callable[[str, int], Awaitable[list[tuple[int, ActionCommand]]]]  # action's key, after which sequence
    told: str = ""  # what else the model is told at the top
    keep: Keep = nowhere  # stores the bytes of a file
    blob: Callable[[str], Awaitable[bytes]] = nothing  # by digest; raises LookupError, Unconfirmed
    check: Callable[[], None] = lambda: None  # before every effect; raises Deposed
    sandboxes: Callable[[], Sequence[str]] = lambda: ()  # keys of those that run on this machine; waits for /proc
