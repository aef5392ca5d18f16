"""The erasure of a person's words where nothing can be written over: on JetStream, and with processes that run."""

import asyncio

import pytest

from actors.entries import ActionEntry
from actors.journal import ActionState
from brain import history
from brain.entries import Decided, LaneEntry, Speak, Taken
from brain.state import LaneState
from frontdesk import control, erasing
from frontdesk.crew import Crew
from frontdesk.erase import erase_from
from frontdesk.upkeep import views_file
from gateway.addresses import Address
from gateway.broker.protocol import BrokerUnusable
from gateway.config import load
from gateway.journal import Journal, fold_stored, publish
from gateway.notes import Notes
from gateway.record import encode
from tests.patience import PATIENCE_SECONDS
from tests.store import words
from tests.store.conftest import GUARD, keeping, running
from tests.store.stage import said

SECRET, OTHER = "Zaragoza-4711", "Helsinki-0815"
ANA = Address(medium="telegram", user="42")


async def lived_in(broker, path):
    """A lane of Ana's with an action, one of Bo's who quotes her, facts, commands and a note."""
    async with keeping(broker, views_file(path)) as keeper:
        for person, text in (
            ("42", f"My secret is {SECRET}, really."),
            ("43", f"{OTHER}; she: My secret is {SECRET}!"),
        ):
            lane = Journal(broker, f"log.lane.p-c{person}", LaneState(f"p-c{person}"), LaneEntry, GUARD, "test")
            await lane.open()
            fact = said(person, text, 1)
            await publish(broker, "evt.medium.telegram-1", fact, fact.identity)
            async with running(lane.run()):
                taken = Taken(event=fact, at=fact.at)
                await lane.write(lambda _, taken=taken: taken)
                answer = Speak(route=fact.route, text=f"noted: {text}", answers=(fact.identity,))
                decided = Decided(turn=1, at=fact.at, covers=(fact.identity,), decisions=(answer,))
                await lane.write(lambda _, decided=decided: decided)
                await lane.until(lambda state: not state.outgoing)
            await lane.release()
        action = Journal(broker, "log.act.p-c42-a1", ActionState("p-c42-a1"), ActionEntry, GUARD, "test")
        await action.open()
        async with running(action.run()):
            for entry in words.action(4, 60).entries:
                if type(entry).__name__ not in ("Owned", "Released", "Emitted"):
                    await action.write(lambda _, entry=entry: entry)
            await action.write(lambda _: words.a.Notified(text=f"looking at {SECRET}"))
        await Notes(broker, lambda person: "ana", lambda: words.START).add(words.ANA, f"a sheet of {SECRET}", "work")
        await keeper.caught_up()


async def everything(broker):
    return b"".join([one.data for family in ("log.>", "evt.>", "cmd.>") for one in await broker.read(family)])


async def test_nothing_of_it_is_left_on_either_broker(store, broker, backend, servers, tmp_path):
    path = tmp_path / "store.db"
    await lived_in(broker, path)
    assert history.searched(path, SECRET)
    report = await erase_from(broker, path, ANA, "ana")
    assert report.messages == 1
    left = await everything(broker)
    assert SECRET.encode() not in left
    assert left.count(OTHER.encode()) >= 2
    assert history.searched(path, SECRET) == []
    assert {found.conversation for found in history.searched(path, OTHER)} == {"p-c43"}
    again = await erase_from(broker, path, ANA, "ana")
    assert again.messages == 1
    lane = await fold_stored(broker, "log.lane.p-c42", LaneState("p-c42"), LaneEntry)
    assert lane.knows(said("42", "x", 1))
    assert lane.turns == 1
    held = Journal(broker, "log.lane.p-c43", LaneState("p-c43"), LaneEntry, GUARD, "test")
    await held.open()
    assert "(erased)" in encode(held.state.freeze()).decode()
    if backend != "sqlite":
        await store.close()
        blocks = (servers[backend].folder / "js").rglob("*.blk")
        assert not [one for one in blocks if SECRET.encode() in one.read_bytes()]


async def test_what_nobody_has_taken_yet_comes_without_the_words(broker, tmp_path):
    fact = said("42", f"My secret is {SECRET}, really.", 1)
    await publish(broker, "evt.medium.telegram-1", fact, fact.identity)
    await erase_from(broker, tmp_path / "store.db", ANA)
    async with asyncio.timeout(PATIENCE_SECONDS):
        delivery = await anext(broker.consume("evt.>", "brain"))
    assert SECRET.encode() not in delivery.stored.data
    assert b"(erased)" in delivery.stored.data


async def test_roles_that_run_elsewhere_keep_away_meanwhile(store, broker, backend):
    if backend == "sqlite":
        pytest.skip("has one process")
    runs = []

    async def role():
        lease = await other.lease("brain", "other", 5)
        runs.append(lease)
        try:
            await asyncio.Event().wait()
        finally:
            await lease.release()

    other = await store.open()
    crew = Crew(lambda: {"brain": role()})
    async with running(crew.run(lambda: None), control.keep_away_when_asked(other, crew)):
        while not runs:
            await asyncio.sleep(0.01)
        async with control.all_away(broker):
            assert await broker.held() == []
            assert len(runs) == 1
        async with asyncio.timeout(PATIENCE_SECONDS):
            while len(runs) < 2:
                await asyncio.sleep(0.01)


async def test_who_does_not_keep_away_is_named(broker, monkeypatch):
    monkeypatch.setattr(control, "PATIENCE_SECONDS", 0.3)
    await broker.lease("medium-slack", "frozen", 30)
    with pytest.raises(BrokerUnusable, match="still at work: medium-slack"):
        async with control.all_away(broker):
            pass


async def test_without_a_gateway_the_command_takes_the_file_itself(tmp_path):
    assert await control.ask(tmp_path / "none.db", control.Asked(what="erase", about="telegram:42")) is None
    (tmp_path / "config.toml").write_text(f'[store]\npath = "{tmp_path}/none.db"\n')
    said = await erasing.erase_person(load(tmp_path / "config.toml", {}), ANA)
    assert said.startswith("Nothing of ")
