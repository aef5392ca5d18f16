"""Files in a conversation: the references by which the model names them, what it is shown, what people are told. Pure.

A conversation can send and hand on only what came into it: a reference leads to nothing else.
"""

from collections.abc import Iterable
from typing import Any

from brain.arguments import Refusal
from brain.entries import Speak
from brain.parts import Heard
from brain.state import LaneState
from brain.turn import Turn
from gateway.events import FileOffered, MessageReceived
from gateway.files import FILES_MAX, Attachment, size_text

SHOWN = 8  # of the newest, in the live state


def about(file: Attachment) -> str:
    return f"{file.name}, {file.kind}, {size_text(file.size)}"


def heading(item: Heard, state: LaneState) -> str:
    """What came with a message, for the line that names it; "" for nothing."""
    match item.fact:
        case MessageReceived(files=files):
            labels = iter(item.files)
            told = [
                f"file {next(labels)}: {about(one)}" if one.is_here else f"file {one.name} not taken, they are told"
                for one in files
            ]
            return " · ".join(told)
        case FileOffered(file=file):
            return f"file {item.files[0] if item.files else '?'}: {about(file)}"
        case _:
            return ""


def at_hand(state: LaneState) -> str:
    """For the live state."""
    newest = list(state.files.items())[-SHOWN:]
    return "Files: " + "; ".join(f"{label} {about(file)}" for label, file in newest) if newest else ""


def named(labels: tuple[str, ...], state: LaneState) -> tuple[Attachment, ...]:
    if len(labels) > FILES_MAX:
        raise Refusal(f"at most {FILES_MAX} files at once")
    found: dict[str, Attachment] = {}
    for label in labels:
        wanted = label.strip("[] ")
        by_name = next((key for key, file in reversed(state.files.items()) if file.name == wanted), wanted)
        if by_name not in state.files:
            known = ", ".join(list(state.files)[-20:]) or "none"
            raise Refusal(f"there is no file {wanted}; there are: {known}")
        found[by_name] = state.files[by_name]
    return tuple(found.values())


def handed_on(arguments: dict[str, Any], turn: Turn) -> tuple[Attachment, ...]:
    """Those that a call names; else what came with the words that it follows."""
    if "files" in arguments:
        return named(arguments["files"], turn.state)
    label = arguments.get("for_message")
    followed = [item for item in turn.heard if not label or item.label == label.strip("[]")]
    return of(_with_album(followed, turn), turn.state)


def _with_album(heard: list[Heard], turn: Turn) -> list[Heard]:
    albums = {item.fact.album.id for item in heard if isinstance(item.fact, MessageReceived) and item.fact.album}
    return [
        item
        for item in turn.heard
        if item in heard
        or (isinstance(item.fact, MessageReceived) and item.fact.album is not None and item.fact.album.id in albums)
    ]


def of(heard: Iterable[Heard], state: LaneState) -> tuple[Attachment, ...]:
    """What came with these messages, and is here."""
    labels = [label for item in heard if isinstance(item.fact, MessageReceived) for label in item.files]
    return tuple(state.files[label] for label in labels if label in state.files)


def not_taken(turn: Turn) -> list[Speak]:
    """One line to each room in which a file could not be taken: said by code, so that it is never left out."""
    spoken: list[Speak] = []
    rooms: dict[tuple[str, str, str | None], list[MessageReceived]] = {}
    for item in turn.heard:
        if isinstance(item.fact, MessageReceived) and any(not one.is_here for one in item.fact.files):
            rooms.setdefault(item.fact.route.room, []).append(item.fact)
    for facts in rooms.values():
        missing = [one for fact in facts for one in fact.files if not one.is_here]
        text = "\n".join(f"I could not take “{one.name}”: {one.why}." for one in missing)
        answers = tuple(fact.identity for fact in facts)
        spoken.append(Speak(route=facts[-1].route, text=text, answers=answers, by_tool=True))
    return spoken
