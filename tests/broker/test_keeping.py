"""Views, compaction, search and rebuilding, whichever broker keeps the journals."""

import asyncio
from datetime import timedelta

import pytest

from brain import history
from brain.entries import LaneEntry
from brain.state import LaneState
from frontdesk import upkeep
from frontdesk.upkeep import rebuild_with, views_file
from gateway import looking, views
from gateway.broker.protocol import BrokerUnusable
from gateway.config import load
from gateway.fed import SILENT, Machines
from gateway.folding import snapshot_part
from gateway.journal import Journal, fold_stored
from gateway.keeping import Keeper
from gateway.record import encode
from tests.patience import PATIENCE_SECONDS
from tests.store import words
from tests.store.conftest import GUARD, running

SUBJECT = "log.lane.p-ana"


class Machine:
    """One that keeps views, and its clock."""

    def __init__(self, broker, folder, name):
        self.path = folder / name / "store.db"
        self.path.parent.mkdir()
        self.now = words.START
        self.keeper = Keeper(broker, views_file(self.path), 0.01, Machines(broker, name, lambda: self.now))

    def knows(self, words):
        return len(history.searched(self.path, words, 1000))


@pytest.fixture
async def journal(broker):
    made = Journal(broker, SUBJECT, LaneState("p-ana"), LaneEntry, GUARD, "test")
    await made.open()
    async with running(made.run()):
        for entry in words.lane(5, 60).entries:
            if type(entry).__name__ in ("Taken", "Decided"):
                await made.write(lambda _, entry=entry: entry)
        yield made


async def is_compacted(broker):
    return snapshot_part((await broker.read(SUBJECT))[0]) is not None


async def until_compacted(broker):
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not await is_compacted(broker):
            await asyncio.sleep(0.01)


async def test_a_journal_is_compacted_when_the_views_of_every_machine_have_it(broker, journal, tmp_path):
    one, other = Machine(broker, tmp_path, "one"), Machine(broker, tmp_path, "other")
    async with running(other.keeper.run(GUARD)):
        await other.keeper.caught_up()
    async with running(one.keeper.run(GUARD)):
        await journal.snapshot()
        await one.keeper.caught_up()
        assert not await is_compacted(broker)
        async with running(other.keeper.run(GUARD)):
            await other.keeper.caught_up()
            await until_compacted(broker)
    again = await fold_stored(broker, SUBJECT, LaneState("p-ana"), LaneEntry)
    assert encode(again.freeze()) == encode(journal.state.freeze())
    word = next(row["text"] for row in looking.messages(views.path_of(one.path), "p-ana", 10**9)).split()[0]
    found = one.knows(word)
    assert found == other.knows(word) > 0
    await rebuild_with(broker, views_file(one.path))
    assert one.knows(word) == found


async def test_a_machine_that_has_long_been_silent_is_not_waited_for(broker, journal, tmp_path):
    one, gone = Machine(broker, tmp_path, "one"), Machine(broker, tmp_path, "gone")
    async with running(gone.keeper.run(GUARD)):
        await gone.keeper.caught_up()
    one.now += SILENT + timedelta(hours=1)
    async with running(one.keeper.run(GUARD)):
        await journal.snapshot()
        await until_compacted(broker)


async def test_the_keeper_takes_a_long_past_in_pieces(broker, journal, tmp_path, monkeypatch):
    monkeypatch.setattr("gateway.keeping.FED_AT_ONCE", 7)
    one = Machine(broker, tmp_path, "one")
    async with running(one.keeper.run(GUARD)):
        await one.keeper.caught_up()
    every = len(looking.messages(views.path_of(one.path), "p-ana", 10**9))
    await rebuild_with(broker, views_file(one.path))
    assert len(looking.messages(views.path_of(one.path), "p-ana", 10**9)) == every > 7


# --- the operator's commands on a shared broker ----------------------------------------------------------------------


@pytest.fixture
async def settings(servers, tmp_path):
    if "jetstream" not in servers:
        pytest.skip("needs nats-server")
    config = tmp_path / "config.toml"
    config.write_text(f'[store]\npath = "{tmp_path}/own.db"\n[broker]\nurl = "{servers["jetstream"].url}"\n')
    return load(config, {})


async def test_rebuild_reads_the_shared_journals_and_not_beside_the_keeper(settings, tmp_path):
    broker = await upkeep.open_broker(settings)
    written = Journal(broker, SUBJECT, LaneState("p-ana"), LaneEntry, GUARD, "test")
    await written.open()
    async with running(written.run()):
        for entry in words.lane(5, 30).entries:
            if type(entry).__name__ == "Taken":
                await written.write(lambda _, entry=entry: entry)
    lease = await broker.lease(upkeep.keeper_key(settings), "the gateway", 10)
    with pytest.raises(BrokerUnusable, match="stop it first"):
        await upkeep.rebuild(settings)
    await lease.release()
    assert await upkeep.rebuild(settings) >= 10
    await broker.close()
    assert looking.messages(views.path_of(settings.store.path), "p-ana", 10**9)


async def test_a_backup_of_a_shared_broker_says_what_to_do(settings, tmp_path):
    await asyncio.to_thread(views_file(settings.store.path).open)
    said = upkeep.backup(settings, tmp_path / "copy.db")
    for stream in ("frontdesk-log", "frontdesk-cmd", "frontdesk-evt", "OBJ_frontdesk-blobs"):
        assert f"nats --server {settings.broker.url} stream backup {stream} {tmp_path}/copy.db.{stream}" in said
        assert f"stream restore {tmp_path}/copy.db.{stream}" in said
    assert (tmp_path / "copy.db.views.db").exists()
