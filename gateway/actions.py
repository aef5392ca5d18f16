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

BY_ITSELF: dict[tuple[Phase, str], Phase] = {
    ("running", "a response, persistent"): "awaiting_input",
    ("running", "a response, one-off"): "succeeded",
    ("running", "what cannot go on"): "failed",
    ("paused", "what cannot go on"): "failed",
    ("awaiting_input", "the end of something it had left open"): "running",
    ("awaiting_input", "`hibernate_after`, or too many live"): "hibernated",
    ("awaiting_input", "`close_after`"): "succeeded",
    ("awaiting_input", "what cannot go on"): "failed",
    ("hibernated", "`close_after`"): "succeeded",
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


def table() -> str:
    """The lifecycle as ARCHITECTURE.md shows it."""
    rows = ["| state | may be told | leads to |", "|---|---|---|"]
    for phase, legal in LEGAL.items():
        told = [f"{verb} → {to}" for (at, verb), to in LEADS_TO.items() if at == phase]
        alone = [f"{what} → {to}" for (at, what), to in BY_ITSELF.items() if at == phase]
        rows.append(f"| {phase} | {', '.join(legal)} | {'; '.join([*told, *alone]) or '–'} |")
    return "\n".join(rows)
