"""The actions of one process: who runs what. Each has `cmd` (anyone writes), `log` (this holder's) and `evt` (upward).

Here is the actors' supervisor: an action whose loop fails is folded again from its journal; the others do not notice.
An action that has ended or hibernates is let go. It is opened again when somebody asks about it, speaks to it, or
commands it too late; one that hibernates stays claimed, because its files are on this machine, and is closed in time.
How several processes share the actions, and why no command is lost between them, is in sharing.py.
"""

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime
from typing import Any

from actors import idle
from actors.actor import Actor
from actors.children import Children, Gone, Parent
from actors.entries import ActionEntry, Failed
from actors.journal import ActionState
from actors.sandbox.words import Happening
from actors.sharing import Alone, Sharing
from actors.words import SleepWanted
from actors.workshop import Workshop
from gateway.broker.protocol import Broker, Delivery, Deposed, Unconfirmed
from gateway.events import ActionCommand
from gateway.holding import Guard
from gateway.journal import Journal, JournalClosed, acknowledge, fold_stored
from gateway.record import Undecodable, decode

log = logging.getLogger(__name__)
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.05, 10.0
MAX_FAILURES = 5
AGAIN_SECONDS = 0.02  # until a command is tried again that could not be taken
ADOPT_SECONDS = 0.25  # how often it is looked for trees without a holder
SWEEP_EVERY = 40  # and every so many times for sandboxes that are nobody's
STILL_SECONDS = 3.0


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


class ActionHost:
    def __init__(
        self, broker: Broker, guard: Guard, worker: str, work: Workshop, sharing: Sharing | None = None
    ) -> None:
        self._broker, self._guard, self._worker, self._work = broker, guard, worker, work
        self._sharing: Sharing = sharing or Alone(broker)
        self._trees: dict[str, Tree] = {}
        self._adopting: set[str] = set()  # looked at, and not yet opened or left alone
        self.open_actors: set[Actor] = set()  # with children
        self._closes_at: dict[str, datetime] = {}  # of those that hibernate; none of them is in `_trees`
        self._slept = asyncio.Event()

    async def run(self) -> None:
        unwatch = self._sharing.answer(self._look)
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                await self._adopt()
                if self._sharing.several:
                    group.create_task(self._adopt_forever(), name="adopt")
                group.create_task(self._close_in_time(), name="close sessions")
                async for delivery in self._sharing.commands():
                    settling = self._settle(delivery)
                    if self._sharing.several:
                        group.create_task(settling, name=f"settle {delivery.stored.subject}")
                    else:
                        await settling
        finally:
            unwatch()
            if self._sharing.lost():
                await self._stand_still()
            else:
                opened = [actor for tree in self._trees.values() if (actor := tree.opened()) is not None]
                await asyncio.gather(*(actor.journal.release() for actor in opened))

    def actor(self, key: str) -> Actor | None:
        """If it is open now."""
        return self._trees[key].opened() if key in self._trees else None

    # --- commands ----------------------------------------------------------------------------------------------------

    async def _settle(self, delivery: Delivery) -> None:
        key = delivery.stored.subject.removeprefix("cmd.act.")
        while not await self._taken(key):
            await asyncio.sleep(AGAIN_SECONDS)
        await acknowledge(delivery.ack)

    async def _taken(self, key: str) -> bool:
        """All that was durable in its `cmd` before the call is in its log, here or elsewhere."""
        if key not in self._trees and not await self._sharing.claim(key):
            return await self._sharing.told(key)
        if key in self._adopting:
            return False
        if key not in self._trees:
            self._keep(key)
        return await self._feed(key)

    async def _feed(self, key: str) -> bool:
        """In the order of `cmd`, from where the log ends. False when it ended or failed meanwhile."""
        tree = self._trees[key]
        tree.wanted += 1
        try:
            async with tree.feeding:
                actor = await asyncio.shield(tree.actor)
                for sequence, command in await self._after(key, actor.state.through):
                    await actor.hear(command, sequence)
        except (Gone, JournalClosed, Unconfirmed):
            return False
        else:
            return True
        finally:
            tree.wanted -= 1
            if (opened := tree.opened()) is not None:
                opened.wake()

    async def _after(self, key: str, through: int) -> list[tuple[int, ActionCommand]]:
        """Raises Unconfirmed."""
        found: list[tuple[int, ActionCommand]] = []
        for one in await self._broker.read(f"cmd.act.{key}", through):
            try:
                found.append((one.sequence, decode(one.data, ActionCommand)))
            except Undecodable as error:
                self._work.operator(f"A stored command cannot be read and is set aside: {error}")
        return found

    async def waiting(self, key: str, after: int) -> list[tuple[int, ActionCommand]]:
        """What is durable in an action's `cmd` after that sequence. A courtesy: what is missed is refused, aloud."""
        try:
            return await self._after(key, after)
        except Unconfirmed:
            return []

    def _look(self, key: str, taken: Callable[[], None]) -> None:
        """Another process has a command for a tree that may be ours."""
        if key in self._closes_at:
            self._keep(key)
        if key in self._trees:
            self._group.create_task(self._look_and_tell(key, taken), name=f"look at {key}")

    async def _look_and_tell(self, key: str, taken: Callable[[], None]) -> None:
        if key in self._trees and await self._feed(key):
            taken()

    # --- trees without a holder --------------------------------------------------------------------------------------

    async def _adopt_forever(self) -> None:
        rounds = 0
        while True:
            if rounds % SWEEP_EVERY == 0:
                await self._sweep()
            rounds += 1
            await asyncio.sleep(ADOPT_SECONDS)
            await self._adopt()

    async def _adopt(self) -> None:
        for key in await self._sharing.orphans():
            if key in self._trees or not await self._sharing.claim(key) or key in self._trees:
                continue
            self._adopting.add(key)
            try:
                if await self._has_work(key):
                    self._keep(key)
                elif key not in self._closes_at:
                    await self._sharing.let_go(key)
            finally:
                self._adopting.discard(key)

    async def _sweep(self) -> None:
        """Ends sandboxes on this machine whose tree has gone elsewhere, or is over."""
        running = await asyncio.to_thread(self._work.sandboxes)
        strange = await self._sharing.strangers({_root(key) for key in running} - {*self._trees})
        for key in running:
            if _root(key) in strange:
                log.warning("the sandbox of %s is ended: the action is held elsewhere, or over", key)
                box = self._work.box(key, _unheard)
                await box.kill()
                await box.close()

    async def _stand_still(self) -> None:
        """What is held here no longer must not go on by itself, unless another process on this machine has it."""
        running = [key for key in await asyncio.to_thread(self._work.sandboxes) if _root(key) in self._trees]
        taken = await self._sharing.taken_here({_root(key) for key in running})
        still = [self._freeze(key) for key in running if _root(key) not in taken]
        if still:
            _, late = await asyncio.wait([asyncio.ensure_future(one) for one in still], timeout=STILL_SECONDS)
            for task in late:
                task.cancel()

    async def _freeze(self, key: str) -> None:
        box = self._work.box(key, _unheard)
        await box.attach()
        await box.suspend()
        await box.close()

    # --- idle sessions -----------------------------------------------------------------------------------------------

    async def _has_work(self, key: str) -> bool:
        """Of one that is taken over: whether there is anything to do before the next command. If not, nothing of it
        runs."""
        state = ActionState(key)
        try:
            await fold_stored(self._broker, f"log.act.{key}", state, ActionEntry)
        except (Undecodable, Unconfirmed):
            return True  # whoever opens it says so
        left = state.outgoing or state.asks or any(job.kind == "child" for job in state.transcript.jobs.values())
        if left or not (state.transcript.ended or state.phase == "hibernated"):
            return True
        self._note_sleeper(key, state)
        await self._work.box(key, lambda happening: None).kill()  # it may have crashed just before
        return False

    def _note_sleeper(self, key: str, state: ActionState) -> bool:
        """True if it is one."""
        if state.phase != "hibernated" or state.idle_since is None:
            return False
        self._closes_at[key] = state.idle_since + self._work.limits.close_after
        self._slept.set()
        return True

    async def _close_in_time(self) -> None:
        """Opening it is enough: it sees for itself that its time is over."""
        while True:
            self._slept.clear()
            now = self._work.now()
            for key in [key for key, at in self._closes_at.items() if at <= now]:
                self._keep(key)
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

    def _keep(self, key: str) -> None:
        self._closes_at.pop(key, None)
        self._trees[key] = Tree()
        self._group.create_task(self._keep_running(key, self._trees[key]), name=f"action {key}")

    async def _keep_running(self, key: str, tree: Tree) -> None:
        pause = FIRST_PAUSE_SECONDS
        for failures in range(1, MAX_FAILURES + 1):
            actor = await self._open(key, None)
            tree.actor.set_result(actor)
            try:
                await actor.run()
            except* Deposed:
                raise
            except* Exception:
                self.open_actors.discard(actor)
                log.exception("action %s failed (%d of %d)", key, failures, MAX_FAILURES)
                tree.close()
            else:
                self.open_actors.discard(actor)
                await actor.journal.release()
                break
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE_SECONDS)
        else:
            self._work.operator(f"The action {key} failed {MAX_FAILURES} times in a row, and has been ended.")
            actor = await self._open(key, None)
            self.open_actors.discard(actor)
            await self._end(key, actor)
        tree.close()  # from here on nobody is given the one that has ended
        if not self._note_sleeper(key, actor.state):
            await self._sharing.let_go(key)
        del self._trees[key]
        tree.gone(key)

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

    async def _open(self, key: str, parent: Parent | None) -> Actor:
        journal = Journal(self._broker, f"log.act.{key}", ActionState(key), ActionEntry, self._guard, self._worker)
        await journal.open()

        async def opens(child: str, link: Parent) -> Actor:
            opened = await self._open(child, link)
            self._group.create_task(self._run_child(opened), name=f"action {child}")
            return opened

        actor = Actor(
            key,
            journal,
            self._work,
            Children(opens),
            parent,
            wanted=lambda: self._is_wanted(key),
            stirred=self._stirred,
        )
        self.open_actors.add(actor)
        self._stirred()
        return actor

    def _is_wanted(self, key: str) -> bool:
        return key in self._trees and self._trees[key].wanted > 0

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
                state = child.state
                child.parent.child_ended(child.key, text, "failed", state.spending, tuple(state.offered))
        else:
            await child.journal.release()
        finally:
            self.open_actors.discard(child)


def _root(key: str) -> str:
    return key.partition("--")[0]


def _unheard(happening: Happening) -> None:
    """It is told again to whoever attaches."""
