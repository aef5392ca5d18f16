"""One conversation at work: its turns, each decided on all that came before its commit.

Generation is the only thing that is ever cancelled. Nothing leaves before `Decided` is durable; what it says then
follows from the fold alone, so a restart repeats it with the same refs. What needs no model (a button, `/stop`) is
decided beside the turns and waits for none.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from functools import partial
from itertools import islice

import msgspec

from brain import beside, cards, changes, controls, joining, noting, opening, outage, prompt, quieting, reminding
from brain.around import ALONE, Around
from brain.attention import Manner, attention, is_looping
from brain.entries import (
    Decided,
    Decider,
    Decision,
    Held,
    Joined,
    LaneEntry,
    Moved,
    Parted,
    Recalled,
    Spent,
    Steer,
    Taken,
    Wait,
)
from brain.generating import Made, generate
from brain.hold import Pace, quiet_in_seconds
from brain.pairing import Pairing
from brain.parts import Heard
from brain.purse import Caps, Purse, told
from brain.recalling import Recall, look_up
from brain.reminding import LONGEST_SLEEP_SECONDS, next_due
from brain.rights import Rights
from brain.showing import Shows
from brain.state import LaneState
from brain.tools import legal
from brain.turn import Turn
from gateway.addresses import Address
from gateway.clock import Now
from gateway.events import Fact, MessageReceived, identity_of
from gateway.journal import Journal
from gateway.llm.model import Model, ModelError, Usage
from gateway.notes import Notes

log = logging.getLogger(__name__)

MAX_UNCLEAN = 3  # ownings that did not end cleanly while the same event was undecided: then it is set aside
MAX_EVENTS = 100  # in one turn
MAX_TURNS_ALONE = 20  # since a person last wrote: ends cycles of notices and interjections

LaneJournal = Journal[LaneState]


class Quiet(Exception):
    """Nothing has happened in a lane for long, and nothing is due: it ends until its next word."""


class Lane:
    """`rights` say what an address may cause here; `operator` hears what needs mending."""

    def __init__(
        self,
        journal: LaneJournal,
        frame: prompt.Frame,
        model: Model,
        shows: Shows,
        pace: Pace,
        now: Now,
        operator: Callable[[str], None],
        rights: Rights,
        notes: Notes | None = None,
        recall: Recall | None = None,
        pairing: Pairing | None = None,
        around: Around = ALONE,
        purse: Purse | None = None,
    ) -> None:
        self.journal, self.frame = journal, frame
        self._model, self._shows, self._pace, self._now, self._operator = model, shows, pace, now, operator
        self._rights, self._notes, self._recall, self._pairing = rights, notes, recall, pairing
        self._around = around
        self._purse = purse or Purse(Caps(), str, now, operator)
        self._told_of_loop: set[Address] = set()
        self._arrived: dict[str, float] = {}  # of undecided messages, on the loop's clock; not needed after a restart
        self._outage_pause_seconds = pace.outage_seconds

    async def take(self, fact: Fact, how: Manner) -> None:
        """Durable, and taken once, when it returns. Raises JournalClosed."""
        if isinstance(fact, MessageReceived):
            self._arrived[fact.identity] = asyncio.get_running_loop().time()
        taken: Taken | None = await self.journal.write(partial(_take, fact, self._now(), how))
        if taken is not None:
            self._notice_loop(taken, how)

    def _notice_loop(self, taken: Taken, how: Manner) -> None:
        """The operator hears of it once."""
        message = taken.event
        if taken.attention != "keep" or how.keep or not isinstance(message, MessageReceived):
            return
        who = message.author.address
        if message.addressed and is_looping(message, self.journal.state, how) and who not in self._told_of_loop:
            self._told_of_loop.add(who)
            self._operator(
                f"{who} ({message.author.name}) goes on and on in {self.journal.state.conversation}: it is heard, and "
                f"not answered {'until a person writes' if message.robot else 'for a while'}."
            )

    # --- people who turn out to be one, or two -----------------------------------------------------------------------

    async def leave(self, to: str) -> Joined:
        """Nothing more is decided here once it returns; what this conversation had is for `to` to join."""
        now = self._now()
        await self.journal.write(lambda state: None if state.moved else Moved(to=to, at=now))
        return joining.share(self.journal.state, now)

    async def join(self, joined: Joined) -> None:
        await self.journal.write(lambda state: None if joined.origin in state.joined else joined)

    async def part(self, address: Address) -> None:
        """What it said and nobody has answered is left for its own conversation."""
        now = self._now()

        def decide(state: LaneState) -> Parted | None:
            return None if address in state.parted or state.moved else joining.parting(state, address, now)

        await self.journal.write(decide)

    def show_again(self) -> None:
        self._shows.again(self.journal.state)

    async def run(self) -> None:
        for item in self.journal.state.undecided:  # as if it had come now: more of it may be on its way
            if isinstance(item.fact, MessageReceived) and item.fact.album is not None:
                self._arrived[item.fact.identity] = asyncio.get_running_loop().time()
        async with asyncio.TaskGroup() as group:
            group.create_task(self.journal.run())
            group.create_task(self._turns())
            group.create_task(self._controls())
            group.create_task(reminding.keep_time(self.journal, self._now))
            group.create_task(
                beside.summaries(self.journal, self.frame, self._model, self._pace, self._purse, self._now, self._spent)
            )
            group.create_task(self._end_when_quiet())
            if self._purse.is_capped:
                group.create_task(beside.count(self.journal, self._purse))
                group.create_task(beside.rest_at_caps(self.journal, self._purse, self._rest))
            group.create_task(self._shows.follow(self.journal))
            group.create_task(cards.keep(self.journal, self.frame.zone, self._now, self._pace))

    # --- what code decides -------------------------------------------------------------------------------------------

    async def _controls(self) -> None:
        while True:
            state = await self.journal.until(_next_control)
            heard = _next_control(state)
            assert heard is not None
            await self._commit_by_code("control", (heard,), await self._control(heard, state))

    async def _control(self, heard: Heard, state: LaneState) -> tuple[Decision, ...]:
        fact = heard.fact
        route = state.route_of(heard)
        if isinstance(fact, MessageReceived) and noting.is_about_notes(fact.text) and route is not None:
            return (await noting.decide(heard, route, self._notes, in_private=state.is_private),)
        if isinstance(fact, MessageReceived) and route is not None:
            said = quieting.decide(fact.text, route, state, self.frame.contact)
            if said is not None:
                return said
        if isinstance(fact, MessageReceived) and self._pairing is not None and route is not None:
            found = await self._pairing.decide(heard, route, state)
            if found is not None:
                return found
        return controls.decisions(heard, self._turn_on((heard,)), self._rights)

    async def _commit_by_code(
        self, by: Decider, heard: tuple[Heard, ...], decisions: tuple[Decision, ...], why: str = ""
    ) -> None:
        covers = () if by in ("outage", "cap") else tuple(identity_of(item.fact) for item in heard)
        decided: Decided | None = await self.journal.write(
            lambda state: (
                None
                if state.moved
                else Decided(turn=state.turns + 1, at=self._now(), covers=covers, decisions=decisions, by=by, why=why)
            )
        )
        if decided is not None:
            self._shows.decided(heard, decided)

    async def _end_when_quiet(self) -> None:
        tail = None
        while self.journal.tail != tail or not is_quiet(self.journal.state):
            tail = self.journal.tail
            await asyncio.sleep(self._pace.closes_after_seconds)
        raise Quiet

    # --- money -------------------------------------------------------------------------------------------------------

    async def _rest(self, steers: tuple[Steer, ...]) -> None:
        await self._commit_by_code("cap", (), steers, "the day's budget")

    async def _bear_cap(self, turn: Turn) -> None:
        """They are told once, and what they said waits."""
        await self._hold()
        if spoken := told(turn, self._purse.until, self.frame.zone):
            await self._commit_by_code("cap", turn.heard, spoken, "the day's budget is used up")
        interrupts = self.journal.state.interrupts
        newer = asyncio.create_task(self.journal.until(lambda state: state.interrupts > interrupts))
        change = asyncio.create_task(self._purse.change())
        await asyncio.wait({newer, change}, return_when=asyncio.FIRST_COMPLETED)
        newer.cancel()
        change.cancel()

    # --- turns -------------------------------------------------------------------------------------------------------

    async def _turns(self) -> None:
        while True:
            state = await self._opened()
            turn = self._turn_on(_events(state))
            if state.crashes >= MAX_UNCLEAN and not state.outage:
                why = f"set aside after {state.crashes} unclean ends"
                self._operator(f"{state.conversation}: {why}: {[identity_of(h.fact) for h in turn.heard]}")
                await self._commit_by_code("parked", turn.heard, outage.parked(turn), why)
            elif state.turns_alone >= MAX_TURNS_ALONE:
                wait = Wait(reason=f"{MAX_TURNS_ALONE} turns since anybody wrote")
                await self._commit_by_code("budget", turn.heard, (wait,))
            elif opening.is_a_step_by_mail(turn.heard, state):
                wait = Wait(reason="progress of work asked for by mail is not sent step by step")
                await self._commit_by_code("control", turn.heard, (wait,))
            elif self._purse.is_over(turn.askers()):
                await self._bear_cap(turn)
            else:
                await self._turn()

    async def _opened(self) -> LaneState:
        """When there is something to decide on, and it is time for it."""
        while True:
            state = await self.journal.until(_has_events)
            seconds = self._opens_in_seconds(state)
            if seconds <= 0:
                return state
            await self._hold()
            with suppress(TimeoutError):
                async with asyncio.timeout(min(seconds, LONGEST_SLEEP_SECONDS)):
                    await self.journal.until(lambda state: _has_events(state) and self._opens_in_seconds(state) <= 0)

    async def _hold(self) -> None:
        """What the lane waits with in this life of the process is not what ended the last one."""
        now = self._now()
        if self.journal.state.crashes:
            await self.journal.write(lambda state: Held(at=now) if state.crashes else None)

    def _opens_in_seconds(self, state: LaneState) -> float:
        now = self._now()
        return (opening.opens_at(_events(state), state, self.frame.contact, now, self._pace) - now).total_seconds()

    def _turn_on(self, heard: tuple[Heard, ...]) -> Turn:
        """With what is seen from here of other places."""
        state = self.journal.state
        turn = Turn(heard=heard, state=state, elsewhere=self._around.actions(state.conversation))
        return msgspec.structs.replace(turn, reaches=self._around.reaches(turn.askers()))

    async def _turn(self) -> None:
        deadline = asyncio.get_running_loop().time() + self._pace.turn_seconds
        try:
            restarts = 0
            while _has_events(self.journal.state):  # what it was about may have been taken back
                last = restarts >= self._pace.max_restarts or asyncio.get_running_loop().time() > deadline
                turn = self._turn_on(_events(self.journal.state))
                interrupts = turn.state.interrupts
                self._shows.typing(turn.heard, True)
                made = await (self._make(turn) if last else self._make_unless_interrupted(turn, interrupts))
                if made is not None and await self._commit(turn, made, None if last else interrupts):
                    self._outage_pause_seconds = self._pace.outage_seconds
                    return
                restarts += not changes.goes_on_only(turn.heard, self.journal.state)
        except ModelError as error:
            self._shows.typing((), False)
            await self._bear(error)
        finally:
            self._shows.typing((), False)

    async def _make(self, turn: Turn) -> Made:
        askers = turn.askers()
        tools = legal(turn, self._rights, askers)
        looks = partial(self._look_up, turn.state)
        spent = partial(self._spent, charged=_charged(turn))
        return await generate(self._model, self.frame, turn, tools, self._now(), spent, self._rights, looks)

    async def _look_up(self, state: LaneState, query: str) -> Recalled:
        return await look_up(self._recall, state, query, self.frame.zone, self._operator)

    async def _make_unless_interrupted(self, turn: Turn, interrupts: int) -> Made | None:
        work = asyncio.create_task(self._make_and_hold(turn))
        newer = asyncio.create_task(self.journal.until(lambda state: state.interrupts > interrupts))
        try:
            await asyncio.wait({work, newer}, return_when=asyncio.FIRST_COMPLETED)
            return work.result() if work.done() else None
        finally:
            work.cancel()
            newer.cancel()
            await asyncio.gather(work, newer, return_exceptions=True)

    async def _make_and_hold(self, turn: Turn) -> Made:
        made = await self._make(turn)
        now = asyncio.get_running_loop().time()
        if (seconds := quiet_in_seconds(turn.heard, self._arrived, now, self._pace)) > 0:
            await asyncio.sleep(seconds)
        return made

    async def _commit(self, turn: Turn, made: Made, interrupts: int | None) -> bool:
        """`interrupts` is what they were when the prompt was built; None commits whatever came since."""
        covers = tuple(identity_of(item.fact) for item in turn.heard)

        def decide(state: LaneState) -> Decided | None:
            if state.moved or (interrupts is not None and state.interrupts > interrupts):
                return None
            return Decided(
                turn=state.turns + 1,
                at=self._now(),
                covers=covers,
                decisions=made.decisions,
                model=made.model,
                usage=made.usage,
                why=made.why,
                charged=_charged(turn),
                prompt=made.prompt,
            )

        decided: Decided | None = await self.journal.write(decide)
        if decided is None:
            self._spent(made.model, made.usage, charged=_charged(turn))
            return False
        for item in turn.heard:
            self._arrived.pop(identity_of(item.fact), None)
        if made.usage.usd is None:
            self._purse.unpriced(made.model)
        self._shows.decided(turn.heard, decided)
        return True

    def _spent(self, model: str, usage: Usage, charged: Address | None = None) -> None:
        """What was generated for nothing is gone but for its cost."""
        entry = Spent(usage=usage, model=model, at=self._now(), charged=charged)
        task = asyncio.ensure_future(self.journal.write(lambda _: entry))
        task.add_done_callback(lambda done: done.cancelled() or done.exception())

    async def _bear(self, error: ModelError) -> None:
        """The model gave nothing: the person hears it once, the operator what to mend, and the events wait."""
        state = self.journal.state
        heard = _events(state)
        self._operator(f"{self.frame.contact.name} ({state.conversation}) waits for an answer. {error.for_operator}")
        if not state.outage and (spoken := outage.line(error, Turn(heard=heard, state=state))) is not None:
            await self._commit_by_code("outage", heard, (spoken,), error.for_operator)
        interrupts = self.journal.state.interrupts
        newer = asyncio.create_task(self.journal.until(lambda state: state.interrupts > interrupts))
        await asyncio.wait({newer}, timeout=self._outage_pause_seconds)
        newer.cancel()
        self._outage_pause_seconds = min(self._outage_pause_seconds * 2, self._pace.longest_outage_seconds)


def _take(fact: Fact, at: datetime, how: Manner, state: LaneState) -> Taken | None:
    if isinstance(fact, MessageReceived) and fact.in_thread and not fact.addressed and state.has_spoken():
        fact = msgspec.structs.replace(fact, addressed=True, by_name=False)  # the medium may have forgotten it
    return None if state.knows(fact) else Taken(event=fact, at=at, attention=attention(fact, state, how))


def is_quiet(state: LaneState) -> bool:
    """Nothing in it happens without a new fact."""
    waits = state.undecided or state.outgoing or next_due(state) is not None or state.in_flight()
    return not waits and all(send.outcome is not None for send in state.sends.values())


def _charged(turn: Turn) -> Address | None:
    askers = turn.askers()
    return askers[-1].address if askers else None


def _events(state: LaneState) -> tuple[Heard, ...]:
    """The oldest; what is beyond a turn's bound is the next one's."""
    return tuple(islice((item for item in state.undecided if not item.control), MAX_EVENTS))


def _has_events(state: LaneState) -> bool:
    return any(not item.control for item in state.undecided)


def _next_control(state: LaneState) -> Heard | None:
    return next((item for item in state.undecided if item.control), None)


__all__ = ["Lane", "LaneEntry", "LaneJournal"]
