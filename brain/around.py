"""What a conversation sees of the others: its person's work in shared places, and where people can be reached.

Only of the same person: the key of an address decides, as everywhere.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from brain.audience import seen_from_private
from brain.contacts import Contacts
from brain.state import LaneState
from brain.working import ActionView
from gateway.addresses import Address, Route
from gateway.events import Person

Reach = Callable[[Address], Route | None]


class Around(Protocol):
    def actions(self, conversation: str) -> tuple[ActionView, ...]:
        """In flight in shared places, asked for by whose private conversation this is."""
        ...

    def reaches(self, people: Sequence[Person]) -> dict[Address, Route]:
        """Each of the addresses of these people at which they can be written to."""
        ...


class Alone:
    def actions(self, conversation: str) -> tuple[ActionView, ...]:
        return ()

    def reaches(self, people: Sequence[Person]) -> dict[Address, Route]:
        return {}


ALONE = Alone()


class Neighbours:
    """`lanes` are the conversations that are open now; `reach` opens a way to an address that never wrote."""

    def __init__(self, contacts: Contacts, lanes: Callable[[], Sequence[LaneState]], reach: Reach) -> None:
        self._contacts, self._lanes, self._reach = contacts, lanes, reach

    def actions(self, conversation: str) -> tuple[ActionView, ...]:
        if not conversation.startswith("p-"):
            return ()
        shared = [state for state in self._lanes() if not state.is_private]
        theirs = [a for state in shared for a in state.in_flight() if self.private(a.by.address) == conversation]
        return tuple(seen_from_private(action) for action in theirs)

    def private(self, address: Address) -> str:
        return f"p-{self._contacts.key_of(address)}"

    def reaches(self, people: Sequence[Person]) -> dict[Address, Route]:
        keys = dict.fromkeys(self._contacts.key_of(person.address) for person in people)
        homes = {state.conversation: state.reached for state in self._lanes() if state.is_private}
        found: dict[Address, Route] = {}
        for key in keys:
            for address in self._contacts.addresses(key):
                route = homes.get(f"p-{key}", {}).get(address) or self._reach(address)
                if route is not None:
                    found[address] = route
        return found
