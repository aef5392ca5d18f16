"""What each role may cause, in each place: every cell of the table in `brain/rights.py`, on the real broker."""

import pytest

from brain.rights import MAY, PLACES, ROLES
from gateway.events import ActionChanged, ClarificationRequested, Ref
from tests.people.town import GUEST, MEMBER, OTHER, OWNER, STRANGER, calls, room, says, shown, tools, town

WHO = {"owner": OWNER, "member": MEMBER, "guest": GUEST, "stranger": STRANGER}
ROOM = room("C1")
STEERING = {
    "steer": "interject_theirs__a2",
    "ask": "ask_others__a1",
    "answer": "answer_clarification_others__a1__q1",
    "stop": "stop_others__a1",
    "redirect": "pause_others__a1",
}
TEXTS = {
    "act": {"query": "x", "name": "tried"},
    "interject": {"message": "x"},
    "ask": {"question": "x"},
    "stop": {},
    "pause": {},
}


def desk(request):
    """Tries all that it is told to try; a call that is refused is dropped."""
    if request.messages[-1]["role"] != "user" or "(State at" not in str(request.messages[-1]["content"]):
        return says("I may not")
    said = str(request.messages[-2]["content"])
    if "do others" in said:
        return calls("act", query="the work of others", name="others")
    if "do theirs" in said:
        return calls("act", query="their own work", name="theirs")
    for word in ("act", *STEERING.values()):
        if f"try {word}." in said:
            legal = (one for one in tools(request) if one.startswith(f"{word.partition('__')[0]}__"))
            return calls(next(legal, word), **TEXTS.get(word.partition("_")[0], {"answer": "x"}))
    return says("Hello")


async def prepared(here, at, conversation):
    """Cleo's work with an open question, where it is met."""
    await here.says(OTHER, "do others", at=at)
    await here.settled()
    key = f"{conversation}-a1"
    if key in (await here.lane(conversation)).actions:
        asks = ClarificationRequested(
            ref=Ref(f"act-{key}", 1, 0), conversation=conversation, action=key, question="q1", text="which?"
        )
        await here.tells(asks)
        doing = ActionChanged(
            ref=Ref(f"act-{key}", 2, 0), conversation=conversation, action=key, phase="running", doing="counting beans"
        )
        await here.tells(doing)
        await here.settled()


async def could(here, effect, who, at, conversation):
    """Whether this person causes that effect there."""
    if effect == "talk":
        await here.says(who, "Hello?", at=at)
        await here.settled()
        return "Hello" in await here.told(at.place if at else who.user)
    if effect == "link":
        await here.says(who, "/link", at=at)
        await here.settled()
        return any("this to me" in text for text in await here.told(at.place if at else who.user))
    if effect == "see":
        await here.says(who, "/status", at=at)
        await here.settled()
        return "not told to guests" not in str(await here.told(at.place if at else who.user))
    if effect in ("recall", "remind"):
        await here.says(who, "Hello?", at=at)
        await here.settled()
        return effect in tools(here.model.requests[-1])
    if effect == "steer":
        await here.says(who, "do theirs", at=at)
        await here.settled()
    before = len(await here.commands())
    word = "act" if effect == "start" else STEERING[effect]
    await here.says(who, f"try {word}.", at=at)
    await here.settled()
    return len(await here.commands()) > before


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("role", ROLES)
async def test_each_cell_of_the_table(tmp_path, role, place):
    """Where strangers are answered at all. In private, others' work is met nowhere."""
    at = ROOM if place == "shared" else None
    async with town(tmp_path / "db", desk, unknown="reply") as here:
        conversation = "s-slack-0_3aC1" if at else "p-cleo"
        await prepared(here, at, conversation)
        found = {effect: await could(here, effect, WHO[role], at, conversation) for effect in MAY}
    assert found == {effect: role in MAY[effect][place] for effect in MAY}


async def test_a_guest_in_a_shared_place_is_not_told_what_is_in_flight_there(tmp_path):
    async with town(tmp_path / "db", desk) as here:
        await prepared(here, ROOM, "s-slack-0_3aC1")
        await here.says(GUEST, "Anything new?", at=ROOM)
        await here.settled()
        assert "counting beans" not in shown(here.model.requests[-1])
        await here.says(MEMBER, "Anything new?", at=ROOM)
        await here.settled()
        assert "counting beans" in shown(here.model.requests[-1])
