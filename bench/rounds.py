"""What is measured: one round for each group of figures, on a gateway or a floor bot that is already running."""

import asyncio
import json
import statistics
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from bench.figures import Figure, p
from bench.processes import Process, cpu_seconds
from tests.servers.openai import Received, Reply, ScriptedOpenAI, Step, call
from tests.servers.telegram import BotApi, Person
from tests.staging.models import new_to_desk

WARM, SAMPLES = 20, 100
CORRECTIONS = 20
TASK_SECONDS = 2.0
PIECES = 40
CHATS, MESSAGES = 50, 200


@dataclass(frozen=True)
class Way:
    """From the wire to the model, and from the model to the wire, in milliseconds; CPU in milliseconds a message."""

    inward: list[float]
    outward: list[float]
    cpu: float
    helper_cpu: float


async def way(process: Process, telegram: BotApi, model: ScriptedOpenAI, people: list[Person]) -> Way:
    """One message at a time."""
    model.script(lambda request: Reply(text="Fine."))
    helpers = process.helpers()
    inward, outward = [], []
    cpu = helper_cpu = 0.0
    for n in range(WARM + SAMPLES):
        if n == WARM:
            cpu, helper_cpu = cpu_seconds([process.pid]), cpu_seconds(helpers)
        person, shown = people[n % len(people)], len(telegram.shown)
        person.says(f"Message {n}.")
        update = telegram.unconfirmed[-1]["update_id"]
        await telegram.until(lambda shown=shown: len(telegram.shown) > shown)
        if n >= WARM:
            request = model.requests[-1]
            assert request.finished_at is not None
            inward.append((request.arrived_at - telegram.handed_at[update]) * 1000)
            outward.append((telegram.called("sendMessage")[-1].at - request.finished_at) * 1000)
    return Way(
        inward,
        outward,
        (cpu_seconds([process.pid]) - cpu) / SAMPLES * 1000,
        (cpu_seconds(helpers) - helper_cpu) / SAMPLES * 1000,
    )


# --- while a task works ----------------------------------------------------------------------------------------------

SPINS = f"""\
import time
until = time.monotonic() + {TASK_SECONDS}
while time.monotonic() < until:
    sum(range(1000))
print("computed")
"""


def _desk(received: Received) -> Step:
    new = new_to_desk(received)
    if "question" in new:
        return Reply(text="It is on its way.")
    if "Start" in new:
        return Reply(text="On it.", calls=[call("act", name="task", query=new.partition("] ")[2])])
    if "rather" in new:
        tool = next(name for name in reversed(received.tool_names) if name.startswith("interject_task__"))
        return Reply(calls=[call(tool, message="rather this")])
    if "Stop" in new:
        return Reply(calls=[call(name) for name in received.tool_names if name.startswith("stop_task__")])
    return Reply(text=f"Done: {new.rpartition('] ')[2]}")


def _worker(received: Received) -> Step:
    last = received.messages[-1]["content"]
    if "Start streaming" in last:
        return Reply(text="streamed " * PIECES, chunks=PIECES, pace_seconds=TASK_SECONDS / PIECES)
    if "Start computing" in last:
        return Reply(calls=[call("execute_code", code=SPINS)])
    if "Start for ever" in last or "rather" in last:
        return Reply(text="for ever " * 1000, chunks=1000, pace_seconds=0.05)
    return Reply(text=last.rpartition("\n")[2])


async def question(
    kind: str, telegram: BotApi, desk: ScriptedOpenAI, worker: ScriptedOpenAI, ana: Person
) -> list[Figure]:
    """A question in the middle of a task: how late it is answered, and by how much the task ends later for it."""
    desk.script(_desk)
    worker.script(_worker)
    undisturbed = statistics.median([await _task(kind, telegram, ana, None) for _ in range(3)])
    late: list[float] = []

    async def ask() -> None:
        shown = len(telegram.shown)
        ana.says("A question?")
        await telegram.until(lambda: len(telegram.shown) > shown)
        answered = next(one for one in desk.requests[::-1] if "question" in new_to_desk(one))
        assert answered.finished_at is not None
        late.append((telegram.shown[-1].at - answered.finished_at) * 1000)

    asked = [await _task(kind, telegram, ana, ask) for _ in range(3)]
    return [
        Figure(what=f"question beside a {kind} task: last token to send, p50", value=p(late, 50), unit="ms", bound=30),
        Figure(what=f"  the worst of {len(late)}", value=max(late), unit="ms"),
        Figure(
            what=f"  the task's finish moved by (of {undisturbed:.1f} s)",
            value=abs(statistics.median(asked) - undisturbed),
            unit="s",
            bound=0.2,
        ),
    ]


async def _task(kind: str, telegram: BotApi, ana: Person, midway: Callable[[], Awaitable[None]] | None) -> float:
    """Seconds from the request to the report, with questions at a third of it."""
    shown, began = len(telegram.shown), time.monotonic()
    ana.says(f"Start {kind}.")
    await telegram.until(lambda: len(telegram.shown) > shown)
    if midway is not None:
        for _ in range(3):
            await asyncio.sleep(TASK_SECONDS / 5)
            await midway()
    done = await telegram.sees(ana, lambda one: one.text.startswith("Done") and one.at > began, 15.0)
    return done.at - began


async def correction(telegram: BotApi, desk: ScriptedOpenAI, worker: ScriptedOpenAI, ana: Person) -> list[Figure]:
    """From the conversation's decision to the worker's next request, while its last one streams."""
    desk.script(_desk)
    worker.script(_worker)
    ana.says("Start for ever.")
    await _asked(worker, "Start for ever", last_user)
    heard, closed = [], []
    for n in range(CORRECTIONS):
        old = worker.requests[-1]
        await old.streaming.wait()
        ana.says(f"No, rather {n}.")
        decided = await _asked(desk, f"rather {n}.", new_to_desk)
        await decided.over.wait()
        new = await _later(worker, old)
        await old.over.wait()
        assert decided.finished_at is not None
        assert old.closed_at is not None
        heard.append((new.arrived_at - decided.finished_at) * 1000)
        closed.append((old.closed_at - decided.finished_at) * 1000)
    last = worker.requests[-1]
    ana.says("Stop.")
    await last.over.wait()
    return [
        Figure(what="correction: decision to worker's next request, p50", value=p(heard, 50), unit="ms", bound=30),
        Figure(what="  p95", value=p(heard, 95), unit="ms"),
        Figure(what="  old stream closed, p95", value=p(closed, 95), unit="ms", bound=50),
    ]


async def _asked(model: ScriptedOpenAI, about: str, text: Callable[[Received], str]) -> Received:
    """The newest request about this."""
    async with asyncio.timeout(10):
        while True:
            known = len(model.requests)
            for one in reversed(model.requests):
                if about in text(one):
                    return one
            await model.arrived(known + 1)


async def _later(model: ScriptedOpenAI, old: Received) -> Received:
    return await model.arrived(model.requests.index(old) + 2)


# --- the rest --------------------------------------------------------------------------------------------------------


async def hello(telegram: BotApi, desk: ScriptedOpenAI, person: Person) -> list[Figure]:
    """The fixed prompt: of somebody's first word."""
    desk.script(lambda request: Reply(text="Hello!"))
    before = len(desk.requests)
    person.says("hello")
    await telegram.sees(person, "Hello!")
    body = desk.requests[before].body
    characters = len(json.dumps(body["messages"], ensure_ascii=False)) + len(json.dumps(body.get("tools", [])))
    return [
        Figure(what="a hello: requests to the model", value=len(desk.requests) - before, unit="", bound=1),
        Figure(what="  characters with tools", value=characters, unit="", bound=8000),
    ]


@dataclass(frozen=True)
class Crowd:
    seconds: float
    lost: int
    doubled: int
    misrouted: int


async def crowd(
    telegram: BotApi, model: ScriptedOpenAI, people: list[Person], events: Callable[[Received], str]
) -> Crowd:
    """MESSAGES from CHATS at once; each answer repeats what it answers."""

    def answer(received: Received) -> Step:
        said = [word for word in events(received).replace(".", " ").split() if word.startswith("word-")]
        return Reply(text=" ".join(said), delay_seconds=0.1)

    model.script(answer)
    said = {f"word-{n}": people[n % CHATS] for n in range(MESSAGES)}
    shown, began = len(telegram.shown), time.monotonic()
    for word, person in said.items():
        person.says(f"Say {word}.")

    def told() -> dict[str, list[int]]:
        found: dict[str, list[int]] = {word: [] for word in said}
        for one in telegram.shown[shown:]:
            for word in one.text.split():
                if word in found:  # a status card may be among them
                    found[word].append(one.chat)
        return found

    try:
        await telegram.until(lambda: all(told().values()), 20.0)
    except AssertionError:
        pass  # lost: counted below
    seconds = telegram.shown[-1].at - began
    chats: dict[str, list[int]] = told()
    return Crowd(
        seconds=seconds,
        lost=sum(not where for where in chats.values()),
        doubled=sum(len(where) > 1 for where in chats.values()),
        misrouted=sum(any(chat != said[word].id for chat in where) for word, where in chats.items()),
    )


def last_user(received: Received) -> str:
    return received.last_user
