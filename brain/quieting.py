"""`/quiet`: a person's own wish for when to be left alone, over what the settings say. Without a model. Pure."""

import re

from brain.contacts import Contact
from brain.entries import Decision, Quieten, Speak
from brain.state import LaneState
from gateway.addresses import Route
from gateway.commands import QUIET
from gateway.quiet import QuietHours, quiet_hours

_COMMAND = re.compile(r"^\s*/quiet(?:@\w+)?(?:\s+(\S.*?))?\s*$", re.IGNORECASE)

IN_PRIVATE = "Quiet hours are a person's own: write `/quiet` to me in private."
HOW = "`/quiet 22:00-07:00` sets them, `/quiet off` ends them."


def is_about_quiet(text: str, *, plain: bool = False) -> bool:
    """`plain`: without the slash."""
    return (QUIET if plain else _COMMAND).match(text) is not None


def hours_of(state: LaneState, who: Contact) -> QuietHours | None:
    return state.quiet.hours if state.quiet is not None else who.quiet_hours


def decide(text: str, route: Route, state: LaneState, who: Contact) -> tuple[Decision, ...] | None:
    """None for any other text."""
    found = _COMMAND.match(text) or QUIET.match(text)
    if found is None:
        return None
    if not state.is_private:
        return (Speak(route=route, text=IN_PRIVATE),)
    if not found[1]:
        return (Speak(route=route, text=f"{_told(hours_of(state, who), who)} {HOW}"),)
    try:
        wish = Quieten(hours=None if found[1].casefold() == "off" else quiet_hours(found[1]))
    except ValueError:
        return (Speak(route=route, text=f"Those are no hours. {HOW}"),)
    return (wish, Speak(route=route, text=_told(wish.hours, who)))


def _told(hours: QuietHours | None, who: Contact) -> str:
    if hours is None:
        return "You have no quiet hours."
    return f"Your quiet hours are {hours} ({who.timezone}): what is not urgent waits until they are over, or you write."
