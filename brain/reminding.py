"""`remind`: what is to come back at a time, and what else waits for one. Pure, but for the loop that lets it come.

A reminder outlives everything but its time and a word: it is in the fold, so a time that passed while nobody ran comes
at once after the start, and only once.
"""

import asyncio
from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import msgspec

from brain.entries import Remind, Taken
from brain.parts import Reminder, Timer
from brain.quoting import shortened
from gateway.clock import Now
from gateway.events import Ref, TimerFired
from gateway.journal import Journal

if TYPE_CHECKING:
    from brain.state import LaneState

MAX_OPEN = 50  # in a conversation
FARTHEST = timedelta(days=5 * 365)
LEAST_ALONE = timedelta(hours=1)  # what is asked for again when it fires may not turn in circles
LONGEST_SLEEP_SECONDS = 30.0  # a clock that is set anew, or a machine that has slept, is noticed by then
TEXT_SHOWN = 60


# --- the fold --------------------------------------------------------------------------------------------------------


def add(state: "LaneState", made: Remind) -> None:
    state.reminders_made += 1
    _keep(state, Reminder(f"r{state.reminders_made}", made.at, made.text, made.by, made.route))


def join(state: "LaneState", others: list[Reminder]) -> None:
    """From a conversation that this one is joined with, under new labels."""
    for one in others:
        state.reminders_made += 1
        _keep(state, msgspec.structs.replace(one, label=f"r{state.reminders_made}"))


def fired(state: "LaneState", fact: TimerFired) -> str:
    """Its short reference. A reminder was a person's word, and counts as one."""
    if not fact.label:
        state.timer = None
        return "timer"
    if fact.conversation == state.conversation:  # labels of one that has joined meant others
        state.reminders = [one for one in state.reminders if one.label != fact.label]
        state.reminders_fired += 1
    state.turns_alone = 0
    return fact.label


def _keep(state: "LaneState", reminder: Reminder) -> None:
    state.reminders = sorted([*state.reminders, reminder], key=lambda one: one.until)


# --- what the model sees ---------------------------------------------------------------------------------------------


def lines(state: "LaneState", zone: ZoneInfo) -> Iterator[str]:
    if state.reminders:
        yield "Reminders:"
    for one in state.reminders:
        yield f"{one.label} {one.until.astimezone(zone):%a %d %b %Y %H:%M} “{shortened(one.text, TEXT_SHOWN)}”"


# --- its time --------------------------------------------------------------------------------------------------------


def next_due(state: "LaneState") -> Timer | Reminder | None:
    if state.moved:
        return None
    waiting = [one for one in (state.timer, *state.reminders[:1]) if one is not None]
    return min(waiting, key=lambda one: one.until, default=None)


async def keep_time(journal: "Journal[LaneState]", now: Now) -> None:
    while True:
        due = next_due(await journal.until(lambda state: next_due(state) is not None))
        assert due is not None
        replaced = journal.when(partial(_has_other, due))
        seconds = max(0.0, (due.until - now()).total_seconds())
        await asyncio.wait({replaced}, timeout=min(seconds, LONGEST_SLEEP_SECONDS))
        replaced.cancel()
        if due.until <= now():
            await journal.write(partial(fire, due, now()))


def _has_other(due: Timer | Reminder, state: "LaneState") -> bool:
    return next_due(state) != due


def fire(due: Timer | Reminder, at: datetime, state: "LaneState") -> Taken | None:
    """Nothing, once a later turn has committed, or it was taken back."""
    if state.moved or due not in (state.timer, *state.reminders):
        return None
    if isinstance(due, Timer):
        ref = Ref(f"timer-{state.conversation}", due.turn, 0)
        return Taken(event=TimerFired(ref=ref, conversation=state.conversation, reason=due.reason), at=at)
    fact = TimerFired(
        ref=Ref(f"reminder-{state.conversation}", state.reminders_fired + 1, 0),
        conversation=state.conversation,
        reason=due.text,
        label=due.label,
        by=due.by,
        route=due.route,
    )
    return Taken(event=fact, at=at)
