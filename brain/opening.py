"""When what has happened opens a turn: what a person says at once, news of work a little later, and not at night. Pure.

Progress is gathered for some seconds. In a person's quiet hours what is not urgent waits until they are over, or until
the person writes; then one turn decides on all of it.
"""

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from brain.contacts import Contact
from brain.hold import Pace
from brain.parts import Heard
from brain.quieting import hours_of
from brain.state import LaneState
from gateway.events import (
    ActionProgressed,
    ClarificationRequested,
    ControlPressed,
    MessageReceived,
    TimerFired,
)


def opens_at(heard: tuple[Heard, ...], state: LaneState, who: Contact, now: datetime, pace: Pace) -> datetime:
    """Of what is not decided yet, which is not empty."""
    quiet = _quiet_until(state, who, now, pace)
    return min(_due(item, who, quiet, pace) if item.at <= now else now for item in heard)  # the clock was set back


def _due(item: Heard, who: Contact, quiet: datetime | None, pace: Pace) -> datetime:
    match item.fact:
        case MessageReceived() | ControlPressed() | TimerFired():
            return item.at
        case ClarificationRequested() if who.urgent_questions:
            return item.at
        case ActionProgressed():
            due = item.at + timedelta(seconds=pace.progress_seconds)
        case _:
            due = item.at
    return due if quiet is None else max(due, quiet)


def _quiet_until(state: LaneState, who: Contact, now: datetime, pace: Pace) -> datetime | None:
    """None too while the person is there all the same: they have just written."""
    hours = hours_of(state, who)
    if hours is None or not state.is_private:
        return None
    if state.recent and now - state.recent[-1].at < timedelta(seconds=pace.awake_seconds):
        return None
    return hours.until(now, ZoneInfo(who.timezone))


def is_a_step_by_mail(heard: tuple[Heard, ...], state: LaneState) -> bool:
    """Only progress, of work that was asked for by mail: a mail for each step would be spam."""
    routes = [state.route_of(item) for item in heard]
    by_mail = all(route is not None and route.medium == "email" for route in routes)
    return by_mail and all(isinstance(item.fact, ActionProgressed) for item in heard)
