"""What may be lost: who is typing, what is in flight, which messages were just decided.

Told by the brain as signals on `live.<account>` to the medium that shows it; a medium that cannot show a thing ignores
it. Whoever comes late is told again: the brain repeats what is shown on each change, at its own start, and when a
medium starts and asks for it on AGAIN.
"""

from datetime import datetime

from gateway.actions import Verb
from gateway.addresses import Route
from gateway.events import ActionPhase
from gateway.record import Record, Tagged, encode


class Typing(Tagged, frozen=True, kw_only=True):
    route: Route
    on: bool


class QuestionShown(Record, frozen=True, kw_only=True):
    question: str
    text: str
    options: tuple[str, ...] = ()


class ActionShown(Record, frozen=True, kw_only=True):
    """`action` is the short reference in its conversation (`a3`); `can` is what may be done to it now."""

    action: str
    name: str
    about: str
    phase: ActionPhase
    since: datetime
    doing: str = ""
    questions: tuple[QuestionShown, ...] = ()
    can: tuple[Verb, ...] = ()


class ActionsShown(Tagged, frozen=True, kw_only=True):
    """All that is in flight in the conversation that uses this route's place."""

    route: Route
    actions: tuple[ActionShown, ...]


class TurnDecided(Tagged, frozen=True, kw_only=True):
    """A turn has committed. Without a reply, either `silence` is its recorded reason, or `passed_on` says in a few
    words what was done instead.
    """

    route: Route
    covers: tuple[str, ...]
    silence: str = ""
    passed_on: str = ""


AGAIN = "again"
PEOPLE = "people"  # the book of people has changed

LiveSignal = Typing | ActionsShown | TurnDecided


def subject(account: str) -> str:
    return f"live.{account}"


def payload(signal: LiveSignal) -> bytes:
    return encode(signal)
