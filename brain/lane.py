"""One conversation at work: what it hears, its turns, and what goes on beside them.

Nothing leaves before `Decided` is durable; what it says then follows from the fold alone, so a restart repeats it with
the same refs.
"""

import asyncio
from datetime import datetime
from functools import partial

import msgspec

from brain import beside, cards, joining, reminding
from brain.attention import Manner, attention, is_looping
from brain.by_code import ByCode
from brain.entries import Joined, Moved, Parted, Steer, Taken
from brain.means import Means
from brain.reminding import next_due
from brain.state import LaneState
from brain.turns import Turns
from gateway.addresses import Address
from gateway.events import Fact, MessageReceived
from gateway.journal import Journal


class Quiet(Exception):
    """Nothing has happened in a lane for long, and nothing is due: it ends until its next word."""


class Lane:
    def __init__(self, journal: Journal[LaneState], means: Means) -> None:
        self.journal, self.frame = journal, means.frame
        self._means = means
        self._by_code = ByCode(journal, means)
        self._turns = Turns(journal, means, self._by_code)
        self._told_of_loop: set[Address] = set()

    async def run(self) -> None:
        journal, means, turns = self.journal, self._means, self._turns
        turns.resume()
        async with asyncio.TaskGroup() as group:
            group.create_task(journal.run())
            group.create_task(turns.run())
            group.create_task(self._by_code.controls())
            group.create_task(reminding.keep_time(journal, means.now))
            group.create_task(beside.summaries(journal, means, turns.spent))
            group.create_task(self._end_when_quiet())
            if means.purse.is_capped:
                group.create_task(beside.count(journal, means.purse))
                group.create_task(beside.rest_at_caps(journal, means.purse, self._rest))
            group.create_task(means.shows.follow(journal))
            group.create_task(cards.keep(journal, means.frame.zone, means.now, means.pace))

    async def _end_when_quiet(self) -> None:
        tail = None
        while self.journal.tail != tail or not is_quiet(self.journal.state):
            tail = self.journal.tail
            await asyncio.sleep(self._means.pace.closes_after_seconds)
        raise Quiet

    async def _rest(self, steers: tuple[Steer, ...]) -> None:
        await self._by_code.commit("cap", (), steers, "the day's budget")

    def show_again(self) -> None:
        self._means.shows.again(self.journal.state)

    # --- what it hears -----------------------------------------------------------------------------------------------

    async def take(self, fact: Fact, how: Manner) -> None:
        """Durable, and taken once, when it returns. Raises JournalClosed."""
        if isinstance(fact, MessageReceived):
            self._turns.arrives(fact)
        taken: Taken | None = await self.journal.write(partial(_take, fact, self._means.now(), how))
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
            self._means.operator(
                f"{who} ({message.author.name}) goes on and on in {self.journal.state.conversation}: it is heard, and "
                f"not answered {'until a person writes' if message.robot else 'for a while'}."
            )

    # --- people who turn out to be one, or two -----------------------------------------------------------------------

    async def leave(self, to: str) -> Joined:
        """Nothing more is decided here once it returns; what this conversation had is for `to` to join."""
        now = self._means.now()
        await self.journal.write(lambda state: None if state.moved else Moved(to=to, at=now))
        return joining.share(self.journal.state, now)

    async def join(self, joined: Joined) -> None:
        await self.journal.write(lambda state: None if joined.origin in state.joined else joined)

    async def part(self, address: Address) -> None:
        """What it said and nobody has answered is left for its own conversation."""
        now = self._means.now()

        def decide(state: LaneState) -> Parted | None:
            return None if address in state.parted or state.moved else joining.parting(state, address, now)

        await self.journal.write(decide)


def _take(fact: Fact, at: datetime, how: Manner, state: LaneState) -> Taken | None:
    if isinstance(fact, MessageReceived) and fact.in_thread and not fact.addressed and state.has_spoken():
        fact = msgspec.structs.replace(fact, addressed=True, by_name=False)  # the medium may have forgotten it
    return None if state.knows(fact) else Taken(event=fact, at=at, attention=attention(fact, state, how))


def is_quiet(state: LaneState) -> bool:
    """Nothing in it happens without a new fact."""
    waits = state.undecided or state.outgoing or next_due(state) is not None or state.in_flight()
    return not waits and all(send.outcome is not None for send in state.sends.values())
