"""One run is one story: a person, a platform, a machine for code, and processes of the product that can be killed.

The processes are made of the product's own classes; only what lies outside a process is played.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from actors.supervisor import ActionHost
from actors.workshop import Caller, Limits, Primitive, PrimitiveError, Workshop
from brain.contacts import Contact, Contacts
from brain.hold import Pace
from brain.manager import Manager
from gateway.broker.protocol import Broker
from gateway.broker.sqlite import SqliteBroker
from gateway.events import MediumFact, identity_of
from gateway.holding import Guard, supervise
from gateway.journal import publish
from gateway.outbox import Outbox
from tests.kernel import models
from tests.kernel.faults import Fault, FaultyBroker, Gate
from tests.kernel.machine import Box, Machine
from tests.kernel.models import ScriptedModel, Watch
from tests.kernel.platform import ACCOUNT, ANA, Platform, ScriptedMedium
from tests.kernel.reading import Reading, patiently

CONVERSATION = "p-ana"
PACE = Pace(quiet_seconds=0.02, burst_seconds=0.2, turn_seconds=60.0, max_restarts=100, progress_seconds=0.0)
MOMENT_SECONDS, SHOWN_SECONDS, SETTLE_SECONDS = 1.0, 2.0, 100.0
POLLS_MAX, SETTLED = 50, 4  # between two readings; readings that say so
PATIENCE_SECONDS = 10.0  # of the short story: longer than a takeover takes, on a busy machine too
STOP_SECONDS = 30.0
POLL_SECONDS = 0.02


@dataclass(frozen=True)
class Knobs:
    """`sandbox_lost`: a crash takes the running code with it. `short`: a message, an action that is corrected, asks, is
    answered and stopped, and no more."""

    repeatable: bool = False
    sandbox_lost: bool = False
    think_seconds: float = 0.01
    lease_seconds: float = 3.0
    short: bool = False
    seed: int | None = None  # of the delays


Roles = dict[str, Callable[[Guard], Awaitable[None]]]


class Story:
    """What lies outside all processes of a run."""

    def __init__(self, knobs: Knobs) -> None:
        self.knobs = knobs
        self.platform = Platform(knobs.repeatable)
        self.desk, self.work = Watch(begun=self._mark), Watch(begun=self._mark)
        self.machine = Machine(models.script, self._mark)
        self.effects: list[str] = []
        self.notices: list[str] = []
        self.done = False
        self._marks: dict[str, asyncio.Event] = {}
        self._dice = random.Random(knobs.seed) if knobs.seed is not None else None

    async def person(self) -> None:
        if self.knobs.short:
            await self._say_little()
            return
        say, shown = self.platform.push, self.platform.until_shown
        say("Add up the numbers of March")
        await self._moment("desk")
        say("and those of April.")
        await self._moment("worker")
        say("Use the work account.")
        await self._moment("code")
        say("Round the total.")
        await shown("Which account", SHOWN_SECONDS)
        say("The blue one.")
        await shown("Total by", SHOWN_SECONDS)
        say("Great, now do May.")
        await shown("again", SHOWN_SECONDS / 4)
        say("Stop it.")
        await self._breath()
        say("And add a title.")
        await shown("Stopp", SHOWN_SECONDS)
        say("Thanks!")
        self.done = True

    async def _say_little(self) -> None:
        say, shown = self.platform.push, self.platform.until_shown
        say("Add up the numbers of March")
        await self._moment("code", PATIENCE_SECONDS)
        say("Use the work account.")
        await shown("Which account", PATIENCE_SECONDS)
        say("The blue one.")
        await shown("Total by", PATIENCE_SECONDS)
        say("Stop it.")
        self.done = True

    def _mark(self, name: str) -> None:
        self._marks.setdefault(name, asyncio.Event()).set()

    async def _moment(self, name: str, seconds: float = MOMENT_SECONDS) -> None:
        """When it is first there; not for ever, because a crash may have swallowed it."""
        event = self._marks.setdefault(name, asyncio.Event())
        try:
            await asyncio.wait_for(event.wait(), seconds)
        except TimeoutError:
            return
        await self._breath()

    async def _breath(self) -> None:
        await asyncio.sleep(self.knobs.think_seconds / 3 if self._dice is None else self._dice.random() * 0.06)

    @property
    def unknown(self) -> bool:
        """Some code was told that nobody knows what became of its effect."""
        cells = [cell for room in self.machine.rooms.values() for cell in room.known]
        return any(error for cell in cells for _, _, error in cell.heard)

    async def book(self, what: str) -> str:
        self.effects.append(what)
        return f"booked {what}"


class Node:
    """One process with all roles, each under its own lease and supervisor."""

    def __init__(self, story: Story, raw: Broker, gate: Gate, name: str) -> None:
        self.gate, self._story, self._name = gate, story, name
        self.broker = FaultyBroker(raw, gate)
        roles: Roles = {f"medium-{ACCOUNT}": self._medium, "brain": self._brain, "actions": self._actions}
        seconds = story.knobs.lease_seconds
        self.tasks = [asyncio.create_task(supervise(self.broker, key, seconds, work)) for key, work in roles.items()]

    async def _medium(self, guard: Guard) -> None:
        medium = ScriptedMedium(self._story.platform, self.gate)

        async def publish_fact(fact: MediumFact) -> None:
            await publish(self.broker, f"evt.medium.{ACCOUNT}", fact, identity_of(fact))

        async with asyncio.TaskGroup() as group:
            group.create_task(medium.receive(publish_fact, self.broker.put_blob))
            group.create_task(Outbox(self.broker, medium, guard, self._name).run())

    async def _brain(self, guard: Guard) -> None:
        think = self._story.knobs.think_seconds
        await Manager(
            self.broker,
            guard,
            self._name,
            assistant="Desk",
            contacts=Contacts([Contact(key="ana", name="Ana", role="owner", addresses=(ANA.address,))]),
            model=ScriptedModel("desk", models.front_desk, self._story.desk, self.gate, think),
            tell=lambda account, signal: None,
            operator=self._story.notices.append,
            now=_now,
            pace=PACE,
        ).run()

    async def _actions(self, guard: Guard) -> None:
        story, gate = self._story, self.gate
        think = story.knobs.think_seconds * 5  # so long that a correction comes while it generates

        async def book(caller: Caller, arguments: dict[str, Any]) -> str:
            effect = lambda: story.book(arguments["what"])  # noqa: E731
            made: str = await gate.run("effect book", effect, PrimitiveError)
            return made

        booking = Primitive(signature="book(what: str) -> str", doc="Books.", run=book, effect=True)
        work = Workshop(
            model=ScriptedModel("worker", models.worker, story.work, gate, think),
            box=lambda key, emit: Box(story.machine.room(key), emit, gate),
            primitives={"book": booking},
            limits=Limits(),
            now=_now,
            operator=story.notices.append,
            waiting=lambda key, after: host.waiting(key, after),  # noqa: PLW0108 - the host is made below
        )
        host = ActionHost(self.broker, guard, self._name, work)
        await host.run()

    async def stop(self, clean: bool = False) -> None:
        """Not clean: as after `kill -9`, when nothing of it has any effect any more."""
        if not clean:
            self.gate.die()
        for task in self.tasks:
            task.cancel()
        ending = asyncio.gather(*self.tasks, return_exceptions=True)
        died = asyncio.create_task(self.gate.died.wait())
        await asyncio.wait({ending, died}, timeout=STOP_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        died.cancel()
        if self.gate.dead:  # perhaps while it ended cleanly
            self.gate.clear()
            await asyncio.wait({ending}, timeout=STOP_SECONDS)
        if not ending.done():
            raise RuntimeError(f"does not stop: {[task.get_name() for task in self.tasks if not task.done()]}")


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass
class Played:
    """What a run came to."""

    story: Story
    reading: Reading
    gate: Gate
    problems: list[str] = field(default_factory=list)
    faults: int = 0
    lapses: int = 0  # of leases


async def play(path: Path, knobs: Knobs, fault: Fault | None = None) -> Played:
    """One story from beginning to end; a fault at most, and a new process on the same file if it was a crash."""
    chaos = random.Random(knobs.seed + 1) if knobs.seed is not None else None
    story = Story(knobs)
    raw = _open(path, story)
    gate, second = Gate(fault, chaos), Gate(chaos=chaos)
    node = Node(story, raw, gate, "one")
    person = asyncio.create_task(story.person())
    try:
        problem = await _settle(story, raw, gate)
        await node.stop(clean=not problem)
        if gate.dead:
            raw.kill()
            await raw.close()
            if knobs.sandbox_lost:
                story.machine.lose()
            raw = _open(path, story)
            node = Node(story, raw, second, "two")
            problem = await _settle(story, raw, second)
            await node.stop(clean=not problem)
    finally:
        await node.stop()  # also where the story was not told to its end
        person.cancel()
        await asyncio.gather(person, return_exceptions=True)
        await story.machine.close()
        await raw.close()
    again = SqliteBroker(path)
    reading = await Reading.of(again)
    await again.close()
    lapses = gate.lapses + second.lapses
    return Played(story, reading, gate, [problem] if problem else [], gate.strikes, lapses)


def _open(path: Path, story: Story) -> SqliteBroker:
    raw = SqliteBroker(path)

    async def durable(key: str) -> bool:
        """The decision that a send follows from, by the turn in its ref."""
        turn = f'"turn":{key.split("/")[1]},'.encode()
        entries = await patiently(lambda: raw.read("log.lane.>"))
        return any(b'"Decided"' in one.data and turn in one.data for one in entries)

    story.platform.durable = durable
    return raw


async def _settle(story: Story, raw: SqliteBroker, gate: Gate) -> str:
    """Until nothing is left to do, or the process is dead. What is left, if it does not come to an end.

    All that is durable is read only while nothing passes the process's gate: that is most of what a run costs, and what
    is read one after the other is of one moment only then. On a machine so slow that something always passes (what is
    delivered again, a lease) it is read now and then, and has settled when that was so several times.
    """
    deadline, passed, polls, settled = time.monotonic() + SETTLE_SECONDS, 0, 0, 0
    why = "the person is not done"
    while time.monotonic() < deadline and not gate.dead:
        await asyncio.sleep(POLL_SECONDS)
        before, passed, polls = passed, sum(gate.counts.values()), polls + 1
        busy = passed != before and polls < POLLS_MAX
        if busy or not story.done or story.platform.confirmed < len(story.platform.pushed):
            continue
        why, polls = (await Reading.of(raw)).unsettled(), 0
        settled = 0 if why else settled + 1
        if not why and (passed == sum(gate.counts.values()) or settled == SETTLED):
            return ""
    return "" if gate.dead else f"did not settle: {why}"
