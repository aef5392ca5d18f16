"""The rules before any model: which facts open a turn, which are decided by code, which are only kept. Pure."""

from brain import changes
from brain.controls import is_control
from brain.entries import Attention
from brain.state import LaneState
from gateway.events import (
    ActionAnswered,
    ActionChanged,
    ActionEnded,
    ClarificationClosed,
    ControlPressed,
    Fact,
    FileOffered,
    MessageDeleted,
    MessageReacted,
    MessageReceived,
    SendClosed,
)


def attention(fact: Fact, state: LaneState) -> Attention:
    match fact:
        case ControlPressed():
            return "control"
        case MessageReceived():
            return _to_message(fact, state)
        case MessageDeleted() | MessageReacted() | FileOffered():
            return "keep"
        case SendClosed(outcome=outcome):
            return "turn" if outcome in ("failed", "unknown") else "keep"
        case ActionChanged() | ClarificationClosed():
            return "keep"
        case ActionAnswered() | ActionEnded(end="stopped"):
            action = state.actions.get(fact.action)
            return "control" if action and action.by_control else "turn"
        case _:
            return "turn"


def _to_message(fact: MessageReceived, state: LaneState) -> Attention:
    """An edit opens a turn where it changes what is read; one of a command does not run it again."""
    if changes.says_nothing_new(fact, state):
        return "keep"
    if not (fact.private or fact.addressed or changes.is_part_of_the_turn(fact, state)):
        return "keep"
    if is_control(fact.text):
        return "keep" if fact.edited else "control"
    return "turn"
