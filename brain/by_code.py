"""What is decided without a model, beside the turns, and waits for none: buttons, commands, pairing codes.

And how code commits anything: the same entry as a turn's, with who decided it.
"""

from brain import controls, noting, quieting
from brain.entries import Decided, Decider, Decision
from brain.means import Means
from brain.parts import Heard
from brain.state import LaneState
from gateway.events import MessageReceived, identity_of
from gateway.journal import Journal


class ByCode:
    def __init__(self, journal: Journal[LaneState], means: Means) -> None:
        self._journal, self._means = journal, means

    async def commit(
        self, by: Decider, heard: tuple[Heard, ...], decisions: tuple[Decision, ...], why: str = ""
    ) -> None:
        covers = () if by in ("outage", "cap") else tuple(identity_of(item.fact) for item in heard)
        decided: Decided | None = await self._journal.write(
            lambda state: (
                None
                if state.moved
                else Decided(
                    turn=state.turns + 1, at=self._means.now(), covers=covers, decisions=decisions, by=by, why=why
                )
            )
        )
        if decided is not None:
            self._means.shows.decided(heard, decided)

    async def controls(self) -> None:
        """For ever."""
        while True:
            state = await self._journal.until(_next_control)
            heard = _next_control(state)
            assert heard is not None
            await self.commit("control", (heard,), await self._control(heard, state))

    async def _control(self, heard: Heard, state: LaneState) -> tuple[Decision, ...]:
        fact, means = heard.fact, self._means
        route = state.route_of(heard)
        if isinstance(fact, MessageReceived) and route is not None:
            if noting.is_about_notes(fact.text):
                return (await noting.decide(heard, route, means.notes, in_private=state.is_private),)
            if (said := quieting.decide(fact.text, route, state, means.frame.contact)) is not None:
                return said
            if (found := await means.pairing.decide(heard, route, state)) is not None:
                return found
        return controls.decisions(heard, means.turn_on((heard,), state), means.rights)


def _next_control(state: LaneState) -> Heard | None:
    return next((item for item in state.undecided if item.control), None)
