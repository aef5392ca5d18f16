"""What a conversation knows of its actions, and what each fact and each steering makes of it. Pure."""

import hashlib
from datetime import datetime

import msgspec

from brain.entries import Steer
from gateway.actions import IN_FLIGHT, LEADS_TO, Phase
from gateway.addresses import Address, Route
from gateway.cards import Card
from gateway.events import (
    ActionAnswered,
    ActionChanged,
    ActionEnded,
    ActionFact,
    ActionProgressed,
    ActionResponded,
    ClarificationClosed,
    ClarificationRequested,
    CommandRefused,
    Person,
)

COMPLETED_KEPT = 20
ABOUT_KEPT = 4_000
LAST_CARRIED = 500
IDLE: tuple[Phase, ...] = ("awaiting_input", "hibernated")


class ActionView(msgspec.Struct):
    """What the conversation knows of an action. `label` (a3) is what people's words and tool names refer to."""

    key: str
    label: str
    name: str
    about: str
    by: Person
    route: Route
    phase: Phase = "running"
    since: datetime | None = None
    doing: str = ""
    last: str = ""
    questions: dict[str, ClarificationRequested] = {}
    elsewhere: bool = False  # asked for in a shared place, and steered from here
    narrowed: bool = False  # and added to from here: what it comes to is told here alone
    usd: float = 0.0  # what it has cost by now
    by_control: bool = False  # the last steering was a button or a slash command: code tells its outcome
    asker: Address | None = None  # whose words `route` follows: those of the last job; None is `by`
    stopped_at: Route | None = None  # where they said so
    spoken: dict[str, Route] = {}  # by medium: where it was last spoken of
    run: int = 0  # how often it was set to work again; each run has a card of its own
    began: datetime | None = None  # this run; None where that is not known
    told: bool = False  # this run began without a word, or has told something: its card is due at once
    card: Card | None = None  # as it was last shown
    card_at: datetime | None = None

    @property
    def mark(self) -> str:
        """Short, and the same wherever the action is known."""
        return hashlib.blake2b(self.key.encode(), digest_size=4).hexdigest()

    @property
    def in_flight(self) -> bool:
        return self.phase in IN_FLIGHT

    def carried(self) -> "ActionView":
        """As it is written into another conversation's journal."""
        return msgspec.structs.replace(self, last=self.last[:LAST_CARRIED])

    def note(self, fact: ActionFact) -> None:
        match fact:
            case ActionChanged(phase=phase, doing=doing):
                if phase == "running" and self.phase in IDLE:
                    self._begin(None, told=False)
                self.phase, self.doing = phase, doing
            case ActionProgressed(text=text):
                self.last, self.told = text, True
            case ActionResponded(text=text):
                self.phase, self.last, self.doing = "awaiting_input", text, ""
            case ClarificationRequested(question=question):
                self.questions[question] = fact
            case ClarificationClosed(question=question):
                self.questions.pop(question, None)
            case ActionEnded(end=end, text=text):
                self.phase, self.last, self.doing = end, text, ""
                self.questions.clear()
            case CommandRefused(verb="start", why=why):
                self.phase, self.last, self.doing = "failed", why, ""
            case ActionAnswered() | CommandRefused():
                pass

    def steered(self, steer: Steer, at: datetime, *, by_control: bool, silently: bool) -> None:
        """`silently`: nothing was said beside it."""
        self.by_control = by_control
        self.narrowed = self.narrowed or (self.elsewhere and steer.verb in ("interject", "answer"))
        if steer.verb == "interject" and self.phase in IDLE:
            self._begin(at, told=silently)
            if steer.route is not None:
                self.route, self.asker = steer.route, steer.by.address
        if steer.verb == "stop":
            self.stopped_at = steer.route
        if steer.route is not None:
            self.spoken[steer.route.medium] = steer.route
        if steer.verb != "stop":  # an end is told by the action itself
            self.phase = LEADS_TO.get((self.phase, steer.verb), self.phase)
        if steer.verb == "answer":
            self.questions.pop(steer.question, None)

    def part(self, address: Address) -> None:
        """It is not this person's any more: nothing is told there."""
        self.spoken.pop(address.medium, None)
        if self.stopped_at is not None and self.stopped_at.medium == address.medium:
            self.stopped_at = None

    def _begin(self, at: datetime | None, *, told: bool) -> None:
        self.run, self.began, self.told = self.run + 1, at, told
        self.card = self.card_at = None


def forget_completed(actions: dict[str, ActionView]) -> None:
    ended = [key for key, action in actions.items() if not action.in_flight]
    for key in ended[:-COMPLETED_KEPT]:
        del actions[key]
