"""A lane's snapshot: all of its fold, as one struct. Pure."""

from typing import TYPE_CHECKING

import msgspec

from brain.entries import Quieten, Summarised
from brain.parts import Exchange, Heard, Opened, Reminder, SendView, Spending, Timer
from brain.working import ActionView
from gateway.addresses import Address, Route
from gateway.events import Fact, Ref
from gateway.files import Attachment
from gateway.journal import Outgoing
from gateway.record import Record, decode
from gateway.seen import Identities, Seen

if TYPE_CHECKING:
    from brain.state import LaneState


class LaneFrozen(Record, frozen=True, kw_only=True):
    """A lane's snapshot: what `LaneState` holds, name by name. Stored for ever: fields are added with defaults only."""

    undecided: list[Heard]
    overheard: list[Heard]
    exchanges: list[Exchange]
    actions: list[ActionView]
    sends: list[tuple[Ref, SendView]]
    outgoing: list[Outgoing]
    routes: dict[str, Route]
    interrupts: int
    turns: int
    turns_alone: int
    crashes: int
    outage: bool
    actions_made: int
    live: int
    messages: int
    identities: bytes
    seen: dict[str, tuple[int, int]]
    timer: Timer | None = None
    files: dict[str, Attachment] = {}
    files_made: int = 0
    carded: int = 0
    moved: str = ""
    left: list[Fact] = []
    joined: list[str] = []
    parted: list[Address] = []
    reached: list[tuple[Address, Route]] = []
    recent: list[Opened] = []
    robot_turns: int = 0
    summary: Summarised | None = None
    spending: Spending = msgspec.field(default_factory=Spending)
    capped: str = ""
    resting: list[str] = []
    reminders: list[Reminder] = []
    reminders_made: int = 0
    reminders_fired: int = 0
    quiet: Quieten | None = None


_SHAPED = {"exchanges", "actions", "sends", "reached", "parted", "identities", "seen"}
_AS_IT_IS = [name for name in LaneFrozen.__struct_fields__ if name not in _SHAPED]


def freeze(state: "LaneState") -> LaneFrozen:
    """What an exchange was rendered as is left out: it follows from the rest."""
    return LaneFrozen(
        **{name: getattr(state, name) for name in _AS_IT_IS},
        exchanges=[msgspec.structs.replace(one, rendered=None) for one in state.exchanges],
        actions=list(state.actions.values()),
        sends=list(state.sends.items()),
        reached=list(state.reached.items()),
        parted=sorted(state.parted, key=str),
        identities=state.identities.freeze(),
        seen=state.seen.marks,
    )


def thaw(state: "LaneState", frozen: bytes) -> None:
    kept: LaneFrozen = decode(frozen, LaneFrozen)
    for name in _AS_IT_IS:
        setattr(state, name, getattr(kept, name))
    state.keep(kept.exchanges)
    state.actions = {action.key: action for action in kept.actions}
    state.sends, state.reached, state.parted = dict(kept.sends), dict(kept.reached), set(kept.parted)
    state.identities, state.seen = Identities(kept.identities), Seen(kept.seen)
