"""What a lane works with: the same for as long as it runs."""

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from brain.around import Neighbours
from brain.hold import Pace
from brain.pairing import Pairing
from brain.parts import Heard
from brain.prompt import Frame
from brain.purse import Purse
from brain.recalling import Recall
from brain.rights import Rights
from brain.showing import Shows
from brain.state import LaneState
from brain.turn import Turn
from gateway.clock import Now
from gateway.llm.model import Model
from gateway.notes import Notes


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """`rights` say what an address may cause here; `operator` hears what needs mending."""

    frame: Frame
    model: Model
    shows: Shows
    pace: Pace
    now: Now
    operator: Callable[[str], None]
    rights: Rights
    notes: Notes | None
    recall: Recall | None
    pairing: Pairing
    around: Neighbours
    purse: Purse

    def turn_on(self, heard: tuple[Heard, ...], state: LaneState) -> Turn:
        """With what is seen from here of other places."""
        turn = Turn(heard=heard, state=state, elsewhere=self.around.actions(state.conversation))
        return msgspec.structs.replace(turn, reaches=self.around.reaches(turn.askers()))
