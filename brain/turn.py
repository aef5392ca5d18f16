"""What one turn is about, and what is seen from it."""

import msgspec

from brain.entries import NOT_NEEDED
from brain.parts import Heard
from brain.state import LaneState
from brain.working import ActionView
from gateway.addresses import Address, Route
from gateway.events import ControlPressed, MessageReceived, Person, TimerFired
from gateway.record import encode


class Turn(msgspec.Struct, frozen=True):
    """What the turn is about, as the prompt showed it; the state may have gone on since."""

    heard: tuple[Heard, ...]
    state: LaneState
    elsewhere: tuple[ActionView, ...] = ()  # asked for by this person in a shared place
    reaches: dict[Address, Route] = {}  # where those who wrote can be reached, each by their own addresses

    def in_flight(self) -> list[ActionView]:
        known = self.state.actions
        return [*self.state.in_flight(), *(action for action in self.elsewhere if action.key not in known)]

    def completed(self) -> list[ActionView]:
        return [action for action in self.state.actions.values() if not action.in_flight]

    def action(self, key: str) -> ActionView | None:
        return self.state.actions.get(key) or next((one for one in self.elsewhere if one.key == key), None)

    def view(self, action: ActionView) -> msgspec.Raw:
        """For the journal, of an action that it does not know."""
        return NOT_NEEDED if action.key in self.state.actions else msgspec.Raw(encode(action.carried()))

    def by_label(self, label: str) -> ActionView | None:
        return next((one for one in [*self.in_flight(), *self.completed()] if one.label == label), None)

    def spoken_to(self) -> list[Heard]:
        """The messages whose authors wait for an answer: not what is only overheard in a place."""
        said = [(item, item.fact) for item in self.heard if isinstance(item.fact, MessageReceived)]
        return [item for item, fact in said if fact.private or fact.addressed]

    def askers(self) -> list[Person]:
        """Whose words the turn follows: the authors of its messages, else who asked for the actions and reminders."""
        facts = [item.fact for item in self.heard]
        authors = [fact.author for fact in facts if isinstance(fact, MessageReceived | ControlPressed)]
        actions = [self.state.actions.get(getattr(fact, "action", "")) for fact in facts]
        reminded = [fact.by for fact in facts if isinstance(fact, TimerFired) and fact.by is not None]
        return authors or [*(action.by for action in actions if action is not None), *reminded]
