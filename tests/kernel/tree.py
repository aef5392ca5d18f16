"""A tree of actions under random commands: a worker that does anything legal or not, code that asks and delegates, and
somebody who commands at every await. A run may be killed several times; it always ends with a stop or an end."""

import asyncio
import json
import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from actors.supervisor import ActionHost
from actors.workshop import Caller, Limits, Primitive, Workshop
from gateway.broker.protocol import Deposed
from gateway.broker.sqlite import SqliteBroker
from gateway.events import Answer, Ask, Interject, Pause, Ref, Resume, Start, Stop
from gateway.holding import Guard
from gateway.llm.model import Generation, RawCall, Request
from gateway.record import encode
from tests.kernel.faults import FaultyBroker, Gate, When
from tests.kernel.machine import Box, Machine
from tests.kernel.models import ScriptedModel, Watch, call
from tests.kernel.platform import ANA
from tests.kernel.reading import Reading

ROOT, LANE = "p-ana-a1", "p-ana"
COMMANDS, CRASHES = 25, 3
COMMAND_CHANCE, CRASH_CHANCE, AGAIN_CHANCE = 0.06, 0.004, 0.2
POLL_SECONDS, QUIET_POLLS, RUN_SECONDS = 0.02, 4, 150.0
DEPTH_MAX = 2
KINDS = ("interject", "interject", "interject", "answer", "answer", "ask", "pause", "resume")
NOW = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
HELPFUL = ("interject", "answer", "answer", "resume", "resume")


class Tree:
    def __init__(self, path: Path, seed: int) -> None:
        self.path, self.seed = path, seed
        self.dice = random.Random(seed)
        self.watch, self.machine = Watch(), Machine(self.script, lambda name: None)
        self.effects: list[str] = []
        self.notices: list[str] = []
        self.commands: list[Any] = []
        self.breaches: list[str] = []
        self.left, self.crashes_left = COMMANDS, CRASHES if seed % 3 else 0
        self.raw: SqliteBroker | None = None
        self._ending: asyncio.Task[None] | None = None
        self._sending: list[asyncio.Future[int]] = []  # whoever commands lives on

    # --- whoever commands --------------------------------------------------------------------------------------------

    async def command(self, kinds: tuple[str, ...]) -> None:
        """To the root. What was published may be published again, as after a crash of whoever published it."""
        question = await self._question()
        if self.raw is None or not self.commands:
            return
        n, kind = len(self.commands) + 1, self.dice.choice(kinds)
        same: dict[str, Any] = {"ref": Ref(LANE, n), "conversation": LANE, "action": ROOT, "by": ANA}
        match kind:
            case "interject":
                command: Any = Interject(**same, text=f"word{n}.")
            case "answer":
                command = Answer(**same, question=question, text=f"answer{n}.")
            case "ask":
                command = Ask(**same, text=f"ask{n}?")
            case "pause":
                command = Pause(**same)
            case "resume":
                command = Resume(**same)
            case _:
                command = Stop(**same)
        await self._publish(command)

    async def start(self) -> None:
        same: dict[str, Any] = {"ref": Ref(LANE, 1), "conversation": LANE, "action": ROOT, "by": ANA}
        await self._publish(Start(**same, name="root", query="part 0", persist=self.dice.random() < 0.5))

    async def _publish(self, command: Any) -> None:
        assert self.raw is not None
        again = self.commands[-1:] if self.dice.random() < AGAIN_CHANCE else []
        self.commands.append(command)
        for each in (*again, command):
            sending = self.raw.append(f"cmd.act.{ROOT}", encode(each), msg_id=str(each.ref))
            self._sending.append(asyncio.ensure_future(sending))
        await asyncio.shield(self._sending[-1])

    async def _question(self) -> str:
        if self.raw is None:
            return ""
        state = (await Reading.of(self.raw)).act_states().get(ROOT)
        jobs = state.transcript.jobs.values() if state else ()
        return self.dice.choice([job.job for job in jobs if job.kind == "question"] or ["question99"])

    # --- what works --------------------------------------------------------------------------------------------------

    def answer(self, request: Request) -> Generation:
        """Depends on nothing but the request: the same transcript is answered the same way."""
        if request.tool_choice == "none":
            return Generation(text="So far so good.")
        messages = request.messages
        dice = random.Random(f"{self.seed} {json.dumps(messages)}")
        depth = int(str(messages[1]["content"]).partition("part ")[2][0])
        if len(messages) > 60 or dice.random() < 0.25:
            return Generation(text=dice.choice(["done", "done", "", "all done"]))
        made = [dice.choice(self._calls(depth, dice)) for _ in range(dice.choice([1, 1, 2, 3]))]
        return Generation(text=dice.choice(["", "thinking"]), calls=tuple(made))

    def _calls(self, depth: int, dice: random.Random) -> list[RawCall]:
        n = dice.randrange(1, 6)
        calls = [
            *[call("execute_code", code=f"work({depth})", stateful=dice.random() < 0.5)] * 4,
            RawCall(name="execute_code", arguments='{"code": "tru', complete=False),
            RawCall(name="execute_code", arguments="[1]"),
            call("no_such_tool"),
            call("notify", text="news"),
            call("request_clarification", question="which?"),
            call("respond", text="final"),
            call("continue_code", cell=f"cell{n}", seconds=0.01),
            call("interrupt_code", cell=f"cell{n}"),
            call("steer", action=f"child{n}", verb=dice.choice(["interject", "pause", "resume", "stop"]), text="do"),
        ]
        return calls + [call("act", query=f"part {depth + 1}")] * (3 if depth < DEPTH_MAX else 1)

    def script(self, cell: str, code: str) -> list[tuple[Any, ...]]:
        dice, depth = random.Random(f"{self.seed} {cell} {code}"), int(code[5])
        ops: list[tuple[Any, ...]] = []
        for n in range(dice.randrange(4)):
            ops.append(("print", f"line {n} of {cell}"))
            ops.append(("tick", dice.randrange(3)))
            ops.append(
                dice.choice(
                    [
                        ("call", "request_clarification", {"question": f"in {cell}?"}),
                        ("call", "act", {"query": f"part {depth + 1}"}),
                        ("call", "book", {"what": cell}),
                        ("call", "notify", {"text": "from code"}),
                        ("print", "on"),
                    ]
                )
            )
        return ops

    # --- a life of the process ---------------------------------------------------------------------------------------

    async def run(self) -> str:
        """Life after life until all is over; what did not come to an end, if so."""
        try:
            async with asyncio.timeout(RUN_SECONDS):
                while await self._live():
                    pass
        except TimeoutError:
            return f"seed {self.seed} does not come to an end"
        finally:
            if self._ending is not None:
                await self._ending
            await self.machine.close()
        return ""

    async def _live(self) -> bool:
        """True if it was killed or deposed: another life takes over."""
        self.raw = raw = SqliteBroker(self.path)
        gate = self._gate()
        lease = await raw.lease("actions", "one", 600.0)
        assert lease is not None
        task = asyncio.create_task(self._host(gate, Guard(lease)).run())
        try:
            if not self.commands:
                await self.start()
            await self.until_over(gate, task)
        finally:
            self.raw = None
            self._ending = asyncio.create_task(self._end(raw, gate, task))
            await asyncio.shield(self._ending)
        error = None if task.cancelled() else task.exception()
        if error is not None and not _deposed(error):
            raise error
        return gate.dead or error is not None

    async def _end(self, raw: SqliteBroker, gate: Gate, task: asyncio.Task[None]) -> None:
        await asyncio.gather(*self._sending)
        await _ended(task, gate)
        if gate.dead:
            raw.kill()
        await raw.close()

    def _gate(self) -> Gate:
        return Commanded(self)

    def _host(self, gate: Gate, guard: Guard) -> ActionHost:
        broker = FaultyBroker(self.raw, gate)  # type: ignore[arg-type]
        self._open_host = ActionHost(broker, guard, "one", self._workshop(gate))
        return self._open_host

    def _workshop(self, gate: Gate) -> Workshop:
        async def book(caller: Caller, arguments: dict[str, Any]) -> str:
            await gate.point("effect", "before")
            self.effects.append(f"{caller.action} {arguments['what']}")
            await gate.point("effect", "after")
            return "booked"

        return Workshop(
            model=ScriptedModel("worker", self.answer, self.watch, gate, 0.0),
            box=lambda key, emit: Box(self.machine.room(key), emit, gate),
            primitives={"book": Primitive(signature="book(what: str) -> str", doc="Books.", run=book, effect=True)},
            limits=Limits(max_steps=12, max_depth=DEPTH_MAX, max_children=3),
            now=lambda: NOW,
            operator=self.notices.append,
            waiting=lambda key, after: self._open_host.waiting(key, after),  # noqa: PLW0108 - the host is made later
        )

    async def until_over(self, gate: Gate, task: asyncio.Task[None]) -> None:
        """When nothing moves only a person can help; at last by a stop."""
        quiet, before = 0, -1
        while not (gate.dead or task.done()):
            await asyncio.sleep(POLL_SECONDS)
            passed = sum(gate.counts.values())
            quiet, before = (quiet + 1 if passed == before else 0), passed
            if self._is_over_soon:
                if quiet and not (await self._reading()).unsettled_actions():
                    return
            elif self.left > 0 and quiet >= QUIET_POLLS:
                quiet = 0
                self.left -= 1
                await self.command(HELPFUL)
            elif quiet >= 3 * QUIET_POLLS:
                self.breaches += standing(await self._reading(), self.machine)
                await self.command(("stop",))

    @property
    def _is_over_soon(self) -> bool:
        return bool(self.commands) and isinstance(self.commands[-1], Stop)

    async def _reading(self) -> Reading:
        assert self.raw is not None
        return await Reading.of(self.raw)


def _deposed(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return all(map(_deposed, error.exceptions))
    return isinstance(error, Deposed)


async def _ended(task: asyncio.Task[None], gate: Gate) -> None:
    """Cleanly, if it does not die even now."""
    task.cancel()
    died = asyncio.create_task(gate.died.wait())
    await asyncio.wait({task, died}, return_when=asyncio.FIRST_COMPLETED)
    died.cancel()
    if gate.dead:
        gate.clear()
        await asyncio.wait({task})


def standing(reading: Reading, machine: Machine) -> list[str]:
    """Code goes while its action goes, and stands still while it is paused."""
    return [
        f"{key} is {state.phase}, and its code {'goes' if machine.room(key).going.is_set() else 'stands still'}"
        for key, state in reading.act_states().items()
        if machine.room(key).running and machine.room(key).going.is_set() == state.transcript.paused
    ]


class Commanded(Gate):
    """At each point somebody may command, and the process may die."""

    def __init__(self, tree: Tree) -> None:
        super().__init__(chaos=tree.dice)
        self._tree = tree

    async def point(self, label: str, when: When, effect: Any = None, lost: Any = None) -> None:
        await super().point(label, when, effect, lost)
        tree = self._tree
        if tree.left > 0 and tree.dice.random() < COMMAND_CHANCE:
            tree.left -= 1
            await tree.command(KINDS)
        if tree.crashes_left and tree.dice.random() < CRASH_CHANCE:
            tree.crashes_left -= 1
            self.die()
            await self.alive()
