"""What was said, from the lanes' journals: a scan, newest first. Simple, and exact about who may see what.

What a journal has forgotten below its snapshot is taken from the views, which were fed with all of it.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from operator import attrgetter
from pathlib import Path
from typing import Any

from brain import history
from brain.entries import Decided, LaneEntry, Speak, Taken
from brain.history import Found
from gateway.addresses import Address
from gateway.broker.protocol import Broker
from gateway.events import MessageReceived, Person
from gateway.history import Line
from gateway.journal import unstamped
from gateway.keeping import ViewsFailed
from gateway.record import Record
from gateway.snapshots import Snapshot

log = logging.getLogger(__name__)


class _Said(Record, frozen=True, kw_only=True):
    """`author` is None for the assistant."""

    author: Person | None
    line: Line


def sees(person: str, here: str, there: str) -> bool:
    """Whether what was said in the conversation `there` may be told to that person (by key) in `here`.

    In private they hear of all places that they take part in; in a shared place, where others hear it, of that alone.
    """
    own = f"p-{person}"
    return there == here if here != own else there == own or there.startswith("s-")


class LaneHistory:
    """`whose` gives the key of a person, the same for all of their addresses; `home` is where a conversation goes on;
    `assistant` is our own name. `store` is
    whose views know what a journal has forgotten."""

    def __init__(
        self,
        broker: Broker,
        whose: Callable[[Person], str],
        assistant: str,
        store: Path | None = None,
        home: Callable[[str], str] = lambda conversation: conversation,
    ) -> None:
        self._broker, self._whose, self._assistant, self._store, self._home = broker, whose, assistant, store, home

    async def search(self, by: Person, conversation: str, words: str, *, limit: int = 20) -> list[Line]:
        """See `History.search`."""
        wanted = words.casefold().split()
        found: list[Line] = []
        for subject in await self._broker.subjects("log.lane.>"):
            there = subject.removeprefix("log.lane.")
            if not sees(self._whose(by), self._home(conversation), self._home(there)):
                continue
            said = await self._said(subject, there)
            if self._takes_part(by, said):
                found += [one.line for one in said if all(word in one.line.text.casefold() for word in wanted)]
        found.sort(key=attrgetter("at"), reverse=True)
        return found[:limit]

    def _takes_part(self, by: Person, said: list[_Said]) -> bool:
        return any(one.author is not None and self._whose(one.author) == self._whose(by) for one in said)

    async def _said(self, subject: str, conversation: str) -> list[_Said]:
        stored = await self._broker.read(subject)
        entries = [(one.sequence, unstamped(one, LaneEntry | Snapshot)[2]) for one in stored]
        said = [line for _, entry in entries for line in self._lines(entry)]
        if not entries or not isinstance(entries[0][1], Snapshot):
            return said
        whole = (sequence for sequence, entry in entries if not isinstance(entry, Snapshot))
        return await self._forgotten(conversation, next(whole, entries[-1][0] + 1)) + said

    async def _forgotten(self, conversation: str, before: int) -> list[_Said]:
        if self._store is None:
            return []
        try:
            rows = await asyncio.to_thread(history.before, self._store, conversation, before)
        except ViewsFailed as error:
            log.warning("%s Until then only what is newer is found.", error)
            return []
        return [self._remembered(row) for row in rows]

    def _remembered(self, row: Found) -> _Said:
        author = Person(address=Address.parse(row.who), name=row.name) if row.who else None
        place = "in private" if author is not None and row.conversation.startswith("p-") else row.place
        name = self._assistant if author is None else author.name
        return _Said(author=author, line=Line(at=row.at, author=name, text=row.text, medium=row.medium, place=place))

    def _lines(self, entry: Any) -> Iterator[_Said]:
        match entry:
            case Taken(event=MessageReceived() as said):
                place = "in private" if said.private else said.route.place
                yield self._line(said.author, said.at, said.text, said.route.medium, place)
            case Decided(at=at, decisions=decisions):
                for one in decisions:
                    if isinstance(one, Speak):
                        yield self._line(None, at, one.text, one.route.medium, one.route.place)
            case _:
                pass

    def _line(self, author: Person | None, at: Any, text: str, medium: str, place: str) -> _Said:
        name = self._assistant if author is None else author.name
        return _Said(author=author, line=Line(at=at, author=name, text=text, medium=medium, place=place))
