"""The open actors of one process: opened from their journals, run, and folded again or ended when they fail.

A child runs beside its parent and never outlives its loop's failure: what a failed action had started is closed, and
opened again with it or ended. A root that fails is folded again, a few times; a child that fails has failed, and its
parent hears of it and decides.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from actors import sleepers
from actors.actor import Actor
from actors.calls import RESPONSE_BYTES
from actors.children import Children
from actors.entries import ActionEntry, AskAnswered, Failed
from actors.inbox import Gone
from actors.journal import ActionState
from actors.parent import Parent
from actors.workshop import Workshop
from gateway.broker.protocol import Broker, Deposed
from gateway.holding import Guard
from gateway.journal import Journal
from gateway.llm.history import within
from gateway.record import Undecodable

log = logging.getLogger(__name__)
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.05, 10.0
MAX_FAILURES = 5
AGAIN_AND_AGAIN = "Something in me fails on this task, again and again. I have ended it."
INSIDE = "I failed inside ({error}), and was ended; what I had begun by then is not known to be done."
NO_ANSWER = "It cannot be asked: it has failed."


class Tree:
    """One tree of this process. `wanted` counts the commands on their way to it: it is not let go meanwhile."""

    def __init__(self) -> None:
        self.wanted = 0
        self.feeding = asyncio.Lock()
        self.actor: asyncio.Future[Actor] = asyncio.get_running_loop().create_future()

    def close(self) -> None:
        """Whoever comes now waits for the next one, with those who wait for it already."""
        if self.actor.done():
            self.actor = asyncio.get_running_loop().create_future()

    def opened(self) -> Actor | None:
        done = self.actor.done() and not self.actor.cancelled() and self.actor.exception() is None
        return self.actor.result() if done else None

    def gone(self, key: str) -> None:
        """Whoever waits for it must look who has it now."""
        self.actor.set_exception(Gone(key))
        self.actor.exception()


class Running:
    """`spawn` begins a task of the host."""

    def __init__(
        self,
        broker: Broker,
        guard: Guard,
        worker: str,
        work: Workshop,
        spawn: Callable[[Coroutine[Any, Any, None], str], asyncio.Task[None]],
    ) -> None:
        self._broker, self._guard, self._worker, self._work = broker, guard, worker, work
        self._spawn = spawn
        self._children: dict[str, tuple[Actor, asyncio.Task[None]]] = {}
        self.actors: set[Actor] = set()  # with children

    async def run(self, key: str, tree: Tree) -> ActionState:
        """Until it has ended or sleeps. Raises Undecodable: its journal, or that of a child, cannot be read."""
        pause = FIRST_PAUSE_SECONDS
        for failures in range(1, MAX_FAILURES + 1):
            actor = await self._open(key, None, lambda: tree.wanted > 0)
            tree.actor.set_result(actor)
            if (failure := await self._run(actor)) is None:
                return actor.state
            tree.close()
            await self._close_below(key)
            if isinstance(failure, Undecodable):
                raise failure
            log.error("action %s failed (%d of %d)", key, failures, MAX_FAILURES)
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE_SECONDS)
        self._work.operator(f"The action {key} failed {MAX_FAILURES} times in a row, and has been ended.")
        return await self._end(key, None, AGAIN_AND_AGAIN)

    async def _run(self, actor: Actor) -> BaseException | None:
        """Why it failed, if it did. Raises Deposed."""
        running = asyncio.create_task(actor.run(), name=f"run {actor.key}")  # 3.11: an error could swallow our own end
        try:
            await asyncio.wait({running})
        finally:
            running.cancel()
            await asyncio.wait({running})
            self.actors.discard(actor)
            failure = None if running.cancelled() else running.exception()
        if failure is None:
            await actor.journal.release()
            return None
        if _has(failure, Deposed):
            raise failure
        log.error("action %s failed", actor.key, exc_info=failure)
        return _first(failure)

    async def _open(self, key: str, parent: Parent | None, wanted: Callable[[], bool]) -> Actor:
        journal = Journal(self._broker, f"log.act.{key}", ActionState(key), ActionEntry, self._guard, self._worker)
        await journal.open()
        children = Children(self._open_child, self._settled)
        actor = Actor(key, journal, self._work, children, parent, wanted=wanted, stirred=self._stirred)
        self.actors.add(actor)
        self._stirred()
        return actor

    # --- children ----------------------------------------------------------------------------------------------------

    async def _open_child(self, key: str, parent: Parent) -> Actor:
        """The one that is open, if it is still there; its journal has one writer."""
        if key in self._children:
            child, running = self._children[key]
            if not child.gone:
                return child
            await asyncio.wait({running})
        child = await self._open(key, parent, lambda: False)
        self._children[key] = child, self._spawn(self._run_child(child), f"action {key}")
        return child

    async def _run_child(self, child: Actor) -> None:
        try:
            if (failure := await self._run(child)) is not None and self._is_running(child):
                await self._close_below(child.key)
                state = await self._end(child.key, child.parent, INSIDE.format(error=type(failure).__name__))
                assert child.parent is not None
                child.root.purse.forget()
                child.parent.child_ended(child.key, state.result, state.phase, state.spending, tuple(state.offered))
        finally:
            if self._is_running(child):
                del self._children[child.key]

    async def _settled(self, key: str) -> None:
        """Until what became of a child is in its log. Raises Deposed if that may no longer be written here."""
        if key in self._children:
            running = self._children[key][1]
            await asyncio.wait({running})
            if not running.cancelled():
                running.result()

    def _is_running(self, child: Actor) -> bool:
        """False once it was closed with its parent."""
        return child.key in self._children and self._children[child.key][0] is child

    async def _close_below(self, key: str) -> None:
        """Their sandboxes go on, as after a crash, until they are opened again or ended."""
        below = [child for child in self._children if child.startswith(f"{key}--")]
        tasks = [self._children.pop(child)[1] for child in below]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    # --- what cannot go on -------------------------------------------------------------------------------------------

    async def _end(self, key: str, parent: Parent | None, text: str) -> ActionState:
        """By code: its log says so, whoever asked has an answer, and all that it started ends with it. What comes for
        it later is refused as for any other that has ended."""
        actor = await self._open(key, parent, lambda: False)
        try:
            async with asyncio.TaskGroup() as group:
                writing = group.create_task(actor.journal.run())
                await _write_the_end(actor, text)
                await actor.children.end(actor)
                await actor.journal.until(lambda state: not state.outgoing)
                writing.cancel()
        finally:
            self.actors.discard(actor)
        await self._end_processes(actor)
        await actor.journal.release()
        return actor.state

    async def _end_processes(self, actor: Actor) -> None:
        try:
            await actor.box.kill()
            await actor.box.close()
        except Exception:  # whatever it is: from here it would end every other action of this process
            log.exception("the sandbox of %s", actor.key)
            self._work.operator(f"The sandbox of {actor.key} could not be ended; look for its processes.")

    def _stirred(self) -> None:
        sleepers.put_to_sleep(self.actors, self._work.limits.max_live)


async def _write_the_end(actor: Actor, text: str) -> None:
    if not actor.transcript.ended:
        for call in list(actor.transcript.open.values()):
            await actor.close_call(call, "Not finished.")
        await actor.append(Failed(text=text))
    for ask in list(actor.state.asks.values()):
        asked = within(ask.text, RESPONSE_BYTES)
        await actor.append(AskAnswered(command=ask.ref, asked=asked, text=NO_ANSWER))
        if actor.parent is not None:
            actor.parent.child_answered(actor.key, ask.ref, NO_ANSWER)


def _has(error: BaseException, kind: type[Exception]) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return any(_has(inner, kind) for inner in error.exceptions)
    return isinstance(error, kind)


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
