"""What code decides without a model: slash commands, buttons, and what comes back from them. Pure.

The escape hatches must work while the model is down, and `/stop` must never wait for a turn.
"""

import re
from collections.abc import Sequence

from brain import linking, noting
from brain.entries import Decision, Speak, Steer, Wait
from brain.parts import Heard
from brain.rights import Rights
from brain.state import LaneState, Turn
from brain.working import ActionView
from gateway.actions import refusal
from gateway.addresses import Route
from gateway.events import ActionAnswered, ActionEnded, ControlPressed, MessageReceived, Person

_COMMAND = re.compile(r"^\s*/(stop|pause|resume|status|help)(?:@\w+)?(?:\s+(.*\S))?\s*$", re.IGNORECASE | re.DOTALL)

NOT_TOLD = "What is in flight is not told to guests."

HELP = (
    "Write as to a colleague: new work, corrections, questions about what runs.\n\n"
    "Without the model, at once: `/status`, `/stop [name]`, `/pause [name]`, `/resume [name]`, `/notes`; "
    "`/link` for where I don't know you yet."
)


def is_control(text: str) -> bool:
    return _COMMAND.match(text) is not None or noting.is_about_notes(text) or linking.is_about_linking(text)


def decisions(heard: Heard, turn: Turn, rights: Rights) -> tuple[Decision, ...]:
    """What follows from a control, or from what a control led to."""
    state = turn.state
    route = state.route_of(heard)
    match heard.fact:
        case ControlPressed() as pressed:
            return _pressed(pressed, state, rights)
        case MessageReceived(text=text, author=author) if route is not None:
            found = _COMMAND.match(text)
            assert found is not None
            return _command(found[1].lower(), found[2] or "", author, route, turn, rights)
        case ActionEnded(text=text, action=key) if route is not None:
            return (Speak(route=route, text=f"Stopped “{state.actions[key].name}”. {text}".strip()),)
        case ActionAnswered(text=text) if route is not None:
            return (Speak(route=route, text=text),)
        case _:
            return (Wait(reason="nothing to do"),)


def _pressed(pressed: ControlPressed, state: LaneState, rights: Rights) -> tuple[Decision, ...]:
    action = state.by_label(pressed.action)
    if action is None:
        return (Wait(reason=f"{pressed.action} is not known here"),)
    if not rights.may_tell(pressed.author.address, pressed.verb, action):
        return (Wait(reason=f"{pressed.author.address} may not {pressed.verb} {action.label}"),)
    if why := refusal(action.phase, pressed.verb):
        return (Wait(reason=why),)
    if pressed.verb == "answer" and pressed.question not in action.questions:
        return (Wait(reason=f"the question {pressed.question} is not open any more"),)
    steer = Steer(
        verb=pressed.verb,
        action=action.key,
        by=pressed.author,
        text=pressed.text or ("How far are you?" if pressed.verb == "ask" else ""),
        question=pressed.question,
        via=pressed.route.medium,
    )
    return (steer,)


def _command(word: str, name: str, by: Person, route: Route, turn: Turn, rights: Rights) -> tuple[Decision, ...]:
    if word == "help":
        return (Speak(route=route, text=HELP),)
    if word == "status":
        return (Speak(route=route, text=status(turn.in_flight()) if rights.may(by.address, "see") else NOT_TOLD),)
    found = _named(name, [a for a in turn.in_flight() if word in rights.verbs([by], a)])
    if not found:
        return (Speak(route=route, text=f"There is nothing to {word}{f' called “{name}”' if name else ''}."),)
    steers = [Steer(verb=word, action=a.key, by=by, via=route.medium, view=turn.view(a)) for a in found]  # type: ignore[arg-type]
    if word == "stop":  # each action's own end says what was stopped, and what it had by then
        return tuple(steers)
    done = {"pause": "Paused", "resume": "Resumed"}[word]
    return (*steers, Speak(route=route, text=f"{done}: {', '.join(a.name for a in found)}."))


def _named(name: str, actions: list[ActionView]) -> list[ActionView]:
    """All of them where no name is given."""
    wanted = name.casefold()
    return [a for a in actions if not wanted or wanted == a.label or wanted in a.name.casefold()]


def status(in_flight: Sequence[ActionView]) -> str:
    """What is in flight, for people."""
    lines = []
    for action in in_flight:
        doing = f": {action.doing}" if action.doing and action.phase == "running" else ""
        lines.append(f"- **{action.name}** ({action.label}), {action.phase.replace('_', ' ')}{doing}. {action.about}")
        lines += [f"  - asks: {question.text}" for question in action.questions.values()]
    return "\n".join(lines) or "Nothing is in flight."
