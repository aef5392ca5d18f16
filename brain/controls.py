"""What code decides without a model: slash commands, buttons, and what comes back from them. Pure.

The escape hatches must work while the model is down, and `/stop` must never wait for a turn.
"""

import re
from collections.abc import Sequence

from brain import linking, noting, quieting
from brain.entries import Decision, Speak, Steer, Wait
from brain.parts import Heard
from brain.quoting import shortened
from brain.rights import Rights
from brain.state import LaneState
from brain.turn import Turn
from brain.working import ActionView
from gateway.actions import IN_FLIGHT, refusal, verbs
from gateway.addresses import Route
from gateway.commands import Command, command
from gateway.events import ActionAnswered, ActionEnded, ControlPressed, MessageReceived, Person

ABOUT_SHOWN = 300
PHASES = {"awaiting_input": "ready for more", "hibernated": "asleep until you want more"}
TOO_MUCH = "That is more than I can take in at once: I read it, and answer again in ten minutes."
NOT_TOLD = "What is in flight is not told to guests."

HELP = (
    "Write as to a colleague: new work, corrections, questions about what runs.\n\n"
    "Without the model, at once: `/status`, `/stop [name]`, `/pause [name]`, `/resume [name]`, `/notes`, `/quiet`; "
    "`/link` for where I don't know you yet. Without the slash too, as the whole message: `status`, `stop`, `pause`, "
    "`resume`, `help`, `quiet 22:00-07:00`, `unlink …`. Where several things run, `stop` alone asks which."
)
IN_SLACK = " Slack keeps the slash for itself: put a space before it."
ENDED = "That task has ended already."
ANSWERED = "That question is answered already."
NOT_KNOWN = "That task is not known here any more."


def is_control(text: str) -> bool:
    found = command(text)
    return (found is not None and not found.plain) or _is_about_more(text)


def _is_about_more(text: str) -> bool:
    return noting.is_about_notes(text) or linking.is_about_linking(text) or quieting.is_about_quiet(text)


def is_plain_control(text: str, state: LaneState) -> bool:
    """A word alone, where it makes sense as a command, and as nothing else."""
    if state.is_private and quieting.is_about_quiet(text, plain=True):
        return True
    found = command(text)
    return found is not None and found.plain and _fits(found, text, state)


def _fits(found: Command, text: str, state: LaneState) -> bool:
    in_flight = state.in_flight()
    options = [o for a in in_flight for question in a.questions.values() for o in question.options]
    if text.strip(" \n.!").casefold() in (option.strip(" \n.!").casefold() for option in options):
        return False
    if found.word in ("status", "help"):
        return not found.name
    able = [action for action in in_flight if found.word in verbs(action.phase, False)]
    names = {name for action in able for name in (action.label, _plain(action.name))} | ({"all"} if able else set())
    return _plain(found.name) in names if found.name else bool(able)


def decisions(heard: Heard, turn: Turn, rights: Rights) -> tuple[Decision, ...]:
    """What follows from a control, or from what a control led to."""
    state = turn.state
    route = state.route_of(heard)
    match heard.fact:
        case ControlPressed() as pressed:
            return _pressed(pressed, state, rights)
        case MessageReceived(text=text, author=author) if route is not None:
            found = command(text)
            if found is None:
                return (Speak(route=route, text=TOO_MUCH),)
            return _command(found, author, route, turn, rights)
        case ActionEnded(text=text, action=key) if route is not None:
            return (Speak(route=route, text=f"Stopped “{state.actions[key].name}”. {text}".strip()),)
        case ActionAnswered(text=text) if route is not None:
            return (Speak(route=route, text=text),)
        case _:
            return (Wait(reason="nothing to do"),)


def _pressed(pressed: ControlPressed, state: LaneState, rights: Rights) -> tuple[Decision, ...]:
    action = state.pressed(pressed.action)
    if action is None:
        return (Wait(reason=NOT_KNOWN),)
    if why := _why_not(pressed, action, rights):
        return (Wait(reason=why),)
    if pressed.verb == "resume" and action.key in state.resting:
        return (Wait(reason=_rests([action])),)
    steer = Steer(
        verb=pressed.verb,
        action=action.key,
        by=pressed.author,
        text=_words(pressed, action),
        question=pressed.question,
        via=pressed.route.medium,
        route=pressed.route if pressed.verb == "stop" else None,
    )
    return (steer,)


def _why_not(pressed: ControlPressed, action: ActionView, rights: Rights) -> str | None:
    """In words for who pressed."""
    if not rights.may_tell(pressed.author.address, pressed.verb, action):
        return f"You may not do that: “{action.name}” is {action.by.name}'s."
    if pressed.verb != "ask" and action.phase not in IN_FLIGHT:
        return ENDED
    if pressed.verb == "answer" and pressed.question not in action.questions:
        return ANSWERED
    if why := refusal(action.phase, pressed.verb):
        already = {("paused", "pause"): "It stands still already.", ("running", "resume"): "It goes on already."}
        return already.get((action.phase, pressed.verb), f"{why[0].upper()}{why[1:]}.")
    if pressed.verb == "answer" and not _words(pressed, action):
        return "That is no option of the question."
    return None


def _words(pressed: ControlPressed, action: ActionView) -> str:
    if pressed.verb == "answer" and pressed.option is not None and pressed.question in action.questions:
        return "".join(action.questions[pressed.question].options[pressed.option :][:1])
    return pressed.text or ("How far are you?" if pressed.verb == "ask" else "")


def _command(found: Command, by: Person, route: Route, turn: Turn, rights: Rights) -> tuple[Decision, ...]:
    word, name = found.word, found.name
    if word == "help":
        return (Speak(route=route, text=HELP + (IN_SLACK if route.medium == "slack" else "")),)
    if word == "status":
        return (Speak(route=route, text=status(turn.in_flight()) if rights.may(by.address, "see") else NOT_TOLD),)
    meant = _named(name, [a for a in turn.in_flight() if word in rights.verbs([by], a)])
    if not meant:
        return (Speak(route=route, text=_nothing(word, name, turn)),)
    if len(meant) > 1 and (word == "stop" if not name and found.plain else name not in ("", "all")):
        return (Speak(route=route, text=_which(word, meant)),)
    resting = [a for a in meant if word == "resume" and a.key in turn.state.resting]
    meant = [a for a in meant if a not in resting]
    steers = [
        Steer(verb=word, action=a.key, by=by, via=route.medium, route=route, view=turn.view(a))  # type: ignore[arg-type]
        for a in meant
    ]
    if word == "stop":  # each action's own end says what was stopped, and what it had by then, to whom it belongs
        others = [f"{a.name} ({a.by.name})" for a in meant if not rights.same(by.address, a.by.address)]
        return (*steers, Speak(route=route, text=f"Stopping {', '.join(others)}.")) if others else tuple(steers)
    done = {"pause": "Paused", "resume": "Resumed"}[word]
    told = [f"{done}: {', '.join(a.name for a in meant)}."] if meant else []
    told += [_rests(resting)] if resting else []
    return (*steers, Speak(route=route, text="\n\n".join(told)))


def _rests(actions: list[ActionView]) -> str:
    names = ", ".join(f"“{a.name}”" for a in actions)
    return f"The budget for today is used up: {names} can't go on now, and will by itself tomorrow."


def _nothing(word: str, name: str, turn: Turn) -> str:
    others = [a for a in _named(name, list(turn.in_flight())) if word in verbs(a.phase, False)]
    if others:
        return f"You may not {word} “{others[0].name}”: it is {others[0].by.name}'s."
    return f"There is nothing to {word}{f' called “{name}”' if name else ''}."


def _which(word: str, actions: list[ActionView]) -> str:
    lines = [
        f"- `{word} {action.label}`: **{action.name}**, {shortened(action.about, ABOUT_SHOWN)}" for action in actions
    ]
    return "\n".join(["Which one?", *lines, f"- `{word} all`"])


def _named(name: str, actions: list[ActionView]) -> list[ActionView]:
    """All of them where no name is given; those that are called just so before those whose name has it in it."""
    if name.casefold() in ("", "all"):
        return actions
    if not (wanted := _plain(name)):
        return []
    exact = [action for action in actions if wanted in (action.label, _plain(action.name))]
    return exact or [action for action in actions if wanted in _plain(action.name)]


def _plain(name: str) -> str:
    """As a person says it: `rome_trip` is the Rome trip."""
    return " ".join(re.split(r"[\W_]+", name.casefold())).strip()


def status(in_flight: Sequence[ActionView]) -> str:
    """What is in flight, for people."""
    lines = []
    for action in in_flight:
        doing = f": {action.doing}" if action.doing and action.phase == "running" else ""
        about = shortened(action.about, ABOUT_SHOWN)
        lines.append(f"- **{action.name}** ({action.label}), {PHASES.get(action.phase, action.phase)}{doing}. {about}")
        lines += [f"  - asks: {question.text}" for question in action.questions.values()]
    return "\n".join(lines) or "Nothing is in flight."
