"""A conversation's turns, one after the other, each decided on all that came before its commit.

Generation is the only thing that is ever cancelled.
"""

import asyncio
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Any

from brain import changes, opening, outage
from brain.by_code import ByCode
from brain.entries import Decided, Held, Recalled, Spent, Wait
from brain.generating import Made, generate
from brain.hold import Voice, quiet_in_seconds, voice_of
from brain.means import Means
from brain.parts import Heard
from brain.purse import told
from brain.recalling import look_up
from brain.reminding import LONGEST_SLEEP_SECONDS
from brain.state import LaneState
from brain.tools import legal
from brain.turn import Turn
from gateway.addresses import Address
from gateway.events import MessageReceived, identity_of
from gateway.journal import Journal
from gateway.llm.model import ModelError, Usage

MAX_UNCLEAN = 3  # ownings that did not end cleanly while the same event was undecided: then it is set aside
MAX_EVENTS = 100  # in one turn
MAX_TURNS_ALONE = 20  # since a person last wrote: beyond that code tells results, and no model steers in a circle


class Turns:
    def __init__(self, journal: Journal[LaneState], means: Means, by_code: ByCode) -> None:
        self._journal, self._means, self._by_code = journal, means, by_code
        self._arrived: dict[str, float] = {}  # of undecided messages, on the loop's clock
        self._before: dict[Voice, float] = {}  # of those that are decided, when each voice said its last
        self._outage_pause_seconds = means.pace.outage_seconds

    def arrives(self, message: MessageReceived) -> None:
        self._arrived[message.identity] = asyncio.get_running_loop().time()

    def resume(self) -> None:
        """As if what is undecided had come now: more of an album, or of a paste, may be on its way."""
        for item in self._journal.state.undecided:
            if isinstance(item.fact, MessageReceived):
                self.arrives(item.fact)

    async def run(self) -> None:
        """For ever."""
        while True:
            state = await self._opened()
            turn = self._next(state)
            if state.crashes >= MAX_UNCLEAN and not state.outage:
                why = f"set aside after {state.crashes} unclean ends"
                self._means.operator(f"{state.conversation}: {why}: {[identity_of(h.fact) for h in turn.heard]}")
                await self._by_code.commit("parked", turn.heard, outage.parked(turn), why)
            elif state.turns_alone >= MAX_TURNS_ALONE:
                wait = Wait(reason=f"{MAX_TURNS_ALONE} turns since anybody wrote")
                await self._by_code.commit("budget", turn.heard, outage.as_it_is(turn) or (wait,))
            elif opening.is_a_step_by_mail(turn.heard, state):
                wait = Wait(reason="progress of work asked for by mail is not sent step by step")
                await self._by_code.commit("control", turn.heard, (wait,))
            elif self._means.purse.is_over(turn.askers()):
                await self._bear_cap(turn)
            else:
                await self._turn(turn)

    # --- when one opens ----------------------------------------------------------------------------------------------

    async def _opened(self) -> LaneState:
        """When there is something to decide on, and it is time for it."""
        while True:
            state = await self._journal.until(_has_events)
            seconds = self._opens_in_seconds(state)
            if seconds <= 0:
                return state
            await self._hold()
            with suppress(TimeoutError):
                async with asyncio.timeout(min(seconds, LONGEST_SLEEP_SECONDS)):
                    await self._journal.until(lambda state: _has_events(state) and self._opens_in_seconds(state) <= 0)

    async def _hold(self) -> None:
        """What the lane waits with in this life of the process is not what ended the last one."""
        now = self._means.now()
        if self._journal.state.crashes:
            await self._journal.write(lambda state: Held(at=now) if state.crashes else None)

    def _opens_in_seconds(self, state: LaneState) -> float:
        now, means = self._means.now(), self._means
        return (opening.opens_at(events(state), state, means.frame.contact, now, means.pace) - now).total_seconds()

    def _next(self, state: LaneState) -> Turn:
        """What is to be decided on next: of several people, those whose budget is used up wait, and nobody for them."""
        heard, over = events(state), self._means.purse.is_over
        free = tuple(item for item in heard if not over(Turn(heard=(item,), state=state).askers()))
        return self._means.turn_on(free or heard, state)

    # --- how it is made ----------------------------------------------------------------------------------------------

    async def _turn(self, turn: Turn) -> None:
        deadline = asyncio.get_running_loop().time() + self._means.pace.turn_seconds
        restarts = 0
        try:
            while turn.heard and not self._means.purse.is_over(turn.askers()):  # else taken back, or a cap meanwhile
                last = restarts >= self._means.pace.max_restarts or asyncio.get_running_loop().time() > deadline
                interrupts = turn.state.interrupts
                self._means.shows.typing(turn.heard, True)
                made = await (self._make(turn) if last else self._make_unless_interrupted(turn, interrupts))
                if made is not None and await self._commit(turn, made, None if last else interrupts):
                    self._outage_pause_seconds = self._means.pace.outage_seconds
                    return
                restarts += not changes.goes_on_only(turn.heard, self._journal.state)
                turn = self._next(self._journal.state)
        except ModelError as error:
            self._means.shows.typing((), False)
            if error.kind in outage.SET_ASIDE:
                await self._set_aside(turn, error)
            else:
                await self._bear(error)
        finally:
            self._means.shows.typing((), False)

    async def _make(self, turn: Turn) -> Made:
        means = self._means
        tools = legal(turn, means.rights, turn.askers())
        looks = partial(self._look_up, turn.state)
        spent = partial(self.spent, charged=_charged(turn))
        return await generate(means.model, means.frame, turn, tools, means.now(), spent, means.rights, looks)

    async def _look_up(self, state: LaneState, query: str) -> Recalled:
        return await look_up(self._means.recall, state, query, self._means.frame.zone, self._means.operator)

    async def _make_unless_interrupted(self, turn: Turn, interrupts: int) -> Made | None:
        work: asyncio.Future[Any] = asyncio.create_task(self._make_and_hold(turn))
        newer = self._newer_than(interrupts)
        try:
            await asyncio.wait({work, newer}, return_when=asyncio.FIRST_COMPLETED)
            return work.result() if work.done() else None
        finally:
            newer.cancel()
            if work.cancel():
                await asyncio.gather(work, return_exceptions=True)

    async def _make_and_hold(self, turn: Turn) -> Made:
        made = await self._make(turn)
        now = asyncio.get_running_loop().time()
        if (seconds := quiet_in_seconds(turn.heard, self._arrived, self._before, now, self._means.pace)) > 0:
            try:
                await asyncio.sleep(seconds)
            except asyncio.CancelledError:
                self.spent(made.model, made.usage, charged=_charged(turn))
                raise
        return made

    def _newer_than(self, interrupts: int) -> asyncio.Future[None]:
        return self._journal.when(lambda state: state.interrupts > interrupts)

    async def _commit(self, turn: Turn, made: Made, interrupts: int | None) -> bool:
        """`interrupts` is what they were when the prompt was built; None commits whatever came since."""
        covers = tuple(identity_of(item.fact) for item in turn.heard)

        def decide(state: LaneState) -> Decided | None:
            if state.moved or (interrupts is not None and state.interrupts > interrupts):
                return None
            return Decided(
                turn=state.turns + 1,
                at=self._means.now(),
                covers=covers,
                decisions=made.decisions,
                model=made.model,
                usage=made.usage,
                why=made.why,
                charged=_charged(turn),
                prompt=made.prompt,
            )

        decided: Decided | None = await self._journal.write(decide)
        if decided is None:
            self.spent(made.model, made.usage, charged=_charged(turn))
            return False
        self._forget_arrivals(turn)
        if made.usage.usd is None:
            self._means.purse.unpriced(made.model)
        self._means.shows.decided(turn.heard, decided)
        return True

    def _forget_arrivals(self, turn: Turn) -> None:
        now, burst = asyncio.get_running_loop().time(), self._means.pace.burst_seconds
        self._before = {voice: at for voice, at in self._before.items() if now - at <= burst}
        for item in turn.heard:
            if isinstance(item.fact, MessageReceived) and (at := self._arrived.pop(item.fact.identity, None)):
                self._before[voice_of(item.fact)] = at

    def spent(self, model: str, usage: Usage, charged: Address | None = None) -> None:
        """What was generated for nothing is gone but for its cost."""
        entry = Spent(usage=usage, model=model, at=self._means.now(), charged=charged)
        task = asyncio.ensure_future(self._journal.write(lambda _: entry))
        task.add_done_callback(lambda done: done.cancelled() or done.exception())

    # --- when none can be made ---------------------------------------------------------------------------------------

    async def _bear(self, error: ModelError) -> None:
        """The model gave nothing: the person hears it once, the operator what to mend, and the events wait."""
        await self._tell_reminders(error.for_operator)
        state = self._journal.state
        heard = events(state)
        name = self._means.frame.contact.name
        self._means.operator(f"{name} ({state.conversation}) waits for an answer. {error.for_operator}")
        if not state.outage and (spoken := outage.line(error, Turn(heard=heard, state=state))) is not None:
            await self._by_code.commit("outage", heard, (spoken,), error.for_operator)
        newer = self._newer_than(self._journal.state.interrupts)
        await asyncio.wait({newer}, timeout=max(self._outage_pause_seconds, error.retry_after_seconds or 0.0))
        newer.cancel()
        self._outage_pause_seconds = min(self._outage_pause_seconds * 2, self._means.pace.longest_outage_seconds)

    async def _set_aside(self, turn: Turn, error: ModelError) -> None:
        """What this model will never answer may not stand in the way of all that is said after it."""
        state = self._journal.state
        self._means.operator(f"{self._means.frame.contact.name} ({state.conversation}): {error.for_operator}")
        spoken = outage.nothing_came(turn, outage.SET_ASIDE[error.kind])
        await self._by_code.commit("parked", turn.heard, spoken, error.for_operator)

    async def _tell_reminders(self, why: str) -> None:
        for item, spoken in outage.reminders(events(self._journal.state)):
            await self._by_code.commit("control", (item,), (spoken,), why)

    async def _bear_cap(self, turn: Turn) -> None:
        """They are told once, and what they said waits."""
        await self._hold()
        await self._tell_reminders("the day's budget is used up")
        if spoken := told(turn, self._means.purse.until, self._means.frame.zone):
            await self._by_code.commit("cap", turn.heard, spoken, "the day's budget is used up")
        newer = self._newer_than(self._journal.state.interrupts)
        change = asyncio.create_task(self._means.purse.change())
        await asyncio.wait({newer, change}, return_when=asyncio.FIRST_COMPLETED)
        newer.cancel()
        change.cancel()


def events(state: LaneState) -> tuple[Heard, ...]:
    """The oldest; what is beyond a turn's bound is the next one's."""
    return tuple(islice((item for item in state.undecided if not item.control), MAX_EVENTS))


def _has_events(state: LaneState) -> bool:
    return any(not item.control for item in state.undecided)


def _charged(turn: Turn) -> Address | None:
    askers = turn.askers()
    return askers[-1].address if askers else None
