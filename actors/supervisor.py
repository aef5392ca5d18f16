"""The actions of one process: who runs what. Each has `cmd` (anyone writes), `log` (this holder's) and `evt` (upward).

Here is the actors' supervisor: an action whose loop fails is folded again from its journal, one whose journal cannot be
read is parked; the others do not notice.
An action that has ended or hibernates is let go. It is opened again when somebody asks about it, speaks to it, or
commands it too late; one that hibernates stays claimed, because its files are on this machine, and is closed in time.
Of one that has ended nothing stays but its log: its `cmd` is forgotten, so that a start finds only what is in flight.
How several processes share the actions, and why no command is lost between them, is in sharing.py.
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from actors import strays
from actors.actor import Actor
from actors.entries import ActionEntry
from actors.inbox import Gone
from actors.journal import ActionState
from actors.parking import Parked
from actors.running import Running, Tree
from actors.sharing import Alone, Sharing
from actors.sleepers import Sleepers
from actors.workshop import Workshop
from gateway.broker.protocol import Broker, Delivery, Unconfirmed
from gateway.events import ActionCommand
from gateway.holding import Guard
from gateway.journal import JournalClosed, acknowledge, fold_stored
from gateway.record import Undecodable, decode

AGAIN_SECONDS = 0.02  # until a command is tried again that could not be taken
ADOPT_SECONDS = 0.25  # how often it is looked for trees without a holder
SWEEP_EVERY = 40  # and every so many times for sandboxes that are nobody's


class ActionHost:
    def __init__(
        self, broker: Broker, guard: Guard, worker: str, work: Workshop, sharing: Sharing | None = None
    ) -> None:
        self._broker, self._work = broker, work
        self._sharing: Sharing = sharing or Alone(broker)
        self._trees: dict[str, Tree] = {}
        self._adopting: set[str] = set()  # looked at, and not yet opened or left alone
        self._sleepers = Sleepers(work)  # none of them is in `_trees`
        self._parked = Parked(broker, work)
        self._running = Running(broker, guard, worker, work, self._spawn)

    @property
    def open_actors(self) -> set[Actor]:
        """With children."""
        return self._running.actors

    async def run(self) -> None:
        unwatch = self._sharing.answer(self._look)
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                await self._adopt()
                if self._sharing.several:
                    group.create_task(self._adopt_forever(), name="adopt")
                group.create_task(self._sleepers.wake_in_time(self._open_to_close), name="close sessions")
                async for delivery in self._sharing.commands():
                    settling = self._settle(delivery)
                    if self._sharing.several:
                        group.create_task(settling, name=f"settle {delivery.stored.subject}")
                    else:
                        await settling
        finally:
            unwatch()
            if self._sharing.lost():
                await strays.stand_still(self._work, self._sharing, {*self._trees})
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
        if key in self._parked:
            await self._parked.refuse(key, await self._after(key, 0))
            return True
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
        if self._sleepers.is_held(key):
            self._keep(key)
        if key in self._trees or key in self._parked:
            self._group.create_task(self._look_and_tell(key, taken), name=f"look at {key}")

    async def _look_and_tell(self, key: str, taken: Callable[[], None]) -> None:
        if key in self._parked:
            await self._parked.refuse(key, await self._after(key, 0))
            taken()
        elif key in self._trees and await self._feed(key):
            taken()

    # --- trees without a holder --------------------------------------------------------------------------------------

    async def _adopt_forever(self) -> None:
        rounds = 0
        while True:
            if rounds % SWEEP_EVERY == 0:
                await strays.sweep(self._work, self._sharing, {*self._trees})
            rounds += 1
            await asyncio.sleep(ADOPT_SECONDS)
            await self._adopt()

    async def _adopt(self) -> None:
        orphans = await self._sharing.orphans()
        self._sleepers.forget_others_but(orphans)
        for key in orphans:
            if key in self._trees or await self._is_left(key):
                continue
            if not await self._sharing.claim(key) or key in self._trees:
                continue
            self._adopting.add(key)
            try:
                if await self._has_work(key):
                    self._keep(key)
                elif not self._sleepers.is_held(key):
                    await self._sharing.let_go(key)
            finally:
                self._adopting.discard(key)

    async def _is_left(self, key: str) -> bool:
        """To another machine, which may come back to it."""
        lease = self._sharing.left_by(key)
        if not lease or self._sleepers.is_left(key, lease):
            return bool(lease)
        try:
            return self._sleepers.leave(key, lease, await self._folded(key))
        except (Undecodable, Unconfirmed):
            return False

    async def _folded(self, key: str) -> ActionState:
        """Raises Undecodable, Unconfirmed."""
        state = ActionState(key)
        await fold_stored(self._broker, f"log.act.{key}", state, ActionEntry)
        return state

    async def _has_work(self, key: str) -> bool:
        """Of one that is taken over: whether there is anything to do before the next command. If not, nothing of it
        runs."""
        try:
            state = await self._folded(key)
        except (Undecodable, Unconfirmed):
            return True  # whoever opens it says so
        left = state.outgoing or state.asks or any(job.kind == "child" for job in state.transcript.jobs.values())
        if left or not (state.transcript.ended or state.phase == "hibernated"):
            return True
        self._sleepers.note(key, state)
        await self._work.box(key, strays.unheard).kill()  # it may have crashed just before
        await self._forget_commands(key, state)
        return False

    # --- those that are held here ------------------------------------------------------------------------------------

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        try:
            return self._group.create_task(work, name=name)
        except RuntimeError:  # it shuts down
            work.close()
            raise

    def _open_to_close(self, key: str) -> None:
        self._sleepers.forget(key)
        self._spawn(self._claim_to_close(key), f"close {key}")

    async def _claim_to_close(self, key: str) -> None:
        if await self._sharing.claim(key) and key not in self._trees and key not in self._adopting:
            self._keep(key)

    def _keep(self, key: str) -> None:
        self._sleepers.forget(key)
        self._trees[key] = Tree()
        self._spawn(self._keep_running(key, self._trees[key]), f"action {key}")

    async def _keep_running(self, key: str, tree: Tree) -> None:
        try:
            state = await self._running.run(key, tree)
        except Undecodable as error:  # it stays claimed: no other process can open it either
            await self._parked.park(key, error, await self._after(key, 0))
        else:
            tree.close()  # from here on nobody is given the one that has ended
            await self._forget_commands(key, state)
            if not self._sleepers.note(key, state):
                await self._sharing.let_go(key)
        del self._trees[key]
        tree.gone(key)

    async def _forget_commands(self, key: str, state: ActionState) -> None:
        """Of one that is over and has told all of it: those that its log knows. So a start does not meet it again; what
        comes for it later is delivered like any other."""
        if not state.transcript.ended or state.outgoing:
            return
        through = state.through
        with suppress(Unconfirmed):
            for sequence, command in await self._after(key, through):
                if not state.knows(command.ref):
                    break
                through = sequence
            await self._broker.purge(f"cmd.act.{key}", through + 1, whole=True)
