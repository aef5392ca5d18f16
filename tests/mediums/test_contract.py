"""What `mediums.medium.Medium` promises, for each medium alike; `stages` supplies the platforms."""

import asyncio

import pytest

from gateway.live import ActionsShown, TurnDecided, Typing
from mediums.medium import OutcomeUnknown, Rejected, SurelyNotSent
from tests.mediums.waiting import Inbox, eventually, receiving
from tests.patience import PATIENCE_SECONDS

LONG = "\n\n".join(f"Paragraph {n}: " + "words and more of them, " * 40 for n in range(40))


class Broken(Exception):
    """The broker would not take it."""


async def test_messages_arrive_in_order_each_once(stage):
    inbox = Inbox()
    async with receiving(stage.medium(), inbox):
        for n in range(20):
            await stage.says(f"message {n}")
        facts = await inbox.has(20)
        await stage.settled()
    assert [fact.text for fact in facts] == [f"message {n}" for n in range(20)]
    assert len({fact.identity for fact in facts}) == 20
    assert len(inbox.facts) == 20


async def test_a_message_says_where_it_comes_from_and_where_its_answer_goes(stage):
    inbox, medium = Inbox(), stage.medium()
    async with receiving(medium, inbox):
        await stage.says("hello")
        (fact,) = await inbox.has(1)
        await medium.send(fact.route, "welcome", "key/0")
        await stage.sees("welcome")
    assert fact.route.medium == fact.author.address.medium == stage.route.medium
    assert fact.route.account == medium.account
    assert fact.route.room == stage.route.room
    assert fact.private
    assert fact.addressed
    assert fact.at.tzinfo is not None


async def test_what_came_before_the_start_is_received(stage):
    await stage.says("early")
    inbox = Inbox()
    async with receiving(stage.medium(), inbox):
        await inbox.has(1)
    assert inbox.texts == ["early"]


async def test_a_message_whose_publish_failed_comes_again(stage):
    async def refusing(_):
        raise Broken

    await stage.says("keep this")
    medium = stage.medium()
    with pytest.raises(Broken):
        async with asyncio.timeout(PATIENCE_SECONDS):
            await medium.receive(refusing, Inbox().keep)
    inbox = Inbox()
    async with receiving(medium, inbox):
        await inbox.has(1)
    assert inbox.texts == ["keep this"]


async def test_a_message_whose_publish_never_returned_comes_again_after_a_restart(stage):
    reached = asyncio.Event()
    identities = []

    async def hanging(fact):
        identities.append(fact.identity)
        reached.set()
        await asyncio.Event().wait()

    async with receiving(stage.medium(), hanging):
        await stage.says("keep this too")
        async with asyncio.timeout(PATIENCE_SECONDS):
            await reached.wait()
    inbox = Inbox()
    async with receiving(stage.medium(), inbox):
        (fact,) = await inbox.has(1)
    assert fact.text == "keep this too"
    assert [fact.identity] == identities


async def test_what_was_confirmed_does_not_come_again_after_a_restart(stage):
    first, second = Inbox(), Inbox()
    async with receiving(stage.medium(), first):
        await stage.says("one")
        await first.has(1)
        await stage.settled()
    async with receiving(stage.medium(), second):
        await stage.says("two")
        await second.has(1)
    assert second.texts == ["two"]


async def test_a_send_shows_once(stage):
    medium = stage.medium()
    async with receiving(medium, Inbox()):
        await medium.send(stage.route, "the answer", "send/1/0")
        await stage.sees("the answer")
    assert stage.seen() == ["the answer"]


async def test_a_key_shows_once_where_sends_can_be_repeated(stage):
    medium = stage.medium()
    if not medium.repeatable:
        pytest.skip("sends cannot be repeated here")
    async with receiving(medium, Inbox()):
        for key in ("send/1/0", "send/1/0", "send/2/0"):
            await medium.send(stage.route, f"answer of {key}", key)
        await stage.sees("answer of send/2/0")
    assert stage.seen() == ["answer of send/1/0", "answer of send/2/0"]


async def test_a_send_that_surely_failed_may_be_tried_again(stage):
    medium = stage.medium()
    async with receiving(medium, Inbox()):
        await stage.next_send_fails_surely()
        with pytest.raises(SurelyNotSent):
            await medium.send(stage.route, "again and again", "send/1/0")
        await medium.send(stage.route, "again and again", "send/1/0")
        await stage.sees("again and again")
    assert stage.seen() == ["again and again"]


async def test_a_send_to_a_platform_that_is_down_surely_failed(stage):
    medium = stage.medium()
    await stage.goes_down()
    with pytest.raises(SurelyNotSent):
        await medium.send(stage.route, "too early", "send/1/0")
    await stage.comes_back()
    async with receiving(medium, Inbox()):
        await medium.send(stage.route, "in time", "send/1/0")
        await stage.sees("in time")
    assert stage.seen() == ["in time"]


async def test_a_refused_send_is_rejected_and_shows_nothing(stage):
    medium = stage.medium()
    async with receiving(medium, Inbox()):
        await stage.next_send_is_refused()
        with pytest.raises(Rejected) as refused:
            await medium.send(stage.route, "unwanted", "send/1/0")
    assert str(refused.value)
    assert stage.seen() == []


async def test_nobody_knows_of_a_send_whose_answer_was_lost(stage):
    medium = stage.medium()
    async with receiving(medium, Inbox()):
        await stage.next_send_loses_its_answer()
        with pytest.raises(OutcomeUnknown):
            await medium.send(stage.route, "did it arrive?", "send/1/0")
    assert stage.seen() == ["did it arrive?"]


async def test_parts_are_never_empty_and_all_arrive_in_order(stage):
    medium = stage.medium()
    parts = medium.split(LONG)
    assert all(part.strip() for part in parts)
    assert "".join("".join(parts).split()) == "".join(LONG.split())
    async with receiving(medium, Inbox()):
        for n, part in enumerate(parts):
            await medium.send(stage.route, part, f"send/1/{n}")
        assert "".join("".join(stage.seen()).split()) == "".join(LONG.split())


@pytest.mark.parametrize("blank", ["", " ", "\n" * 3000])
def test_nothing_has_no_parts(stage, blank):
    assert stage.medium().split(blank) == ()


@pytest.mark.parametrize("up", [True, False])
async def test_showing_raises_nothing_whether_the_platform_is_up_or_down(stage, up):
    medium = stage.medium()
    if not up:
        await stage.goes_down()
    async with receiving(medium, Inbox()):
        for signal in (
            Typing(route=stage.route, on=True),
            ActionsShown(route=stage.route, actions=()),
            TurnDecided(route=stage.route, covers=()),
            Typing(route=stage.route, on=False),
        ):
            async with asyncio.timeout(PATIENCE_SECONDS):
                await medium.show(signal)


async def test_health_is_true_before_during_and_after_an_outage(stage):
    medium, inbox = stage.medium(), Inbox()
    assert not medium.health().well
    async with receiving(medium, inbox):
        await eventually(lambda: medium.health().well)
        await stage.goes_down()
        await eventually(lambda: not medium.health().well)
        assert medium.health().text
        await stage.comes_back()
        await eventually(lambda: medium.health().well)
        await stage.says("after the outage")
        await inbox.has(1)
    assert inbox.texts == ["after the outage"]
    assert not medium.health().well
