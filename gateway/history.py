"""What was said, as somebody may look it up: the seam between who keeps it and who searches it. No I/O here."""

from datetime import datetime
from typing import Protocol

from gateway.events import Person
from gateway.record import Record


class Line(Record, frozen=True, kw_only=True):
    """One thing said. `author` is a name as it was shown; `place` says in words where, `medium` on what."""

    at: datetime
    author: str
    text: str
    medium: str
    place: str


class History(Protocol):
    async def search(self, by: Person, conversation: str, words: str, *, limit: int = 20) -> list[Line]:
        """The newest lines with all of these words in them, newest first; without words, the newest of all.

        `conversation` is where they will be heard. In private: of all that `by` takes part in. In a shared place: of
        that place alone, because others hear it too. Never of somebody else's private conversation.
        """
        ...
