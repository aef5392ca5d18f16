"""What a conversation sees of the others: its person's work in shared places, and where people can be reached.

Only of the same person: the key of an address decides, as everywhere.
"""

from collections.abc import Callable, Sequence

from brain.audience import seen_from_private
from brain.contacts import Contacts
from brain.state import LaneState
from brain.working import ActionView
from gateway.addresses import Address, Route
from gateway.events import Person

Reach = Callable[[Address], Route | None]


class Neighbours:
    """`shared` are the places that are open now, `state` is one conversation's; `reach` opens a way to an address that
    never wrote."""

    def __init__(
        self,
        contacts: Contacts,
        shared: Callable[[], Sequence[LaneState]],
        state: Callable[[str], LaneState | None],
        reach: Reach,
    ) -> None:
        self._contacts, self._shared, self._state, self._reach = contacts, shared, state, reach

    def actions(self, conversation: str) -> tuple[ActionView, ...]:
        """In flight in shared places, asked for by whose private conversation this is."""
        if not conversation.startswith("p-"):
            return ()
        working = [action for state in self._shared() for action in state.in_flight()]
        theirs = [action for action in working if self.private(action.by.address) == conversation]
        return tuple(seen_from_private(action) for action in theirs)

    def private(self, address: Address) -> str:
        return f"p-{self._contacts.key_of(address)}"

    def reaches(self, people: Sequence[Person]) -> dict[Address, Route]:
        """Each of the addresses of these people at which they can be written to."""
        keys = dict.fromkeys(self._contacts.key_of(person.address) for person in people)
        found: dict[Address, Route] = {}
        for key in keys:
            home = self._state(f"p-{key}")
            for address in self._contacts.addresses(key):
                route = (home.reached.get(address) if home else None) or self._reach(address)
                if route is not None:
                    found[address] = route
        return found
