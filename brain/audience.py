"""Who hears what of an action: it has the audience of its request, until somebody adds to it in private. Pure.

The private word narrows it for good: from then on what it comes to goes there alone, and the wider place hears only
that it went on in private. Decided here, from the folds; no model is asked.
"""

import hashlib

import msgspec

from brain.working import ActionView
from gateway.actions import Verb
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
    FileOffered,
)

WENT_ON = "(it went on in private; what it came to is not for this place)"
NARROWING: frozenset[Verb] = frozenset({"interject", "answer"})


def seen_from_private(action: ActionView) -> ActionView:
    """An action of a shared place, as its requester meets it in private. Its label cannot be one of there."""
    label = f"e{hashlib.sha256(action.key.encode()).hexdigest()[:4]}"
    return msgspec.structs.replace(
        action, label=label, elsewhere=True, by_control=False, questions={**action.questions}, spoken={}
    )


def told(fact: ActionFact, shared: str, private: str, adopted: ActionView | None) -> list[tuple[str, ActionFact]]:
    """What each conversation hears of it. `adopted` is the action in its requester's `private` conversation, if they
    have steered it from there."""
    if isinstance(fact, ActionAnswered | CommandRefused):
        if fact.command.source == private:
            return [(private, fact)]
        return _hidden(fact, shared) if adopted and adopted.narrowed else [(shared, fact)]
    if adopted is None:
        return [(shared, fact)]
    return [(private, fact), *(_hidden(fact, shared) if adopted.narrowed else [(shared, fact)])]


def _hidden(fact: ActionFact, shared: str) -> list[tuple[str, ActionFact]]:
    match fact:
        case ActionResponded() | ActionEnded():
            return [(shared, msgspec.structs.replace(fact, text=WENT_ON))]
        case ActionAnswered():
            return [(shared, msgspec.structs.replace(fact, text=WENT_ON))]
        case CommandRefused():
            return [(shared, fact)]
        case ActionChanged():
            return [(shared, msgspec.structs.replace(fact, doing=""))]
        case ClarificationClosed():
            return [(shared, fact)]
        case ActionProgressed() | ClarificationRequested() | FileOffered():
            return []
