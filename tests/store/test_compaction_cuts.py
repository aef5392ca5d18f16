"""Cut at every append and every purge, before and after it: what is folded then is what all entries together say."""

import asyncio
from contextlib import suppress

import pytest

from brain.entries import LaneEntry
from brain.state import LaneState
from frontdesk.upkeep import views_file
from gateway.broker.protocol import Deposed, Stored
from gateway.broker.sqlite import SqliteBroker
from gateway.journal import Folding, Journal, JournalClosed, unstamped
from gateway.keeping import Keeper
from gateway.record import encode
from gateway.snapshots import cut
from tests.store import words
from tests.store.conftest import GUARD

SUBJECT = "log.lane.p-ana"
POINTS = 40  # appends and purges of the scenario, and a few more that are never reached


class Cut(Exception):
    pass


class Dying:
    """The broker until its effect number `at`; `after`: that one is still done, and nobody hears of it."""

    def __init__(self, broker: SqliteBroker, at: int, after: bool) -> None:
        self._broker, self._left, self._after = broker, at, after
        self.cut = asyncio.Event()
        self.flying = 0
        self.all: list[Stored] = []

    async def _effect(self, effect):
        self._left -= 1
        if self._left >= 0 or (self._left == -1 and self._after):
            self.flying += 1
            done = await effect()
            self.flying -= 1
            if self._left >= 0:
                return done
        self.cut.set()
        return await asyncio.Event().wait()

    async def append(self, subject, data, *, msg_id, expect_last=None):
        async def effect():
            sequence = await self._broker.append(subject, data, msg_id=msg_id, expect_last=expect_last)
            if subject == SUBJECT:
                self.all.append(Stored(subject=subject, sequence=sequence, data=data))
            return sequence

        return await self._effect(effect)

    async def purge(self, subject, below):
        await self._effect(lambda: self._broker.purge(subject, below))

    async def read(self, subject, after=0, limit=None):
        return await self._broker.read(subject, after, limit)


async def lived(broker, file, entries):
    """Writes, snapshots in three parts, writes, and the same again, with the keeper at its work."""
    journal = Journal(broker, SUBJECT, LaneState("p-ana"), LaneEntry, GUARD, "test")
    keeper = Keeper(broker, file, lag_seconds=0.001)
    tasks = [asyncio.create_task(keeper.run(GUARD))]
    with suppress(JournalClosed, Deposed):
        await journal.open()
        tasks.append(asyncio.create_task(journal.run()))
        for half in (entries[:8], entries[8:]):
            for entry in half:
                await journal.write(lambda _, entry=entry: entry)
            await journal.write(lambda state: list(cut(encode(state.freeze()), parts=3)))
            await keeper.caught_up()
    return tasks


@pytest.mark.parametrize("after", [False, True])
async def test_a_cut_at_every_effect_of_a_compaction(tmp_path, after):
    entries = [entry for entry in words.lane(5, 80).entries if type(entry).__name__ in ("Taken", "Decided")][:16]
    purged = 0
    for at in range(POINTS):
        path = tmp_path / f"{at}.db"
        broker = SqliteBroker(path)
        dying = Dying(broker, at, after)
        living = asyncio.create_task(lived(dying, views_file(path), entries))
        cutting = asyncio.create_task(dying.cut.wait())
        await asyncio.wait({living, cutting}, return_when=asyncio.FIRST_COMPLETED)
        while dying.flying:  # what is on its way arrives
            await asyncio.sleep(0)
        for task in (living, cutting, *(living.result() if living.done() else ())):
            task.cancel()
        await end_all()
        everything = Folding(LaneState("p-ana"), LaneEntry)
        for stored in dying.all:
            everything.take(stored.sequence, unstamped(stored, everything.entries)[2], len(stored.data))
        left = await broker.read(SUBJECT)
        purged += len(left) < len(dying.all)
        assert [one.sequence for one in left] == [one.sequence for one in dying.all][-len(left) :] if left else True
        again = Folding(LaneState("p-ana"), LaneEntry)
        for stored in left:
            again.take(stored.sequence, unstamped(stored, again.entries)[2], len(stored.data))
        assert encode(again.state.freeze()) == encode(everything.state.freeze()), at
        await broker.close()
    assert purged > 3


async def end_all():
    """All tasks of the cut life; some swallow a first cancellation to say a last word."""
    while left := asyncio.all_tasks() - {asyncio.current_task()}:
        for task in left:
            task.cancel()
        await asyncio.wait(left, timeout=0.1)
