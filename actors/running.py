"""The open actors of one process: opened from their journals, run, and folded again or ended when they fail."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from actors import sleepers
from actors.actor import Actor
from actors.children import Children
from actors.entries import ActionEntry, Failed
from actors.inbox import Gone
from actors.journal import ActionState
from actors.parent import Parent
from actors.workshop import Workshop
from gateway.broker.protocol import Broker, Deposed
from gateway.holding import Guard
from gateway.journal import Journal

log = logging.getLogger(__name__)
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.05, 10.0
MAX_FAILURES = 5


class Tree:
    """One tree of this process. `wanted` counts the commands on their way to it: it is not let go meanwhile."""

    def __init__(self) -> None:
        self.wanted = 0
        self.feeding = asyncio.Lock()
        self.close()

    def close(self) -> None:
        self.actor: asyncio.Future[Actor] = asyncio.get_running_loop().create_future()

    def opened(self) -> Actor | None:
        done = self.actor.done() and not self.actor.cancelled() and self.actor.exception() is None
        return self.actor.result() if done else None

    def gone(self, key: str) -> None:
        """Whoever waits for it must look who has it now."""
        self.actor.set_exception(Gone(key))
        self.actor.exception()


class Running:
    """`spawn` begins a task of the host. A child runs beside its parent."""

    def __init__(
        self,
        broker: Broker,
        guard: Guard,
        worker: str,
        work: Workshop,
        spawn: Callable[[Coroutine[Any, Any, None], str], None],
    ) -> None:
        self._broker, self._guard, self._worker, self._work = broker, guard, worker, work
        self._spawn = spawn
        self.actors: set[Actor] = set()  # with children

    async def run(self, key: str, tree: Tree) -> ActionState:
        """Until it has ended or sleeps; one that fails is folded again, a few times."""
        pause = FIRST_PAUSE_SECONDS
        for failures in range(1, MAX_FAILURES + 1):
            actor = await self._open(key, None, lambda: tree.wanted > 0)
            tree.actor.set_result(actor)
            try:
                await actor.run()
            except* Deposed:
                raise
            except* Exception:
                self.actors.discard(actor)
                log.exception("action %s failed (%d of %d)", key, failures, MAX_FAILURES)
                tree.close()
            else:
                self.actors.discard(actor)
                await actor.journal.release()
                break
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE_SECONDS)
        else:
            self._work.operator(f"The action {key} failed {MAX_FAILURES} times in a row, and has been ended.")
            actor = await self._open(key, None, lambda: False)
            self.actors.discard(actor)
            await self._end(actor)
        return actor.state

    async def _end(self, actor: Actor) -> None:
        """By code, so that its lane hears of it; what comes for it later is refused as for any other that has ended."""
        await actor.box.kill()
        async with asyncio.TaskGroup() as writing:
            task = writing.create_task(actor.journal.run())
            if not actor.transcript.ended:
                await actor.append(Failed(text="Something in me fails on this task, again and again. I have ended it."))
            await actor.journal.until(lambda state: not state.outgoing)
            task.cancel()
        await actor.journal.release()

    async def _open(self, key: str, parent: Parent | None, wanted: Callable[[], bool]) -> Actor:
        journal = Journal(self._broker, f"log.act.{key}", ActionState(key), ActionEntry, self._guard, self._worker)
        await journal.open()

        async def opens(child: str, link: Parent) -> Actor:
            opened = await self._open(child, link, lambda: False)
            self._spawn(self._run_child(opened), f"action {child}")
            return opened

        actor = Actor(key, journal, self._work, Children(opens), parent, wanted=wanted, stirred=self._stirred)
        self.actors.add(actor)
        self._stirred()
        return actor

    async def _run_child(self, child: Actor) -> None:
        """A child that fails is folded again with its tree: its parent hears that it is lost."""
        try:
            await child.run()
        except* Deposed:
            raise
        except* Exception:
            log.exception("action %s failed", child.key)
            if child.parent is not None:
                text = "it failed inside; what it had done by then is not known"
                child.parent.child_ended(child.key, text, "failed", child.state.spending)
        else:
            await child.journal.release()
        finally:
            self.actors.discard(child)

    def _stirred(self) -> None:
        sleepers.put_to_sleep(self.actors, self._work.limits.max_live)
