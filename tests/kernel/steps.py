"""A tree of actions that takes every kind of command in turn: a parent, its child, the child's code and its question.

The same each time, so that a fault can strike each of its awaits.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gateway.events import Answer, Ask, Interject, Pause, Ref, Resume, Stop
from gateway.llm.model import Generation, Request
from tests.kernel.faults import Fault, Gate
from tests.kernel.models import call
from tests.kernel.platform import ANA
from tests.kernel.reading import Reading
from tests.kernel.tree import LANE, POLL_SECONDS, ROOT, Tree, standing

CHILD = f"{ROOT}--child1"
STEP_SECONDS, SOON_SECONDS = 1.0, 10.0  # of a step: a crash may have swallowed what it waits for


class Steps(Tree):
    """`seed` is of no account: `fault` is all that differs."""

    def __init__(self, path: Path, fault: Fault | None) -> None:
        super().__init__(path, 0)
        self.fault = fault
        self.first: Gate | None = None
        self.left = self.crashes_left = 0
        self._steps: asyncio.Task[None] | None = None

    def _gate(self) -> Gate:
        gate = Gate(self.fault if self.first is None else None)
        self.first = self.first or gate
        return gate

    # --- whoever commands --------------------------------------------------------------------------------------------

    async def until_over(self, gate: Gate, task: asyncio.Task[None]) -> None:
        self._steps = self._steps or asyncio.create_task(self._take_steps())
        while not (gate.dead or task.done()):
            await asyncio.sleep(POLL_SECONDS)
            if self._steps.done() and not (await self._reading()).unsettled_actions():
                self._steps.result()
                return

    async def _take_steps(self) -> None:
        await self._when(lambda reading: "JobStarted" in kinds(reading, CHILD))
        await self._say(Pause)
        await self._when(lambda reading: "Paused" in kinds(reading, CHILD))
        await self._goes_as_it_should()
        await self._say(Resume)
        await self._when(lambda reading: "Resumed" in kinds(reading, CHILD))
        await self._goes_as_it_should()
        await self._say(Interject, text="word3.")
        await self._when(lambda reading: question(reading) is not None)
        await self._say(Ask, text="ask?")
        found = question(await self._read())
        await self._say(Answer, question=found or "question1", text="answer5.")
        await self._when(lambda reading: "EffectEnded" in kinds(reading, CHILD))
        await self._say(Stop)

    async def _say(self, kind: Any, **more: Any) -> None:
        while self.raw is None:
            await asyncio.sleep(POLL_SECONDS)
        ref = Ref(LANE, len(self.commands) + 1)
        await self._publish(kind(ref=ref, conversation=LANE, action=ROOT, by=ANA, **more))

    async def _when(self, ready: Callable[[Reading], bool], seconds: float = STEP_SECONDS) -> None:
        end = asyncio.get_running_loop().time() + seconds
        while asyncio.get_running_loop().time() < end and not ready(await self._read()):
            await asyncio.sleep(POLL_SECONDS)

    async def _goes_as_it_should(self) -> None:
        """Soon, and then it stays so."""
        await self._when(lambda reading: not standing(reading, self.machine), SOON_SECONDS)
        self.breaches += standing(await self._read(), self.machine)

    async def _read(self) -> Reading:
        while self.raw is None:
            await asyncio.sleep(POLL_SECONDS)
        return await self._reading()

    # --- what works --------------------------------------------------------------------------------------------------

    def answer(self, request: Request) -> Generation:
        if request.tool_choice == "none":
            return Generation(text="So far so good.")
        texts = [str(message.get("content")) for message in request.messages]
        made = [one["function"]["name"] for m in request.messages for one in m.get("tool_calls") or ()]
        said = "\n".join(text for text in texts[1:] if text)
        if "part 1" in texts[1]:
            return _part(said)
        if "act" not in made:
            return Generation(calls=(call("act", query="part 1"),))
        if "] word3." in said and "steer" not in made:
            return Generation(calls=(call("steer", action="child1", verb="interject", text="own word"),))
        return Generation(text="It is being worked on.")

    def script(self, cell: str, code: str) -> list[tuple[Any, ...]]:
        return [
            ("print", f"{cell} begins"),
            ("tick", 10),
            ("call", "request_clarification", {"question": "Which?"}),
            ("call", "book", {"what": cell}),
            ("tick", 1000),
        ]


def _part(said: str) -> Generation:
    last = max(("ended", "still runs", "is lost"), key=lambda word: said.rfind(f" {word}"))
    if f" {last}" not in said or last == "is lost":
        return Generation(calls=(call("execute_code", code="work(1)", stateful=True),))
    if last == "ended":
        return Generation(text="done")
    cell = said[: said.rfind(" still runs")].rpartition("cell")[2]
    return Generation(calls=(call("continue_code", cell=f"cell{cell}", seconds=60),))


def kinds(reading: Reading, key: str) -> set[str]:
    return {type(entry).__name__ for entry in reading.acts.get(key, ())}


def question(reading: Reading) -> str | None:
    state = reading.act_states().get(ROOT)
    jobs = state.transcript.jobs.values() if state else ()
    return next((job.job for job in jobs if job.kind == "question"), None)
