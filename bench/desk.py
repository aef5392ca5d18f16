"""What the conversation layer itself costs: `python -m bench.desk`. The model needs no time: what is left is ours."""

import asyncio
import contextlib
import itertools
import resource
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from rich.console import Console

from bench.conversations import ANA, ROUTE, message, written
from bench.figures import Figure, p, table
from bench.holding import desk, members, opened
from brain.contacts import Contact
from brain.manager import Manager
from gateway.addresses import Address, Route
from gateway.broker.sqlite import SqliteBroker
from gateway.clock import utc_now
from gateway.events import ActionChanged, MessageReceived, Person, Ref
from gateway.llm.history import tokens_of
from gateway.llm.model import Generation, OnSpent, RawCall, Request, Usage
from gateway.record import encode

HISTORY, ACTIONS, WARM, TURNS = 10_000, 10, 20, 200
CONVERSATIONS, SAID_BEFORE, SECONDS = 500, 10, 30


class Clocked:
    """When it was asked and when it had answered; `starts` turns begin work."""

    name = "clocked"

    def __init__(self, starts: int = 0) -> None:
        self.starts = starts
        self.asked, self.answered = list[float](), list[float]()
        self.requests: list[Request] = []
        self.keeps = False

    async def generate(self, request: Request, on_spent: OnSpent | None = None) -> Generation:
        self.asked.append(time.perf_counter())
        if self.keeps:
            self.requests.append(request)
        calls: tuple[RawCall, ...] = ()
        if self.starts:
            self.starts -= 1
            calls = (RawCall(name="act", arguments='{"query": "Count to a million.", "name": "count"}'),)
        made = Generation(text="It is booked.", calls=calls, model=self.name, usage=Usage(prompt_tokens=1, usd=0.0))
        self.answered.append(time.perf_counter())
        return made


@contextlib.asynccontextmanager
async def running(manager: Manager) -> AsyncIterator[Manager]:
    task = asyncio.create_task(manager.run())
    try:
        yield manager
    finally:
        task.cancel()
        await asyncio.wait({task})


class Outbox:
    """Takes what is sent, and when."""

    def __init__(self, broker: SqliteBroker) -> None:
        self._broker = broker
        self.came: asyncio.Queue[float] = asyncio.Queue()

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator["Outbox"]:
        task = asyncio.create_task(self._take())
        try:
            yield self
        finally:
            task.cancel()
            await asyncio.wait({task})

    async def _take(self) -> None:
        async for delivery in self._broker.consume("cmd.out.>", "bench"):
            self.came.put_nowait(time.perf_counter())
            await delivery.ack()


# --- one long conversation -------------------------------------------------------------------------------------------


async def overhead(folder: Path) -> list[Figure]:
    path = folder / "long.db"
    await written(path, HISTORY * 3 // 2)  # three entries make two messages
    ana = Contact(key="ana", name="Ana", role="owner", addresses=(ANA.address,))
    model = Clocked(starts=ACTIONS)
    inward, outward = list[float](), list[float]()
    async with opened(path) as broker, running(desk(broker, model, [ana])) as manager, Outbox(broker).open() as outbox:
        for n in range(ACTIONS + WARM + TURNS):
            if n == ACTIONS:
                await _work(broker, manager)
            model.keeps = n >= ACTIONS + WARM
            number = HISTORY + n
            await broker.append("evt.medium.telegram-1", encode(message(number)), msg_id=str(number))
            appended = time.perf_counter()
            came = await outbox.came.get()
            if n >= ACTIONS + WARM:
                inward.append((model.asked[-1] - appended) * 1000)
                outward.append((came - model.answered[-1]) * 1000)
    shared = [_shared(*pair) for pair in itertools.pairwise(model.requests)]
    fixed = model.requests[-1].messages[0]["content"]
    size = tokens_of(encode([model.requests[-1].tools, model.requests[-1].messages]).decode())
    what = f"with {HISTORY:,} messages and {ACTIONS} actions in flight"
    return [
        Figure(what=f"event appended to model request, {what}, p50", value=p(inward, 50), unit="ms", bound=5.0),
        Figure(what="  p95", value=p(inward, 95), unit="ms"),
        Figure(what="model's answer to send in the outbox, p50", value=p(outward, 50), unit="ms", bound=5.0),
        Figure(what="  p95", value=p(outward, 95), unit="ms"),
        Figure(what="share of a prompt that the one before had at its beginning, p50", value=p(shared, 50), unit="%"),
        Figure(what="  p5", value=p(shared, 5), unit="%"),
        Figure(what="instructions", value=tokens_of(fixed), unit="tokens", bound=1500),
        Figure(what="the whole prompt, with tools", value=size, unit="tokens"),
    ]


async def _work(broker: SqliteBroker, manager: Manager) -> None:
    """What runs has told of itself."""
    (lane,) = [one for one in manager.lanes() if one.journal.state.actions]
    for action in lane.journal.state.in_flight():
        ref = Ref(f"act-{action.key}", 1)
        fact = ActionChanged(ref=ref, conversation="p-ana", action=action.key, phase="running", doing="counting")
        await broker.append(f"evt.act.{action.key}", encode(fact), msg_id=str(ref))


def _shared(before: Request, after: Request) -> float:
    """As a provider sees them: the tools, then the messages."""
    one, other = (encode([request.tools, request.messages]) for request in (before, after))
    same = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return 100 * same / len(other)


# --- many that are quiet ---------------------------------------------------------------------------------------------


async def crowd(folder: Path) -> list[Figure]:
    people = [Address(medium="telegram", user=str(n)) for n in range(CONVERSATIONS)]
    numbers = itertools.count()
    async with opened(folder / "crowd.db") as broker:
        model = Clocked()
        async with running(desk(broker, model, members(people))), Outbox(broker).open() as outbox:
            before = _memory_kb()
            for _ in range(SAID_BEFORE):
                await _say(broker, people, numbers)
                for _ in people:
                    await outbox.came.get()
            memory = (_memory_kb() - before) / CONVERSATIONS
            cpu = _cpu_seconds()
            for n in range(SECONDS):
                await asyncio.gather(_say(broker, [people[n * 7 % CONVERSATIONS]], numbers), asyncio.sleep(1.0))
                await outbox.came.get()
            cpu = _cpu_seconds() - cpu
    what = f"{CONVERSATIONS} conversations, 1 message/s"
    return [
        Figure(what=f"{what}: CPU a message", value=cpu / SECONDS * 1000, unit="ms", bound=5.0),
        Figure(what=f"memory of a conversation of {2 * SAID_BEFORE} messages", value=memory, unit="KB", bound=100),
    ]


async def _say(broker: SqliteBroker, people: Sequence[Address], numbers: "itertools.count[int]") -> None:
    for who in people:
        n = next(numbers)
        fact = MessageReceived(
            identity=f"telegram-1/message/{who.user}:{n}/0",
            route=Route(medium="telegram", account=ROUTE.account, place=who.user),
            author=Person(address=who, name=who.user),
            text=f"And number {n}, please.",
            at=utc_now(),
        )
        await broker.append("evt.medium.telegram-1", encode(fact), msg_id=fact.identity)


def _memory_kb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1024


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


async def main() -> None:
    with tempfile.TemporaryDirectory(prefix="frontdesk-bench-") as name:
        found = [*await overhead(Path(name)), *await crowd(Path(name))]
    Console().print(table(found))
    print(f"Missed: {'; '.join(figure.what.strip() for figure in found if not figure.well) or 'none'}")


if __name__ == "__main__":
    asyncio.run(main())
