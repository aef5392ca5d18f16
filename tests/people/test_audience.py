"""An action has the audience of its request; a private word narrows it for good, and what it comes to goes to whom it
belongs to. In code: whatever the model wants."""

import pytest

from brain.audience import WENT_ON
from gateway.addresses import Address
from gateway.events import (
    ActionAnswered,
    ActionEnded,
    ActionProgressed,
    ActionResponded,
    ClarificationRequested,
    Interject,
    Ref,
)
from tests.people.town import GUEST, MEMBER, OWNER, OWNER_MAIL, calls, private, room, says, shown, tools, town

ROOM = room("C1")
SHARED = "s-slack-0_3aC1"
SECRET = "five thousand"


def desk(request):
    """Acts, passes on a correction to the one task, asks it, and repeats whatever it is told."""
    said = str(request.messages[-2]["content"])
    if "Done." in str(request.messages[-1]["content"]):
        return says("ok")
    if "make the report" in said:
        return calls("act", query="make the report", name="report")
    if "correct:" in said:
        tool = next(one for one in tools(request) if one.startswith("interject_report"))
        return calls(tool, message=said.rpartition("correct:")[2])
    if "how far is it" in said:
        return calls(next(one for one in tools(request) if one.startswith("ask_report")), question="how far?")
    if "mail it" in said:
        return calls("send_message", text="the report", to="email:ana@example.org")
    return says(f"I was told: {said}")


def facts(key):
    """All that can be told of an action, with the secret in it; `telling` rises."""
    of = {"conversation": SHARED, "action": key}
    number = iter(range(1, 100))
    ref = lambda: Ref(f"act-{key}", next(number), 0)  # noqa: E731
    return {
        "progress": lambda: ActionProgressed(ref=ref(), **of, text=f"half of {SECRET}"),
        "question": lambda: ClarificationRequested(ref=ref(), **of, question="q1", text=f"{SECRET} or six?"),
        "response": lambda: ActionResponded(ref=ref(), **of, text=f"it is {SECRET}"),
        "answer": lambda by: ActionAnswered(ref=ref(), **of, command=by, asked="how far?", text=f"at {SECRET}"),
        "end": lambda: ActionEnded(ref=ref(), **of, end="succeeded", text=f"was {SECRET}"),
    }


@pytest.fixture
async def here(tmp_path):
    async with town(tmp_path / "db", desk, reach=private) as made:
        await made.says(OWNER, "make the report", at=ROOM)
        await made.settled()
        yield made


async def tells(here, *made):
    for fact in made:
        await here.tells(fact, str(fact.ref))
    await here.settled()


async def test_without_a_private_word_it_is_told_where_it_was_asked_for(here):
    tell = facts(f"{SHARED}-a1")
    await tells(here, tell["progress"](), tell["question"](), tell["response"](), tell["end"]())
    assert SECRET in str(await here.told("C1"))
    assert await here.told("1") == []


async def test_a_private_word_narrows_it_for_good(here):
    tell = facts(f"{SHARED}-a1")
    await here.says(OWNER, f"correct: my salary is {SECRET}")
    await here.settled()
    assert [one.text for one in await here.commands() if isinstance(one, Interject)] == [f" my salary is {SECRET}"]
    await tells(here, tell["progress"](), tell["question"](), tell["response"]())
    await here.says(MEMBER, "how far is it?", at=ROOM)
    await here.settled()
    asked = (await here.commands())[-1].ref
    assert asked.source == SHARED, "a member may still ask in the place"
    await tells(here, tell["answer"](asked), tell["end"]())
    in_room = str(await here.told("C1"))
    assert SECRET not in in_room
    assert WENT_ON in in_room, "the place hears that it went on"
    assert f"it is {SECRET}" in str(await here.told("1"))
    assert f"{SECRET} or six?" in str(await here.told("1")), "its question comes to who it belongs to"
    for request in here.model.requests:
        assert (SECRET in shown(request)) <= ("Ana (owner)" in shown(request)), "nothing of it in the place's prompts"


async def test_it_is_still_narrow_after_a_restart(tmp_path):
    path = tmp_path / "db"
    tell = facts(f"{SHARED}-a1")
    async with town(path, desk) as here:
        await here.says(OWNER, "make the report", at=ROOM)
        await here.settled()
        await here.says(OWNER, f"correct: {SECRET}")
        await here.settled()
    async with town(path, desk) as here:
        await tells(here, tell["response"]())
        assert SECRET not in str(await here.told("C1"))
        assert SECRET in str(await here.told("1"))


async def test_asking_from_private_is_answered_there_and_narrows_nothing(here):
    tell = facts(f"{SHARED}-a1")
    await here.says(OWNER, "how far is it?")
    await here.settled()
    asked = (await here.commands())[-1].ref
    await tells(here, tell["answer"](asked), tell["response"]())
    assert f"at {SECRET}" in str(await here.told("1"))
    assert f"at {SECRET}" not in str(await here.told("C1"))
    assert f"it is {SECRET}" in str(await here.told("C1"))
    assert f"it is {SECRET}" not in str(await here.told("1")), "told once, where it was asked for"


@pytest.mark.parametrize("who", [MEMBER, GUEST])
async def test_others_meet_it_in_no_private_place(here, who):
    await here.says(who, "/status")
    await here.says(who, "Hello?")
    await here.settled()
    assert "report" not in str(await here.told(who.user))
    assert "make the report" not in shown(here.model.requests[-1])
    assert not [one for one in tools(here.model.requests[-1]) if "report" in one]


async def test_a_result_goes_to_their_own_mail_and_to_nobody_elses(here):
    await here.says(OWNER, "mail it to me", at=ROOM)
    await here.settled()
    assert await here.told("ana@example.org") == ["the report"]
    await here.says(MEMBER, "mail it to Ana", at=ROOM)
    await here.settled()
    assert await here.told("ana@example.org") == ["the report"], "a member reaches only their own addresses"


async def test_words_from_two_addresses_of_one_person_are_one_persons(tmp_path):
    async with town(tmp_path / "db", desk) as here:
        await here.says(OWNER, "I ask you to")
        await here.says(OWNER_MAIL, "make the report", at=None)
        await here.settled()
        assert [one.by.address for one in await here.commands()] == [OWNER_MAIL]
        assert Address.parse("email:ana@example.org") == OWNER_MAIL
