"""A status card is one message, edited in place: never doubled, never behind a message, never older than it was."""

import asyncio
import random

import pytest

from gateway.broker.sqlite import SqliteBroker
from gateway.cards import Card, press, pressed
from gateway.events import Ref, ShowCard
from gateway.journal import publish
from gateway.outbox import OutcomeUnknown, Rejected
from gateway.outbox_state import Attempting, Closed, Deferred, OutboxState, Queued
from gateway.record import encode
from tests.store.conftest import eventually
from tests.store.stage import FakePlatform, route
from tests.store.test_outbox import TURNS, desk, flood


def showing(text, ended=False, place="1", run=0, until=None):
    ref = Ref("p-ana", next(TURNS), 1000)
    card = Card(text=text, ended=ended)
    return ShowCard(
        ref=ref, conversation="p-ana", action="p-ana-a1", run=run, route=route(place), card=card, until=until
    )


async def show(d, *texts, **how):
    for text in texts:
        command = showing(text, **how)
        await publish(d.broker, f"cmd.out.{d.platform.account}", command, str(command.ref))


async def shows(platform, text):
    await eventually(lambda: any(said[-1] == text for said in platform.cards.values()))


async def test_a_card_is_sent_once_and_then_edited(broker):
    platform = FakePlatform()
    async with desk(broker, platform) as d:
        for text in ("reading", "counting"):
            await show(d, text)
            await shows(platform, text)
        await show(d, "done", ended=True)
        await shows(platform, "done")
        assert await d.broker.read("evt.out.telegram-1") == [], "no event comes of a card"
    assert platform.cards == {"m1": ["reading", "counting", "done"]}


async def test_another_run_has_another_card(broker):
    platform = FakePlatform()
    async with desk(broker, platform) as d:
        await show(d, "one")
        await show(d, "two", run=1)
        await shows(platform, "two")
    assert platform.cards == {"m1": ["one"], "m2": ["two"]}


async def test_only_the_newest_state_that_waits_is_shown(broker):
    platform, gate = FakePlatform(), asyncio.Event()
    platform.script["1"] = [gate.wait]
    async with desk(broker, platform) as d:
        await show(d, "0")
        await eventually(lambda: platform.tried)
        await show(d, *"123456789")
        await d.send("2", "marker")
        await d.ends(1)
        gate.set()
        await shows(platform, "9")
    assert platform.cards == {"m1": ["0", "9"]}


async def test_a_flood_is_honoured_and_then_the_newest_is_shown(broker):
    platform = FakePlatform()
    platform.script["1"] = [None, flood(0.4)]
    async with desk(broker, platform) as d:
        await show(d, "first")
        await shows(platform, "first")
        await show(d, "stale")
        await eventually(lambda: len(platform.tried) == 2)
        await show(d, "staler", "newest")
        await shows(platform, "newest")
    assert platform.cards == {"m1": ["first", "newest"]}
    assert platform.tried[-1][3] - platform.tried[1][3] >= 0.39


async def test_a_message_goes_before_an_edit_and_a_new_card_in_its_place(broker):
    platform, gate = FakePlatform(), asyncio.Event()
    platform.script["1"] = [None, gate.wait]
    async with desk(broker, platform) as d:
        await show(d, "card")
        await shows(platform, "card")
        await d.send("1", "one")
        await eventually(lambda: len(platform.tried) == 2)
        await show(d, "edit")
        await show(d, "other card", run=1)
        await d.send("1", "two")
        await d.send("2", "marker")
        await d.ends(1)
        gate.set()
        await shows(platform, "edit")
    assert platform.texts("1") == ["card", "one", "other card", "two", "edit"]


async def test_a_card_that_perhaps_stands_there_is_left_alone(broker):
    platform = FakePlatform()
    platform.script["1"] = [OutcomeUnknown("no answer came")]
    async with desk(broker, platform) as d:
        await show(d, "card")
        await eventually(lambda: platform.tried)
        await show(d, "edit")
        await show(d, "end", ended=True)
        await d.send("1", "marker")
        await d.ends(1)
    assert [text for _, text, _, _ in platform.tried] == ["card", "marker"]


async def test_an_edit_whose_answer_is_lost_is_made_again(broker):
    platform = FakePlatform()
    platform.script["1"] = [None, OutcomeUnknown("no answer came")]
    async with desk(broker, platform) as d:
        await show(d, "card")
        await shows(platform, "card")
        await show(d, "edit")
        await shows(platform, "edit")
    assert platform.cards == {"m1": ["card", "edit"]}
    assert len(platform.tried) == 3


async def test_a_card_that_somebody_deleted_is_left_alone(broker):
    platform = FakePlatform()
    platform.script["1"] = [None, Rejected("message to edit not found")]
    async with desk(broker, platform) as d:
        await show(d, "card")
        await shows(platform, "card")
        await show(d, "edit")
        await eventually(lambda: len(platform.tried) == 2)
        await show(d, "again")
        await d.send("1", "marker")
        await d.ends(1)
    assert platform.cards == {"m1": ["card"]}


async def test_what_ended_before_it_was_shown_has_no_card(broker):
    platform = FakePlatform()
    platform.script["1"] = [flood(0.3)]
    async with desk(broker, platform) as d:
        await show(d, "card")
        await eventually(lambda: platform.tried)
        await show(d, "end", ended=True)
        await d.send("1", "the result")
        assert len(await d.ends(1)) == 1
    assert platform.cards == {}


@pytest.mark.parametrize("met", ["new", "edit"])
async def test_a_holder_that_ends_in_an_attempt_doubles_no_card(tmp_path, met):
    platform = FakePlatform()
    broker = SqliteBroker(tmp_path / "s.db")
    async with desk(broker, platform) as d:
        if met == "edit":
            await show(d, "card")
            await shows(platform, "card")
        platform.script["1"] = [asyncio.Event().wait]
        tried = len(platform.tried)
        await show(d, "next")
        await eventually(lambda: len(platform.tried) > tried)
    await broker.close()
    broker = SqliteBroker(tmp_path / "s.db")
    async with desk(broker, platform) as d:
        await show(d, "newest")
        await d.send("1", "marker")
        await d.ends(1)
        if met == "edit":
            await shows(platform, "newest")
    await broker.close()
    assert len(platform.cards) == (1 if met == "edit" else 0)


@pytest.mark.parametrize("seed", range(30))
def test_by_chance_no_card_is_doubled_or_goes_back(seed):
    """The fold alone, frozen and thawed now and then: what was attempted in a room, in order."""
    rnd = random.Random(seed)
    state, shown, newest = OutboxState("telegram-1"), [], 0
    for n in range(200):
        if rnd.random() < 0.1:
            thawed = OutboxState("telegram-1")
            thawed.thaw(encode(state.freeze()))
            state = thawed
        rooms = state.rooms()
        attempting = [ref for ref, item in state.open.items() if item.attempting]
        if attempting:
            (ref,) = attempting
            send = state.open[ref].send
            known = state.cards.get(send.name, "")
            end = rnd.choice(["sent", "sent", "deferred", "unknown", "failed"])
            if end == "sent":
                shown.append((known or f"m{n}", int(send.card.text)))
                state.apply(Closed(send=ref, outcome="sent", message=shown[-1][0]))
            elif end == "deferred" or (end == "unknown" and known):
                state.apply(Deferred(send=ref))
            else:
                state.apply(Closed(send=ref, outcome=end))
        elif rooms and rnd.random() < 0.5:
            (ref,) = rooms.values()
            state.apply(Attempting(send=ref))
        else:
            newest += 1
            state.apply(Queued(command=showing(str(newest))))
        assert len(state.open) <= 2, "one on its way, one that waits"
    assert len({message for message, _ in shown}) <= 1
    assert [text for _, text in shown] == sorted({text for _, text in shown})


def test_a_press_is_read_back_and_nothing_else_is():
    for one in [("stop", "a3"), ("answer", "a3", "child1/question2", 1)]:
        assert pressed(press(*one))[: len(one)] == one
    assert len(press("answer", "a1234", "question99", 12)) <= 64
    for data in ("", "stop", "stop/a3", "delete/a3//", "stop///", "answer/a3/x/q", "answer/a3/-1/q"):
        with pytest.raises(ValueError):
            pressed(data)
