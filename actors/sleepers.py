"""Sessions that hibernate: nothing of them is in memory but when each will be closed. And who is put to sleep first.

Those that another machine has left at rest are among them, unclaimed: it may come back, and their files are there.
"""

import asyncio
from collections.abc import Callable, Container, Iterable
from datetime import datetime
from typing import Any

from actors import idle
from actors.actor import Actor
from actors.journal import ActionState
from actors.words import SleepWanted
from actors.workshop import Workshop


class Sleepers:
    def __init__(self, work: Workshop) -> None:
        self._work = work
        self._closes_at: dict[str, datetime] = {}
        self._left: dict[str, str] = {}  # of them, those that are another machine's -> the lease that it had
        self._slept = asyncio.Event()

    def note(self, key: str, state: ActionState) -> bool:
        """True if it is one."""
        if state.phase != "hibernated" or state.idle_since is None:
            return False
        self._note(key, state.idle_since)
        return True

    def leave(self, key: str, lease: str, state: ActionState) -> bool:
        """To the machine that had it under that lease. True if it is at rest."""
        if state.idle_since is None or state.transcript.jobs or state.asks or state.outgoing:
            return False
        self._left[key] = lease
        self._note(key, state.idle_since)
        return True

    def is_left(self, key: str, lease: str) -> bool:
        return self._left.get(key) == lease

    def is_held(self, key: str) -> bool:
        return key in self._closes_at and key not in self._left

    def forget_others_but(self, orphans: Container[str]) -> None:
        """Of those that were left: somebody has them by now."""
        for key in [key for key in self._left if key not in orphans]:
            self.forget(key)

    def _note(self, key: str, idle_since: datetime) -> None:
        self._closes_at[key] = idle_since + self._work.limits.close_after
        self._slept.set()

    def forget(self, key: str) -> None:
        self._closes_at.pop(key, None)
        self._left.pop(key, None)

    async def wake_in_time(self, wake: Callable[[str], None]) -> None:
        """`wake` is called when one is to be closed, and forgets it here: opened, it sees for itself that its time is
        over. For ever."""
        while True:
            self._slept.clear()
            now = self._work.now()
            for key in [key for key, at in self._closes_at.items() if at <= now]:
                wake(key)
            waiting: set[asyncio.Future[Any]] = {asyncio.ensure_future(self._slept.wait())}
            if self._closes_at:
                seconds = (min(self._closes_at.values()) - now).total_seconds()
                waiting.add(asyncio.ensure_future(self._work.sleep(seconds)))
            try:
                await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for one in waiting:
                    one.cancel()


def put_to_sleep(actors: Iterable[Actor], max_live: int) -> None:
    """When too many are live, those go to sleep that have been idle longest."""
    awake = [actor for actor in actors if actor.state.live and not actor.going_to_sleep]
    surplus = len(awake) - max_live
    if surplus <= 0:
        return
    idlers = [(actor.state.idle_since, actor.key, actor) for actor in awake if idle.is_idle(actor)]
    for _, _, actor in sorted((one for one in idlers if one[0] is not None), key=lambda one: one[:2])[:surplus]:
        actor.going_to_sleep = True
        actor.happened(SleepWanted())
