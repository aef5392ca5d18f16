"""The words that cross between the wings: facts (past tense, upward) and commands (imperative, to one holder).

Only frozen types live here; nothing in this module does I/O or decides anything.
What a lane, an outbox or an action writes in its own journal lives beside its fold.
"""

from datetime import datetime
from typing import Literal

from gateway.addresses import Address, Route
from gateway.cards import Card, PressVerb
from gateway.files import Attachment
from gateway.record import Record, Tagged


class Ref(Record, frozen=True, kw_only=False, order=True, array_like=True):
    """A deterministic id: who emitted it, in which batch, and its place there.

    Refs of one source are published in rising order, so a consumer dedupes for ever with one high-water mark a source.
    """

    source: str
    batch: int
    n: int = 0

    def __str__(self) -> str:
        return f"{self.source}/{self.batch}/{self.n}"


class Person(Record, frozen=True, kw_only=True):
    """Who said or asked something: the address as the medium vouches for it, and the name shown there."""

    address: Address
    name: str


# --- facts -----------------------------------------------------------------------------------------------------------


class Album(Record, frozen=True, kw_only=True):
    """What belongs together though the platform tells it in pieces; `place` is their order."""

    id: str
    place: int


class MessageReceived(Tagged, frozen=True, kw_only=True):
    """`identity` is the platform's own (account, kind, id, version), good for ever.

    `addressed` is False for what calls nobody here. `by_name` is False where only its place makes it addressed: a
    thread that the assistant takes part in, where people speak with each other too. `robot`: no person wrote it.
    `in_thread`: in a thread of replies, which whoever has spoken in it takes part in. `outsider`: the platform does not
    say that they belong to the workspace that the assistant is of; one who is no contact is not answered.

    An edit is a version of its own, with the new words whole; `before` is what it said until then, where that is
    known, and `edited` tells it from a message.
    """

    identity: str
    route: Route
    author: Person
    text: str
    at: datetime
    private: bool = True
    addressed: bool = True
    by_name: bool = True
    robot: bool = False
    in_thread: bool = False
    files: tuple[Attachment, ...] = ()
    album: Album | None = None
    edited: bool = False
    before: str = ""
    outsider: bool = False

    @property
    def message(self) -> str:
        """The same for all versions of it."""
        return self.identity.rpartition("/")[0] or self.identity


class MessageDeleted(Tagged, frozen=True, kw_only=True):
    """Its author took it back. `message` is as in `MessageReceived`; the author is who wrote it."""

    identity: str
    message: str
    route: Route
    author: Person
    at: datetime
    private: bool = True


class MessageReacted(Tagged, frozen=True, kw_only=True):
    """Someone put an emoji to a message, or took it away. `own`: it is one of the assistant's."""

    identity: str
    message: str
    route: Route
    author: Person
    at: datetime
    emoji: str
    removed: bool = False
    own: bool = False
    private: bool = True


class ControlPressed(Tagged, frozen=True, kw_only=True):
    """A button on a card or in the panel: steering that needs no model. `action` is the lane's short reference.

    An answer has its words in `text`, or is the question's `option` of that number.
    """

    identity: str
    route: Route
    author: Person
    at: datetime
    verb: PressVerb
    action: str
    text: str = ""
    question: str = ""
    option: int | None = None
    private: bool = True


class PlaceMoved(Tagged, frozen=True, kw_only=True):
    """The platform gave a place another name; what was said there goes on under the new one."""

    identity: str
    medium: str
    account: str
    old: str
    new: str
    at: datetime


Outcome = Literal["sent", "failed", "unknown", "withdrawn"]


class SendClosed(Tagged, frozen=True, kw_only=True):
    """The end of one message. `delivered` of its `parts` surely arrived; `sent` and `withdrawn` open no turn."""

    ref: Ref
    conversation: str
    send: Ref
    outcome: Outcome
    delivered: int = 1
    parts: int = 1
    why: str = ""


ActionPhase = Literal["running", "paused", "awaiting_input", "hibernated"]
End = Literal["succeeded", "failed", "stopped"]


class ActionChanged(Tagged, frozen=True, kw_only=True):
    """For the live state only; opens no turn. `doing` says what it is at, in a few words; `usd`, here and below, what
    all of it has cost by now."""

    ref: Ref
    conversation: str
    action: str
    phase: ActionPhase
    doing: str = ""
    usd: float = 0.0


class ActionProgressed(Tagged, frozen=True, kw_only=True):
    """Something worth telling, now or later: opens a turn, cancels none."""

    ref: Ref
    conversation: str
    action: str
    text: str
    usd: float = 0.0


class ActionResponded(Tagged, frozen=True, kw_only=True):
    """A piece of work is done; a persistent action now waits for the next."""

    ref: Ref
    conversation: str
    action: str
    text: str
    usd: float = 0.0


class FileOffered(Tagged, frozen=True, kw_only=True):
    """An action has made a file for the person; whoever speaks with them sends it. Opens no turn."""

    ref: Ref
    conversation: str
    action: str
    file: Attachment


class ClarificationRequested(Tagged, frozen=True, kw_only=True):
    """One call of the action is blocked on this. `question` is its id within the action.

    `again`: nobody has answered for a while. `default` is what counts if nobody does, "" where nothing can.
    """

    ref: Ref
    conversation: str
    action: str
    question: str
    text: str
    options: tuple[str, ...] = ()
    default: str = ""
    again: bool = False


class ClarificationClosed(Tagged, frozen=True, kw_only=True):
    """Answered, or withdrawn with the code that asked; opens no turn."""

    ref: Ref
    conversation: str
    action: str
    question: str


class ActionAnswered(Tagged, frozen=True, kw_only=True):
    """What an `ask` came to."""

    ref: Ref
    conversation: str
    action: str
    command: Ref
    asked: str
    text: str


class ActionEnded(Tagged, frozen=True, kw_only=True):
    ref: Ref
    conversation: str
    action: str
    end: End
    text: str
    usd: float = 0.0


class CommandRefused(Tagged, frozen=True, kw_only=True):
    ref: Ref
    conversation: str
    action: str
    command: Ref
    verb: str
    why: str


class TimerFired(Tagged, frozen=True, kw_only=True):
    """The time has come that a turn chose to wait for; its ref names the turn.

    Or that of a reminder, which has a `label`: `by` asked for it, at `route`."""

    ref: Ref
    conversation: str
    reason: str
    label: str = ""
    by: Person | None = None
    route: Route | None = None


ActionFact = (
    ActionChanged
    | ActionProgressed
    | ActionResponded
    | FileOffered
    | ClarificationRequested
    | ClarificationClosed
    | ActionAnswered
    | ActionEnded
    | CommandRefused
)
MediumFact = MessageReceived | MessageDeleted | MessageReacted | ControlPressed
Fact = MediumFact | SendClosed | ActionFact | TimerFired


def identity_of(fact: Fact) -> str:
    """By which a fact is taken once: the platform's own identity, or its ref."""
    return fact.identity if isinstance(fact, MediumFact) else str(fact.ref)


# --- commands --------------------------------------------------------------------------------------------------------


class Send(Tagged, frozen=True, kw_only=True):
    """One whole message, in the model's Markdown; the medium splits it by its own units. Not sent after `until`.

    With `reaction` it is that emoji, put to the message that the route answers, and nothing else.
    """

    ref: Ref
    conversation: str
    route: Route
    text: str
    until: datetime | None = None
    files: tuple[Attachment, ...] = ()
    reaction: str = ""


class WithdrawSend(Tagged, frozen=True, kw_only=True):
    ref: Ref
    conversation: str
    send: Ref


class ShowCard(Tagged, frozen=True, kw_only=True):
    """The newest state of the status card of one run of an action; an older one that was not shown yet is passed over.

    No event comes of it. Not shown after `until`.
    """

    ref: Ref
    conversation: str
    action: str
    run: int
    route: Route
    card: Card
    until: datetime | None = None

    @property
    def name(self) -> str:
        """Which card: the same for all its states. A card never leaves its room."""
        _, place, thread = self.route.room
        return f"{self.action}/{self.run}/{place}/{thread or ''}"


OutboxCommand = Send | WithdrawSend | ShowCard


class Start(Tagged, frozen=True, kw_only=True):
    """`context` is the snapshot of the conversation that bears on the query; `by` is whose rights the work has.

    `only` is the one family of primitives that it may use, to read; "" for all.
    """

    ref: Ref
    conversation: str
    action: str
    by: Person
    name: str
    query: str
    context: str = ""
    persist: bool = True
    depth: int = 0
    only: str = ""
    files: tuple[Attachment, ...] = ()


class Interject(Tagged, frozen=True, kw_only=True):
    """A correction or a follow-up: the same mechanism. `via` and `at` are where and when it was said."""

    ref: Ref
    conversation: str
    action: str
    by: Person
    text: str
    via: str = ""
    at: datetime | None = None
    files: tuple[Attachment, ...] = ()


class Ask(Tagged, frozen=True, kw_only=True):
    ref: Ref
    conversation: str
    action: str
    by: Person
    text: str


class Pause(Tagged, frozen=True, kw_only=True):
    ref: Ref
    conversation: str
    action: str
    by: Person


class Resume(Tagged, frozen=True, kw_only=True):
    ref: Ref
    conversation: str
    action: str
    by: Person


class Stop(Tagged, frozen=True, kw_only=True):
    ref: Ref
    conversation: str
    action: str
    by: Person
    why: str = ""


class Answer(Tagged, frozen=True, kw_only=True):
    """The answer to one open question of the action."""

    ref: Ref
    conversation: str
    action: str
    by: Person
    question: str
    text: str
    files: tuple[Attachment, ...] = ()


ActionCommand = Start | Interject | Ask | Pause | Resume | Stop | Answer
