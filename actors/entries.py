"""What an action writes in its journal. Frozen words; the shapes are stored for ever (add fields with defaults only).

Two things have a life of their own. A *call* of the model is closed exactly once. A *job* (running code, an open
question, a child action) ends exactly once. `through` is the place in `cmd` of the command that an entry answers, 0
where it came from a parent in the same tree.
"""

from typing import Any, Literal

from gateway.events import Ask, Interject, Pause, Person, Ref, Resume, Start, Stop
from gateway.journal import Emitted, Owned, Released
from gateway.llm.model import Usage
from gateway.record import Record, Tagged

JobKind = Literal["cell", "question", "child"]


class Call(Record, frozen=True, kw_only=True):
    """`arguments` is always the text of a JSON object. `refused` is why it must not run, where that is known at once.

    `fields` are the provider's own, sent back to it with the call.
    """

    id: str
    name: str
    arguments: str
    fields: dict[str, Any] | None = None
    refused: str = ""


class Briefed(Tagged, frozen=True, kw_only=True):
    start: Start
    through: int = 0


class Generated(Tagged, frozen=True, kw_only=True):
    text: str
    calls: tuple[Call, ...] = ()
    fields: dict[str, Any] | None = None
    model: str = ""
    usage: Usage | None = None


class Spent(Tagged, frozen=True, kw_only=True):
    """What a cancelled or failed generation cost, and the calls of `ask`."""

    usage: Usage
    model: str = ""


class JobStarted(Tagged, frozen=True, kw_only=True):
    """`about` is the code, the question or the child's query. `call` waits for it; or code of `cell` does, by `rpc`.

    A question of a child is one of its parent too: `child` and `question` say whose. A `bound` is a question of the
    loop itself, which generates nothing until it is answered.
    """

    job: str
    kind: JobKind
    about: str
    call: str | None = None
    cell: str | None = None
    rpc: str | None = None
    options: tuple[str, ...] = ()
    stateful: bool = False
    name: str = ""
    child: str | None = None
    question: str | None = None
    bound: bool = False


class JobAwaited(Tagged, frozen=True, kw_only=True):
    job: str
    call: str


class JobEnded(Tagged, frozen=True, kw_only=True):
    """`text` is for the model; `value` for the code that asked. `command` is the answer that ended a question."""

    job: str
    text: str
    value: str = ""
    command: Ref | None = None
    by: Person | None = None
    through: int = 0


class CallClosed(Tagged, frozen=True, kw_only=True):
    call: str
    text: str


class Interjected(Tagged, frozen=True, kw_only=True):
    command: Interject
    through: int = 0


class Paused(Tagged, frozen=True, kw_only=True):
    command: Pause
    through: int = 0


class Resumed(Tagged, frozen=True, kw_only=True):
    command: Resume
    through: int = 0


class Asked(Tagged, frozen=True, kw_only=True):
    command: Ask
    through: int = 0


class AskAnswered(Tagged, frozen=True, kw_only=True):
    command: Ref
    asked: str
    text: str


class Refused(Tagged, frozen=True, kw_only=True):
    """A command that came when it was not legal; its sender is told."""

    command: Ref
    verb: str
    why: str
    through: int = 0


class Notified(Tagged, frozen=True, kw_only=True):
    """Progress. `quiet` goes to the status line alone and disturbs nobody."""

    text: str
    quiet: bool = False


class Nudged(Tagged, frozen=True, kw_only=True):
    """A word of the loop itself to its model."""

    text: str


class SandboxLost(Tagged, frozen=True, kw_only=True):
    """The sandbox is gone; `text` tells the model what went with it."""

    text: str


class EffectStarted(Tagged, frozen=True, kw_only=True):
    """Written before an effect is tried: without its end, nobody knows whether it happened."""

    rpc: str
    method: str
    about: str


class EffectEnded(Tagged, frozen=True, kw_only=True):
    rpc: str
    value: Any = None
    error: str = ""


class Responded(Tagged, frozen=True, kw_only=True):
    """A piece of work is done. `ended`: the action with it."""

    text: str
    call: str | None = None
    ended: bool = False


class Failed(Tagged, frozen=True, kw_only=True):
    text: str


class Stopped(Tagged, frozen=True, kw_only=True):
    command: Stop
    report: str
    through: int = 0


ActionEntry = (
    Briefed
    | Generated
    | Spent
    | JobStarted
    | JobAwaited
    | JobEnded
    | CallClosed
    | Interjected
    | Paused
    | Resumed
    | Asked
    | AskAnswered
    | Refused
    | Notified
    | Nudged
    | SandboxLost
    | EffectStarted
    | EffectEnded
    | Responded
    | Failed
    | Stopped
    | Owned
    | Released
    | Emitted
)
