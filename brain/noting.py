"""`/notes`: what work has kept for a person, to read and to erase, without a model."""

import re

from brain.entries import Speak
from brain.parts import Heard
from gateway.addresses import Route
from gateway.broker.protocol import Unconfirmed
from gateway.events import MessageReceived, Person
from gateway.notes import Note, Notes, NotKept

_COMMAND = re.compile(r"^\s*/notes(?:@\w+)?(?:\s+(?:forget|erase)\s+(\d+|all))?\s*$", re.IGNORECASE)

NONE = "There are no notes. Work keeps them for later tasks: where a file is, what an interface looks like."
HOW = "`/notes forget 2` erases one, `/notes forget all` all of them."
IN_PRIVATE = "Your notes are yours alone: write `/notes` to me in private."


def is_about_notes(text: str) -> bool:
    return _COMMAND.match(text) is not None


async def decide(heard: Heard, route: Route, notes: Notes | None, *, in_private: bool) -> Speak:
    """Erases at once: again, after a crash, it finds nothing left to erase."""
    assert isinstance(heard.fact, MessageReceived)
    found = _COMMAND.match(heard.fact.text)
    assert found is not None
    if notes is None:
        return Speak(route=route, text=NONE)
    if not in_private:
        return Speak(route=route, text=IN_PRIVATE)
    try:
        if found[1]:
            return Speak(route=route, text=await _erase(notes, heard.fact.author, found[1].lower()))
        return Speak(route=route, text=_listed(await notes.of(heard.fact.author)))
    except Unconfirmed:
        return Speak(route=route, text="The notes cannot be read right now.")


async def _erase(notes: Notes, person: Person, which: str) -> str:
    kept = await notes.of(person)
    numbers = [note.number for note in kept] if which == "all" else [int(which)]
    try:
        for number in numbers:
            await notes.erase(person, number)
    except NotKept as why:
        return f"Nothing erased: {why}."
    return f"Erased. {_listed(await notes.of(person))}"


def _listed(notes: list[Note]) -> str:
    if not notes:
        return NONE
    lines = [f"- {note.number}: {note.text} ({note.about}, {note.at:%d %b})" for note in notes]
    return "\n".join(["Kept for later tasks:", *lines, "", HOW])
