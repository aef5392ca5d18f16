"""Notes: what a worker learned for a person that outlives its work (an API's shape, where a file is).

A journal for each person, `log.notes.<key>`, with many writers: each appends only on what it has read, and reads again
when somebody was quicker. The person reads and erases them; what is erased is shown to nobody any more.
"""

import logging
import uuid
from collections.abc import Callable
from datetime import datetime

from gateway.broker.protocol import Broker, Stale, Unconfirmed
from gateway.clock import Now
from gateway.events import Person
from gateway.record import Record, Tagged, Undecodable, decode, encode

log = logging.getLogger(__name__)

NOTES_MAX = 200
CHARACTERS_MAX = 500
TRIES = 8


class NotKept(Exception):
    """Why a note was not kept, or not erased; for whoever asked."""


def notes_subject(person: str) -> str:
    """By the person's key."""
    return f"log.notes.{person}"


class NoteAdded(Tagged, frozen=True, kw_only=True):
    nonce: str
    text: str
    at: datetime
    about: str


class NoteErased(Tagged, frozen=True, kw_only=True):
    nonce: str
    number: int


class Note(Record, frozen=True, kw_only=True):
    """`number` is its own for ever; `about` is the work that it came from."""

    number: int
    text: str
    at: datetime
    about: str


class Notes:
    """`whose` gives the key of a person, the same for all of their addresses."""

    def __init__(self, broker: Broker, whose: Callable[[Person], str], now: Now) -> None:
        self._broker, self._whose, self._now = broker, whose, now

    async def of(self, person: Person) -> list[Note]:
        """Oldest first. Raises Unconfirmed."""
        return (await self._read(person))[0]

    async def add(self, person: Person, text: str, about: str) -> None:
        """Raises NotKept."""
        text = " ".join(text.split())
        if not text or len(text) > CHARACTERS_MAX:
            raise NotKept(f"a note has 1 to {CHARACTERS_MAX} characters")

        def entry(notes: list[Note], nonce: str) -> NoteAdded | None:
            if len(notes) >= NOTES_MAX:
                raise NotKept(f"there are {NOTES_MAX} notes already: remove one first")
            known = any(note.text == text for note in notes)
            return None if known else NoteAdded(nonce=nonce, text=text, at=self._now(), about=about)

        await self._write(person, entry)

    async def erase(self, person: Person, number: int) -> None:
        """Raises NotKept."""

        def entry(notes: list[Note], nonce: str) -> NoteErased:
            if not any(note.number == number for note in notes):
                raise NotKept(f"there is no note {number}")
            return NoteErased(nonce=nonce, number=number)

        await self._write(person, entry)

    def _subject(self, person: Person) -> str:
        return notes_subject(self._whose(person))

    async def _read(self, person: Person) -> tuple[list[Note], int, set[str]]:
        """The notes, the last sequence, and what was ever written."""
        notes: dict[int, Note] = {}
        last, nonces, number = 0, set[str](), 0
        for stored in await self._broker.read(self._subject(person)):
            last = stored.sequence
            try:
                entry = decode(stored.data, NoteAdded | NoteErased)
            except Undecodable as error:  # of a newer version, or damaged: the others are there all the same
                log.warning("a note of %s cannot be read and is passed over: %s", person.name, error)
                continue
            if entry.nonce in nonces:  # stored twice
                continue
            nonces.add(entry.nonce)
            if isinstance(entry, NoteAdded):
                number += 1
                if not entry.text:  # erased for good, by the operator
                    continue
                notes[number] = Note(number=number, text=entry.text, at=entry.at, about=entry.about)
            else:
                notes.pop(entry.number, None)
        return list(notes.values()), last, nonces

    async def _write(self, person: Person, entry: Callable[[list[Note], str], NoteAdded | NoteErased | None]) -> None:
        nonce = uuid.uuid4().hex
        for _ in range(TRIES):
            try:
                notes, last, nonces = await self._read(person)
                if nonce in nonces:
                    return
                if (made := entry(notes, nonce)) is not None:
                    await self._broker.append(self._subject(person), encode(made), msg_id=nonce, expect_last=last)
                return
            except (Stale, Unconfirmed):
                continue
        raise NotKept("the store does not answer")
