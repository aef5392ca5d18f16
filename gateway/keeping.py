"""What may be forgotten, and when.

A journal (`log.…`) is forgotten below its newest complete snapshot, once the views have been fed with all of it: the
one who feeds them, the keeper, does both (of several machines' keepers, the last one: `gateway.fed`). Facts and
commands (`evt.…`, `cmd.…`) are only on their way: who consumes them forgets, in strides, what it has acknowledged. The
last entry of a subject always stays.
"""

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Protocol

from gateway import fed
from gateway.broker.protocol import Broker, Stored, Unconfirmed
from gateway.folding import snapshot_part
from gateway.holding import Guard
from gateway.snapshots import Gathering

log = logging.getLogger(__name__)

FORGOTTEN_EVERY = 500  # entries of a subject
SUBJECTS_COUNTED = 10_000  # beyond that the counting begins anew: a few are forgotten later
LAG_SECONDS = 0.3  # how far the views may be behind while nothing is wrong
FED_AT_ONCE = 500
PAUSE_SECONDS = 10.0  # after the views could not be written
AGAIN_SECONDS = 1.0  # after the broker did not answer


class Consumed:
    """For one consumer: forgets what it has acknowledged."""

    def __init__(self, broker: Broker, every: int = FORGOTTEN_EVERY) -> None:
        self._broker, self._every = broker, every
        self._counts: dict[str, int] = {}

    async def forget(self, stored: Stored) -> None:
        if len(self._counts) > SUBJECTS_COUNTED:
            self._counts.clear()
        count = self._counts[stored.subject] = self._counts.get(stored.subject, 0) + 1
        if count >= self._every:
            del self._counts[stored.subject]
            with suppress(Unconfirmed):
                await self._broker.purge(stored.subject, stored.sequence)


class ViewsFailed(Exception):
    """The views' file could not be used; the text says why and what to do."""


class Views(Protocol):
    """Fed in a thread of their own, in order, at least once. Each raises ViewsFailed."""

    def open(self) -> int:
        """The sequence up to which they were fed."""

    def feed(self, entries: list[Stored]) -> None: ...
    def close(self) -> None: ...


class Keeper:
    """The journals' follower. It may lag, and no one waits for it."""

    def __init__(
        self, broker: Broker, views: Views, lag_seconds: float = LAG_SECONDS, others: fed.Others | None = None
    ) -> None:
        self._broker, self._views, self._lag_seconds = broker, views, lag_seconds
        self._others: fed.Others = others or fed.Nobody()
        self._gathered: dict[str, Gathering] = {}
        self._due: dict[str, tuple[int, int]] = {}  # of a journal: forgotten is below, once all are fed through
        self._caught_up = asyncio.Event()
        self._trouble = ""  # as the operator was told

    async def run(self, _: Guard) -> None:
        """For ever. While the views cannot be written nothing is forgotten."""
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(1, "views") as thread:
            try:
                while True:
                    try:
                        await self._follow(thread)
                    except ViewsFailed as error:
                        if str(error) != self._trouble:
                            log.error("%s Search lags until then, and nothing is compacted.", error)  # noqa: TRY400
                        self._trouble = str(error)
                        await asyncio.sleep(PAUSE_SECONDS)
                    except Unconfirmed:
                        await asyncio.sleep(AGAIN_SECONDS)
            finally:
                await asyncio.shield(loop.run_in_executor(thread, self._views.close))

    async def caught_up(self) -> None:
        """Everything that was stored before this call is in the views."""
        self._caught_up.clear()
        await self._caught_up.wait()

    async def _follow(self, thread: ThreadPoolExecutor) -> None:
        loop = asyncio.get_running_loop()
        after = await self._from(await loop.run_in_executor(thread, self._views.open))
        await self._others.begin()
        while True:
            waiting = not self._caught_up.is_set()
            entries = await self._broker.read("log.>", after, FED_AT_ONCE)
            if entries:
                await loop.run_in_executor(thread, self._views.feed, entries)
                if self._trouble:
                    log.warning("The views can be written again.")
                self._trouble = ""
                after = entries[-1].sequence
                self._note(entries)
            await self._forget(after)
            if len(entries) == FED_AT_ONCE:
                continue
            if waiting:
                self._caught_up.set()
            await asyncio.sleep(self._lag_seconds)

    async def _from(self, fed_up_to: int) -> int:
        """From the start where the journals do not reach so far: they are others (a new store, or an older copy).

        The newest entry of all is never forgotten, so the last one that was fed, or a newer one, must be there.
        """
        if fed_up_to and not await self._broker.read("log.>", fed_up_to - 1, 1):
            log.warning("The views are of a later state of the journals, or of others: they are fed anew.")
            return 0
        return fed_up_to

    def _note(self, batch: list[Stored]) -> None:
        for stored in batch:
            if stored.subject.startswith(fed.PATTERN):
                self._others.note(stored)
            part = snapshot_part(stored)
            if part is None:
                self._gathered.pop(stored.subject, None)
                continue
            gathering = self._gathered.setdefault(stored.subject, Gathering())
            if gathering.take(stored.sequence, part) is not None:
                self._due[stored.subject] = (gathering.below, stored.sequence)

    async def _forget(self, after: int) -> None:
        await self._others.tell(after, due=bool(self._due))
        through = self._others.through()
        for subject, (below, needed) in list(self._due.items()):
            if through is None or through >= needed:
                await self._broker.purge(subject, below)
                del self._due[subject]


__all__ = ["Consumed", "Keeper", "Views", "ViewsFailed", "snapshot_part"]
