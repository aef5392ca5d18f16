"""People with several addresses: linked by a code said on the other side, by the operator, by the settings; parted
again. What was said joins, and nothing is shown to whom it does not belong."""

import asyncio
import re

import msgspec
import pytest

from brain.contacts import Contact
from brain.entries import Speak
from frontdesk.erase import erase
from gateway.addresses import UNVERIFIED, Address
from gateway.people import ChangePeople
from tests.people.town import (
    CONTACTS,
    MEMBER,
    OTHER,
    OWNER,
    OWNER_MAIL,
    STRANGER,
    Clock,
    calls,
    private,
    room,
    says,
    shown,
    town,
)

CODE = re.compile(r"[A-Z2-9]{4}-[A-Z2-9]{4}")


def echo(request):
    """Answers with the last message."""
    return says("echo " + re.findall(r"^\[m\d+ · [^\]]*\] (.*)$", shown(request), re.MULTILINE)[-1])


async def code_for(here, address):
    await here.says(address, "/link")
    await here.settled()
    return CODE.search((await here.told(address.user))[-1])[0]


async def test_a_code_said_where_nobody_knows_them_makes_it_theirs(tmp_path):
    async with town(tmp_path / "db", echo, unknown="reply") as here:
        await here.says(STRANGER, "The parcel is blue.")
        await here.settled()
        await here.says(OWNER, "My salary is 5.")
        code = await code_for(here, OWNER)
        await here.says(STRANGER, f"{code}")
        await here.settled()
        told = (await here.told("9"))[-1]
        assert told.startswith("telegram:9 is Ana now")
        assert "If you did not do that" in (await here.told("1"))[-1], "the other end hears of it"
        await here.says(STRANGER, "What do you know?")
        await here.settled()
        state = await here.lane("p-ana")
        texts = [item.fact.text for one in state.exchanges for item in one.heard]
        assert texts == ["The parcel is blue.", "My salary is 5.", "/link", code, "What do you know?"]
        assert len({item.label for one in state.exchanges for item in one.heard}) == 5
        seen = shown(here.model.requests[-1])
        assert "parcel" in seen
        assert "salary" in seen
        assert "role" not in seen
        assert "Ana (owner)" in seen


async def test_a_strangers_code_is_good_where_they_are_known(tmp_path):
    async with town(tmp_path / "db", echo, unknown="pair") as here:
        await here.says(STRANGER, "Hello?")
        await here.says(STRANGER, "Hello??")
        await here.settled()
        (told,) = await here.told("9")
        assert not here.model.requests, "no model is asked about a stranger"
        await here.says(MEMBER, CODE.search(told)[0].lower())
        await here.says(STRANGER, "Now?")
        await here.settled()
        assert (await here.told("9"))[-1] == "echo Now?"
        assert (await here.lane("p-ben")).exchanges[-1].heard[0].fact.text == "Now?"


@pytest.mark.parametrize("spoiled", ["used", "late", "replaced", "seen by others"])
async def test_a_code_is_good_once_soon_and_in_private(tmp_path, spoiled):
    clock = Clock()
    async with town(tmp_path / "db", echo, unknown="reply", clock=clock) as here:
        code = await code_for(here, OWNER)
        match spoiled:
            case "used":
                await here.says(Address(medium="slack", user="T/U"), code)
            case "late":
                clock.passes(minutes=16)
            case "replaced":
                await code_for(here, OWNER)
            case "seen by others":
                await here.says(OWNER, f"oops {code}", at=room("C1"))
        await here.says(STRANGER, code)
        await here.settled()
        assert "not good" in (await here.told("9"))[-1]
        assert here.manager._contacts.role_of(STRANGER) == "stranger"


async def test_a_code_that_came_too_late_is_no_message_to_a_model(tmp_path):
    clock = Clock()
    async with town(tmp_path / "db", echo, unknown="pair", clock=clock) as here:
        await here.says(STRANGER, "Hello?")
        await here.settled()
        code = CODE.search((await here.told("9"))[-1])[0]
        clock.passes(minutes=16)
        await here.says(OWNER, code)
        await here.says(OWNER, "The serial number is ABCD-EFGH.")
        await here.settled()
        late, serial = await here.told("1")
        assert "not good" in late
        assert serial == "echo The serial number is ABCD-EFGH."


@pytest.mark.parametrize("minutes", [0, 16])
async def test_an_answer_that_quotes_the_code_is_an_answer(tmp_path, minutes):
    clock = Clock()
    async with town(tmp_path / "db", echo, unknown="reply", clock=clock) as here:
        for who in (OWNER, STRANGER):
            code = await code_for(here, who)
            clock.passes(minutes=minutes)
            await here.says(who, f"[you wrote, quoted here:]\n> Say this to me: **{code}**\n\nWhat for?")
            await here.settled()
            assert (await here.told(who.user))[-1].startswith("echo [you wrote")


@pytest.mark.parametrize(("unknown", "silent"), [("pair", True), ("reply", False)])
async def test_a_stranger_who_asks_gets_a_code_and_another_if_they_ask_again(tmp_path, unknown, silent):
    async with town(tmp_path / "db", echo, unknown=unknown) as here:
        for _ in range(2):
            await here.says(STRANGER, "/link")
            await here.settled()
        first, second = await here.told("9")
        assert ("I don't answer yet" in first) is silent
        await here.says(MEMBER, CODE.search(second)[0])
        await here.settled()
        assert here.manager._contacts.role_of(STRANGER) == "member"


async def test_what_cannot_be_unlinked_by_word_is_said(tmp_path):
    async with town(tmp_path / "db", echo, unknown="reply") as here:
        for words in (f"unlink {OWNER}", "/unlink", f"unlink {MEMBER}"):
            await here.says(OWNER, words)
        await here.settled()
        assert await here.told("1") == [
            f"{OWNER} stands in the settings, where whoever runs this can remove it.",
            "Say which, with its medium: `unlink telegram:42`.",
            f"{MEMBER} is not linked to you.",
        ]


async def test_guessing_is_bounded_and_then_no_code_is_taken(tmp_path):
    clock = Clock()
    async with town(tmp_path / "db", echo, unknown="reply", clock=clock) as here:
        code = await code_for(here, OWNER)
        for _ in range(5):
            await here.says(STRANGER, "AAAA-AAAA")
        await here.says(STRANGER, code)
        await here.settled()
        assert "too many" in (await here.told("9"))[-1]
        clock.passes(minutes=16)
        await here.says(STRANGER, await code_for(here, OWNER))
        await here.settled()
        assert here.manager._contacts.role_of(STRANGER) == "owner"


async def test_neither_name_nor_unproven_mail_makes_somebody(tmp_path):
    forged = Address(medium="email", user=f"{UNVERIFIED}:ana@example.org")
    async with town(tmp_path / "db", echo, unknown="reply") as here:
        await here.says(OWNER, "My salary is 5.")
        await here.says(STRANGER, "It's me.", name="Ana")
        await here.says(forged, "It's me.", name="Ana")
        code = await code_for(here, OWNER)
        await here.says(forged, code)
        await here.settled()
        assert "void" in (await here.told(forged.user))[-1]
        assert not any("salary" in shown(one) for one in here.model.requests if "Ana (owner)" not in shown(one))
        assert here.manager._contacts.role_of(forged) == "stranger"


async def test_a_code_of_one_known_person_does_not_take_in_another(tmp_path):
    async with town(tmp_path / "db", echo) as here:
        code = await code_for(here, OWNER)
        await here.says(MEMBER, code)
        await here.settled()
        assert "void" in (await here.told("2"))[-1]
        assert here.manager._contacts.key_of(MEMBER) == "ben"


async def test_where_strangers_are_ignored_a_code_is_still_good_and_nothing_else_is_said(tmp_path):
    async with town(tmp_path / "db", echo) as here:
        await here.says(STRANGER, "AAAA-AAAA")
        await here.says(STRANGER, "Hello?")
        await here.settled()
        assert await here.told("9") == []
        assert len([one for one in here.notices if "telegram:9" in one]) == 1
        await here.says(STRANGER, await code_for(here, MEMBER))
        await here.settled()
        assert (await here.told("9"))[-1].startswith("telegram:9 is Ben now")


async def test_an_address_that_is_parted_hears_nothing_more_and_starts_anew(tmp_path):
    async with town(tmp_path / "db", echo, unknown="reply") as here:
        await here.says(STRANGER, await code_for(here, OWNER))
        await here.says(STRANGER, "From there.")
        await here.says(OWNER, "My salary is 5.")
        await here.settled()
        await here.says(OWNER, "Unlink telegram:9")
        await here.says(STRANGER, "And now?")
        await here.settled()
        state = await here.lane("p-ana")
        assert "9" not in {route.place for route in [*state.routes.values(), *state.reached.values()]}
        seen = shown(here.model.requests[-1])
        assert "And now?" in seen
        assert "salary" not in seen
        assert "From there" not in seen


# --- by the operator and by the settings -----------------------------------------------------------------------------


async def ordered(here, verb, **how):
    order = ChangePeople(id=f"order {verb} {how}", verb=verb, **how)
    await here.tells(order, order.id)
    await here.settled()
    return here.manager._contacts.book.answers[order.id]


async def test_the_operator_links_unlinks_and_merges(tmp_path):
    mail = Address(medium="email", user="ben@example.org")
    async with town(tmp_path / "db", echo, unknown="reply") as here:
        await here.says(mail, "By mail.")
        await here.settled()
        await here.says(MEMBER, "By phone.")
        assert await ordered(here, "link", person="Ben", address=mail) == ""
        assert [one.heard[0].fact.text for one in (await here.lane("p-ben")).exchanges] == ["By mail.", "By phone."]
        assert await ordered(here, "link", person="ben", address=mail) == f"{mail} is Ben's already"
        assert "already: unlink it" in await ordered(here, "link", person="Cleo", address=mail)
        assert "no contact" in await ordered(here, "link", person="Nobody", address=STRANGER)
        assert "settings" in await ordered(here, "unlink", address=MEMBER)
        assert await ordered(here, "unlink", address=mail) == ""
        assert "linked to nobody" in await ordered(here, "unlink", address=STRANGER)
        await here.says(OWNER, "Mine.")
        assert await ordered(here, "merge", person="Ben", into="Ana") == ""
        await here.says(MEMBER, "As one.")
        await here.settled()
        texts = [item.fact.text for one in (await here.lane("p-ana")).exchanges for item in one.heard]
        assert texts == ["By phone.", "Mine.", "As one."], "what was parted has left the memory"
        assert here.manager._contacts.role_of(MEMBER) == "owner"


async def test_what_the_settings_say_joins_and_parts(tmp_path):
    late = Contact(key="dora", name="Dora", role="member", addresses=(STRANGER,))
    async with town(tmp_path / "db", echo, unknown="reply") as here:
        await here.says(STRANGER, "Before.")
        await here.settled()
    async with town(tmp_path / "db", echo, unknown="reply", contacts=[*CONTACTS, late]) as here:
        await here.says(STRANGER, "After.")
        await here.settled()
        assert [one.heard[0].fact.text for one in (await here.lane("p-dora")).exchanges] == ["Before.", "After."]
    async with town(tmp_path / "db", echo, unknown="reply") as here:
        await here.says(STRANGER, "Again nobody.")
        await here.settled()
        assert "Before" not in shown(here.model.requests[-1])


def said_in(state):
    return [item.fact.text for one in state.exchanges for item in one.heard]


async def test_whom_the_settings_call_otherwise_is_who_they_were(tmp_path):
    """Also after a code, a second name, and the first one again."""
    ana, *others = CONTACTS
    maria, mia = (msgspec.structs.replace(ana, key=key, name=key.title()) for key in ("maria", "mia"))
    async with town(tmp_path / "db", echo, unknown="reply") as here:
        await here.says(OWNER, "As Ana.")
        code = await code_for(here, OWNER)
        await here.says(STRANGER, code)
        await here.settled()
    for now in (maria, mia, ana):
        async with town(tmp_path / "db", echo, unknown="reply", contacts=[now, *others]) as here:
            await here.says(STRANGER, f"As {now.name}.")
            await here.settled()
            assert said_in(await here.lane("p-ana"))[-1] == f"As {now.name}."
            assert f"{now.name} (owner)" in shown(here.model.requests[-1])
            assert "As Ana." in shown(here.model.requests[-1])
            known = here.manager._contacts
            assert {known.known(one).name for one in (OWNER, OWNER_MAIL, STRANGER)} == {now.name}
            assert known.named(now.name) in known.everyone()


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param([Contact(key="dan", name="Dan", role="owner", addresses=(OWNER,))], id="one address of two"),
        pytest.param(
            [Contact(key="ben", name="Ben", role="owner", addresses=(MEMBER, OWNER, OWNER_MAIL))], id="to Ben"
        ),
        pytest.param(
            [
                Contact(key="dan", name="Dan", role="owner", addresses=(OWNER, OWNER_MAIL)),
                Contact(key="ana", name="Ana", role="member", addresses=(OTHER,)),
            ],
            id="Ana is there",
        ),
    ],
)
async def test_whoever_gets_an_address_of_somebody_else_does_not_get_what_they_said(tmp_path, settings):
    async with town(tmp_path / "db", echo) as here:
        await here.says(OWNER, "My salary is 5.")
        await here.settled()
    async with town(tmp_path / "db", echo, contacts=settings) as here:
        await here.says(OWNER, "What do you know?")
        await here.settled()
        assert "salary" not in shown(here.model.requests[-1])


async def test_who_had_only_the_page_has_it_under_a_name_too(tmp_path):
    """As the first settings have no contacts, and then there is Telegram."""
    page, phone = Address(medium="web", user="owner"), OWNER
    first = Contact(key="owner", name="You", role="owner", addresses=(page,))
    async with town(tmp_path / "db", echo, contacts=[first]) as here:
        await here.says(page, "From the page.")
        await here.settled()
    named = Contact(key="ana", name="Ana", role="owner", addresses=(phone, page))
    async with town(tmp_path / "db", echo, contacts=[named]) as here:
        await here.says(phone, "From the phone.")
        await here.settled()
        assert "From the page." in shown(here.model.requests[-1])
    other = Contact(key="ben", name="Ben", role="owner", addresses=(MEMBER, page))
    async with town(tmp_path / "db", echo, contacts=[other]) as here:
        await here.says(page, "Who am I?")
        await here.settled()
        assert "From the phone." not in shown(here.model.requests[-1])


async def test_a_message_that_waits_for_its_answer_is_answered_after_the_joining(tmp_path):
    """Also when the brain ends between any two steps: it is asked for again at the start."""
    held = asyncio.Event()

    def slow(request):
        return calls("wait", reason="held") if held.is_set() else calls("wait", reason="later", until="1h")

    async with town(tmp_path / "db", slow, unknown="reply") as here:
        await here.says(STRANGER, "Remind me.")
        await here.settled()
        held.set()
        await here.says(STRANGER, await code_for(here, OWNER))
        await here.settled()
        state = await here.lane("p-ana")
        assert state.timer is not None, "what was to be decided again later still is"
        assert (await here.lane(f"p-{here.manager._contacts.book.stranger(STRANGER)}")).moved == "p-ana"
    async with town(tmp_path / "db", echo, unknown="reply") as here:
        await here.says(STRANGER, "Still me?")
        await here.settled()
        spoken = [d for d in (await here.lane("p-ana")).exchanges[-1].decided.decisions if isinstance(d, Speak)]
        assert spoken[0].route == private(STRANGER)


async def test_what_was_said_before_the_joining_can_be_erased_and_the_rest_stays(tmp_path):
    path = tmp_path / "store.db"
    async with town(path, echo, unknown="reply") as here:
        await here.says(STRANGER, "The treasure is under the oak.")
        await here.says(OWNER, "I like tea.")
        await here.settled()
        await here.says(STRANGER, await code_for(here, OWNER))
        await here.settled()
    await erase(path, STRANGER)
    after = b"".join(file.read_bytes() for file in sorted(tmp_path.rglob("*")) if file.is_file())
    assert b"treasure" not in after
    assert b"I like tea" in after
    async with town(path, echo, unknown="reply") as here:
        await here.says(OWNER, "And now?")
        await here.settled()
        assert "I like tea" in shown(here.model.requests[-1])
