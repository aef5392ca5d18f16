"""What differs between a gateway, the demo and a test."""

from collections.abc import Callable, Sequence

import msgspec

from actors.workshop import Primitive
from brain.hold import Pace
from gateway.llm.model import Model


class Parts(msgspec.Struct, frozen=True, kw_only=True):
    """`operator` hears what somebody must mend."""

    brain_model: Model
    actor_model: Model
    operator: Callable[[str], None]
    primitives: Sequence[Primitive] = ()
    banner: Sequence[str] = ()
    pace: Pace = Pace()
    token: str = ""
    started: Callable[[], None] = lambda: None  # all is imported and begun: time for what should not slow the start
    opened: Callable[[str], None] = lambda url: None  # the local page listens at this address
