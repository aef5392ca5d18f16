"""Reminders, and what waits through the night, on the real broker and over restarts."""

import asyncio

import msgspec
import pytest

from brain import outage
from brain.contacts import Contact
from brain.purse import Caps
from brain.turns import MAX_UNCLEAN
from gateway.events import ActionChanged, ActionResponded, Ref
from gateway.journal import Owned
from gateway.llm.model import Generation, ModelError, Usage
from gateway.quiet import quiet_hours
from tests.patience import PATIENCE_SECONDS
from tests.people.town import MEMBER, OWNER, OWNER_MAIL, STRANGER, Clock, call, calls, says, shown, tools, town
from tests.staging.waiting import until


def desk(request):
    """Sets what it is asked for, takes back what it is told to, and says what it is reminded of."""
    events = str(request.messages[-2]["content"])
    if "the reminder that" in events:
        return says(f"Remember: {events.partition('] ')[2]}")
    if "remind me" in events:
        asked = events.rpartition("remind me ")[2]
        set_ = (call("remind", text=what, at=at) for at, _, what in (one.partition(" ") for one in asked.split(", ")))
        return Generation(text="I will", calls=tuple(set_))
    if "forget" in events:
        return calls("remind", cancel=events.rpartition("forget ")[2])
    return says("Hello")


async def reminded(here, place, *texts):
    await until(lambda: any(lane.journal.state.reminders_fired for lane in here.manager.lanes()))
    await here.settled()
    assert [text for text in await here.told(place) if text.startswith("Remember")] == list(texts)


async def test_it_comes_on_the_medium_where_it_was_asked_for_and_nothing_between_ends_it(tmp_path):
    async with town(tmp_path / "db", desk) as here:
        await here.says(OWNER_MAIL, "remind me 0.2s call Eva")
        await here.settled()
        await here.says(OWNER, "Something else")
        await here.settled()
        state = await here.lane("p-ana")
        assert "r1 Sun 29 Nov 2026 12:00 “call Eva”" in shown(here.model.requests[-1])
        here.clock.at = state.reminders[0].until
        await reminded(here, OWNER_MAIL.user, "Remember: call Eva")
        assert await here.told(OWNER.user) == ["Hello"]


async def test_what_came_due_while_nobody_ran_comes_at_once_and_once(tmp_path):
    clock = Clock()
    async with town(tmp_path / "db", desk, clock=clock) as here:
        await here.says(OWNER, "remind me 2h two, 1h one, 3h forgotten, 4d much later")
        await here.settled()
        await here.says(OWNER, "forget r3")
        await here.settled()
    clock.passes(hours=5)
    async with town(tmp_path / "db", desk, clock=clock) as here:
        await until(lambda: sum(lane.journal.state.reminders_fired for lane in here.manager.lanes()) == 2)
        await here.settled()
        told = await here.told(OWNER.user)
        assert "forgotten" not in str(told)
        assert (str(told).count("one"), str(told).count("two")) == (1, 1)
    async with town(tmp_path / "db", desk, clock=clock) as here:
        await here.settled()
        assert await here.told(OWNER.user) == told
        state = await here.lane("p-ana")
        assert ([one.text for one in state.reminders], state.undecided) == (["much later"], [])


@pytest.mark.parametrize(
    ("caps", "line"), [(Caps(), outage.NOT_REACHED), (Caps(person=1.0), "budget")], ids=["down", "cap"]
)
async def test_it_comes_in_its_own_words_while_there_is_no_model_and_nothing_else_is_lost(tmp_path, caps, line):
    down = []

    def trouble(request):
        if down:
            raise ModelError("unreachable", "the model is down", retryable=True)
        return msgspec.structs.replace(desk(request), usage=Usage(prompt_tokens=1, usd=1.0))

    async with town(tmp_path / "db", trouble, caps=caps) as here:
        await here.says(OWNER, "remind me 0.2s call Eva")
        await here.settled()
        if caps.person is None:
            down.append(True)
        else:
            await until(lambda: here.notices)
        await here.says(OWNER, "Are you there?")
        await eventually_told(here, line)
        here.clock.passes(seconds=1)
        await here.says(OWNER, "Still?")
        told = await eventually_told(here, "Reminder: call Eva")
        assert sum("Reminder" in text for text in told) == sum(line in text for text in told) == 1
        state = here.manager.lanes()[0].journal.state
        await until(lambda: len(state.undecided) == 2)
        assert [item.fact.text for item in state.undecided] == ["Are you there?", "Still?"]


async def test_a_wait_until_a_time_is_decided_again_then_also_after_a_restart_and_not_after_a_later_turn(tmp_path):
    def waits(request):
        events = str(request.messages[-2]["content"])
        if "the time you waited for" in events:
            return says(f"It is time: {events.partition('] ')[2]}")
        return calls("wait", reason="looking again", until="2h") if "later" in events else says("Hello")

    clock = Clock()
    async with town(tmp_path / "db", waits, clock=clock) as here:
        await here.says(OWNER, "later")
        await here.says(MEMBER, "later")
        await here.settled()
        await here.says(MEMBER, "or now")
        await here.settled()
        assert await here.told(OWNER.user) == []
    clock.passes(hours=3)
    async with town(tmp_path / "db", waits, clock=clock) as here:
        await eventually_told(here, "It is time: looking again")
        await here.settled()
    clock.passes(hours=3)
    async with town(tmp_path / "db", waits, clock=clock) as here:
        await here.settled()
        assert await here.told(OWNER.user) == ["It is time: looking again"]
        assert await here.told(MEMBER.user) == ["Hello"]


async def eventually_told(here, words):
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            told = await here.told(OWNER.user)
            if any(words in text for text in told):
                return told
            await asyncio.sleep(0.005)


async def test_a_stranger_has_none(tmp_path):
    async with town(tmp_path / "db", desk, unknown="reply") as here:
        await here.says(STRANGER, "Hello")
        await here.says(MEMBER, "Hello")
        await here.settled()
        offered = {"telegram 9" in shown(request): "remind" in tools(request) for request in here.model.requests}
        assert offered == {True: False, False: True}


def holding(here):
    states = [(lane, lane.journal.state) for lane in here.manager.lanes()]
    return [lane for lane, state in states if state.undecided and not state.crashes]


@pytest.mark.parametrize("writes", [False, True])
async def test_what_is_held_through_a_restless_night_is_told_in_the_morning(tmp_path, writes):
    """Or when they write, also while nobody ran."""
    sleeper = Contact(key="ana", name="Ana", role="owner", addresses=(OWNER,), quiet_hours=quiet_hours("22:00-07:00"))
    clock = Clock()

    def tells(request):
        events = str(request.messages[-2]["content"])
        return says("All of it") if "responded" in events else calls("act", query="x", name="x")

    async with town(tmp_path / "db", tells, clock=clock, contacts=[sleeper]) as here:
        await here.says(OWNER, "Do it.")
        await here.settled()
    clock.passes(hours=11)
    key = "p-ana-a1"
    for number in range(MAX_UNCLEAN + 2):
        async with town(tmp_path / "db", tells, clock=clock, contacts=[sleeper]) as here:
            if not number:
                same = {"conversation": "p-ana", "action": key}
                await here.tells(ActionChanged(ref=Ref(f"act-{key}", 1, 0), **same, phase="running"))
                await here.tells(ActionResponded(ref=Ref(f"act-{key}", 2, 0), **same, text="all"))
            await until(lambda here=here: holding(here))
            await holding(here)[0].journal.write(lambda _: Owned(worker="one that ended uncleanly"))
    if not writes:
        clock.passes(hours=12)
    async with town(tmp_path / "db", tells, clock=clock, contacts=[sleeper]) as here:
        if writes:
            await here.says(OWNER, "Still up.")
        await until(lambda: not any(lane.journal.state.undecided for lane in here.manager.lanes()))
        await here.settled()
        assert await here.told(OWNER.user) == ["All of it"]
        assert not here.notices
