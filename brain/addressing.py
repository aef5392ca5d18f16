"""Where what is said goes, and whose words a call follows. Pure."""

from typing import Any

import msgspec

from brain import files
from brain.arguments import MAX_TEXT, Refusal
from brain.entries import React, Speak
from brain.parts import Heard
from brain.rights import Rights
from brain.telling import without_events
from brain.tools import REACTS
from brain.turn import Turn
from gateway.addresses import Address, Route
from gateway.events import ControlPressed, MessageReceived, Person, TimerFired, identity_of
from gateway.record import whole_text


def speak(text: str, how: dict[str, Any], turn: Turn) -> Speak:
    reply_to, medium, to = how.get("reply_to"), how.get("medium"), how.get("to")
    if reply_to is not None:
        heard = [item for item in turn.heard if item.label == reply_to.strip("[]")]
        if not heard:
            raise Refusal(f"{reply_to} is not among what this turn is about: {', '.join(_labels(turn))}")
    else:
        heard = list(turn.heard)
    if to:  # the table of tools has no other addresses than those
        route = turn.reaches[Address.parse(to)]
        route = _there(route, heard, turn) if turn.state.is_private else route.afresh
    elif medium:
        route = _there(turn.state.routes[medium], heard, turn)
    else:
        route = _one_route(heard, turn)
    answers = tuple(identity_of(item.fact) for item in heard)
    attached = files.named(how.get("attach", ()), turn.state)
    by_tool, text = bool(how), without_events(text, turn)
    if not (text or attached):
        raise Refusal("there are no words in it")
    return Speak(route=route, text=whole_text(text)[:MAX_TEXT], answers=answers, by_tool=by_tool, files=attached)


def speak_everywhere(text: str, turn: Turn) -> list[Speak]:
    """In each place of a conversation where somebody wrote, to what they wrote there."""
    rooms: dict[object, list[Heard]] = {}
    for item in turn.spoken_to():
        if (route := turn.state.route_of(item)) is not None:
            rooms.setdefault((route.medium, *route.room), []).append(item)
    spoken = [speak(text, {"reply_to": items[-1].label}, turn) for items in rooms.values()]
    return [msgspec.structs.replace(one, by_tool=False) for one in spoken]


def react(emoji: str, to: str | None, turn: Turn) -> React:
    said = [item for item in turn.heard if isinstance(item.fact, MessageReceived)]
    if to is not None:
        known = [item for exchange in turn.state.exchanges for item in exchange.heard]
        said = [
            item
            for item in (*known, *turn.state.overheard, *turn.heard)
            if item.label == to.strip("[]") and isinstance(item.fact, MessageReceived)
        ]
    if not said:
        raise Refusal(f"{to or 'that'} is no message here")
    fact = said[-1].fact
    assert isinstance(fact, MessageReceived)
    if fact.route.medium not in REACTS or not fact.route.reply_to:
        raise Refusal(f"no emoji can be put to a message on {fact.route.medium}")
    return React(route=fact.route, emoji=emoji, answers=(fact.identity,))


def _there(route: Route, heard: list[Heard], turn: Turn) -> Route:
    """By mail: in the thread in which they spoke of what this is about, and never in one about something else."""
    if route.afresh == route:
        return route
    for item in reversed(heard):
        action = turn.state.actions.get(getattr(item.fact, "action", ""))
        known = action.spoken.get(route.medium) if action else getattr(item.fact, "route", None)
        if known is not None and known.afresh == route.afresh:
            return known
    return route.afresh


def _one_route(heard: list[Heard], turn: Turn) -> Route:
    """The newest message's, where all belong to one room."""
    routes = [route for item in heard if (route := turn.state.route_of(item)) is not None]
    if len({(route.medium, *route.room) for route in routes}) > 1:
        raise Refusal(
            f"these came from several places; say which you reply to with reply_to: {', '.join(_labels(turn))}"
        )
    route = routes[-1] if routes else turn.state.route
    if route is None:
        raise Refusal("nobody has written here yet")
    return route


def _labels(turn: Turn) -> list[str]:
    return list(dict.fromkeys(item.label for item in turn.heard))


def whose_words(label: str | None, turn: Turn, rights: Rights) -> tuple[Person, Route] | None:
    """Author and route of the message that a call follows; None in a turn that nobody's message opened."""
    said = [item for item in turn.heard if isinstance(item.fact, MessageReceived | ControlPressed)]
    if label is not None:
        said = [item for item in said if item.label == label.strip("[]")]
        if not said:
            raise Refusal(f"{label} is not among what this turn is about: {', '.join(_labels(turn))}")
    authors = [item.fact.author.address for item in said if isinstance(item.fact, MessageReceived | ControlPressed)]
    if any(not rights.same(authors[0], other) for other in authors):
        raise Refusal("several people wrote; say whose words this follows with for_message")
    if not said:
        return None
    fact = said[-1].fact
    assert isinstance(fact, MessageReceived | ControlPressed)
    return fact.author, fact.route


def requester(turn: Turn) -> tuple[Person, Route]:
    """Of a turn that an action opened: its own requester asks on."""
    for item in reversed(turn.heard):
        if isinstance(item.fact, TimerFired) and item.fact.by is not None and item.fact.route is not None:
            return item.fact.by, item.fact.route
        action = turn.state.actions.get(getattr(item.fact, "action", ""))
        if action is not None:
            return action.by, action.route
    raise Refusal("nobody asked for this")
