"""`primitives.tasks`: the actions of the person whose work this is, in flight and ended, read from their journals."""

from collections.abc import Callable
from typing import Any

from actors.entries import ActionEntry, Briefed
from actors.journal import ActionState
from actors.workshop import Caller, Primitive, PrimitiveError
from gateway.broker.protocol import Broker, Stored
from gateway.events import Person, Start
from gateway.journal import fold_all, unstamped
from gateway.snapshots import Snapshot

TASKS_MAX = 50
MESSAGE_CHARACTERS = 2_000
READ_CHARACTERS = 60_000
HEAD = 4  # entries


Sees = Callable[[Person, str, str], bool]


class Tasks:
    """`whose` gives the key of a person. `sees(person, here, there)`: whether what is known in the conversation `there`
    may be told to them in the conversation `here`."""

    def __init__(self, broker: Broker, whose: Callable[[Person], str], sees: Sees) -> None:
        self._broker, self._whose, self._sees = broker, whose, sees

    async def of(self, caller: Caller) -> list[ActionState]:
        """The newest, newest first; without the workers that they started, and without the caller's own."""
        found: list[tuple[int, str]] = []
        for subject in await self._broker.subjects("log.act.>"):
            key = subject.removeprefix("log.act.")
            if "--" in key or key == caller.root:
                continue
            sequence, start = await self._begin(key)
            if start is not None and self._is_for(caller, start):
                found.append((sequence, key))
        newest = [key for _, key in sorted(found, reverse=True)[:TASKS_MAX]]
        return [_folded(key, await self._broker.read(f"log.act.{key}")) for key in newest]

    async def _begin(self, key: str) -> tuple[int, Start | None]:
        """Where its journal begins, and with which task: in its first entries, but for one with a large snapshot."""
        stored = await self._broker.read(f"log.act.{key}", limit=HEAD)
        start = _start(key, stored)
        if start is None and len(stored) == HEAD:
            stored = await self._broker.read(f"log.act.{key}")
            start = _start(key, stored)
        return (stored[0].sequence if stored else 0), start

    def _is_for(self, caller: Caller, start: Start) -> bool:
        own = self._whose(start.by) == self._whose(caller.by)
        return own and self._sees(caller.by, caller.conversation, start.conversation)


def reading(tasks: Tasks) -> tuple[Primitive, Primitive]:
    async def listed(caller: Caller, arguments: dict[str, Any]) -> list[dict[str, Any]]:
        return [_line(state) for state in await tasks.of(caller)]

    async def read(caller: Caller, arguments: dict[str, Any]) -> str:
        task = arguments.get("task")
        for state in await tasks.of(caller):
            if state.key == task:
                return _transcript(state)
        raise PrimitiveError(f"there is no task {task!r}; tasks.list() names them")

    return (
        Primitive(
            signature="tasks.list() -> list[dict]",
            doc='The person\'s tasks, newest first: [{"task", "name", "about", "state", "result"}].',
            run=listed,
            effect=False,
        ),
        Primitive(
            signature="tasks.read(task: str) -> str",
            doc="All that was said and done in one of them.",
            run=read,
            effect=False,
        ),
    )


def _start(key: str, stored: list[Stored]) -> Start | None:
    for one in stored:
        entry = unstamped(one, ActionEntry | Snapshot)[2]
        if isinstance(entry, Briefed):
            return entry.start
        if isinstance(entry, Snapshot):
            return _folded(key, stored).start
    return None


def _folded(key: str, stored: list[Stored]) -> ActionState:
    return fold_all(stored, ActionState(key), ActionEntry)


def _line(state: ActionState) -> dict[str, Any]:
    assert state.start is not None
    return {
        "task": state.key,
        "name": state.start.name,
        "about": state.start.query[:MESSAGE_CHARACTERS],
        "state": state.phase,
        "result": state.result[:MESSAGE_CHARACTERS],
    }


def _transcript(state: ActionState) -> str:
    lines = []
    for message in state.transcript.messages:
        made = [f"{one['function']['name']}({one['function']['arguments']})" for one in message.get("tool_calls") or ()]
        text = " ".join(part for part in (str(message.get("content") or ""), *made) if part)
        lines.append(f"{message['role']}: {text[:MESSAGE_CHARACTERS]}")
    return "\n".join(lines)[-READ_CHARACTERS:]
