"""`/quiet`: quiet hours by a person's own wish, without a model, on the real broker and over a restart."""

import pytest

from brain.contacts import Contact
from gateway.events import ActionChanged, ActionResponded, Ref
from gateway.quiet import quiet_hours
from tests.people.town import OWNER, Clock, calls, room, says, town
from tests.staging.waiting import until

SLEEPER = Contact(key="ana", name="Ana", role="owner", addresses=(OWNER,), quiet_hours=quiet_hours("22:00-07:00"))
KEY = "p-ana-a1"


def desk(request):
    return (
        says("All of it") if "responded" in str(request.messages[-2]["content"]) else calls("act", query="x", name="x")
    )


async def ends(here):
    same = {"conversation": "p-ana", "action": KEY}
    await here.tells(ActionChanged(ref=Ref(f"act-{KEY}", 1, 0), **same, phase="running"))
    await here.tells(ActionResponded(ref=Ref(f"act-{KEY}", 2, 0), **same, text="all"))


@pytest.mark.parametrize(
    ("wish", "hours", "held"), [("/quiet off", 11, False), ("quiet 13:00 - 15:00", 2, True), ("/quiet", 11, True)]
)
async def test_the_wish_stands_over_the_settings(tmp_path, wish, hours, held):
    clock = Clock()
    async with town(tmp_path / "db", desk, clock=clock, contacts=[SLEEPER]) as here:
        await here.says(OWNER, "Do it.")
        await here.says(OWNER, wish)
        await here.settled()
    clock.passes(hours=hours)
    async with town(tmp_path / "db", desk, clock=clock, contacts=[SLEEPER]) as here:
        await ends(here)
        if held:
            await until(lambda: any(lane.journal.state.undecided for lane in here.manager.lanes()))
            clock.passes(hours=9)
        else:
            await here.settled()
    async with town(tmp_path / "db", desk, clock=clock, contacts=[SLEEPER]) as here:
        await here.settled()
        *before, last = await here.told(OWNER.user)
        assert last == "All of it"
        assert len(here.model.requests) == held
        assert "quiet hours" in before[0]


async def test_it_says_what_there_is_and_what_are_no_hours(tmp_path):
    async with town(tmp_path / "db", desk, contacts=[SLEEPER]) as here:
        for text in ("/quiet", "/quiet 25-26", "/quiet 9:30-10:15", "/quiet off", "/quiet"):
            await here.says(OWNER, text)
            await here.settled()
        await here.says(OWNER, "/quiet off", at=room("C1"))
        await here.settled()
        told = await here.told(OWNER.user)
        assert "22:00-07:00 (" in told[0]
        assert told[1].startswith("Those are no hours.")
        assert "09:30-10:15" in told[2]
        assert told[3] == "You have no quiet hours."
        assert told[4].startswith("You have no quiet hours. `/quiet 22:00-07:00`")
        assert (await here.told("C1"))[0].startswith("Quiet hours are a person's own")
        assert not here.model.requests
