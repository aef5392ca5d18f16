"""The rules before any model: who is heard at all, which facts open a turn, which code decides, which are only kept.
Pure.
"""

from datetime import timedelta

from brain import changes
from brain.controls import is_control, is_plain_control
from brain.entries import Attention
from brain.rights import Role
from brain.state import LaneState
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
    ControlPressed,
    Fact,
    FileOffered,
    MessageDeleted,
    MessageReacted,
    MessageReceived,
    SendClosed,
    identity_of,
)
from gateway.record import Record

ROBOT_TURNS = 3  # of robots, since a person last wrote there
GUEST_TURNS = 20  # of people who are not trusted, within GUEST_MINUTES: more is a loop, or a flood
GUEST_MINUTES = 10


class Manner(Record, frozen=True, kw_only=True):
    """How a message comes in. `keep`: as history, whatever it says. `control`: code answers it. `ambient`: the model
    hears it though it is not said to it."""

    keep: bool = False
    control: bool = False
    ambient: bool = False
    trusted: bool = True


def manner(
    fact: MessageReceived | ControlPressed,
    role: Role,
    unknown: str,
    *,
    ambient: bool,
    known_place: bool,
    about_code: bool,
) -> Manner | None:
    """None for what is passed over. `about_code`: it says a pairing code. `known_place`: somebody who is known has
    spoken there."""
    stranger, private = role == "stranger", fact.private
    if isinstance(fact, ControlPressed):
        return None if stranger and unknown != "reply" else Manner()
    refused = fact.robot or fact.outsider or unknown == "ignore" or (unknown == "pair" and not private)
    if stranger and refused:
        return Manner(keep=True) if not private and known_place else None
    if stranger and unknown == "pair":
        return Manner(control=True)
    control = private and about_code
    return Manner(control=control, ambient=ambient, trusted=role in ("owner", "member"))


def attention(fact: Fact, state: LaneState, how: Manner) -> Attention:
    match fact:
        case ControlPressed():
            return "control"
        case MessageReceived():
            return _to_message(fact, state, how)
        case MessageDeleted() | MessageReacted() | FileOffered():
            return "keep"
        case SendClosed(outcome=outcome):
            return "turn" if outcome in ("failed", "unknown") and not _said_of_a_failure(fact, state) else "keep"
        case ActionChanged() | ClarificationClosed():
            return "keep"
        case ActionResponded() | ActionProgressed() | ClarificationRequested() | ActionEnded() if _is_told_there(
            fact, state
        ):
            return "keep"
        case CommandRefused(verb="stop", action=key) if key in state.actions and not state.actions[key].in_flight:
            return "keep"  # it has ended, and that was told
        case ActionAnswered() | ActionEnded(end="stopped"):
            action = state.actions.get(fact.action)
            return "control" if action and action.by_control else "turn"
        case _:
            return "turn"


def _said_of_a_failure(closed: SendClosed, state: LaneState) -> bool:
    """What was said about nothing but sends that failed: if that fails too, there is nobody to tell."""
    said = next((one for one in reversed(state.exchanges) if one.decided.turn == closed.send.batch), None)
    about = [item.fact for item in said.heard if identity_of(item.fact) in said.decided.covers] if said else []
    return bool(about) and all(isinstance(fact, SendClosed) for fact in about)


def _is_told_there(fact: ActionFact, state: LaneState) -> bool:
    """In the shared place where it was asked for: here it only keeps what is known of the action up to date."""
    action = state.actions.get(fact.action)
    return action is not None and action.elsewhere and not action.narrowed and not action.by_control


def _to_message(message: MessageReceived, state: LaneState, how: Manner) -> Attention:
    """An edit opens a turn where it changes what is read; one of a command does not run it again."""
    if changes.says_nothing_new(message, state):
        return "keep"
    called = message.private or message.addressed or how.ambient or changes.is_part_of_the_turn(message, state)
    if how.keep or not called:
        return "keep"
    if is_looping(message, state, how):
        at_the_bound = not message.robot and _lately(message, state) == GUEST_TURNS
        return "control" if at_the_bound else "keep"  # code says so, once
    if how.control:
        return "keep" if message.edited else "control"
    by_code = is_control(message.text) or is_plain_control(message.text, state)
    if by_code and message.addressed:
        return "keep" if message.edited else "control"
    return "turn"


def is_looping(message: MessageReceived, state: LaneState, how: Manner) -> bool:
    """Robots that answer each other, and whoever goes on without end."""
    if message.robot:
        return state.robot_turns >= ROBOT_TURNS or not message.by_name
    if how.trusted:
        return False
    return _lately(message, state) >= GUEST_TURNS


def _lately(message: MessageReceived, state: LaneState) -> int:
    since = message.at - timedelta(minutes=GUEST_MINUTES)
    return sum(one.author == message.author.address and one.at > since for one in state.recent)
