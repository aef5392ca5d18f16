"""The rules before any model: which facts open a turn, which are decided by code, which are only kept. Pure."""

from brain.controls import is_control, is_plain_control
from brain.entries import Attention
from brain.state import LaneState
from gateway.events import (
    ActionAnswered,
    ActionChanged,
    ActionEnded,
    ClarificationClosed,
    ControlPressed,
    Fact,
    MessageReceived,
    SendClosed,
)


def attention(fact: Fact, state: LaneState) -> Attention:
    match fact:
        case ControlPressed():
            return "control"
        case MessageReceived(text=text):
            if not (fact.private or fact.addressed):
                return "keep"
            return "control" if is_control(text) or is_plain_control(text, state) else "turn"
        case SendClosed(outcome=outcome):
            return "turn" if outcome in ("failed", "unknown") else "keep"
        case ActionChanged() | ClarificationClosed():
            return "keep"
        case ActionAnswered() | ActionEnded(end="stopped"):
            action = state.actions.get(fact.action)
            return "control" if action and action.by_control else "turn"
        case _:
            return "turn"
