"""The fold of a lane's journal: all that a conversation is. Pure: no I/O, no clock, no model.

It keeps what a turn needs (recent exchanges whole, what is in flight, what is not yet delivered) and what dedupe needs
for ever. Mutable behind `apply`: copying on each entry would make a long conversation quadratic.
"""

from datetime import datetime
from zoneinfo import ZoneInfo

from brain import committing, frozen, hearing, joining
from brain.emission import card_emission
from brain.entries import (
    Carded,
    Decided,
    Held,
    Joined,
    LaneEntry,
    Moved,
    Parted,
    Quieten,
    Speak,
    Spent,
    Summarised,
    Taken,
)
from brain.parts import Exchange, Heard, Opened, Reminder, SendView, Spending, Timer, weight_of
from brain.working import ActionView
from gateway.addresses import Address, Route
from gateway.events import (
    ActionEnded,
    ClarificationRequested,
    ControlPressed,
    Fact,
    FileOffered,
    MediumFact,
    MessageDeleted,
    MessageReacted,
    MessageReceived,
    Ref,
    SendClosed,
    TimerFired,
)
from gateway.files import Attachment
from gateway.journal import Emitted, Outgoing, Owned, Released, forget_emitted
from gateway.seen import Identities, Seen

FILES_KEPT = 200

UTC = ZoneInfo("UTC")


class LaneState:
    def __init__(self, conversation: str, zone: ZoneInfo = UTC) -> None:
        """A day of spending is one in `zone`."""
        self.conversation, self._zone = conversation, zone
        self.undecided: list[Heard] = []
        self.overheard: list[Heard] = []  # kept without a turn; shown with the next one
        self.exchanges: list[Exchange] = []
        self.summary: Summarised | None = None  # of all before them
        self.weight = 0  # of the exchanges, in tokens, about
        self.spending = Spending()
        self.capped = ""  # the day on which people were told that its budget is used up
        self.resting: list[str] = []  # actions that stand still for that
        self.actions: dict[str, ActionView] = {}
        self.sends: dict[Ref, SendView] = {}
        self.outgoing: list[Outgoing] = []
        self.routes: dict[str, Route] = {}  # medium -> where somebody last wrote on it; the newest last
        self.reached: dict[Address, Route] = {}  # in private: where that address last wrote
        self.recent: list[Opened] = []
        self.robot_turns = 0  # that robots opened since a person last wrote
        self.interrupts = 0  # events taken that cancel a generation
        self.turns = 0
        self.turns_alone = 0  # since somebody last wrote
        self.timer: Timer | None = None  # of the last turn, if it chose to wait until then
        self.quiet: Quieten | None = None  # as the person wishes, over the settings
        self.reminders: list[Reminder] = []  # open, the first due first
        self.reminders_made = self.reminders_fired = 0
        self.crashes = 0  # unclean ownings since the oldest undecided event
        self.outage = False  # the person was told that the model cannot be reached
        self.actions_made = 0
        self.live = 0  # rises whenever what is in flight looks different
        self.files: dict[str, Attachment] = {}  # by their references, the newest last
        self.files_made = 0
        self.carded = 0  # states of cards
        self.moved = ""  # the conversation in which it goes on
        self.left: list[Fact] = []  # what had to be decided somewhere else: when it moved, when an address was parted
        self.joined: list[str] = []  # conversations that have moved here
        self.parted: set[Address] = set()  # no longer this person's
        self.messages = 0
        self.identities = Identities()
        self.seen = Seen()

    def freeze(self) -> frozen.LaneFrozen:
        return frozen.freeze(self)

    def thaw(self, snapshot: bytes) -> None:
        frozen.thaw(self, snapshot)

    # --- what may be asked -------------------------------------------------------------------------------------------

    def day(self, at: datetime) -> str:
        return at.astimezone(self._zone).date().isoformat()

    def knows(self, fact: Fact) -> bool:
        if isinstance(fact, MediumFact):
            return fact.identity in self.identities
        return fact.ref in self.seen

    @property
    def is_private(self) -> bool:
        return self.conversation.startswith("p-")

    @property
    def route(self) -> Route | None:
        """Where the conversation last was."""
        return next(reversed(self.routes.values()), None)

    def has_spoken(self) -> bool:
        return any(isinstance(one, Speak) for exchange in self.exchanges for one in exchange.decided.decisions)

    def in_flight(self) -> list[ActionView]:
        return [action for action in self.actions.values() if action.in_flight]

    def by_label(self, label: str) -> ActionView | None:
        return next((action for action in self.actions.values() if action.label == label), None)

    def route_of(self, heard: Heard) -> Route | None:
        """Where a reply to it belongs: its own place, or for an action's fact the place of the request."""
        match heard.fact:
            case MessageReceived(route=route) | ControlPressed(route=route):
                return route
            case MessageDeleted(route=route) | MessageReacted(route=route):
                return route
            case TimerFired(route=route):
                return route or self.route
            case ClarificationRequested() if self.is_private:
                return self.route  # where the person is now
            case SendClosed(outcome="failed") if self.is_private:
                return self.route  # nothing more arrives where it failed, as far as is known
            case SendClosed(send=ref):
                return self.sends[ref].route if ref in self.sends else self.route
            case ActionEnded(action=key) if self.is_private and key in self.actions and self.actions[key].stopped_at:
                return self.actions[key].stopped_at
            case fact:
                action = self.actions.get(fact.action)
                if action is None or (action.asker or action.by.address) in self.parted:
                    return self.route
                return action.route

    def pressed(self, reference: str) -> ActionView | None:
        """What a button means: by the mark on a card, which stays the same when labels change; else by its label."""
        label, _, mark = reference.partition("-")
        if not mark:
            return self.by_label(label)
        return next((action for action in self.actions.values() if action.mark == mark), None)

    # --- the fold ----------------------------------------------------------------------------------------------------

    def apply(self, entry: LaneEntry) -> None:
        match entry:
            case Taken():
                hearing.take(self, entry)
            case Decided():
                committing.decide(self, entry)
            case Emitted(through=through):
                forget_emitted(self.outgoing, through)
            case Owned():
                self.crashes = self.crashes + 1 if self.undecided else 0
            case Released():
                self.crashes = max(0, self.crashes - 1)
            case Held():
                self.crashes = 0
            case Carded(action=key):
                if key in self.actions:
                    self._card(entry, self.actions[key])
            case Moved(to=to):
                joining.leave(self, to)
            case Joined():
                joining.join(self, entry)
            case Parted():
                joining.part(self, entry)
            case Summarised():
                self.summary = entry
                self.spending.add(self.day(entry.at), None, entry.usage.usd if entry.usage else None)
                self.keep([one for one in self.exchanges if one.place > entry.through])
            case Spent(usage=usage, at=at, charged=charged):
                if at is not None:
                    self.spending.add(self.day(at), charged, usage.usd)
            case _:
                raise TypeError(f"a lane's journal holds no {type(entry).__name__}")

    def _card(self, carded: Carded, action: ActionView) -> None:
        self.carded += 1
        action.card, action.card_at = carded.card, carded.at
        self.outgoing.append(card_emission(self.conversation, carded, action, self.turns, self.carded))

    def keep(self, exchanges: list[Exchange]) -> None:
        self.exchanges = exchanges
        self.weight = sum(weight_of(one) for one in exchanges)

    def keep_files(self, fact: Fact) -> tuple[str, ...]:
        """A reference for each that is here."""
        files = (
            fact.files if isinstance(fact, MessageReceived) else (fact.file,) if isinstance(fact, FileOffered) else ()
        )
        labels = []
        for file in files:
            if file.is_here:
                self.files_made += 1
                labels.append(f"f{self.files_made}")
                self.files[labels[-1]] = file
        for label in list(self.files)[:-FILES_KEPT]:
            del self.files[label]
        return tuple(labels)
