"""What was decided in a scenario's words, and whether that is right. Pure."""

from collections.abc import Mapping, Sequence

from brain.entries import Act, Decision, Speak, Steer
from frontdesk.evaluation.scenario import Scenario


def decided(decisions: Sequence[Decision], ids: Mapping[str, str]) -> tuple[str, ...]:
    """What it does, else what it says, else silence: a word beside work is no decision of its own."""
    done = [_done(decision, ids) for decision in decisions]
    if effects := tuple(dict.fromkeys(one for one in done if one)):
        return effects
    return ("say",) if any(isinstance(decision, Speak) for decision in decisions) else ("wait",)


def _done(decision: Decision, ids: Mapping[str, str]) -> str:
    match decision:
        case Act():
            return "act"
        case Steer(verb=verb, action=key):
            return f"{verb}:{ids[key]}"
        case _:
            return ""


def is_right(taken: Sequence[str], scenario: Scenario) -> bool:
    """All of it must be: a right step with a wrong one beside it is wrong."""
    return bool(taken) and all(one in scenario.right for one in taken)
