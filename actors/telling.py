"""What an action tells its lane: the facts that follow from an entry, and the phase that it leads to. Pure."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from actors.entries import (
    AskAnswered,
    Briefed,
    Closed,
    Failed,
    Generated,
    Hibernated,
    Interjected,
    JobEnded,
    JobStarted,
    Notified,
    Offered,
    Paused,
    Refused,
    Reminded,
    Responded,
    Resumed,
    Stopped,
)
from actors.transcript import Transcript
from gateway.actions import IN_FLIGHT, Phase
from gateway.events import (
    ActionAnswered,
    ActionChanged,
    ActionEnded,
    ActionProgressed,
    ActionResponded,
    ClarificationClosed,
    ClarificationRequested,
    CommandRefused,
    FileOffered,
)

if TYPE_CHECKING:
    from actors.journal import ActionState

DOING_CHARACTERS = 120

Told = tuple[Any, dict[str, Any]]  # a fact's type, and what is in it beside whose it is


def phase_after(phase: Phase, entry: object, after: Transcript) -> Phase:
    match entry:
        case Paused():
            return "paused"
        case Briefed() | Resumed():
            return "running"
        case Interjected() if phase in ("awaiting_input", "hibernated"):
            return "running"
        case JobEnded() if phase == "awaiting_input" and not after.responded:
            return "running"
        case Hibernated():
            return "hibernated"
        case Responded(ended=False):
            return "awaiting_input"
        case Responded() | Closed():
            return "succeeded"
        case Failed():
            return "failed"
        case Stopped():
            return "stopped"
        case _:
            return phase


def remarks(entry: object, phase: Phase, before: Transcript) -> Iterator[Told]:
    """A text that turned out not to be the response was still said, and must be heard."""
    match entry:
        case Interjected() if before.draft and not before.jobs:
            yield ActionProgressed, {"text": before.draft}
        case Generated(text=str(text), calls=calls) if text:
            if before.jobs or calls:
                yield from _changed(phase, text)
            if before.jobs and not calls:
                yield ActionProgressed, {"text": text}
        case _:
            pass


def told(entry: object, was: Phase, state: "ActionState") -> Iterator[Told]:
    """`state` is the one after the entry, `was` the phase before."""
    phase = state.phase
    match entry:
        case Briefed():
            yield from _changed(phase, "starting")
        case JobStarted(kind="cell", about=code):
            yield from _changed(phase, _first_words(code))
        case JobStarted(kind="question"):
            yield _question(entry)
        case Reminded(job=job):
            yield _question(state.transcript.jobs[job], again=True)
        case JobEnded(job=job):
            if job.startswith("question"):
                yield ClarificationClosed, {"question": job}
            if was != phase:
                yield from _changed(phase)
        case Interjected() if was != phase:
            yield from _changed(phase, "taking up what was said")
        case Paused() | Resumed() | Hibernated():
            yield from _changed(phase)
        case AskAnswered(command=ref, asked=asked, text=text):
            yield ActionAnswered, {"command": ref, "asked": asked, "text": text}
        case Refused(command=ref, verb=verb, why=why, conversation=conversation):
            whose = {"conversation": conversation} if conversation else {}
            yield CommandRefused, {"command": ref, "verb": verb, "why": why, **whose}
        case Notified(text=text, quiet=True):
            yield from _changed(phase, text)
        case Offered(file=file):
            yield FileOffered, {"file": file}
        case Notified(text=text):
            yield ActionProgressed, {"text": text}
        case Responded(text=text, ended=False):
            yield ActionResponded, {"text": text}
        case Responded(text=text) | Closed(text=text) | Failed(text=text) | Stopped(report=text):
            yield ActionEnded, {"end": phase, "text": text}
        case _:
            pass


def _changed(phase: Phase, doing: str = "") -> Iterator[Told]:
    if phase in IN_FLIGHT:  # after its end nothing changes
        yield ActionChanged, {"phase": phase, "doing": " ".join(doing.split())[:DOING_CHARACTERS]}


def _question(question: JobStarted, *, again: bool = False) -> Told:
    return ClarificationRequested, {
        "question": question.job,
        "text": question.about,
        "options": question.options,
        "default": question.default or "",
        "again": again,
    }


def _first_words(code: str) -> str:
    """A comment at the top says best what code is for."""
    lines = [line.strip() for line in code.splitlines() if line.strip()]
    comment = next((line.lstrip("# ") for line in lines[:3] if line.startswith("#")), "")
    return comment or lines[0] if lines else "code"
