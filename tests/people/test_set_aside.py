"""What a model will never answer, and what nobody asked it: neither stands in the way of anything."""

from brain import outage
from brain.hold import Pace
from brain.purse import Caps
from brain.turns import MAX_TURNS_ALONE
from gateway.events import ActionEnded, ActionProgressed, ActionResponded, CommandRefused, Ref
from gateway.llm.model import Generation, ModelError, Usage
from tests.people.town import MEMBER, OTHER, OWNER, calls, room, says, shown, town
from tests.staging.waiting import until

FILTERED = ModelError("content_filtered", "it withheld its answer", retryable=False)
DOWN = ModelError("unreachable", "it cannot be reached", retryable=False)


def fails_on(word, error):
    def desk(request):
        if word in shown(request):
            raise error
        return says("Good morning")

    return desk


async def test_lm05_what_a_filter_withholds_is_owned_up_to_once_and_does_not_hold_up_what_comes_next(tmp_path):
    async with town(tmp_path / "db", fails_on("poison", FILTERED)) as here:
        await here.says(OWNER, "Tell me of poison.")
        await here.settled()
        await here.says(OWNER, "Hello?")
        await here.settled()
        assert await here.told("1") == [outage.SET_ASIDE["content_filtered"], "Good morning"]
        assert [notice for notice in here.notices if "withheld" in notice]


async def test_an_outage_is_not_told_to_those_who_said_nothing_to_it(tmp_path):
    async with town(tmp_path / "db", fails_on("budget", DOWN), ambient=frozenset({"slack:C1"})) as here:
        await here.says(MEMBER, "What of the budget?", at=room("C1"), addressed=False)
        await until(lambda: here.notices)
        await here.says(OWNER, "Hello.")
        await here.until_told("1", "Good morning")
        assert await here.told("C1") == []
        await here.says(MEMBER, "Frontdesk, the budget?", at=room("C1"))
        await here.until_told("C1", outage.NOT_REACHED)


async def test_what_long_work_comes_to_is_told_however_often_it_has_told_of_its_steps(tmp_path):
    def desk(request):
        return calls("act", query="count", name="count") if "Count." in shown(request) else says("never")

    async with town(tmp_path / "db", desk) as here:
        await here.says(OWNER, "Count.")
        await here.settled()
        here.model.desk = lambda request: calls("wait", reason="only a step")
        about = {"conversation": "p-ana", "action": "p-ana-a1"}
        for n in range(MAX_TURNS_ALONE):
            await here.tells(ActionProgressed(ref=Ref("act-a1", n + 1), **about, text=f"step {n}"), f"step {n}")
            await here.settled()
        await here.tells(ActionResponded(ref=Ref("act-a1", 99), **about, text="42 rows"), "response")
        await here.settled()
        assert await here.told("1") == ["42 rows"]


async def test_what_was_generated_and_not_waited_for_is_counted(tmp_path):
    costs = Usage(prompt_tokens=10, usd=0.5)
    half = "x" * 4090

    def desk(request):
        return Generation(text="Thank you", usage=costs)

    async with town(tmp_path / "db", desk, pace=Pace(quiet_seconds=60)) as here:
        await here.says(OWNER, half)
        await until(lambda: here.model.requests)
        await here.says(OWNER, "that was all.")
        await here.settled()
        assert len(here.model.requests) == 2
        assert sum((await here.lane("p-ana")).spending.usd.values()) == 1.0


async def test_st02_half_a_paste_that_was_there_before_a_restart_waits_for_the_rest(tmp_path):
    half = "x" * 4083 + " the value is"
    async with town(tmp_path / "db", fails_on("value", DOWN)) as here:
        await here.says(OWNER, half)
        await here.until_told("1", outage.NOT_REACHED)
    async with town(tmp_path / "db", lambda request: says("17"), pace=Pace(quiet_seconds=60)) as here:
        await until(lambda: here.model.requests)
        await here.says(OWNER, " 17 so compute it.")
        await here.settled()
        assert await here.told("1") == [outage.NOT_REACHED, "17"]


async def test_who_is_over_the_budget_waits_and_nobody_waits_for_them(tmp_path):
    answers = iter([Generation(text="Dear", usage=Usage(prompt_tokens=1, usd=2.0)), *[says("Cheap")] * 9])
    async with town(tmp_path / "db", lambda request: next(answers), caps=Caps(person=1.0)) as here:
        await here.says(MEMBER, "One.", at=room("C1"))
        await here.until_told("C1", "Dear")
        await here.says(MEMBER, "And two.", at=room("C1"))
        await until(lambda: here.notices)
        await here.says(OTHER, "Three.", at=room("C1"))
        await here.until_told("C1", "Cheap")
        assert "And two." not in str(here.model.requests[-1].messages[-2])


async def test_a_stop_of_what_has_just_ended_is_no_news(tmp_path):
    async with town(tmp_path / "db", lambda request: calls("act", query="count", name="count")) as here:
        await here.says(OWNER, "Count.")
        await here.settled()
        here.model.desk = lambda request: says("It has ended.")
        about = {"conversation": "p-ana", "action": "p-ana-a1"}
        await here.tells(ActionEnded(ref=Ref("act-a1", 1), **about, end="stopped", text=""), "end")
        command = Ref("p-ana", 3, 0)
        await here.tells(CommandRefused(ref=Ref("act-a1", 2), **about, command=command, verb="stop", why="ended"), "no")
        await here.settled()
        assert await here.told("1") == ["It has ended."]
        assert len(here.model.requests) == 2
