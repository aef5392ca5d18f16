"""All actions of one host: who runs what. Each has `cmd` (anyone writes), `log` (this holder's) and `evt` (upward).

Here is the actors' supervisor: an action whose loop fails is folded again from its journal; the others do not notice.
An action that has ended or hibernates is let go: what is left of it here is when it will be closed. It is opened again
when somebody asks about it, speaks to it, or commands it too late.
"""

import asyncio
import logging
from datetime import datetime
from typing import Any

from actors import idle
from actors.actor import Actor
from actors.children import Children, Gone, Parent
from actors.entries import ActionEntry, Failed
from actors.journal import ActionState
from actors.words import SleepWanted
from actors.workshop import Workshop
from gateway.broker.protocol import Broker, Deposed, Unconfirmed
from gateway.events import ActionCommand
from gateway.holding import Guard
from gateway.journal import Journal, JournalClosed, acknowledge, fold_stored
from gateway.record import Undecodable, decode

log = logging.getLogger(__name__)
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.05, 10.0
MAX_FAILURES = 5


class ActionHost:
    def __init__(self, broker: Broker, guard: Guard, worker: str, work: Workshop) -> None:
        self._broker, self._guard, self._worker, self._work = broker, guard, worker, work
        self._actors: dict[str, asyncio.Future[Actor]] = {}
        self.open_actors: set[Actor] = set()  # with children
        self._closes_at: dict[str, datetime] = {}  # of those that hibernate
        self._slept = asyncio.Event()
        self._wanted: str | None = None  # whom the command is for that is being delivered: it is not let go meanwhile

    async def run(self) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                for subject in await self._broker.subjects("log.act.>"):
                    key = subject.removeprefix("log.act.")
                    if "--" not in key and await self._has_work(key):  # a child is opened by its parent
                        self._keep(key, group)
                group.create_task(self._close_in_time(group), name="close sessions")
                async for delivery in self._broker.consume("cmd.act.>", "actions"):
                    await self._obey(delivery.stored.data, delivery.stored.sequence, group)
                    await acknowledge(delivery.ack)
        finally:
            for future in self._actors.values():
                if future.done() and not future.cancelled():
                    await future.result().journal.release()

    def actor(self, key: str) -> Actor | None:
        """If it is open now."""
        future = self._actors.get(key)
        return future.result() if future and future.done() and not future.cancelled() else None

    async def _obey(self, data: bytes, sequence: int, group: asyncio.TaskGroup) -> None:
        try:
            command: ActionCommand = decode(data, ActionCommand)
        except Undecodable as error:
            self._work.operator(f"A stored command cannot be read and is set aside: {error}")
            return None
        self._wanted = command.action
        while True:
            if command.action not in self._actors:
                self._keep(command.action, group)
            actor = await asyncio.shield(self._actors[command.action])
            try:
                await actor.hear(command, sequence)
            except (Gone, JournalClosed):  # it ended or failed meanwhile: its loop takes it from the fold
                await asyncio.sleep(0)
            else:
                self._wanted = None
                return actor.wake()

    async def waiting(self, key: str, after: int) -> list[tuple[int, ActionCommand]]:
        """What is durable in an action's `cmd` after that sequence. A courtesy: what is missed is refused, aloud."""
        try:
            stored = await self._broker.read(f"cmd.act.{key}", after)
        except Unconfirmed:
            return []
        return [(one.sequence, decode(one.data, ActionCommand)) for one in stored]

    # --- idle sessions -----------------------------------------------------------------------------------------------

    async def _has_work(self, key: str) -> bool:
        """At the start: whether there is anything to do before the next command. If not, nothing of it runs."""
        state = ActionState(key)
        try:
            await fold_stored(self._broker, f"log.act.{key}", state, ActionEntry)
        except Undecodable:
            return True  # whoever opens it says so
        left = state.outgoing or state.asks or any(job.kind == "child" for job in state.transcript.jobs.values())
        if left or not (state.transcript.ended or state.phase == "hibernated"):
            return True
        self._note_sleeper(key, state)
        await self._work.box(key, lambda happening: None).kill()  # it may have crashed just before
        return False

    def _note_sleeper(self, key: str, state: ActionState) -> None:
        if state.phase == "hibernated" and state.idle_since is not None:
            self._closes_at[key] = state.idle_since + self._work.limits.close_after
            self._slept.set()

    async def _close_in_time(self, group: asyncio.TaskGroup) -> None:
        """Opening it is enough: it sees for itself that its time is over."""
        while True:
            self._slept.clear()
            now = self._work.now()
            for key in [key for key, at in self._closes_at.items() if at <= now]:
                self._keep(key, group)
            waiting: set[asyncio.Future[Any]] = {asyncio.ensure_future(self._slept.wait())}
            if self._closes_at:
                seconds = (min(self._closes_at.values()) - now).total_seconds()
                waiting.add(asyncio.ensure_future(self._slept_for(seconds)))
            try:
                await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for one in waiting:
                    one.cancel()

    async def _slept_for(self, seconds: float) -> None:
        await self._work.sleep(seconds)

    def _stirred(self) -> None:
        """When too many are live, those go to sleep that have been idle longest."""
        awake = [actor for actor in self.open_actors if actor.state.live and not actor.going_to_sleep]
        surplus = len(awake) - self._work.limits.max_live
        if surplus <= 0:
            return
        idlers = [(actor.state.idle_since, actor.key, actor) for actor in awake if idle.is_idle(actor)]
        for _, _, actor in sorted((one for one in idlers if one[0] is not None), key=lambda one: one[:2])[:surplus]:
            actor.going_to_sleep = True
            actor.happened(SleepWanted())

    # --- the actors' supervisor --------------------------------------------------------------------------------------

    def _keep(self, key: str, group: asyncio.TaskGroup) -> None:
        self._closes_at.pop(key, None)
        self._actors[key] = asyncio.get_running_loop().create_future()
        group.create_task(self._keep_running(key, group), name=f"action {key}")

    async def _keep_running(self, key: str, group: asyncio.TaskGroup) -> None:
        pause = FIRST_PAUSE_SECONDS
        for failures in range(1, MAX_FAILURES + 1):
            actor = await self._open(key, None, group)
            self._actors[key].set_result(actor)
            try:
                await actor.run()
            except* Deposed:
                raise
            except* Exception:
                self.open_actors.discard(actor)
                log.exception("action %s failed (%d of %d)", key, failures, MAX_FAILURES)
                self._actors[key] = asyncio.get_running_loop().create_future()
            else:
                self.open_actors.discard(actor)
                await actor.journal.release()
                break
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE_SECONDS)
        else:
            self._work.operator(f"The action {key} failed {MAX_FAILURES} times in a row, and has been ended.")
            actor = await self._open(key, None, group)
            self.open_actors.discard(actor)
            await self._end(key, actor)
        self._actors.pop(key)
        self._note_sleeper(key, actor.state)

    async def _end(self, key: str, actor: Actor) -> None:
        """By code, so that its lane hears of it; what comes for it later is refused as for any other that has ended."""
        await actor.box.kill()
        async with asyncio.TaskGroup() as writing:
            task = writing.create_task(actor.journal.run())
            if not actor.transcript.ended:
                await actor.append(Failed(text="Something in me fails on this task, again and again. I have ended it."))
            await actor.journal.until(lambda state: not state.outgoing)
            task.cancel()
        await actor.journal.release()

    async def _open(self, key: str, parent: Parent | None, group: asyncio.TaskGroup) -> Actor:
        journal = Journal(self._broker, f"log.act.{key}", ActionState(key), ActionEntry, self._guard, self._worker)
        await journal.open()

        async def opens(child: str, link: Parent) -> Actor:
            opened = await self._open(child, link, group)
            group.create_task(self._run_child(opened), name=f"action {child}")
            return opened

        actor = Actor(
            key,
            journal,
            self._work,
            Children(opens),
            parent,
            wanted=lambda: self._wanted == key,
            stirred=self._stirred,
        )
        self.open_actors.add(actor)
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
            self.open_actors.discard(child)
