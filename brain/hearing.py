"""The fold of what a conversation hears: a fact in its place in the prompt's order, and in the live state. Pure."""

from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from brain import changes, reminding
from brain.entries import Taken
from brain.parts import Heard, Opened
from brain.working import forget_completed
from gateway.events import (
    ActionChanged,
    ActionEnded,
    ActionFact,
    ActionProgressed,
    ActionResponded,
    ControlPressed,
    Fact,
    FileOffered,
    MessageDeleted,
    MessageReacted,
    MessageReceived,
    SendClosed,
    TimerFired,
)

if TYPE_CHECKING:
    from brain.state import LaneState

OVERHEARD_KEPT = 100
CLOSED_SENDS_KEPT = 50
RECENT_KEPT = 60


def take(state: "LaneState", taken: Taken) -> None:
    if not state.undecided:
        state.crashes = 0
    fact, control = taken.event, taken.attention == "control"
    if isinstance(fact, MessageReceived) and _identify(state, fact):
        return
    heard = Heard(label=_label(state, fact), fact=fact, at=taken.at, control=control, files=state.keep_files(fact))
    _charge(state, fact, taken.at)
    if isinstance(fact, changes.Change):
        state.interrupts += changes.note(state, heard)
    elif isinstance(fact, MessageReceived) and fact.edited:
        _edit(state, heard, fact, opens=taken.attention == "turn")
    elif taken.attention == "keep":
        withdrawn = isinstance(fact, SendClosed) and fact.outcome == "withdrawn"
        if withdrawn or isinstance(fact, MessageReceived | FileOffered):
            state.overheard.append(heard)
            del state.overheard[:-OVERHEARD_KEPT]
    else:
        if isinstance(fact, MessageReceived):
            state.recent = [*state.recent[-RECENT_KEPT:], Opened(author=fact.author.address, at=fact.at)]
            state.robot_turns = state.robot_turns + 1 if fact.robot else 0
        state.undecided.append(heard)
        if isinstance(fact, MessageReceived):
            changes.gather(state, fact)
        if not control and not isinstance(fact, ActionProgressed):
            state.interrupts += 1


def _identify(state: "LaneState", fact: MessageReceived) -> bool:
    """True when it is only to be known as taken."""
    state.identities.add(fact.identity)
    return changes.says_nothing_new(fact, state)


def _edit(state: "LaneState", heard: Heard, fact: MessageReceived, *, opens: bool) -> None:
    if not changes.replace(state, heard, opens=opens):
        state.messages += 1
        original = changes.known(fact.message, state)
        about = original.label if original else ""
        text = original.fact.text if original and isinstance(original.fact, MessageReceived) else fact.before
        fresh = msgspec.structs.replace(heard, label=f"m{state.messages}", about=about, before=text)
        (state.undecided if opens else state.overheard).append(fresh)
    state.interrupts += opens


def _label(state: "LaneState", fact: Fact) -> str:
    """Notes the fact, and answers with its short reference."""
    match fact:
        case MessageReceived(edited=edited):
            state.messages += not edited  # of an edit it is known later whether it is a message of its own
            state.routes.pop(fact.route.medium, None)
            state.routes[fact.route.medium] = fact.route
            _reach(state, fact)
            state.turns_alone = 0
            return f"m{state.messages}"
        case ControlPressed():
            state.identities.add(fact.identity)
            state.turns_alone = 0
            return fact.action
        case MessageDeleted() | MessageReacted():
            state.identities.add(fact.identity)
            return "change"
        case SendClosed():
            state.seen.add(fact.ref)
            _close_send(state, fact)
            return "send"
        case TimerFired():
            state.seen.add(fact.ref)
            return reminding.fired(state, fact)
        case _:
            state.seen.add(fact.ref)
            return _note(state, fact)


def _reach(state: "LaneState", message: MessageReceived) -> None:
    if state.is_private:
        state.parted.discard(message.author.address)
        state.reached.pop(message.author.address, None)
        state.reached[message.author.address] = message.route


def _close_send(state: "LaneState", closed: SendClosed) -> None:
    if closed.send in state.sends:
        state.sends[closed.send].outcome = closed.outcome
    done = [ref for ref, send in state.sends.items() if send.outcome is not None]
    for ref in done[:-CLOSED_SENDS_KEPT]:
        del state.sends[ref]


def _note(state: "LaneState", fact: ActionFact) -> str:
    """An action's fact in the live state; its label."""
    state.live += 1
    action = state.actions.get(fact.action)
    if action is None:
        return fact.action
    action.note(fact)
    if isinstance(fact, ActionEnded):
        forget_completed(state.actions)
    return action.label


def _charge(state: "LaneState", fact: Fact, at: datetime) -> None:
    """What an action has cost since it last told."""
    if not isinstance(fact, ActionChanged | ActionProgressed | ActionResponded | ActionEnded):
        return
    action = state.actions.get(fact.action)
    if action is not None and not action.elsewhere and fact.usd > action.usd:  # there it is counted
        state.spending.add(state.day(at), action.by.address, fact.usd - action.usd)
        action.usd = fact.usd
