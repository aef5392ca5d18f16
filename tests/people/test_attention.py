"""Who is heard, answered, or only kept: decided before any model."""

import pytest

from brain.attention import GUEST_TURNS, ROBOT_TURNS
from brain.contacts import Contact
from gateway.addresses import Address
from gateway.events import PlaceMoved
from tests.people.town import CONTACTS, GUEST, MEMBER, OWNER, STRANGER, Clock, calls, room, says, shown, town

ROBOT = Address(medium="slack", user="T/UROBOT")
KNOWN_ROBOT = Contact(key="robo", name="Robo", role="member", addresses=(ROBOT,))


def hello(request):
    return says("Hello.")


async def test_two_assistants_that_answer_each_other_end_soon_and_the_operator_hears_once(tmp_path):
    async with town(tmp_path / "db", hello, contacts=[*CONTACTS, KNOWN_ROBOT]) as here:
        for _ in range(ROBOT_TURNS + 5):
            await here.says(ROBOT, "Hello.", at=room("C1"), robot=True)
            await here.settled()
        assert len(await here.told("C1")) == ROBOT_TURNS
        assert len([one for one in here.notices if "goes on and on" in one]) == 1
        await here.says(OWNER, "Enough, you two.", at=room("C1"))
        await here.says(ROBOT, "Sorry.", at=room("C1"), robot=True)
        await here.settled()
        assert len(await here.told("C1")) > ROBOT_TURNS, "a person begins it anew"


async def test_a_robot_must_call_by_name_and_a_strange_one_is_passed_over(tmp_path):
    async with town(tmp_path / "db", hello, unknown="reply", contacts=[*CONTACTS, KNOWN_ROBOT]) as here:
        await here.says(ROBOT, "in a thread", at=room("C1", "1.1"), robot=True, by_name=False)
        await here.says(STRANGER, "I am a robot", robot=True)
        await here.settled()
        assert not here.model.requests


@pytest.mark.parametrize("unknown", ["reply", "pair"])
async def test_who_does_not_belong_to_the_workspace_is_refused_also_where_strangers_are_answered(tmp_path, unknown):
    async with town(tmp_path / "db", hello, unknown=unknown) as here:
        await here.says(STRANGER, "list customers", outsider=True)
        await here.says(OWNER, "hello", outsider=True)
        await here.settled()
        assert len(here.model.requests) == 1, "a contact is one wherever they come from"
        assert "a guest, or of another workspace" in here.notices[0]
        assert await here.told(STRANGER.user) == []


async def test_who_is_not_trusted_cannot_keep_it_busy_without_end(tmp_path):
    clock = Clock()
    async with town(tmp_path / "db", hello, clock=clock) as here:
        for _ in range(GUEST_TURNS + 4):
            await here.says(GUEST, "Hello?")
            await here.settled()
        told = await here.told(GUEST.user)
        assert told[:GUEST_TURNS] == ["Hello."] * GUEST_TURNS
        assert ["more than I can take in" in text for text in told[GUEST_TURNS:]] == [True], "said once"
        clock.passes(minutes=11)
        await here.says(GUEST, "And now?")
        await here.settled()
        assert (await here.told(GUEST.user))[GUEST_TURNS + 1 :] == ["Hello."]
        for _ in range(GUEST_TURNS + 4):
            await here.says(MEMBER, "Hello?")
        await here.settled()
        assert not [one for one in here.notices if "telegram:2" in one], "who is trusted may"


@pytest.mark.parametrize("ambient", [False, True])
async def test_what_is_not_said_to_it_is_heard_only_in_an_ambient_place(tmp_path, ambient):
    def quiet(request):
        return calls("wait", reason="not my business") if "not to you" in shown(request) else says("Hello.")

    places = frozenset({"slack:C1"}) if ambient else frozenset()
    async with town(tmp_path / "db", quiet, ambient=places) as here:
        await here.says(MEMBER, "Lunch?", at=room("C1"), addressed=False)
        await here.says(MEMBER, "Lunch?", at=room("C2"), addressed=False)
        await here.settled()
        assert len(here.model.requests) == ambient
        assert await here.told("C1") == []
        await here.says(OWNER, "What did Ben say?", at=room("C2"))
        await here.settled()
        assert "Lunch?" in shown(here.model.requests[-1]), "it is in the history of the place"


async def test_strangers_in_a_known_place_are_history_and_open_nothing(tmp_path):
    async with town(tmp_path / "db", hello) as here:
        await here.says(STRANGER, "Let me in.", at=room("C1"))
        await here.says(OWNER, "Hello.", at=room("C1"))
        await here.says(STRANGER, "And me?", at=room("C1"))
        await here.settled()
        assert len(here.model.requests) == 1
        await here.says(OWNER, "Who else is here?", at=room("C1"))
        await here.settled()
        assert "And me?" in shown(here.model.requests[-1])
        assert "Let me in" not in shown(here.model.requests[-1])


async def test_tg10_a_place_that_is_named_anew_keeps_its_conversation(tmp_path):
    def said(request):
        return says("Yes.")

    moved = PlaceMoved(identity="moved", medium="slack", account="slack-0", old="C1", new="C9", at=Clock()())
    places = frozenset({"slack:C1"})
    async with town(tmp_path / "db", said, ambient=places) as here:
        await here.says(OWNER, "We meet in Rome.", at=room("C1"))
        await here.settled()
        await here.tells(moved)
        await here.tells(moved, "told by the other side too")
        await here.says(MEMBER, "Where do we meet?", at=room("C9"), addressed=False)
        await here.settled()
        assert "We meet in Rome." in shown(here.model.requests[-1])
        assert await here.told("C9") == ["Yes."]
    async with town(tmp_path / "db", said, ambient=places) as here:
        await here.says(MEMBER, "Still there?", at=room("C9"))
        await here.settled()
        assert "We meet in Rome." in shown(here.model.requests[-1])


async def test_a_thread_that_it_has_spoken_in_is_its_own_whatever_the_medium_remembers(tmp_path):
    thread = room("C1", "1.1")
    async with town(tmp_path / "db", hello) as here:
        await here.says(MEMBER, "Lunch?", at=thread, addressed=False, in_thread=True)
        await here.settled()
        assert not here.model.requests
        await here.says(MEMBER, "Hello you.", at=thread, in_thread=True)
        await here.settled()
    async with town(tmp_path / "db", hello) as here:
        await here.says(MEMBER, "And tomorrow?", at=thread, addressed=False, in_thread=True)
        await here.says(MEMBER, "Elsewhere.", at=room("C1", "2.2"), addressed=False, in_thread=True)
        await here.settled()
        assert len(here.model.requests) == 1
        assert "in your thread" in shown(here.model.requests[0])


async def test_zone_and_language_of_a_person_are_known(tmp_path):
    ana = Contact(key="ana", name="Ana", role="owner", addresses=(OWNER,), timezone="Asia/Tokyo", language="German")
    async with town(tmp_path / "db", hello, contacts=[ana]) as here:
        await here.says(OWNER, "Hallo.")
        await here.settled()
        seen = shown(here.model.requests[-1])
        assert "Asia/Tokyo" in seen
        assert "German" in seen
        assert "21:00" in seen, "noon in London"


async def test_where_several_are_it_is_the_time_of_the_settings(tmp_path):
    async with town(tmp_path / "db", hello, timezone="Asia/Tokyo") as here:
        await here.says(MEMBER, "What time is it?", at=room("C1"), addressed=True)
        await here.settled()
        seen = shown(here.model.requests[-1])
        assert "21:00" in seen
