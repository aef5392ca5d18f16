"""Journals are forgotten below their snapshots, once the views are fed; nothing that counts goes with it."""

import asyncio

import pytest

from brain import history
from brain.entries import LaneEntry
from brain.state import LaneState
from frontdesk.history import LaneHistory
from frontdesk.upkeep import rebuild_with, views_file
from gateway.broker.protocol import Stale, Unconfirmed
from gateway.broker.sqlite import SqliteBroker
from gateway.folding import snapshot_part
from gateway.journal import Journal, fold_stored
from gateway.keeping import Consumed, ViewsFailed
from gateway.record import encode
from gateway.snapshots import Policy
from tests.store import words
from tests.store.conftest import GUARD, keeping, running

SUBJECT = "log.lane.p-ana"
NEVER = Policy(entries=10**9, size_bytes=10**12)
OFTEN = Policy(entries=25, quiet_seconds=0.0)


def lane_journal(broker, policy=NEVER):
    return Journal(broker, SUBJECT, LaneState("p-ana"), LaneEntry, GUARD, "test", policy)


async def write(journal, entries):
    for entry in entries:
        await journal.write(lambda _, entry=entry: entry)


@pytest.fixture
def entries():
    """No emissions: there is no outbox here, and the journal's own emitter writes `Emitted`."""
    return [entry for entry in words.lane(5, 400).entries if type(entry).__name__ in ("Taken", "Decided", "Spent")]


async def test_a_lane_is_compacted_by_its_policy_and_opens_the_same(tmp_path, broker, entries):
    journal = lane_journal(broker, OFTEN)
    await journal.open()
    async with keeping(broker, views_file(tmp_path / "store.db")) as keeper, running(journal.run()):
        for entry in entries:
            await write(journal, [entry])
            await asyncio.sleep(0)
        await journal.snapshot()
        await keeper.caught_up()
    left = await broker.read(SUBJECT)
    assert snapshot_part(left[0]) is not None
    assert len(left) < len(entries) / 4
    again = await fold_stored(broker, SUBJECT, LaneState("p-ana"), LaneEntry)
    assert encode(again.freeze()) == encode(journal.state.freeze())
    assert all(again.knows(entry.event) for entry in entries if type(entry).__name__ == "Taken")


async def test_nothing_is_forgotten_while_the_views_cannot_be_fed(tmp_path, broker, entries):
    class Broken:
        def open(self):
            raise ViewsFailed("no.")

        def close(self): ...

    journal = lane_journal(broker)
    await journal.open()
    async with keeping(broker, Broken()), running(journal.run()):
        await write(journal, entries[:50])
        await journal.snapshot()
        await asyncio.sleep(0.05)
    assert snapshot_part((await broker.read(SUBJECT))[0]) is None


async def test_a_memory_larger_than_an_entry_is_cut_in_parts(broker):
    journal = lane_journal(broker)
    await journal.open()
    long = [entry for seed in range(8) for entry in words.lane(seed, 300, facts=1000 * seed).entries]
    async with running(journal.run()):
        for n, entry in enumerate(one for one in long if type(one).__name__ == "Taken"):
            event = words.message(journal_walk(n)) if n % 2 else entry.event
            await write(journal, [words.Taken(event=event, at=entry.at, attention="turn")])
        before = encode(journal.state.freeze())
        await journal.snapshot()
    parts = [one for one in await broker.read(SUBJECT) if snapshot_part(one)]
    assert len(parts) > 1
    await broker.purge(SUBJECT, parts[0].sequence)
    again = lane_journal(broker)
    await again.open()
    assert encode(again.state.freeze()) != before  # the new owner has counted an unclean end
    again.state.crashes = journal.state.crashes
    assert encode(again.state.freeze()) == before


def journal_walk(n):
    walk = words.Walk(n, LaneState("p-ana"))
    walk.n = 100_000 + n
    walk.text = lambda: f"{n} " + "word " * 400
    return walk


async def test_a_torn_snapshot_is_passed_over(broker, entries, monkeypatch):
    journal = lane_journal(broker)
    await journal.open()
    async with running(journal.run()):
        await write(journal, entries[:60])
        from gateway.snapshots import cut

        await write(journal, cut(encode(journal.state.freeze()), parts=3)[:2])
    again = await fold_stored(broker, SUBJECT, LaneState("p-ana"), LaneEntry)
    assert encode(again.freeze()) == encode(journal.state.freeze())


async def test_a_former_holder_is_still_refused_after_everything_was_forgotten(broker, entries):
    zombie = lane_journal(broker)
    await zombie.open()
    journal = lane_journal(broker)
    await journal.open()
    async with running(journal.run()):
        await write(journal, entries[:20])
        await journal.until(lambda state: not state.outgoing)
        await journal.snapshot()
    await broker.append("evt.after", b"", msg_id="after")  # what was on its way when the journal ended is stored by now
    last = (await broker.read(SUBJECT))[-1].sequence
    await broker.purge(SUBJECT, last + 1000)
    assert [one.sequence for one in await broker.read(SUBJECT)] == [last]
    for fence in (0, zombie._tail):
        with pytest.raises(Stale):
            await broker.append(SUBJECT, b"x", msg_id="z", expect_last=fence)


async def test_purge_spares_others_and_later_reads_do_not_see_what_is_gone(tmp_path):
    broker = SqliteBroker(tmp_path / "purge.db")
    for n in range(1300):
        await broker.append("evt.a" if n % 13 else "evt.b", b"%d" % n, msg_id=str(n))
    newest = (await broker.read("evt.a"))[-1].sequence
    await broker.purge("evt.a", newest - 3)
    kept = [one.sequence for one in await broker.read("evt.a")]
    assert kept[0] == newest - 3
    assert len(await broker.read("evt.b")) == 100
    await broker.close()
    broker = SqliteBroker(tmp_path / "purge.db")
    assert [one.sequence for one in await broker.read("evt.a")] == kept
    assert await broker.append("evt.a", b"x", msg_id="x") > newest
    await broker.close()


async def test_what_was_consumed_is_forgotten_in_strides(broker):
    for n in range(10):
        await broker.append("evt.a", b"%d" % n, msg_id=str(n))
    consumed, seen = Consumed(broker, every=4), []
    async for delivery in broker.consume("evt.>", "brain"):
        seen.append(delivery.stored.data)
        await delivery.ack()
        await consumed.forget(delivery.stored)
        if len(seen) == 10:
            break
    assert seen == [b"%d" % n for n in range(10)]
    assert [one.data for one in await broker.read("evt.>")] == [b"7", b"8", b"9"]


async def test_rebuild_keeps_what_only_the_views_know_and_finds_the_rest_again(tmp_path, broker, entries):
    file = views_file(tmp_path / "store.db")
    journal = lane_journal(broker)
    await journal.open()
    async with keeping(broker, file) as keeper, running(journal.run()):
        await write(journal, entries[:200])
        await journal.snapshot()
        await write(journal, entries[200:])
        await keeper.caught_up()
    before = rows(tmp_path)
    await rebuild_with(broker, views_file(tmp_path / "store.db"))
    assert rows(tmp_path) == before
    (tmp_path / "store.db.views.db").unlink()
    await rebuild_with(broker, views_file(tmp_path / "store.db"))
    kept = rows(tmp_path)
    assert {row[0] for row in kept} <= {row[0] for row in before}
    assert len(kept) > len(before) / 3  # the exchanges that the snapshot keeps, and all that came after it
    assert history.recalled(tmp_path / "store.db", "Rome", "p-ana", limit=1000)


async def test_what_was_said_is_found_after_its_journal_has_forgotten_it(tmp_path, broker, entries):
    def whose(person):
        return "ana" if person == words.ANA else "bo"

    async def said():
        lines = LaneHistory(broker, whose, "Desk", tmp_path / "store.db")
        return [(one.at, one.author, one.text) for one in await lines.search(words.ANA, "p-ana", "", limit=10_000)]

    journal = lane_journal(broker)
    await journal.open()
    async with keeping(broker, views_file(tmp_path / "store.db")) as keeper, running(journal.run()):
        await write(journal, entries[:150])
        before = await said()
        await journal.snapshot()
        await write(journal, entries[150:])
        await keeper.caught_up()
    assert snapshot_part((await broker.read(SUBJECT))[0]) is not None
    found = await said()
    assert found[-len(before) :] == before
    assert len(found) > len(before) > 50


def rows(tmp_path):
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(tmp_path / "store.db.views.db")) as db:
        return db.execute("select id, who, at, text, outcome from messages order by id").fetchall()


async def test_unconfirmed_is_what_a_purge_raises_at_worst(broker):
    assert issubclass(Unconfirmed, Exception)
    await broker.purge("log.none", 5)
    assert await broker.subjects("log.>") == []
