"""What workers look up, as far as their person may: who is who, what was said, other tasks; and the notes they keep."""

from datetime import UTC, datetime

import pytest

from actors.primitives import contacts, notes, tasks, transcripts
from actors.primitives.tasks import Tasks
from actors.workshop import Caller
from brain.entries import Decided, Speak, Taken
from frontdesk.history import LaneHistory, sees
from gateway.addresses import Address, Route
from gateway.broker.sqlite import SqliteBroker
from gateway.events import ActionResponded, MessageReceived, Person
from gateway.journal import stamped
from gateway.notes import CHARACTERS_MAX, Notes, NotKept
from tests.actors.rules import texts
from tests.actors.shop import ANA, LANE, Shop, call, code

BEN = Person(address=Address(medium="telegram", user="43"), name="Ben")
AT = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


def whose(person: Person) -> str:
    return person.name.lower()


def may_see(person: Person, here: str, there: str) -> bool:
    return sees(whose(person), here, there)


async def said(broker, conversation, author, text, *, private=True):
    route = Route(medium="telegram", account="telegram-1", place="7" if private else "the team")
    message = MessageReceived(
        identity=f"{conversation} {text}", route=route, author=author, text=text, at=AT, private=private
    )
    reply = Decided(turn=1, at=AT, covers=(), decisions=(Speak(route=route, text=f"Noted: {text}"),))
    for entry in (Taken(event=message, at=AT), reply):
        await broker.append(f"log.lane.{conversation}", stamped(1, "n", entry), msg_id="-")


@pytest.fixture
async def broker(tmp_path):
    opened = SqliteBroker(tmp_path / "history.db")
    await said(opened, "p-ana", ANA, "Sarah is in Berlin")
    await said(opened, "p-ben", BEN, "My salary in Berlin")
    await said(opened, "s-team", ANA, "Lunch in Berlin", private=False)
    await said(opened, "s-team", BEN, "Coffee", private=False)
    await said(opened, "s-other", BEN, "Party in Berlin", private=False)
    yield opened
    await opened.close()


@pytest.mark.parametrize(
    ("by", "here", "found"),
    [
        (ANA, "p-ana", {"Sarah is in Berlin", "Lunch in Berlin"}),
        (BEN, "p-ben", {"My salary in Berlin", "Lunch in Berlin", "Party in Berlin"}),
        (ANA, "s-team", {"Lunch in Berlin"}),
        (ANA, "s-other", set()),
        (BEN, "p-ana", set()),
    ],
)
async def test_what_was_said_is_found_by_whoever_took_part_where_nobody_else_hears_it(broker, by, here, found):
    lines = await LaneHistory(broker, whose, "Desk").search(by, here, "berlin")
    assert {line.text for line in lines if line.author != "Desk"} == found
    assert {line.text for line in lines if line.author == "Desk"} == {f"Noted: {text}" for text in found}


async def test_a_reader_answers_with_its_own_family_of_primitives_alone(tmp_path):
    cards = [contacts.Card(name="Sarah B", addresses=("email:sarah@example.org",))]
    async with Shop(tmp_path, primitives=(contacts.find(lambda caller: cards),)) as shop:
        shop.model.on("Mail Sarah", code("print(await primitives.contacts.ask('Which Sarah is there?'))"), "Done")
        shop.model.on(
            "Which Sarah",
            code("print(primitives.contacts.find('sarah').result())"),
            code("primitives.act('more').result()"),
            call("act", query="more"),
            "Sarah B",
        )
        await shop.start("a1", "Mail Sarah")
        await shop.fact("a1", ActionResponded)
        assert "cell1 ended: ok.\nSarah B" in "\n".join(texts(await shop.state("a1")))
        lines = texts(await shop.state("a1--child2"))
        assert any("sarah@example.org" in line for line in lines)
        assert any("primitives.act is not for you: you read primitives.contacts" in line for line in lines)
        assert any("you only read, and start no workers" in line for line in lines)
        system = str(shop.model.requests["Which Sarah"][0].messages[0]["content"])
        assert "primitives.contacts.find" in system
        assert "primitives.act" not in system.replace("`h = primitives.act", "")


async def test_tasks_and_transcripts_are_read_by_code(tmp_path, broker):
    history = transcripts.search(LaneHistory(broker, whose, "Desk"))
    async with Shop(tmp_path) as shop:
        own = tasks.reading(Tasks(shop.broker, whose, may_see))
        shop.primitives.update({one.method: one for one in (history, *own)})
        shop.model.on("Do February", code("print('rows: 28')"), "It is 28")
        await shop.start("a1", "Do February")
        await shop.phase("a1", "awaiting_input")
        look = "found = await primitives.tasks.list()\nprint(found[0]['result'], len(found))\n"
        look += "print(await primitives.tasks.read(found[0]['task']))\n"
        look += "print(len(await primitives.transcripts.search('berlin')))"
        shop.model.on("What was", code(look), "28")
        await shop.start("a2", "What was February?")
        await shop.phase("a2", "awaiting_input")
        result = next(line for line in texts(await shop.state("a2")) if line.startswith("tool:"))
        assert "It is 28 1" in result
        assert "rows: 28" in result
        assert result.endswith("4")


async def test_notes_outlive_the_work_and_are_erased(tmp_path):
    async with Shop(tmp_path) as shop:
        kept = Notes(shop.broker, whose, shop.clock.now)
        shop.primitives = {
            one.method: one
            for one in notes.keeping(kept, lambda caller: caller.conversation == f"p-{whose(caller.by)}")
        }

        async def noted(person, conversation):
            return tuple(note.text for note in await kept.of(person)) if conversation == LANE else ()

        shop.notes = noted
        await shop.again()
        kept._broker = shop.broker
        shop.model.on("February", code("await primitives.notes.add('The sheet is in  /data/2026')"), "Done")
        shop.model.on("March", code("print(await primitives.notes.list())"), "Done")
        await shop.start("a1", "Do February")
        await shop.phase("a1", "awaiting_input")
        await shop.start("a2", "Do March")
        await shop.phase("a2", "awaiting_input")
        lines = texts(await shop.state("a2"))
        assert "Notes from earlier tasks (they may be out of date):\n- The sheet is in /data/2026" in lines[0]
        assert any("'number': 1" in line for line in lines)
        (note,) = await kept.of(ANA)
        assert (note.number, note.about) == (1, "a1")
        assert await kept.of(BEN) == []
        with pytest.raises(NotKept, match="no note 2"):
            await kept.erase(ANA, 2)
        await kept.erase(ANA, 1)
        await kept.add(ANA, "Another", "a3")
        assert [(one.number, one.text) for one in await kept.of(ANA)] == [(2, "Another")]
        with pytest.raises(NotKept):
            await kept.add(ANA, "x" * (CHARACTERS_MAX + 1), "a3")
        elsewhere = Caller(action="a9", by=ANA, conversation="s-team")
        listing = shop.primitives["notes.list"]
        with pytest.raises(Exception, match="others hear"):
            await listing.run(elsewhere, {})
