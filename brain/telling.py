"""What has happened, as the model reads it: an event on a line that begins with `[`. Pure.

Lines that people's texts bring are indented, so that no text from outside can look like an event.
"""

import re
from datetime import tzinfo
from typing import Any
from zoneinfo import ZoneInfo

from brain import files
from brain.parts import Heard
from brain.quoting import TEXT_SHOWN, indented, one_line, shortened
from brain.state import UTC, LaneState
from brain.turn import Turn
from gateway.events import (
    ActionAnswered,
    ActionChanged,
    ActionEnded,
    ActionProgressed,
    ActionResponded,
    ClarificationClosed,
    ClarificationRequested,
    CommandRefused,
    ControlPressed,
    FileOffered,
    MessageDeleted,
    MessageReacted,
    MessageReceived,
    Person,
    SendClosed,
    TimerFired,
)

PASTE_UNITS = 4000  # a client splits a paste at 4096 UTF-16 units: so long a message may go on in the next
PASTE_SECONDS = 3.0
BEFORE_SHOWN = 300
EVENTS_CHARACTERS = 60_000  # of one turn
TEXT_LEAST = 300
_SEEN = re.compile(
    r"[^\s\u00ad\u034f\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202f\u2060-\u206f\u2800\u3164\ufe0f\ufeff\uffa0]"
)
_BARE = re.compile(r"\s*\[m\d+\]:?\s*")
_EVENT = re.compile(
    r"^[ \t]*(?:(?P<head>\[(?:m\d+|[ae]\w+ \S+ [a-z][^\]\n·]*?)) · [^\]\n]*\]:?[ \t]*|\(State at )", re.MULTILINE
)


def events_text(heard: list[Heard] | tuple[Heard, ...], state: LaneState, zone: ZoneInfo) -> str:
    """Bounded, however much has come: where it is too much, each has an equal share."""
    pastes: list[list[Heard]] = []
    for item in heard:
        before = next((paste for paste in reversed(pastes) if _is_one_voice(paste[-1], item)), None)
        if before is not None and _goes_on(before[-1], item):
            before.append(item)
        else:
            pastes.append([item])
    texts = [_joined(paste) or getattr(paste[0].fact, "text", "") for paste in pastes]
    bound = TEXT_SHOWN
    if sum(min(len(text), TEXT_SHOWN) for text in texts) > EVENTS_CHARACTERS:
        bound = max(TEXT_LEAST, EVENTS_CHARACTERS // len(texts))
    return "\n".join(line(paste[0], state, zone, _joined(paste), bound) for paste in pastes)


def without_events(said: str, turn: Turn) -> str:
    """What a model says, without the lines of this kind that it has imitated: not the headings of what did happen, and
    nothing from where it makes up what happens next. Empty where there is nothing to be seen."""
    if bare := _BARE.match(said):
        said = said[bare.end() :]
    imitated = list(_EVENT.finditer(said))
    if imitated:
        state = turn.state
        happened = [*state.overheard, *turn.heard, *(item for one in state.exchanges for item in one.heard)]
        heads = {line(item, state, UTC).partition(" · ")[0] for item in happened}
        said = said[: next((one.start() for one in imitated if one["head"] not in heads), len(said))]
        said = _EVENT.sub("", said)
    return said.strip() if _SEEN.search(said) else ""


def _is_one_voice(before: Heard, after: Heard) -> bool:
    if not (isinstance(before.fact, MessageReceived) and isinstance(after.fact, MessageReceived)):
        return False
    return (before.fact.author.address, before.fact.route.room) == (after.fact.author.address, after.fact.route.room)


def _goes_on(before: Heard, after: Heard) -> bool:
    """The platform split one paste: joined without a character between, whoever speaks meanwhile."""
    soon = (after.at - before.at).total_seconds() <= PASTE_SECONDS
    return soon and len(getattr(before.fact, "text", "").encode("utf-16-le", "surrogatepass")) // 2 >= PASTE_UNITS


def _joined(paste: list[Heard]) -> str:
    return "".join(item.fact.text for item in paste if isinstance(item.fact, MessageReceived))


def line(item: Heard, state: LaneState, zone: tzinfo, whole: str | None = None, bound: int = TEXT_SHOWN) -> str:
    """`whole` is the text of a message with all that it goes on in; not more than `bound` characters are shown."""
    at = item.at.astimezone(zone).strftime("%a %d %b %H:%M")
    match item.fact:
        case MessageReceived(author=author, route=route, text=text) as message:
            text = text if whole is None else whole
            who = one_line(author.name) + _whom(message)
            came = "".join(f" · {part}" for part in (_edits(item), files.heading(item, state)) if part)
            before = f"\n  (it said before: “{shortened(item.before, BEFORE_SHOWN)}”)" if item.before else ""
            return f"[{item.label} · {route.medium} · {at} · {who}{came}] {indented(text, bound)}{before}"
        case MessageDeleted(author=author):
            said = f" “{shortened(item.before, BEFORE_SHOWN)}”" if item.before else ""
            return f"[{item.about or 'an earlier message'} · {at} · {one_line(author.name)} deleted it]{said}"
        case MessageReacted(author=author, emoji=emoji, removed=removed, own=own):
            what = item.about or ("a message of yours" if own else "an earlier message")
            did = "took back" if removed else "put"
            return f"[{what} · {at} · {one_line(author.name)} {did} {one_line(emoji)}]"
        case ControlPressed(verb=verb, author=author, text=text):
            return f"[{item.label} · {at} · {one_line(author.name)} pressed {verb}] {indented(text)}".rstrip()
        case TimerFired(reason=reason, by=Person(name=name)):
            return f"[{item.label}, the reminder that {one_line(name)} asked for · {at}] {indented(reason)}"
        case TimerFired(reason=reason):
            return f"[the time you waited for · {at}] {indented(reason)}"
        case SendClosed(outcome=outcome, send=ref, why=why, delivered=delivered, parts=parts):
            send = state.sends.get(ref)
            what = f"“{shortened(send.text, 80)}” on {send.route.medium}" if send else "a message"
            part = f", {delivered} of {parts} parts arrived" if 0 < delivered < parts else ""
            return f"[a send {outcome}{part} · {at}] {what}: {indented(why)}".rstrip(": ")
        case fact:
            name = state.actions[fact.action].name if fact.action in state.actions else "an earlier action"
            what, text = _told(fact)
            came = f" · {files.heading(item, state)}" if isinstance(fact, FileOffered) else ""
            return f"[{item.label} {name} {what} · {at}{came}] {indented(text, bound)}".rstrip()


def _edits(item: Heard) -> str:
    if not (isinstance(item.fact, MessageReceived) and item.fact.edited):
        return ""
    return f"edits {item.about}" if item.about else "edits an earlier message" if item.before else "edited"


def _whom(message: MessageReceived) -> str:
    """Where several people read, what is known of whom it is for."""
    if message.private:
        return ""
    if not message.addressed:
        return ", not to you"
    return ", to you" if message.by_name else ", in your thread"


def _told(fact: Any) -> tuple[str, str]:
    match fact:
        case ActionProgressed(text=text):
            return "progress", text
        case ActionResponded(text=text):
            return "responded", text
        case ClarificationRequested(question=question, text=text, options=options, again=again):
            asks = f"still waits for an answer to {question}" if again else f"asks {question}"
            return asks, f"{text} (options: {'; '.join(options)})" if options else text
        case FileOffered():
            return "offers a file", ""
        case ActionAnswered(asked=asked, text=text):
            return f"answered “{shortened(asked, 60)}”", text
        case ActionEnded(end=end, text=text):
            return end, text
        case CommandRefused(verb=verb, why=why):
            return f"refused {verb}", why
        case ActionChanged(phase=phase, doing=doing):
            return phase, doing
        case ClarificationClosed(question=question):
            return f"closed {question}", ""
        case _:
            raise TypeError(f"no line for {type(fact).__name__}")
