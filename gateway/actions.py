"""An action's lifecycle: its states, which commands are legal in each, and where they lead. One table, no I/O.

In flight an action is running, paused, awaiting_input (persistent, after its response) or hibernated; it ends once,
as succeeded, failed or stopped, and can still be asked about. Open questions are a set beside the state.
"""

from typing import Literal

from gateway.events import ActionCommand, ActionPhase, Answer, Ask, End, Interject, Pause, Resume, Start, Stop

Verb = Literal["interject", "ask", "pause", "resume", "stop", "answer"]
Phase = ActionPhase | End

LEGAL: dict[Phase, tuple[Verb, ...]] = {
    "running": ("interject", "ask", "pause", "stop", "answer"),
    "paused": ("interject", "ask", "resume", "stop", "answer"),
    "awaiting_input": ("interject", "ask", "stop"),
    "hibernated": ("interject", "ask", "stop"),
    "succeeded": ("ask",),
    "failed": ("ask",),
    "stopped": ("ask",),
}

LEADS_TO: dict[tuple[Phase, Verb], Phase] = {
    ("running", "pause"): "paused",
    ("paused", "resume"): "running",
    ("awaiting_input", "interject"): "running",
    ("hibernated", "interject"): "running",
    ("running", "stop"): "stopped",
    ("paused", "stop"): "stopped",
    ("awaiting_input", "stop"): "stopped",
    ("hibernated", "stop"): "stopped",
}

IN_FLIGHT: tuple[Phase, ...] = ("running", "paused", "awaiting_input", "hibernated")


def verbs(phase: Phase, questions: bool) -> tuple[Verb, ...]:
    """What may be done now, in the table's order; `answer` only while a question is open."""
    return tuple(verb for verb in LEGAL[phase] if verb != "answer" or questions)


def refusal(phase: Phase, verb: Verb) -> str | None:
    """Why `verb` is not legal now, in words a model can use, or None."""
    if verb in LEGAL[phase]:
        return None
    return f"{verb} is not possible while the action is {phase}; possible now: {', '.join(LEGAL[phase])}"


def verb_of(command: ActionCommand) -> Verb | Literal["start"]:
    match command:
        case Start():
            return "start"
        case Interject():
            return "interject"
        case Ask():
            return "ask"
        case Pause():
            return "pause"
        case Resume():
            return "resume"
        case Stop():
            return "stop"
        case Answer():
            return "answer"
