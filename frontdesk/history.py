"""What was said, from the lanes' journals: a scan, newest first. Simple, and exact about who may see what."""

from collections.abc import Callable, Iterator
from operator import attrgetter

from brain.entries import Decided, LaneEntry, Speak, Taken
from gateway.broker.protocol import Broker
from gateway.events import MessageReceived, Person
from gateway.history import Line
from gateway.journal import unstamped


def sees(person: str, here: str, there: str) -> bool:
    """Whether what was said in the conversation `there` may be told to that person (by key) in `here`.

    In private they hear of all places that they take part in; in a shared place, where others hear it, of that alone.
    """
    own = f"p-{person}"
    return there == here if here != own else there == own or there.startswith("s-")


class LaneHistory:
    """`whose` gives the key of a person, the same for all of their addresses; `assistant` is our own name."""

    def __init__(self, broker: Broker, whose: Callable[[Person], str], assistant: str) -> None:
        self._broker, self._whose, self._assistant = broker, whose, assistant

    async def search(self, by: Person, conversation: str, words: str, *, limit: int = 20) -> list[Line]:
        """See `History.search`."""
        wanted = words.casefold().split()
        found: list[Line] = []
        for subject in await self._broker.subjects("log.lane.>"):
            there = subject.removeprefix("log.lane.")
            if not sees(self._whose(by), conversation, there):
                continue
            entries = [unstamped(stored, LaneEntry)[2] for stored in await self._broker.read(subject)]
            if self._takes_part(by, entries):
                found += [line for line in self._lines(entries) if all(one in line.text.casefold() for one in wanted)]
        found.sort(key=attrgetter("at"), reverse=True)
        return found[:limit]

    def _takes_part(self, by: Person, entries: list[object]) -> bool:
        said = (entry.event for entry in entries if isinstance(entry, Taken))
        return any(isinstance(one, MessageReceived) and self._whose(one.author) == self._whose(by) for one in said)

    def _lines(self, entries: list[object]) -> Iterator[Line]:
        for entry in entries:
            match entry:
                case Taken(event=MessageReceived() as said):
                    place = "in private" if said.private else said.route.place
                    yield Line(
                        at=said.at, author=said.author.name, text=said.text, medium=said.route.medium, place=place
                    )
                case Decided(at=at, decisions=decisions):
                    for one in decisions:
                        if isinstance(one, Speak):
                            route = one.route
                            yield Line(
                                at=at, author=self._assistant, text=one.text, medium=route.medium, place=route.place
                            )
