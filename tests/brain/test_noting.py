"""`/notes`: what work has kept for a person, read and erased without a model."""

from datetime import UTC, datetime

import pytest

from brain import noting
from brain.controls import is_control
from brain.parts import Heard
from gateway.addresses import Address, Route
from gateway.broker.sqlite import SqliteBroker
from gateway.events import MessageReceived, Person
from gateway.notes import Notes

ANA = Person(address=Address(medium="telegram", user="42"), name="Ana")
ROUTE = Route(medium="telegram", account="telegram-1", place="42")
AT = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


@pytest.fixture
async def notes(tmp_path):
    broker = SqliteBroker(tmp_path / "notes.db")
    kept = Notes(broker, lambda person: person.name.lower(), lambda: AT)
    await kept.add(ANA, "The sheet is in /data", "february")
    await kept.add(ANA, "Totals are in euros", "march")
    yield kept
    await broker.close()


async def said(notes, text, *, in_private=True) -> str:
    fact = MessageReceived(identity=text, route=ROUTE, author=ANA, text=text, at=AT, private=True)
    heard = Heard(label="m1", fact=fact, at=AT, control=True)
    return (await noting.decide(heard, ROUTE, notes, in_private=in_private)).text


async def test_notes_are_listed_and_erased_one_by_one_or_all(notes):
    assert "- 2: Totals are in euros (march, 02 Mar)" in await said(notes, "/notes")
    assert "/data" not in await said(notes, "/notes forget 1")
    assert await said(notes, "/notes forget 1") == "Nothing erased: there is no note 1."
    assert (await said(notes, "/notes@desk_bot forget all")).startswith("Erased. There are no notes.")
    assert await said(notes, "/notes") == noting.NONE


async def test_a_note_that_cannot_be_read_hides_no_other(tmp_path):
    """A newer version wrote it, or it is damaged: work that is begun with notes goes on."""
    broker = SqliteBroker(tmp_path / "notes.db")
    kept = Notes(broker, lambda person: person.name.lower(), lambda: AT)
    await kept.add(ANA, "one", "february")
    await broker.append("log.notes.ana", b'{"type":"NotePinned","number":1}', msg_id="")
    await kept.add(ANA, "two", "march")
    assert [note.text for note in await kept.of(ANA)] == ["one", "two"]
    await broker.close()


async def test_they_are_not_read_out_where_others_hear_them(notes):
    assert await said(notes, "/notes", in_private=False) == noting.IN_PRIVATE
    assert len(await notes.of(ANA)) == 2


def test_it_is_decided_without_a_model():
    assert is_control("/notes")
    assert is_control(" /notes forget 3 ")
    assert not is_control("/notes are great")
