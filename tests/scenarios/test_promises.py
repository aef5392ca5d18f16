"""What a person notices, on Slack and by mail; on Telegram, the terminal and the page the other files show it."""

import contextlib
from datetime import UTC, datetime, timedelta

import pytest_asyncio

from brain.hold import Pace
from tests.scenarios.places import opened
from tests.stage import QUICK
from tests.staging.models import call, new_to_desk

CLEO = '[[contacts]]\nname = "Cleo"\naddresses = ["{address}", "telegram:99"]\n'
NIGHT = Pace(quiet_seconds=0.1, progress_seconds=0.05, awake_seconds=0.0)


@pytest_asyncio.fixture(params=["slack", "email"], loop_scope="session")
async def plays(request, opens):
    """On one of them: `async with plays() as (stage, place)`."""
    async with opened(request.param) as place:
        more = place.settings + CLEO.format(address=place.address("Cleo"))

        @contextlib.asynccontextmanager
        async def play(pace=QUICK):
            async with opens(more=more, also=(place.address("Ana"),), pace=pace) as stage:
                yield stage, place

        yield play


async def test_1_and_3_how_far_is_answered_at_once_and_does_not_disturb_the_work(plays):
    async with plays() as (stage, place):
        stage.desk.on("Book Rome").acts("booking", "Book Rome", saying="On it")
        stage.desk.on("how far").replies("Looking at trains")
        stream = stage.worker.on("Book Rome").responds("Rome is booked").held()
        place.says("Book Rome.")
        await place.sees("On it")
        await stream.streaming()
        place.says("how far are you?")
        await place.sees("Looking at trains")
        assert not (await stream.streaming()).over.is_set()
        stream.release()
        await place.sees("Rome is booked")
        assert len(stage.worker.requests) == 1
        assert place.seen() == ["On it", "Looking at trains", "Rome is booked"]


async def test_2_a_correction_reaches_the_right_one_of_two_tasks(plays):
    async with plays() as (stage, place):
        stage.desk.on("Rome").acts("rome", "Book Rome", saying="Rome: on it")
        stage.desk.on("Oslo").acts("oslo", "Book Oslo", saying="Oslo: on it")
        stage.desk.on("work account").interjects("oslo")
        rome = stage.worker.on("Book Rome").responds("Rome is booked").held()
        oslo = stage.worker.on("Book Oslo").responds("Never said").held()
        corrected = stage.worker.on("Book Oslo", "work account").responds("Oslo, on the work account")
        place.says("Book Rome.")
        await rome.streaming()
        await place.sees("Rome: on it")
        place.says("And book Oslo.")
        await oslo.streaming()
        await place.sees("Oslo: on it")
        place.says("For Oslo: no, the work account.")
        await place.sees("Oslo, on the work account")
        assert f"[Ana on {place.medium}, " in (await corrected.asked()).messages[-1]["content"]
        assert not (await rome.streaming()).over.is_set()
        rome.release()
        await place.sees("Rome is booked")
        assert "Never said" not in str(place.seen())


async def test_5_the_session_of_february_does_march_after_a_restart(plays):
    async with plays() as (stage, place):
        stage.desk.on("February").acts("sales", "Total February", saying="On it")
        stage.desk.on("now March").interjects("sales")
        stage.worker.on("Total February").runs("rows = [1, 2, 3]\nprint('total', sum(rows))", stateful=True)
        stage.worker.on("now March").runs("print('total', sum([*rows, 4]))", stateful=True)
        place.says("Total February.")
        await place.sees("total 6")
        await stage.phase("sales", "awaiting_input")
        await stage.stop()
        await stage.start()
        place.says("Great, now March.")
        await place.sees("total 10")


async def test_6_and_7_a_question_follows_the_person_and_the_result_goes_where_it_was_asked_for(plays):
    async with plays() as (stage, place):
        stage.desk.on("Mail Sarah").acts("mail", "Mail Sarah", saying="On it")
        asks = stage.worker.on("Mail Sarah").calls(call("request_clarification", question="Which Sarah?")).silent()
        stage.worker.on("answered by Ana: Lind").responds("Sent to Sarah Lind")
        stage.desk.on("on the train").replies("Safe travels")
        stage.desk.on("Lind").answers("mail", "Lind", saying="Thanks")
        place.says("Mail Sarah.")
        await place.sees("On it")
        await stage.ana.telegram("I'm on the train.").sees("Safe travels")
        asks.release()
        await stage.ana.sees("Which Sarah?")
        await stage.ana.telegram("Lind.").sees("Thanks")
        await place.sees("Sent to Sarah Lind")
        assert place.seen() == ["On it", "Sent to Sarah Lind"]
        assert stage.ana.on_telegram() == ["Safe travels", "Which Sarah?", "Thanks"]


async def test_7_what_comes_of_a_next_job_goes_where_that_was_asked_for(plays):
    async with plays() as (stage, place):
        stage.desk.on("February").acts("sales", "Total February", saying="On it")
        stage.desk.on("now March").interjects("sales", saying="On March")
        stage.worker.on("Total February").responds("total 6")
        stage.worker.on("now March").responds("total 10")
        place.says("Total February.")
        await place.sees("total 6")
        await stage.ana.telegram("Great, now March.").sees("total 10")
        assert place.seen() == ["On it", "total 6"]


async def test_7_who_stops_it_from_elsewhere_hears_there_that_it_is_stopped(plays):
    async with plays() as (stage, place):
        stage.desk.on("Book Rome").acts("booking", "Book Rome", saying="On it")
        worker = stage.worker.on("Book Rome").responds("Booked").silent()
        place.says("Book Rome.")
        await place.sees("On it")
        await worker.asked()
        await stage.ana.telegram("stop").sees("Stopped “booking”.")
        assert place.seen() == ["On it"]
        worker = stage.worker.on("Book Oslo").responds("Booked").silent()
        stage.desk.on("Oslo").acts("oslo", "Book Oslo", saying="On that")
        place.says("Book Oslo.")
        await place.sees("On that")
        await worker.asked()
        stage.terminal.client.press("stop", stage.view("oslo").label)
        await stage.until(lambda: "Stopped “oslo”." in "".join(stage.ana.on("terminal")))
        assert place.seen() == ["On it", "On that"]


async def test_7_a_result_goes_elsewhere_if_they_say_so(plays):
    async with plays() as (stage, place):
        stage.desk.on("Hello").replies("Good morning")
        stage.desk.on("tell me on Telegram").acts("booking", "Book Rome", saying="On it")
        stage.desk.told("booking responded").calls(call("send_message", text="It is booked", medium="telegram"))
        stage.worker.on("Book Rome").responds("Booked")
        hello = stage.ana.telegram("Hello.")
        await hello.sees("Good morning")
        place.says("Book Rome, and tell me on Telegram.")
        await hello.sees("It is booked")
        await place.sees("On it")
        assert place.seen() == ["On it"]


async def test_7_a_chat_is_opened_where_they_never_wrote(plays):
    async with plays() as (stage, place):
        stage.desk.on("Book Rome").calls(call("send_message", text="It is booked", to=place.address("Ana")))
        stage.desk.on("and there").replies("Here too")
        stage.ana.telegram("Book Rome, and tell me there.")
        await place.sees("It is booked")
        place.says("and there?")
        await place.sees("Here too")
        assert stage.ana.on_telegram() == []


async def test_7_where_a_bot_cannot_write_first_they_hear_why_where_they_are(plays):
    async with plays() as (stage, place):
        stage.desk.on("on Telegram").calls(call("send_message", text="Here", to="telegram:99"))
        failed = stage.desk.told("a send failed", "press Start").replies("Please press Start there")
        place.says("Answer me on Telegram.", "Cleo")
        await place.sees("Please press Start there", "Cleo")
        assert len(failed.requests) == 1


async def test_8_a_private_thing_is_in_nobody_elses_request_or_message(plays):
    async with plays() as (stage, place):
        stage.desk.on("salary").replies("Noted")
        cleo = stage.desk.on("Hello").replies("Hello, Cleo")
        place.says("My salary is 5.")
        await place.sees("Noted")
        place.says("Hello.", "Cleo")
        await place.sees("Hello, Cleo", "Cleo")
        assert "salary" not in (await cleo.asked()).text
        assert (place.seen(), place.seen("Cleo")) == (["Noted"], ["Hello, Cleo"])


async def test_9_silence_sends_nothing_and_its_reason_can_be_read(plays):
    async with plays() as (stage, place):
        stage.desk.on("thanks").waits("thanks need no answer")
        stage.desk.on("more").replies("Yes?")
        place.says("thanks.")
        await stage.until(lambda: stage.lane().turns == 1)
        place.says("one more.")
        await place.sees("Yes?")
        assert place.seen() == ["Yes?"]
        assert "**stayed silent**: thanks need no answer" in await stage.terminal.look("trace", "m1")


async def test_in_quiet_hours_a_result_waits_until_they_write(plays):
    async with plays(NIGHT) as (stage, place):
        stage.desk.on("Book Rome").acts("booking", "Book Rome", saying="On it")
        stage.worker.on("Book Rome").responds("Rome is booked")
        awake = stage.desk.on("still up").replies("Rome is booked, and you should sleep")
        now = datetime.now(UTC)
        place.says(f"/quiet {now - timedelta(hours=1):%H}:00-{now + timedelta(hours=3):%H}:00")
        await place.sees("what is not urgent waits")
        place.says("Book Rome.")
        await place.sees("On it")
        await stage.phase("booking", "awaiting_input")
        place.says("I am still up.")
        await place.sees("you should sleep")
        assert "booking responded" in new_to_desk(await awake.asked())
        assert len(place.seen()) == 3
