"""What an action's loop finds in its inbox. Frozen types only; what is done about them is in happenings.py."""

from typing import Any

from actors.entries import JobStarted
from actors.sandbox.words import CellCalled, CellDone, CellLost
from gateway.events import Ask
from gateway.record import Record


class ChildEnded(Record, frozen=True, kw_only=True):
    job: str
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
    | ChildAsked
    | ChildClosed
    | ChildProgressed
    | WaitOver
    | AskDone
    | EffectDone
)
