"""What an action's loop finds in its inbox. Frozen types only; what is done about them is in happenings.py."""

from typing import Any

from actors.entries import JobStarted
from actors.sandbox.words import CellCalled, CellDone, CellLost
from gateway.actions import Phase
from gateway.events import Ask, Ref
from gateway.files import Attachment
from gateway.llm.model import Usage
from gateway.record import Record


class FileTaken(Record, frozen=True, kw_only=True):
    """What came of a file that code offers."""

    rpc: str
    file: Attachment | None = None
    error: str = ""


class ChildEnded(Record, frozen=True, kw_only=True):
    """`usd` and `tokens` are what it has cost in all, with what was below it; `files` are what it has offered."""

    job: str
    text: str
    end: Phase
    usd: float
    tokens: int
    files: tuple[Attachment, ...] = ()


class ChildSpent(Record, frozen=True, kw_only=True):
    job: str
    model: str
    usage: Usage


class ChildAnswered(Record, frozen=True, kw_only=True):
    """`command` is the ask's."""

    job: str
    command: Ref
    text: str


class ChildAsked(Record, frozen=True, kw_only=True):
    job: str
    question: JobStarted


class ChildClosed(Record, frozen=True, kw_only=True):
    job: str
    question: str


class ChildProgressed(Record, frozen=True, kw_only=True):
    job: str
    text: str


class SleepWanted(Record, frozen=True, kw_only=True):
    """Too many are live: this one has been idle longest."""


class WaitOver(Record, frozen=True, kw_only=True):
    call: str


class AskDone(Record, frozen=True, kw_only=True):
    ask: Ask
    text: str


class EffectDone(Record, frozen=True, kw_only=True):
    rpc: str
    value: Any = None
    error: str = ""


Happened = (
    CellCalled
    | CellDone
    | CellLost
    | ChildEnded
    | ChildSpent
    | ChildAnswered
    | ChildAsked
    | ChildClosed
    | ChildProgressed
    | SleepWanted
    | WaitOver
    | AskDone
    | EffectDone
    | FileTaken
)

BESIDE = CellCalled | FileTaken | ChildAsked | ChildSpent | ChildProgressed | AskDone | EffectDone
