"""The fold of a lane's journal: all that a conversation is. Pure: no I/O, no clock, no model.

It keeps what a turn needs (recent exchanges whole, what is in flight, what is not yet delivered) and what dedupe needs
for ever. Mutable behind `apply`: copying on each entry would make a long conversation quadratic.
"""

from datetime import UTC, datetime

import msgspec

from brain import changes, joining, reminding
from brain.emission import action_key, card_emission, emissions
from brain.entries import (
    NOT_NEEDED,
    Act,
    Carded,
    Decided,
    Decision,
    Held,
    Joined,
    LaneEntry,
    Moved,
    Parted,
    Quieten,
    Remind,
    Speak,
    Spent,
    Steer,
    Summarised,
    Taken,
    Unremind,
    Wait,
)
from brain.parts import Exchange, Heard, LaneFrozen, Opened, Reminder, SendView, Spending, Timer, weight_of
from brain.working import ActionView, forget_completed
from gateway.addresses import Address, Route
from gateway.events import (
    ActionChanged,
    ActionEnded,
    ActionFact,
    ActionProgressed,
    ActionResponded,
    ClarificationRequested,
    ControlPressed,
    Fact,
    FileOffered,
    MediumFact,
    MessageDeleted,
    MessageReacted,
    MessageReceived,
    Person,
    Ref,
    Send,
    SendClosed,
    TimerFired,
    identity_of,
)
from gateway.files import Attachment
from gateway.journal import Emitted, Outgoing, Owned, Released, forget_emitted
from gateway.record import decode, encode
from gateway.seen import Identities, Seen

EXCHANGES_KEPT, EXCHANGES_CUT_TO = 400, 300  # without a summary for so long, the oldest can only be recalled
OVERHEARD_KEPT = 100
CLOSED_SENDS_KEPT = 50
FILES_KEPT = 200
RECENT_KEPT = 60


class LaneState:
    def __init__(self, conversation: str) -> None:
        self.conversation = conversation
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
        self._files_made = 0
        self.carded = 0  # states of cards
        self.moved = ""  # the conversation in which it goes on
        self.left: list[Fact] = []  # what had to be decided somewhere else: when it moved, when an address was parted
        self.joined: list[str] = []  # conversations that have moved here
        self.parted: set[Address] = set()  # no longer this person's
        self.messages = 0
        self._identities = Identities()
        self._seen = Seen()

    def freeze(self) -> LaneFrozen:
        """What an exchange was rendered as is left out: it follows from the rest."""
        return LaneFrozen(
            undecided=self.undecided,
            overheard=self.overheard,
            exchanges=[msgspec.structs.replace(one, rendered=None) for one in self.exchanges],
            actions=list(self.actions.values()),
            sends=list(self.sends.items()),
            outgoing=self.outgoing,
            routes=self.routes,
            interrupts=self.interrupts,
            turns=self.turns,
            turns_alone=self.turns_alone,
            crashes=self.crashes,
            outage=self.outage,
            actions_made=self.actions_made,
            live=self.live,
            messages=self.messages,
            identities=self._identities.freeze(),
            seen=self._seen.marks,
            timer=self.timer,
            files=self.files,
            files_made=self._files_made,
            carded=self.carded,
            moved=self.moved,
            left=self.left,
            joined=self.joined,
            recent=self.recent,
            robot_turns=self.robot_turns,
            reached=list(self.reached.items()),
            parted=sorted(self.parted, key=str),
            summary=self.summary,
            spending=self.spending,
            capped=self.capped,
            resting=self.resting,
            reminders=self.reminders,
            reminders_made=self.reminders_made,
            reminders_fired=self.reminders_fired,
            quiet=self.quiet,
        )

    def thaw(self, frozen: bytes) -> None:
        kept: LaneFrozen = decode(frozen, LaneFrozen)
        self.undecided, self.overheard, self.summary = kept.undecided, kept.overheard, kept.summary
        self.spending, self.capped, self.resting = kept.spending, kept.capped, kept.resting
        self.keep(kept.exchanges)
        self.actions = {action.key: action for action in kept.actions}
        self.sends, self.outgoing, self.routes = dict(kept.sends), kept.outgoing, kept.routes
        self.interrupts, self.turns, self.turns_alone = kept.interrupts, kept.turns, kept.turns_alone
        self.crashes, self.outage, self.live = kept.crashes, kept.outage, kept.live
        self.actions_made, self.messages, self.timer = kept.actions_made, kept.messages, kept.timer
        self.moved, self.left, self.joined, self.parted = kept.moved, kept.left, kept.joined, set(kept.parted)
        self.reached, self.recent, self.robot_turns = dict(kept.reached), kept.recent, kept.robot_turns
        self.files, self._files_made = kept.files, kept.files_made
        self._identities, self._seen = Identities(kept.identities), Seen(kept.seen)
        self.carded = kept.carded
        self.reminders, self.quiet = kept.reminders, kept.quiet
        self.reminders_made, self.reminders_fired = kept.reminders_made, kept.reminders_fired

    # --- what may be asked -------------------------------------------------------------------------------------------

    def knows(self, fact: Fact) -> bool:
        if isinstance(fact, MediumFact):
            return fact.identity in self._identities
        return fact.ref in self._seen

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
            case SendClosed(send=ref):
                return self.sends[ref].route if ref in self.sends else self.route
            case fact:
                action = self.actions.get(fact.action)
                return action.route if action and action.by.address not in self.parted else self.route

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
                self._take(entry)
            case Decided():
                self._decide(entry)
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
                self.spending.add(entry.at, None, entry.usage.usd if entry.usage else None)
                self.keep([one for one in self.exchanges if one.place > entry.through])
            case Spent(usage=usage, at=at, charged=charged):
                if at is not None:
                    self.spending.add(at, charged, usage.usd)
            case _:
                raise TypeError(f"a lane's journal holds no {type(entry).__name__}")

    def _card(self, carded: Carded, action: ActionView) -> None:
        self.carded += 1
        action.card, action.card_at = carded.card, carded.at
        self.outgoing.append(card_emission(self.conversation, carded, action, self.turns, self.carded))

    def _take(self, taken: Taken) -> None:
        if not self.undecided:
            self.crashes = 0
        fact, control = taken.event, taken.attention == "control"
        if isinstance(fact, MessageReceived) and self._identify(fact):
            return
        heard = Heard(label=self._label(fact), fact=fact, at=taken.at, control=control, files=self.keep_files(fact))
        self._charge(fact, taken.at)
        if isinstance(fact, changes.Change):
            self.interrupts += changes.note(self, heard)
        elif isinstance(fact, MessageReceived) and fact.edited:
            self._edit(heard, fact, opens=taken.attention == "turn")
        elif taken.attention == "keep":
            withdrawn = isinstance(fact, SendClosed) and fact.outcome == "withdrawn"
            if withdrawn or isinstance(fact, MessageReceived | FileOffered):
                self.overheard.append(heard)
                del self.overheard[:-OVERHEARD_KEPT]
        else:
            if isinstance(fact, MessageReceived):
                self.recent = [*self.recent[-RECENT_KEPT:], Opened(author=fact.author.address, at=fact.at)]
                self.robot_turns = self.robot_turns + 1 if fact.robot else 0
            self.undecided.append(heard)
            if isinstance(fact, MessageReceived):
                changes.gather(self, fact)
            if not control and not isinstance(fact, ActionProgressed):
                self.interrupts += 1

    def _identify(self, fact: MessageReceived) -> bool:
        """True when it is only to be known as taken."""
        self._identities.add(fact.identity)
        return changes.says_nothing_new(fact, self)

    def _edit(self, heard: Heard, fact: MessageReceived, *, opens: bool) -> None:
        if not changes.replace(self, heard, opens=opens):
            self.messages += 1
            original = changes.known(fact.message, self)
            about = original.label if original else ""
            text = original.fact.text if original and isinstance(original.fact, MessageReceived) else fact.before
            fresh = msgspec.structs.replace(heard, label=f"m{self.messages}", about=about, before=text)
            (self.undecided if opens else self.overheard).append(fresh)
        self.interrupts += opens

    def keep_files(self, fact: Fact) -> tuple[str, ...]:
        """A reference for each that is here."""
        files = (
            fact.files if isinstance(fact, MessageReceived) else (fact.file,) if isinstance(fact, FileOffered) else ()
        )
        labels = []
        for file in files:
            if file.is_here:
                self._files_made += 1
                labels.append(f"f{self._files_made}")
                self.files[labels[-1]] = file
        for label in list(self.files)[:-FILES_KEPT]:
            del self.files[label]
        return tuple(labels)

    def _label(self, fact: Fact) -> str:
        """Notes the fact, and answers with its short reference."""
        match fact:
            case MessageReceived(edited=edited):
                self.messages += not edited  # of an edit it is known later whether it is a message of its own
                self.routes.pop(fact.route.medium, None)
                self.routes[fact.route.medium] = fact.route
                self._reach(fact)
                self.turns_alone = 0
                return f"m{self.messages}"
            case ControlPressed():
                self._identities.add(fact.identity)
                self.turns_alone = 0
                return fact.action
            case MessageDeleted() | MessageReacted():
                self._identities.add(fact.identity)
                return "change"
            case SendClosed():
                self._seen.add(fact.ref)
                self._close_send(fact)
                return "send"
            case TimerFired():
                self._seen.add(fact.ref)
                return reminding.fired(self, fact)
            case _:
                self._seen.add(fact.ref)
                return self._note(fact)

    def _reach(self, message: MessageReceived) -> None:
        if self.is_private:
            self.parted.discard(message.author.address)
            self.reached.pop(message.author.address, None)
            self.reached[message.author.address] = message.route

    def _close_send(self, closed: SendClosed) -> None:
        if closed.send in self.sends:
            self.sends[closed.send].outcome = closed.outcome
        done = [ref for ref, send in self.sends.items() if send.outcome is not None]
        for ref in done[:-CLOSED_SENDS_KEPT]:
            del self.sends[ref]

    def _note(self, fact: ActionFact) -> str:
        """An action's fact in the live state; its label."""
        self.live += 1
        action = self.actions.get(fact.action)
        if action is None:
            return fact.action
        action.note(fact)
        if isinstance(fact, ActionEnded):
            forget_completed(self.actions)
        return action.label

    def _decide(self, decided: Decided) -> None:
        covers = set(decided.covers)
        heard = self.overheard + [item for item in self.undecided if identity_of(item.fact) in covers]
        self.undecided = [item for item in self.undecided if identity_of(item.fact) not in covers]
        self.overheard = []
        self.turns, self.turns_alone, self.crashes = decided.turn, self.turns_alone + 1, 0
        if decided.by not in ("control", "cap"):  # these stand beside the turns
            self.outage = decided.by == "outage"
        self._settle(decided)
        waits = [one for one in decided.decisions if isinstance(one, Wait) and one.until is not None]
        if decided.by != "control":  # what code answers beside it is no turn of the model
            self.timer = Timer(decided.turn, waits[-1].until, waits[-1].reason) if waits and waits[-1].until else None
        if decided.by == "control":
            self.interrupts += 1  # a generation that runs meanwhile must see what was steered
        outgoing = emissions(self.conversation, decided, self.actions_made)
        for decision in decided.decisions:
            self._follow(decision, decided)
        for item in outgoing:
            if isinstance(item.body, Send):
                self.sends[item.ref] = SendView(route=item.body.route, text=_shown(item.body))
        self.outgoing += outgoing
        self.exchanges.append(Exchange(heard=heard, decided=decided))
        self.weight += weight_of(self.exchanges[-1])
        if len(self.exchanges) > EXCHANGES_KEPT:
            self.keep(self.exchanges[-EXCHANGES_CUT_TO:])

    def _charge(self, fact: Fact, at: datetime) -> None:
        """What an action has cost since it last told."""
        if not isinstance(fact, ActionChanged | ActionProgressed | ActionResponded | ActionEnded):
            return
        action = self.actions.get(fact.action)
        if action is not None and not action.elsewhere and fact.usd > action.usd:  # there it is counted
            self.spending.add(at, action.by.address, fact.usd - action.usd)
            action.usd = fact.usd

    def _settle(self, decided: Decided) -> None:
        """The money: what it cost, whether it was the word of a cap, and which work rests for that."""
        if decided.usage is not None:
            self.spending.add(decided.at, decided.charged, decided.usage.usd)
        if decided.by != "cap":
            return
        if any(isinstance(one, Speak) for one in decided.decisions):
            self.capped = decided.at.astimezone(UTC).date().isoformat()
        for one in decided.decisions:
            if isinstance(one, Steer):
                self.resting = [key for key in self.resting if key != one.action]
                self.resting += [one.action] if one.verb == "pause" else []

    def keep(self, exchanges: list[Exchange]) -> None:
        self.exchanges = exchanges
        self.weight = sum(weight_of(one) for one in exchanges)

    def _follow(self, decision: Decision, decided: Decided) -> None:
        self.live += 1
        match decision:
            case Act(name=name, query=query, by=by, route=route):
                self.actions_made += 1
                key = action_key(self.conversation, self.actions_made)
                label = f"a{self.actions_made}"
                self.actions[key] = ActionView(
                    key=key,
                    label=label,
                    name=name,
                    about=query,
                    by=by,
                    route=route,
                    since=decided.at,
                    began=decided.at,
                    told=decided.silent,
                )
            case Steer(action=key) if key in self.actions or decision.view != NOT_NEEDED:
                if key not in self.actions:
                    view: ActionView = decode(bytes(decision.view), ActionView)
                    self.actions[key] = msgspec.structs.replace(view, route=self.routes.get(decision.via, view.route))
                self.actions[key].steered(
                    decision, decided.at, by_control=decided.by == "control", silently=decided.silent
                )
            case Quieten():
                self.quiet = decision
            case Remind():
                reminding.add(self, decision)
            case Unremind(label=label):
                self.reminders = [one for one in self.reminders if one.label != label]
            case _:
                pass


def _shown(send: Send) -> str:
    return " ".join(part for part in (send.text or send.reaction, *(f"[{file.name}]" for file in send.files)) if part)


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
        return NOT_NEEDED if action.key in self.state.actions else msgspec.Raw(encode(action))

    def by_label(self, label: str) -> ActionView | None:
        return next((one for one in [*self.in_flight(), *self.completed()] if one.label == label), None)

    def askers(self) -> list[Person]:
        """Whose words the turn follows: the authors of its messages, else who asked for the actions and reminders."""
        facts = [item.fact for item in self.heard]
        authors = [fact.author for fact in facts if isinstance(fact, MessageReceived | ControlPressed)]
        actions = [self.state.actions.get(getattr(fact, "action", "")) for fact in facts]
        reminded = [fact.by for fact in facts if isinstance(fact, TimerFired) and fact.by is not None]
        return authors or [*(action.by for action in actions if action is not None), *reminded]
