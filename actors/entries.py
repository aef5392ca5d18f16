"""What an action writes in its journal. Frozen words; the shapes are stored for ever (add fields with defaults only).

`at` is when an entry was written, where time counts for what follows. Two things have a life of their own. A *call* of
the model is closed exactly once. A *job* (running code, an open question, a child action, a word asked of one) ends
exactly once. `through` is the place in `cmd` of the command that an entry answers, 0 where it came from a parent in the
same tree.
"""

from datetime import datetime
from typing import Any, Literal

from actors.sandbox.words import Lost, Name
from gateway.events import Ask, Interject, Pause, Person, Ref, Resume, Start, Stop
from gateway.files import Attachment
from gateway.journal import Emitted, Owned, Released
from gateway.llm.model import Usage
from gateway.record import Record, Tagged

JobKind = Literal["cell", "question", "child", "ask"]
Bound = Literal["", "steps", "minutes", "tokens", "money", "model"]


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
    """`notes` are what earlier work has kept for the person. `files` says for each that came along where it is."""

    start: Start
    notes: tuple[str, ...] = ()
    through: int = 0
    at: datetime | None = None
    files: tuple[str, ...] = ()


class Generated(Tagged, frozen=True, kw_only=True):
    text: str
    calls: tuple[Call, ...] = ()
    fields: dict[str, Any] | None = None
    model: str = ""
    usage: Usage | None = None
    at: datetime | None = None


class Spent(Tagged, frozen=True, kw_only=True):
    """What a cancelled or failed generation cost, a side call, or (`child`) any generation below."""

    usage: Usage
    model: str = ""
    child: str = ""
    at: datetime | None = None


class JobStarted(Tagged, frozen=True, kw_only=True):
    """`about` is the code, the question or the child's query. `call` waits for it; or code of `cell` does, by `rpc`.

    A question of a child is one of its parent too: `child` and `question` say whose. An `ask` is to `child`. A `bound`
    is a question of the loop itself, which generates nothing until it is answered; `met` says what was met. Nobody
    having answered a question by `remind_at`, its person is reminded; by `expires_at`, `default` counts, if there is
    one. `only` is the family of primitives that a child is bound to.
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
    met: Bound = ""
    only: str = ""
    default: str | None = None
    at: datetime | None = None
    remind_at: datetime | None = None
    expires_at: datetime | None = None


class JobAwaited(Tagged, frozen=True, kw_only=True):
    job: str
    call: str


class JobEnded(Tagged, frozen=True, kw_only=True):
    """`text` is for the model; `value` for the code that asked, which it is an error to if `failed`. `command` is the
    answer that ended a question; `usd` and `tokens` are what a child has cost in all."""

    job: str
    text: str
    value: str = ""
    failed: bool = False
    usd: float = 0.0
    tokens: int = 0
    command: Ref | None = None
    by: Person | None = None
    through: int = 0
    at: datetime | None = None


class Reminded(Tagged, frozen=True, kw_only=True):
    """The person was reminded of an open question."""

    job: str


class CallClosed(Tagged, frozen=True, kw_only=True):
    """`shown`: how far the output of the cell that it waited for has been shown by now, in characters."""

    call: str
    text: str
    shown: int = 0


class Interjected(Tagged, frozen=True, kw_only=True):
    command: Interject
    through: int = 0
    at: datetime | None = None
    files: tuple[str, ...] = ()


class Paused(Tagged, frozen=True, kw_only=True):
    command: Pause
    through: int = 0


class Resumed(Tagged, frozen=True, kw_only=True):
    command: Resume
    through: int = 0
    at: datetime | None = None


class Asked(Tagged, frozen=True, kw_only=True):
    command: Ask
    through: int = 0


class AskAnswered(Tagged, frozen=True, kw_only=True):
    command: Ref
    asked: str
    text: str


class Refused(Tagged, frozen=True, kw_only=True):
    """A command that came when it was not legal; its sender is told: in `conversation`, if the action never began."""

    command: Ref
    verb: str
    why: str
    through: int = 0
    conversation: str = ""


class Notified(Tagged, frozen=True, kw_only=True):
    """Progress. `quiet` goes to the status line alone and disturbs nobody."""

    text: str
    quiet: bool = False


class Offered(Tagged, frozen=True, kw_only=True):
    """A file of its workspace, for the person; its bytes are stored."""

    file: Attachment


class Nudged(Tagged, frozen=True, kw_only=True):
    """A word of the loop itself to its model; `empty`: which had answered nothing, `cut`: not to its end."""

    text: str
    empty: bool = False
    cut: bool = False


class SandboxLost(Tagged, frozen=True, kw_only=True):
    """The sandbox is gone; `text` tells the model what went with it. `moved`: its files too, with their machine."""

    text: str
    moved: bool = False


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
    at: datetime | None = None


class Hibernated(Tagged, frozen=True, kw_only=True):
    """Its processes end after this. `saved` and `lost` are the variables of its stateful session."""

    saved: tuple[Name, ...] = ()
    lost: tuple[Lost, ...] = ()


class Woken(Tagged, frozen=True, kw_only=True):
    """`text` tells the model what is there again and what is not; `session` says that there is a stateful one.
    `moved`: its files are gone with their machine."""

    text: str
    session: bool = False
    moved: bool = False


class Closed(Tagged, frozen=True, kw_only=True):
    """Nobody has come back to the session for its time to live."""

    text: str


class Compacted(Tagged, frozen=True, kw_only=True):
    """The first `through` messages are replaced by those among them that are kept word by word, and `summary`."""

    summary: str
    through: int


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
    | Reminded
    | CallClosed
    | Interjected
    | Paused
    | Resumed
    | Asked
    | AskAnswered
    | Refused
    | Notified
    | Offered
    | Nudged
    | SandboxLost
    | EffectStarted
    | EffectEnded
    | Responded
    | Hibernated
    | Woken
    | Closed
    | Compacted
    | Failed
    | Stopped
    | Owned
    | Released
    | Emitted
)
