"""A conversation to decide on, made without I/O: a fold that has heard things."""

from datetime import UTC, datetime, timedelta

from brain.attention import Manner, attention
from brain.contacts import Contact
from brain.entries import Act, Decided, Decision, Taken
from brain.prompt import Frame
from brain.rights import Rights
from brain.state import LaneState
from brain.turn import Turn
from gateway.addresses import Address, Route
from gateway.events import Fact, MessageReceived, Person, identity_of

NOON = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
ANA = Person(address=Address(medium="telegram", user="42"), name="Ana")
BO = Person(address=Address(medium="telegram", user="7"), name="Bo")

OWNER = Rights("private", lambda address: "owner", lambda one, other: one == other)
GUEST = Rights("private", lambda address: "guest", lambda one, other: one == other)


def route(place: str = "42", medium: str = "telegram") -> Route:
    return Route(medium=medium, account=f"{medium}-1", place=place)


class Talk:
    """`hears` takes a fact as a lane does; `decides` commits a turn on all of it."""

    def __init__(self, conversation: str = "p-ana") -> None:
        self.state = LaneState(conversation)
        self.now = NOON
        self._said = 0

    def hears(self, fact: Fact) -> Fact:
        self.now += timedelta(seconds=1)
        self.state.apply(Taken(event=fact, at=self.now, attention=attention(fact, self.state, Manner())))
        return fact

    def says(self, text: str, by: Person = ANA, at: Route | None = None, **more: object) -> MessageReceived:
        self._said += 1
        message = MessageReceived(
            identity=f"t/{self._said}", route=at or route(), author=by, text=text, at=self.now, **more
        )
        self.hears(message)
        return message

    def decides(self, *decisions: Decision, by: str = "model") -> Decided:
        covers = tuple(identity_of(item.fact) for item in self.state.undecided)
        decided = Decided(turn=self.state.turns + 1, at=self.now, covers=covers, decisions=decisions, by=by)
        self.state.apply(decided)
        return decided

    def starts(self, name: str = "booking", by: Person = ANA) -> str:
        """An action, by its key."""
        self.says(f"do {name}", by)
        self.decides(Act(name=name, query=f"do {name}", by=by, route=route()))
        return list(self.state.actions)[-1]

    def turn(self) -> Turn:
        return Turn(heard=tuple(self.state.undecided), state=self.state)


def frame() -> Frame:
    return Frame("Frontdesk", Contact(key="ana", name="Ana", role="owner", timezone="Europe/Berlin"))
