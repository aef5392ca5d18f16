"""What people are told when the model gives nothing, and when a message cannot be dealt with. Pure."""

from collections.abc import Iterable

import msgspec

from brain.entries import Decision, Speak, Wait
from brain.parts import Heard
from brain.turn import Turn
from gateway.events import ActionEnded, ActionResponded, ClarificationRequested, MessageReceived, TimerFired
from gateway.llm.history import within
from gateway.llm.model import ErrorKind, ModelError
from gateway.record import encode

NOT_SET_UP = (
    "I can't think right now: my model is not set up right. The person who runs me has been told. "
    "Your message is kept, and I'll answer it as soon as it works."
)
NOT_REACHED = "My model can't be reached right now. Your message is kept, and I'll answer it as soon as it works again."
REMINDER = "Reminder: {text}\n\n(As it was noted: I can't think right now.)"
NOT_ALL = "Part of that did not work: my model asked for something that cannot be done. Could you say that part again?"
SET_ASIDE: dict[ErrorKind, str] = {  # asked again unchanged, these would fail again, with all that is said meanwhile
    "content_filtered": "The provider of my model refuses to answer that (its content filter). Could you say it "
    "differently?",
    "context_too_long": "That is more than my model can take in at once. Could you send it in smaller pieces?",
}
AS_IT_IS_BYTES = 200_000
NOTHING_CAME = "I have no answer to that: my model returned nothing usable. Could you say it differently?"


def line(error: ModelError, turn: Turn) -> Speak | None:
    """One honest line, where they wrote; None when nobody is waiting for a reply."""
    said = turn.spoken_to()
    if not said or (route := turn.state.route_of(said[-1])) is None:
        return None
    lasting = error.kind in ("key_refused", "model_unknown", "bad_request")
    return Speak(route=route, text=NOT_SET_UP if lasting else NOT_REACHED)


def reminders(heard: tuple[Heard, ...]) -> list[tuple[Heard, Speak]]:
    """What was to be said at a time is said then, with or without a model."""
    due = [(item, item.fact) for item in heard if isinstance(item.fact, TimerFired) and item.fact.label]
    return [
        (item, Speak(route=fact.route, text=REMINDER.format(text=fact.reason)))
        for item, fact in due
        if fact.route is not None
    ]


def nothing_came(turn: Turn, line: str = NOTHING_CAME) -> tuple[Decision, ...]:
    """The model answered with nothing, again: what an action had to say is passed on as it is, and a person is told,
    in each place where they wrote."""
    routes = [route for item in turn.spoken_to() if (route := turn.state.route_of(item)) is not None]
    rooms = {(route.medium, *route.room): route for route in routes}
    told = (*as_it_is(turn), *(Speak(route=route, text=line) for route in rooms.values()))
    return told or (Wait(reason="the model answered nothing"),)


def as_it_is(turn: Turn) -> tuple[Speak, ...]:
    """What work came to, asks, or was to remind of, without a model."""
    spoken: list[Speak] = []
    for item in turn.heard:
        route = turn.state.route_of(item)
        match item.fact:
            case ActionResponded(text=text) | ActionEnded(text=text) | ClarificationRequested(text=text) if (
                route and text
            ):
                spoken.append(Speak(route=route, text=text))
            case TimerFired(reason=reason, label=label) if route and label:
                spoken.append(Speak(route=route, text=reason))
            case _:
                pass
    if len(encode(spoken)) > AS_IT_IS_BYTES:  # a turn's decisions are one entry
        share = AS_IT_IS_BYTES // len(spoken)
        spoken = [msgspec.structs.replace(one, text=within(one.text, share)) for one in spoken]
    return tuple(spoken)


def not_all(turn: Turn, decisions: Iterable[Decision]) -> tuple[Decision, ...]:
    """Some of it was done, and for the rest the model found no way: who wrote is told, unless it says something."""
    said = turn.spoken_to()
    spoken = any(isinstance(one, Speak | Wait) for one in decisions)
    if spoken or not said or (route := turn.state.route_of(said[-1])) is None:
        return ()
    return (Speak(route=route, text=NOT_ALL),)


def parked(turn: Turn) -> tuple[Decision, ...]:
    """Said once, in the right place; the events do not come again."""
    route = next((r for item in reversed(turn.heard) if (r := turn.state.route_of(item)) is not None), None)
    if route is None:
        return (Wait(reason="parked"),)
    if not turn.spoken_to() and any(isinstance(item.fact, MessageReceived) for item in turn.heard):
        return (Wait(reason="parked"),)
    said = [item.fact.text for item in turn.heard if isinstance(item.fact, MessageReceived)]
    about = f" (“{said[-1][:80]}”)" if said else ""
    text = f"I could not deal with your last message{about}: something in me fails on it. "
    text += "I've put it aside and told the person who runs me."
    return (Speak(route=route, text=text),)
