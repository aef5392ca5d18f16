"""A message is sent once, in order, in time, or it is said that it was not; nobody waits for anybody else's room."""

import asyncio
import itertools
import random
import threading
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import pytest

from gateway.broker.sqlite import SqliteBroker
from gateway.events import Ref, Send, SendClosed, WithdrawSend
from gateway.journal import publish
from gateway.outbox import TOO_LATE, UNREAD, Outbox, OutcomeUnknown, Rejected, SurelyNotSent
from gateway.record import decode
from tests.patience import PATIENCE_SECONDS
from tests.store.conftest import GUARD, eventually, running
from tests.store.stage import EchoModel, FakePlatform, route, said, stage

TURNS = itertools.count(1)


class Desk:
    """Commands in, outcomes out, for one account."""

    def __init__(self, broker, platform):
        self.broker, self.platform = broker, platform

    async def send(self, place, text, until=None):
        ref = Ref("p-ana", next(TURNS), 0)
        account = self.platform.account
        send = Send(ref=ref, conversation="p-ana", route=route(place, account), text=text, until=until)
        await publish(self.broker, f"cmd.out.{account}", send, str(ref))
        return ref

    async def withdraw(self, send):
        ref = Ref("p-ana", next(TURNS), 0)
        command = WithdrawSend(ref=ref, conversation="p-ana", send=send)
        await publish(self.broker, f"cmd.out.{self.platform.account}", command, str(ref))

    async def ends(self, number):
        """The first so many, by their send."""
        subject = f"evt.out.{self.platform.account}"
        async with asyncio.timeout(PATIENCE_SECONDS):
            while len(found := await self.broker.read(subject)) < number:
                await asyncio.sleep(0.01)
        return {one.send: one for one in (decode(stored.data, SendClosed) for stored in found)}


@asynccontextmanager
async def desk(broker, platform, **how):
    async with running(Outbox(broker, platform, GUARD, "test", **how).run()):
        yield Desk(broker, platform)


def flood(seconds):
    return SurelyNotSent("429 Too Many Requests", retry_after_seconds=seconds)


async def test_a_room_keeps_its_order_through_a_flood(broker):
    platform = FakePlatform()
    platform.script["1"] = [None, flood(0.05), SurelyNotSent("refused"), None]
    async with desk(broker, platform) as d:
        for text in ("one", "two", "three"):
            await d.send("1", text)
        assert {end.outcome for end in (await d.ends(3)).values()} == {"sent"}
    assert platform.texts() == ["one", "two", "three"]


@pytest.mark.parametrize("text", ["字" * 60_000, "😀" * 50_000, "\x01" * 39_000])
async def test_a_message_that_just_fits_an_entry_holds_nobody_up(broker, text):
    platform = FakePlatform()
    async with desk(broker, platform) as d:
        await d.send("1", text)
        await d.send("1", "after")
        assert {end.outcome for end in (await d.ends(2)).values()} == {"sent"}
    assert platform.texts() == [text, "after"]


async def test_a_text_that_takes_long_to_be_split_holds_nobody_up(broker):
    begun, others, platform = threading.Event(), threading.Event(), FakePlatform()
    went_on = []

    def split(text):
        begun.set()
        went_on.append(others.wait(PATIENCE_SECONDS))
        return (text,)

    platform.split = split
    async with desk(broker, platform) as d:
        await d.send("1", "**a" * 1000)
        await eventually(begun.is_set)
        others.set()
        await d.ends(1)
    assert went_on == [True]


async def test_a_command_that_cannot_be_read_holds_nobody_up(broker, caplog):
    platform = FakePlatform()
    await broker.append("cmd.out.telegram-1", b'{"type":"SendHologram"}', msg_id="1")
    async with desk(broker, platform) as d:
        await d.send("1", "after")
        await d.ends(1)
    assert platform.texts() == ["after"]
    assert "is set aside" in caplog.text


async def test_a_message_that_cannot_be_read_has_failed_for_whoever_said_it(broker):
    """As where the mediums are of an older version than the brain."""
    platform = FakePlatform()
    newer = b'{"type":"Send","ref":["p-ana",0,0],"conversation":"p-ana","route":{"planet":"Mars"},"text":"Hello"}'
    async with desk(broker, platform) as d:
        for msg_id in ("1", "and what comes again"):
            await broker.append("cmd.out.telegram-1", newer, msg_id=msg_id)
        after = await d.send("1", "after")
        ends = await d.ends(2)
    failed = ends[Ref("p-ana", 0, 0)]
    assert (failed.outcome, failed.conversation, failed.why) == ("failed", "p-ana", UNREAD)
    assert ends[after].outcome == "sent"
    assert platform.texts() == ["after"]


async def test_a_withdrawal_ends_a_pause_and_the_room_goes_on_resting(broker):
    platform = FakePlatform()
    platform.script["1"] = [flood(0.4)]
    async with desk(broker, platform) as d:
        first = await d.send("1", "stale")
        await eventually(lambda: platform.tried)
        second = await d.send("1", "fresh")
        await d.withdraw(first)
        assert (await d.ends(1))[first].outcome == "withdrawn"
        assert platform.arrived == []
        assert (await d.ends(2))[second].outcome == "sent"
    assert platform.texts() == ["fresh"]
    assert platform.arrived[0][3] - platform.tried[0][3] >= 0.39


async def test_a_withdrawal_during_the_attempt_comes_too_late(broker):
    platform, gate = FakePlatform(), asyncio.Event()
    platform.script["1"] = [gate.wait]
    async with desk(broker, platform) as d:
        ref = await d.send("1", "on its way")
        await eventually(lambda: platform.tried)
        await d.withdraw(ref)
        await d.send("2", "marker")
        await d.ends(1)
        gate.set()
        assert (await d.ends(2))[ref].outcome == "sent"


async def test_what_the_platform_asked_for_is_honoured_after_a_restart(tmp_path):
    platform = FakePlatform()
    platform.script["1"] = [flood(0.6)]
    broker = SqliteBroker(tmp_path / "s.db")
    async with desk(broker, platform) as d:
        ref = await d.send("1", "patience")
        await eventually(lambda: not d.broker._writer._jobs.qsize() and platform.tried)
        await asyncio.sleep(0.05)
    await broker.close()
    broker = SqliteBroker(tmp_path / "s.db")
    async with desk(broker, platform) as d:
        await d.send("2", "elsewhere")
        assert (await d.ends(2))[ref].outcome == "sent"
    await broker.close()
    assert platform.texts() == ["elsewhere", "patience"]
    assert platform.tried[-1][3] - platform.tried[0][3] >= 0.55


async def test_a_message_is_tried_until_its_deadline_and_then_it_is_said_that_it_is_too_late(broker):
    platform = FakePlatform()
    platform.script["1"] = [flood(0.02) for _ in range(1000)]
    async with desk(broker, platform) as d:
        ref = await d.send("1", "news", until=datetime.now(UTC) + timedelta(seconds=1.5))
        end = (await d.ends(1))[ref]
    assert (end.outcome, end.delivered) == ("failed", 0)
    assert end.why.startswith(f"{TOO_LATE} (")
    assert str(flood(0.02)) in end.why
    assert len(platform.tried) > 8  # a dead platform does not use up a message


async def test_who_asks_for_no_wait_is_not_asked_without_end(broker):
    platform = FakePlatform()
    platform.script["1"] = [flood(0.0) for _ in range(1000)]
    async with desk(broker, platform) as d:
        await d.send("1", "news", until=datetime.now(UTC) + timedelta(seconds=0.5))
        await d.ends(1)
    assert len(platform.tried) < 6


async def test_an_old_message_is_not_tried_at_all(broker):
    platform = FakePlatform()
    async with desk(broker, platform) as d:
        ref = await d.send("1", "yesterday's news", until=datetime.now(UTC) - timedelta(seconds=1))
        assert (await d.ends(1))[ref].why == TOO_LATE
    assert platform.tried == []


async def test_a_long_rest_does_not_outlast_the_deadline(broker):
    platform = FakePlatform()
    platform.script["1"] = [flood(3600)]
    async with desk(broker, platform) as d:
        ref = await d.send("1", "news", until=datetime.now(UTC) + timedelta(seconds=0.3))
        assert (await d.ends(1))[ref].why.startswith(TOO_LATE)


async def test_parts_are_one_set(broker):
    platform = FakePlatform(parts=3)
    platform.script["1"] = [None, Rejected("blocked")]
    async with desk(broker, platform) as d:
        ref = await d.send("1", "long")
        end = (await d.ends(1))[ref]
    assert (end.outcome, end.delivered, end.parts) == ("failed", 1, 3)
    assert [text for _, text, _, _ in platform.tried] == ["long 1/3", "long 2/3"]


async def test_a_platform_that_says_nothing_is_unknown_after_a_while_and_not_asked_again(broker):
    platform = FakePlatform()
    platform.script["1"] = [asyncio.Event().wait]
    async with desk(broker, platform, send_seconds=0.05) as d:
        ref = await d.send("1", "hello?")
        assert (await d.ends(1))[ref].outcome == "unknown"
    assert len(platform.tried) == 1


@pytest.mark.parametrize(("repeatable", "outcome", "tries"), [(False, "unknown", 1), (True, "sent", 2)])
async def test_an_attempt_that_a_crash_cut_off_is_repeated_only_where_it_shows_once(
    tmp_path, repeatable, outcome, tries
):
    platform = FakePlatform(repeatable=repeatable)
    platform.script["1"] = [asyncio.Event().wait]
    broker = SqliteBroker(tmp_path / "s.db")
    async with desk(broker, platform) as d:
        ref = await d.send("1", "hello")
        await eventually(lambda: platform.tried)
        broker.kill()
    await broker.close()
    broker = SqliteBroker(tmp_path / "s.db")
    async with desk(broker, platform) as d:
        assert (await d.ends(1))[ref].outcome == outcome
    await broker.close()
    assert [key for _, _, key, _ in platform.tried] == [f"{ref}/0"] * tries


async def test_neither_a_slow_room_nor_a_dead_account_holds_up_the_others(broker):
    slow, dead, well = FakePlatform("telegram-1"), FakePlatform("slack-1"), FakePlatform("local")
    slow.script["1"] = [asyncio.Event().wait]
    dead.script["1"] = [OutcomeUnknown("cut")] + [SurelyNotSent("refused")] * 100
    async with desk(broker, slow) as one, desk(broker, dead) as two, desk(broker, well) as three:
        await one.send("1", "stuck")
        await two.send("1", "lost")
        await two.send("1", "waits")
        for n in range(20):
            await one.send("2", f"{n}")
            await three.send("1", f"{n}")
        await one.ends(20)
        await three.ends(20)
    assert slow.texts() == well.texts() == [f"{n}" for n in range(20)]


async def test_st05_each_of_fifty_interleaved_chats_gets_its_own_answers(tmp_path):
    """Random delays of people, model and platform; nobody's words show up anywhere else."""
    rnd = random.Random(5)
    chats = [f"{100 + n}" for n in range(50)]
    platform = FakePlatform()
    for chat in chats:
        delays = [rnd.random() / 20 for _ in range(20)]
        platform.script[chat] = [lambda delay=delay: asyncio.sleep(delay) for delay in delays]
    model = EchoModel(lambda: rnd.random() / 10)
    async with stage(tmp_path / "s.db", model, chats, [platform]) as s:

        async def talk(chat):
            for n in range(4):
                await s.hears(said(chat, f"word-{chat}-{n}.", n))
                await asyncio.sleep(rnd.random() / 10)

        await asyncio.gather(*map(talk, chats))
        words = {f"word-{chat}-{n}." for chat in chats for n in range(4)}
        answered = lambda: {w for _, text, _, _ in platform.arrived for w in text.split() if w.startswith("word")}  # noqa: E731
        await eventually(lambda: answered() == words)
    told = [(place, word) for place, text, _, _ in platform.arrived for word in text.split() if word.startswith("word")]
    assert sorted(told) == sorted((word.split("-")[1], word) for word in words)
    for request in model.requests:
        text = str(request.messages)
        assert len({word for word in chats if f"word-{word}-" in text}) == 1
    assert s.notices == []
