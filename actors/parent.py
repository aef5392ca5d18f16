"""A child's way upward: only happenings in its parent's inbox, so nothing of it waits."""

from typing import TYPE_CHECKING, Protocol

from actors.entries import JobStarted
from actors.spending import Spending
from actors.words import ChildAnswered, ChildAsked, ChildClosed, ChildEnded, ChildProgressed, ChildSpent
from gateway.actions import Phase
from gateway.events import Ref
from gateway.files import Attachment
from gateway.llm.model import Usage

if TYPE_CHECKING:
    from actors.actor import Actor


class Parent(Protocol):
    """What a child can say upward; none of it waits. `held`: nothing below may generate, the budget is used up."""

    @property
    def root(self) -> "Actor": ...
    @property
    def held(self) -> bool: ...

    def child_ended(self, key: str, text: str, end: Phase, spent: Spending, files: tuple[Attachment, ...]) -> None: ...
    def child_spent(self, key: str, model: str, usage: Usage) -> None: ...
    def child_answered(self, key: str, command: Ref, text: str) -> None: ...
    def child_asked(self, key: str, question: JobStarted) -> None: ...
    def child_closed(self, key: str, question: str) -> None: ...
    def child_progressed(self, key: str, text: str) -> None: ...


def child_key(parent: str, job: str) -> str:
    return f"{parent}--{job}"


def job_of(key: str) -> str:
    return key.rpartition("--")[2]


class ParentLink:
    """A child's way upward: only happenings in its parent's inbox."""

    def __init__(self, parent: "Actor") -> None:
        self._parent = parent

    @property
    def root(self) -> "Actor":
        return self._parent.root

    @property
    def held(self) -> bool:
        return self._parent.held

    def child_ended(self, key: str, text: str, end: Phase, spent: Spending, files: tuple[Attachment, ...]) -> None:
        ended = ChildEnded(job=job_of(key), text=text, end=end, usd=spent.usd, tokens=spent.tokens, files=files)
        self._parent.happened(ended)

    def child_spent(self, key: str, model: str, usage: Usage) -> None:
        self._parent.happened(ChildSpent(job=job_of(key), model=model, usage=usage))

    def child_answered(self, key: str, command: Ref, text: str) -> None:
        self._parent.happened(ChildAnswered(job=job_of(key), command=command, text=text))

    def child_asked(self, key: str, question: JobStarted) -> None:
        self._parent.happened(ChildAsked(job=job_of(key), question=question))

    def child_closed(self, key: str, question: str) -> None:
        self._parent.happened(ChildClosed(job=job_of(key), question=question))

    def child_progressed(self, key: str, text: str) -> None:
        self._parent.happened(ChildProgressed(job=job_of(key), text=text))
