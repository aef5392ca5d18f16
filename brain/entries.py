"""What a lane writes in its journal: what it heard, and what was decided. Frozen words, nothing decided here.

These shapes are stored for ever: a field may be added with a default, none renamed.
"""

from datetime import datetime
from typing import Literal

import msgspec

from gateway.addresses import Address, Route
from gateway.cards import Card
from gateway.events import Fact, Person, Ref
from gateway.files import Attachment
from gateway.journal import Emitted, Owned, Released
from gateway.llm.model import Usage
from gateway.quiet import QuietHours
from gateway.record import Record, Tagged

NOT_NEEDED = msgspec.Raw(b"null")

Attention = Literal["turn", "control", "keep"]
Steering = Literal["interject", "ask", "pause", "resume", "stop", "answer"]


# --- what a turn may decide ------------------------------------------------------------------------------------------


class Speak(Tagged, frozen=True, kw_only=True):
    """`answers` are the identities of the events it replies to; `by_tool` when it came by `send_message`."""

    route: Route
    text: str
    answers: tuple[str, ...] = ()
    by_tool: bool = False
    files: tuple[Attachment, ...] = ()


class React(Tagged, frozen=True, kw_only=True):
    """An emoji to the message that `route` answers."""

    route: Route
    emoji: str
    answers: tuple[str, ...] = ()


class Wait(Tagged, frozen=True, kw_only=True):
    """Silence, with its reason. `until`: decided on again at that time, unless something comes before."""

    reason: str
    until: datetime | None = None


class Act(Tagged, frozen=True, kw_only=True):
    """`by` is whose words it follows, and so whose rights the work has; `route` is where they were said."""

    name: str
    query: str
    by: Person
    route: Route
    context: str = ""
    persist: bool = True
    files: tuple[Attachment, ...] = ()


class Steer(Tagged, frozen=True, kw_only=True):
    """`action` is the action's key. `text` is the message, the question or the answer; `via` where it was said, `route`
    exactly, where something may come of it: a next job's response and the end of what they stop are told there.

    `view` is a `working.ActionView`: what is known of an action of a shared place that is steered from here."""

    verb: Steering
    action: str
    by: Person
    text: str = ""
    question: str = ""
    via: str = ""
    route: Route | None = None
    files: tuple[Attachment, ...] = ()
    view: msgspec.Raw = NOT_NEEDED


class Withdraw(Tagged, frozen=True, kw_only=True):
    account: str
    send: Ref


class Recalled(Tagged, frozen=True, kw_only=True):
    """What was looked up in what was said here, and what that showed: later prompts show the same, whatever the search
    would find by then. `of` are the ids of the messages that it repeats."""

    query: str
    found: str
    of: tuple[str, ...] = ()


class Remind(Tagged, frozen=True, kw_only=True):
    """The text comes back at that time, whatever happens before. `by` asked for it, at `route`."""

    text: str
    at: datetime
    by: Person
    route: Route


class Unremind(Tagged, frozen=True, kw_only=True):
    """`label` is the reminder's short reference."""

    label: str


class Quieten(Tagged, frozen=True, kw_only=True):
    """The person's own quiet hours, or that they want none."""

    hours: QuietHours | None


Inward = Wait | Recalled | Remind | Unremind | Quieten  # nothing leaves the conversation for these
Decision = Speak | React | Act | Steer | Withdraw | Inward


# --- journal entries -------------------------------------------------------------------------------------------------


class Taken(Tagged, frozen=True, kw_only=True):
    """`attention` is what the rules before any model made of it: it opens a turn, code decides it, or it is kept."""

    event: Fact
    at: datetime
    attention: Attention = "turn"


Decider = Literal["model", "control", "outage", "parked", "budget", "cap"]


class Prompted(Record, frozen=True, kw_only=True):
    """The first request of a turn: a digest of it, how many messages and tools, and about how many tokens."""

    digest: str
    messages: int
    tools: int
    tokens: int


class Decided(Tagged, frozen=True, kw_only=True):
    """`covers` are identities, never a range: progress that did not interrupt stays undecided.

    An `outage` and a `cap` cover nothing: the person is told once, and the events wait. `charged` is whose words it
    followed; `prompt` what the model was shown.
    """

    turn: int
    at: datetime
    covers: tuple[str, ...]
    decisions: tuple[Decision, ...]
    by: Decider = "model"
    model: str = ""
    usage: Usage | None = None
    why: str = ""
    charged: Address | None = None
    prompt: Prompted | None = None

    @property
    def silent(self) -> bool:
        """Nothing is said, and not on purpose."""
        return not any(isinstance(decision, Speak | React | Wait) for decision in self.decisions)


class Spent(Tagged, frozen=True, kw_only=True):
    """What a generation cost that was cancelled: its only trace."""

    usage: Usage
    model: str = ""
    at: datetime | None = None
    charged: Address | None = None


class Carded(Tagged, frozen=True, kw_only=True):
    """What the status card of an action's present run is to say from now on. `action` is the action's key."""

    action: str
    card: Card
    at: datetime


class Held(Tagged, frozen=True, kw_only=True):
    """What is undecided was waited for, and did no harm: no end of the process before this was its doing."""

    at: datetime


class Moved(Tagged, frozen=True, kw_only=True):
    """The person is another contact now: nothing is decided here any more. All goes on in the conversation `to`."""

    to: str
    at: datetime


class Joined(Tagged, frozen=True, kw_only=True):
    """What another conversation of the same person, `origin`, had; `share` is a `parts.Share`."""

    origin: str
    at: datetime
    share: msgspec.Raw


class Parted(Tagged, frozen=True, kw_only=True):
    """The address is somebody else's again: `events` are what it said and nobody has answered yet."""

    address: Address
    at: datetime
    events: tuple[Fact, ...] = ()


class Summarised(Tagged, frozen=True, kw_only=True):
    """The turns from `first` to `through`, in a model's words; `whose` words are in it. They leave the prompt."""

    first: int
    through: int
    text: str
    at: datetime
    whose: tuple[Address, ...] = ()
    model: str = ""
    usage: Usage | None = None


LaneEntry = Carded | Held | Moved | Joined | Parted | Taken | Decided | Spent | Summarised | Owned | Released | Emitted
