"""A workshop for tests: the real host of actions on a real broker with real sandboxes, a clock that stands still until
it is told, and a model that follows a script for each task.

    async with Shop(tmp_path) as shop:
        shop.model.on("February", code("x = 1", stateful=True), "It is 1")
        await shop.start("a1", "Do February")
        await shop.phase("a1", "awaiting_input")
"""

import asyncio
import itertools
import json
from collections.abc import Awaitable, Callable, Coroutine
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from actors import prompt
from actors.entries import ActionEntry
from actors.journal import ActionState
from actors.sandbox.host import Sandbox
from actors.sandbox.isolation.bare import Bare
from actors.sandbox.words import Happening
from actors.sharing import Alone, Sharing
from actors.supervisor import ActionHost
from actors.workshop import Box, Limits, Primitive, Workshop
from gateway.addresses import Address
from gateway.broker.protocol import Broker
from gateway.broker.sqlite import SqliteBroker
from gateway.events import ActionCommand, ActionFact, Answer, Ask, Interject, Pause, Person, Ref, Resume, Start, Stop
from gateway.files import Attachment, attachment
from gateway.holding import Guard, supervise
from gateway.journal import publish, unstamped
from gateway.llm.model import Generation, ModelError, OnSpent, RawCall, Request, Usage
from gateway.record import decode
from tests.actors import rules
from tests.patience import PATIENCE_SECONDS

POLL_SECONDS = 0.002
LEASE_SECONDS = 10.0
ANA = Person(address=Address(medium="telegram", user="42"), name="Ana")
LANE = "p-ana"
LIMITS = Limits()
COMPACTED = "Your transcript has become long."


class Clock:
    """Time goes on by `advance` alone."""

    def __init__(self) -> None:
        self.at = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
        self._sleepers: list[tuple[datetime, asyncio.Event]] = []

    def now(self) -> datetime:
        return self.at

    def sleep(self, seconds: float) -> Coroutine[Any, Any, Any]:
        """Counted from this call, not from when it first runs: `advance` may come between."""
        woken = asyncio.Event()
        self._sleepers.append((self.at + timedelta(seconds=seconds), woken))
        if seconds <= 0:
            woken.set()
        return woken.wait()

    def advance(self, **span: float) -> None:
        self.at += timedelta(**span)
        for at, woken in self._sleepers:
            if at <= self.at:
                woken.set()
        self._sleepers = [one for one in self._sleepers if one[0] > self.at]


class Held:
    """An answer that is not given before `release`."""

    def __init__(self, then: "Step") -> None:
        self.then = then
        self.asked, self.gate, self.cancelled = asyncio.Event(), asyncio.Event(), asyncio.Event()

    def release(self) -> None:
        self.gate.set()


Step = str | RawCall | list[RawCall] | Held | ModelError | Callable[[Request], Any]


def call(name: str, /, **arguments: Any) -> RawCall:
    return RawCall(name=name, arguments=json.dumps(arguments))


def code(text: str, *, stateful: bool = False) -> RawCall:
    return call("execute_code", code=text, stateful=stateful)


class ScriptedModel:
    """By the words of an action's task; its steps are used up in order, the last again and again."""

    name = "scripted"

    def __init__(self) -> None:
        self.requests: dict[str, list[Request]] = {}  # by the words of its script
        self.by_task: dict[str, list[Request]] = {}
        self.forgets = False  # keeps no requests
        self.beside: Callable[[Request], Step] = lambda request: "About half."
        self.usage = Usage(prompt_tokens=100, completion_tokens=20, usd=0.01)
        self._steps: dict[str, list[Step]] = {}
        self._used: dict[str, int] = {}

    def on(self, words: str, *steps: Step) -> None:
        self._steps[words] = list(steps)
        self._used[words] = 0

    def then(self, words: str, *steps: Step) -> None:
        """Beside what is left of its script."""
        self._steps[words] = [*self._steps[words][: self._used[words]], *steps]

    def asked(self, words: str) -> list[Request]:
        """The loop's own requests for that task."""
        return [one for one in self.requests.get(words, []) if one.tool_choice != "none"]

    async def generate(self, request: Request, on_spent: OnSpent | None = None) -> Generation:
        words = self._of(request)
        if not self.forgets:
            self.requests.setdefault(words, []).append(request)
            self.by_task.setdefault(str(request.messages[1]["content"]), []).append(request)
        step: Any = self._next(words) if request.tool_choice != "none" else self.beside(request)
        if isinstance(step, Held):
            step = await self._held(step, on_spent)
        if callable(step):
            step = step(request)
        if isinstance(step, ModelError):
            raise step
        return self._made(step)

    def _next(self, words: str) -> Step:
        place = min(self._used[words], len(self._steps[words]) - 1)
        self._used[words] += 1
        return self._steps[words][place]

    async def _held(self, held: Held, on_spent: OnSpent | None) -> Step:
        held.asked.set()
        try:
            await held.gate.wait()
        except asyncio.CancelledError:
            held.cancelled.set()
            if on_spent is not None:
                on_spent(self.name, self.usage)
            raise
        return held.then

    def _of(self, request: Request) -> str:
        task = str(request.messages[1]["content"]).partition("\n\nWhat was said before")[0]
        found = [words for words in self._steps if words in task]
        assert found, f"no script is for {task!r}"
        return max(found, key=len)

    def _made(self, step: Any) -> Generation:
        if isinstance(step, Generation):
            return step
        calls = (step,) if isinstance(step, RawCall) else tuple(step) if isinstance(step, list) else ()
        text = step if isinstance(step, str) else ""
        return Generation(text=text, calls=calls, finish="stop", usage=self.usage, model=self.name)


MakeBox = Callable[[str, Callable[[Happening], None]], Box]


async def _no_notes(person: Person, conversation: str) -> tuple[str, ...]:
    return ()


class Shop:
    poll_seconds = POLL_SECONDS

    def __init__(
        self,
        folder: Path,
        *,
        limits: Limits = LIMITS,
        primitives: tuple[Primitive, ...] = (),
        box: MakeBox | None = None,
        model: ScriptedModel | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.folder, self.limits = folder, limits
        self.model, self.clock = model or ScriptedModel(), clock or Clock()
        self.primitives: dict[str, Primitive] = {one.method: one for one in primitives}
        self.notices: list[str] = []
        self.notes: Callable[[Person, str], Awaitable[tuple[str, ...]]] = _no_notes
        self.broker: Broker
        self.host: ActionHost
        self._box = box or self._sandbox
        self._running: asyncio.Task[None] | None = None
        self._opened = asyncio.Event()
        self._commands = itertools.count(1)

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
        for one in (self.folder / "actions").glob("*"):
            await Sandbox(one, lambda happening: None, Bare()).kill()
        if kind is None:
            for requests in self.model.by_task.values():
                rules.each_extends_the_last(requests, sum(COMPACTED in str(one.messages[-1]) for one in requests))

    async def open(self) -> None:
        self.folder.mkdir(exist_ok=True)
        self._opened.clear()
        self.broker = await self._store()
        self._running = asyncio.create_task(supervise(self.broker, self._lease(), LEASE_SECONDS, self._work))
        await self._opened.wait()

    async def _store(self) -> Broker:
        return SqliteBroker(self.folder / "store.db")

    def _lease(self) -> str:
        return "actors"

    def _sharing(self, guard: Guard) -> Sharing:
        return Alone(self.broker)

    async def close(self) -> None:
        """Cleanly. Sandboxes live on."""
        assert self._running is not None
        self._running.cancel()
        await asyncio.wait({self._running})
        await self.broker.close()

    async def again(self) -> None:
        await self.close()
        await self.open()

    async def _work(self, guard: Guard) -> None:
        work = Workshop(
            model=self.model,
            box=self._box,
            primitives=self.primitives,
            limits=self.limits,
            now=self.clock.now,
            operator=self.notices.append,
            notes=self.notes,
            sleep=self.clock.sleep,
            waiting=lambda key, after: self.host.waiting(key, after),  # noqa: PLW0108 - the host is made below
            keep=self.broker.put_blob,
            blob=self.broker.get_blob,
        )
        self.host = ActionHost(self.broker, guard, "tests", work, self._sharing(guard))
        self._opened.set()
        await self.host.run()

    def _sandbox(self, key: str, emit: Callable[[Happening], None]) -> Box:
        stubs = prompt.stubs(self.primitives.values())
        return Sandbox(self.folder / "actions" / key, emit, Bare(), stubs=stubs)

    # --- what the lane says ------------------------------------------------------------------------------------------

    async def start(
        self, key: str, query: str, *, persist: bool = True, context: str = "", files: tuple[Attachment, ...] = ()
    ) -> None:
        same = self._to(key)
        await self.tell(Start(**same, name=key, query=query, persist=persist, context=context, files=files))

    async def interject(self, key: str, text: str, files: tuple[Attachment, ...] = ()) -> None:
        at = self.clock.now()
        await self.tell(Interject(**self._to(key), text=text, via="telegram", at=at, files=files))

    async def file(self, name: str, data: bytes, kind: str = "text/plain") -> Attachment:
        """As a medium has stored it."""
        return attachment(name, kind, len(data), await self.broker.put_blob(data))

    async def ask(self, key: str, text: str) -> None:
        await self.tell(Ask(**self._to(key), text=text))

    async def pause(self, key: str) -> None:
        await self.tell(Pause(**self._to(key)))

    async def resume(self, key: str) -> None:
        await self.tell(Resume(**self._to(key)))

    async def stop(self, key: str) -> None:
        await self.tell(Stop(**self._to(key)))

    async def answer(self, key: str, question: str, text: str, files: tuple[Attachment, ...] = ()) -> None:
        await self.tell(Answer(**self._to(key), question=question, text=text, files=files))

    def _to(self, key: str) -> dict[str, Any]:
        return {"ref": Ref(LANE, next(self._commands)), "conversation": LANE, "action": key, "by": ANA}

    async def tell(self, command: ActionCommand) -> None:
        await publish(self.broker, f"cmd.act.{command.action}", command, str(command.ref))

    # --- what is known -----------------------------------------------------------------------------------------------

    async def log(self, key: str) -> list[ActionEntry]:
        return [unstamped(one, ActionEntry)[2] for one in await self.broker.read(f"log.act.{key}")]

    async def state(self, key: str) -> ActionState:
        """Folded afresh, with what must hold of every prefix."""
        return rules.every_prefix(key, await self.log(key))

    async def facts(self, key: str, kind: type[Any] = object) -> list[Any]:
        found = [decode(one.data, ActionFact) for one in await self.broker.read(f"evt.act.{key}")]
        return [fact for fact in found if isinstance(fact, kind)]

    async def until(self, ready: Callable[[], Awaitable[Any]]) -> Any:
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                while not (found := await ready()):
                    await asyncio.sleep(self.poll_seconds)
                return found
        except TimeoutError:
            raise AssertionError(await self._story()) from None

    async def _story(self) -> str:
        lines = [f"it did not come to that; notices: {self.notices}"]
        for subject in await self.broker.subjects("log.act.>"):
            state = await self.state(subject.removeprefix("log.act."))
            lines += [f"--- {state.key}: {state.phase}, {list(state.transcript.jobs)}", *rules.texts(state)[-12:]]
        return "\n".join(lines)

    async def fact(self, key: str, kind: type[Any], number: int = 1) -> Any:
        """The `number`th of its kind."""

        async def told() -> Any:
            return ((await self.facts(key, kind)) + [None] * number)[number - 1]

        return await self.until(told)

    async def phase(self, key: str, phase: str) -> ActionState:
        async def there() -> Any:
            state = await self.state(key)
            return state if state.phase == phase and state.start is not None else None

        return await self.until(there)

    async def entry(self, key: str, kind: type[Any], number: int = 1) -> Any:
        async def written() -> Any:
            return ([one for one in await self.log(key) if isinstance(one, kind)] + [None] * number)[number - 1]

        return await self.until(written)

    async def output(self, key: str, cell: str, text: str) -> None:
        async def printed() -> Any:
            actor = next((one for one in self.host.open_actors if one.key == key), None)
            return actor is not None and text in actor.box.peek(cell)

        await self.until(printed)
