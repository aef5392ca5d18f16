"""A turn commits once, decides again on what arrives before that, and shows nothing before it."""

import pytest

from brain.hold import Pace
from tests.staging.models import new_to_desk


async def test_two_quick_messages_get_one_reply(stage):
    first = stage.desk.on("Book Rome").replies("Rome it is").held()
    stage.desk.on("Book Rome", "no, Milan").replies("Milan it is")
    rome = stage.ana.telegram("Book Rome.")
    await first.streaming()
    await stage.ana.telegram("no, Milan.").sees("Milan it is")
    assert rome.after() == ["Milan it is"]
    assert (await first.over()).closed_at is not None


async def test_what_comes_after_the_commit_is_the_next_turn(stage):
    stage.desk.on("Book Rome").replies("Rome it is")
    stage.desk.on("no, Milan").replies("Milan, then")
    await stage.ana.telegram("Book Rome.").sees("Rome it is")
    await stage.ana.telegram("no, Milan.").sees("Milan, then")
    assert stage.lane().turns == 2


async def test_nothing_generated_is_shown_before_the_commit(stage):
    told = stage.desk.on("Tell me").replies("Once upon a time").held()
    telegram, terminal = stage.ana.telegram("Tell me."), stage.ana.terminal("Tell me.")
    await told.streaming()
    assert telegram.after() == terminal.after() == []
    assert not stage.telegram.called("sendMessage")
    told.release()


async def test_a_cancelled_generation_leaves_only_its_cost(stage):
    first = stage.desk.on("Book Rome").replies("a secret thought, never said").held()
    stage.desk.on("Book Rome", "Milan").replies("Milan it is")
    stage.ana.telegram("Book Rome.")
    await first.streaming()
    await stage.ana.telegram("no, Milan.").sees("Milan it is")
    assert all("secret" not in str(stored.data) for stored in stage.journals.stored())
    assert "Spent" in str([stored.data for stored in stage.journals.stored("log.lane.%")])


# --- what a client splits, and what comes in bursts ------------------------------------------------------------------

HALF = "x" * 4083 + " the value is"


@pytest.mark.parametrize("medium", ["terminal", "telegram"])
async def test_a_paste_that_was_split_is_joined_without_a_character_more_or_less(stage, medium):
    half = stage.desk.on("the value is").replies("what value?").silent()
    stage.desk.on("the value is", "compute it").replies("17 it is")
    say = getattr(stage.ana, medium)
    paste = say(HALF)
    await half.asked()
    await say(" 17 so compute it.").sees("17 it is")
    assert paste.after() == ["17 it is"]
    assert "x the value is 17 so compute it." in new_to_desk(stage.desk.requests[-1])


async def test_a_split_paste_survives_a_stop_between_its_halves(stage):
    first = stage.desk.on("the value is").replies("what value?").held()
    stage.desk.on("compute it").replies("17 it is")
    paste = stage.ana.telegram(HALF)
    await first.streaming()
    await stage.stop()
    stage.ana.telegram(" 17 so compute it.")
    await stage.start()
    await paste.sees("17 it is")
    assert paste.after() == ["17 it is"]


async def test_a_burst_that_breaks_off_waits_a_second_and_gets_one_answer(opens):
    async with opens(pace=Pace()) as stage:
        stage.desk.on("hi").replies("Hello")
        hurried = stage.desk.on("can you").replies("Can I what?").held()
        half = stage.desk.on("can you", "check").replies("Check what?")
        stage.desk.on("can you", "check", "server").replies("The server is fine")
        await stage.ana.telegram("hi").sees("Hello")
        three = stage.ana.telegram("can you")
        await hurried.streaming()
        stage.ana.telegram("check")
        await half.over()  # generated whole, and not committed: the burst breaks off
        await stage.ana.telegram("the server?").sees("The server is fine")
        assert three.after() == ["The server is fine"]


async def test_a_burst_that_stays_broken_off_is_answered_after_the_second(opens):
    async with opens(pace=Pace(quiet_seconds=0.3)) as stage:
        hurried = stage.desk.on("can you").replies("Can I what?").held()
        stage.desk.on("can you", "check").replies("Check what?")
        stage.ana.telegram("can you")
        await hurried.streaming()
        await stage.ana.telegram("check").sees("Check what?")
        said = max(stage.telegram.said_at.values())
        assert stage.telegram.shown[-1].at - said >= 0.3


async def test_a_whole_message_is_never_held(opens):
    async with opens(pace=Pace(quiet_seconds=600)) as stage:
        stage.desk.on("hi").replies("Hello")
        stage.desk.on("server?").replies("It is fine")
        await stage.ana.telegram("hi").sees("Hello")
        await stage.ana.telegram("check the server?").sees("It is fine")


async def test_a_stop_waits_for_no_turn_and_no_quiet(opens):
    async with opens(pace=Pace(quiet_seconds=600)) as stage:
        stage.desk.on("can you").replies("Can I what?")
        stage.desk.on("can you", "check").replies("Check what?")
        stage.ana.telegram("can you")
        stage.ana.telegram("check")
        await stage.ana.telegram("/stop").sees("There is nothing to stop.")
