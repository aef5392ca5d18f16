"""What a lane's state is made of: shapes alone, nothing decided here. Its snapshot is one of them."""

from datetime import datetime

import msgspec

from brain.entries import Act, Decided, Quieten, Recalled, Remind, Speak, Steer, Summarised
from brain.quoting import TEXT_SHOWN
from brain.working import ActionView
from gateway.addresses import Address, Route
from gateway.events import Fact, Outcome, Person, Ref
from gateway.llm.history import tokens_of
from gateway.llm.model import Message
from gateway.record import Record

LINE_TOKENS = 15  # what stands around a text


class Heard(msgspec.Struct):
    """A fact in the prompt's order. `label` is its short reference: m12 for a message, a3 for an action's fact.

    `files` are the references of those that came with it, for each that is here. `about` is the reference of the
    message that it edits, deletes or puts an emoji to, `before` what that said.
    """

    label: str
    fact: Fact
    at: datetime
    control: bool = False
    files: tuple[str, ...] = ()
    about: str = ""
    before: str = ""


class Exchange(msgspec.Struct):
    """A committed turn: what it heard, and what was decided."""

    heard: list[Heard]
    decided: Decided
    origin: str = ""  # the conversation where it was, if that has been joined to this one
    after: int = 0  # and then our last turn before it
    rendered: list[Message] | None = None  # kept by the prompt, which renders each once

    @property
    def is_aside(self) -> bool:
        """No model could answer what was heard in it: none is shown it again."""
        return self.decided.by == "parked"

    @property
    def place(self) -> int:
        """In the order of our turns."""
        return self.after if self.origin else self.decided.turn


class Opened(Record, frozen=True, kw_only=True):
    """A message that opened a turn."""

    author: Address
    at: datetime


def weight_of(exchange: Exchange) -> int:
    """About how many tokens it takes in a prompt."""
    texts = [getattr(item.fact, "text", "") for item in exchange.heard]
    for decision in exchange.decided.decisions:
        match decision:
            case Speak(text=text) | Steer(text=text) | Act(query=text) | Recalled(found=text) | Remind(text=text):
                texts.append(text)
            case _:
                pass
    return sum(LINE_TOKENS + tokens_of(text[:TEXT_SHOWN]) for text in texts)


class Spending(msgspec.Struct):
    """What a conversation and its work have cost on one day, the last on which anything did: by address, "" for what
    was for nobody in particular. A price that is not known counts as nothing."""

    day: str = ""
    usd: dict[str, float] = {}

    def add(self, day: str, who: Address | None, usd: float | None) -> None:
        if not usd or day < self.day:
            return
        if day > self.day:
            self.day, self.usd = day, {}
        self.usd[str(who or "")] = self.usd.get(str(who or ""), 0.0) + usd


class Timer(msgspec.Struct, frozen=True):
    turn: int
    until: datetime
    reason: str


class Reminder(msgspec.Struct, frozen=True):
    """Open; a `parts.Timer` that nothing ends but its time, or a word."""

    label: str
    until: datetime
    text: str
    by: Person
    route: Route


class SendView(msgspec.Struct):
    route: Route
    text: str
    outcome: Outcome | None = None


class Share(Record, frozen=True, kw_only=True):
    """What a conversation brings into the one that it joins."""

    exchanges: list[Exchange]
    actions: list[ActionView]
    sends: list[tuple[Ref, SendView]]
    routes: dict[str, Route]
    reached: list[tuple[Address, Route]] = []
    wait: tuple[datetime, str] | None = None
    joined: list[str] = []
    summary: Summarised | None = None
    reminders: list[Reminder] = []
    quiet: Quieten | None = None
    overheard: list[Heard] = []
    resting: list[str] = []
