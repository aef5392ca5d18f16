"""What a model sees that answers by schema: kinds of messages with examples, which stay the same, what was said, the
work in flight, and last what there is to decide.

Whatever people and workers wrote is indented, so that none of it can look like a line of ours.
"""

import re
from collections.abc import Sequence
from itertools import pairwise

from brain.entries import Speak
from brain.parts import Heard
from brain.quoting import indented, one_line, shortened
from brain.schema_kinds import examples
from brain.tools import Legal
from brain.turn import Turn
from brain.working import IDLE, ActionView
from gateway.events import (
    ActionAnswered,
    ActionEnded,
    ActionProgressed,
    ActionResponded,
    ClarificationRequested,
    CommandRefused,
    ControlPressed,
    Fact,
    FileOffered,
    MessageDeleted,
    MessageReacted,
    MessageReceived,
    SendClosed,
    TimerFired,
)
from gateway.llm.model import Message
from gateway.record import Record

DESK = "Front desk"  # who answers: people may well be called “You”
EXCHANGES, STRIDE = 8, 8  # of what was said before, between so many and twice as many
ABOUT_SHOWN, LAST_SHOWN, ENDED_SHOWN = 160, 150, 5
LONG_WORD = 5  # letters
POINTING = {"it", "that", "them", "those", "davon", "daraus", "damit", "ça", "cela", "eso", "esos", "ciò"}
BEFORE_OTHERS = {"is", "was", "does", "did", "if", "whether", "when", "sure", "so"}  # “whether it rains”
BEFORE_OTHERS |= {"from", "besides", "after", "about", "than"}  # “besides that, …”
_WORD = re.compile(r"[^\W_]+")


class Item(Record, frozen=True, kw_only=True):
    """One thing to decide on: what somebody wrote, with what follows from the same hand at once, or what an action
    `told`; a result, a question or a failure `must_be_told`. `labels` and `questions` are the actions' by name, for
    tools that serve many; `offered` are its files. `named` is the only action in flight that it can mean; it
    `points` where it says “it”, or “that”, of something that is there."""

    label: str
    text: str
    head: str
    told: bool = False
    must_be_told: bool = False
    in_thread: bool = False
    offered: tuple[str, ...] = ()
    labels: dict[str, str] = {}
    questions: dict[str, str] = {}
    named: str = ""
    points: bool = False


def messages(
    instructions: str, turn: Turn, decided: Sequence[Item], more: Sequence[Legal], day: str, *, sees: bool
) -> list[Message]:
    others = "".join(f"\n{tool.name}: {tool.about}" for tool in more)
    shown: list[Message] = [{"role": "system", "content": instructions + (f"\n\nAlso:{others}" if others else "")}]
    shown += examples()
    parts = [_said_before(turn), _work(turn) if sees else "", day, _newest(decided)]
    shown.append({"role": "user", "content": "\n\n".join(part for part in parts if part)})
    return shown


# --- what was said, and what there is to decide ----------------------------------------------------------------------


def items(turn: Turn) -> list[Item]:
    found: list[tuple[Heard, list[str]]] = []
    for heard in turn.heard:
        if found and _goes_on(found[-1][0], heard):
            found[-1][1].append(_words(heard, turn))
        else:
            found.append((heard, [_words(heard, turn)]))
    return [_item(heard, "\n".join(texts), turn) for heard, texts in found]


def _goes_on(before: Heard, after: Heard) -> bool:
    if not (isinstance(before.fact, MessageReceived) and isinstance(after.fact, MessageReceived)):
        return False
    return (before.fact.author, before.fact.route.room) == (after.fact.author, after.fact.route.room)


def _item(heard: Heard, text: str, turn: Turn) -> Item:
    fact = heard.fact
    names = work_names(turn)
    by_name = {names[action.key]: action for action in (*turn.in_flight(), *turn.completed())}
    return Item(
        label=heard.label,
        text=text,
        head=_head(heard, turn),
        told=not isinstance(fact, MessageReceived | ControlPressed),
        must_be_told=isinstance(fact, ActionResponded | ClarificationRequested | ActionAnswered)
        or (isinstance(fact, ActionEnded) and fact.end != "stopped"),
        in_thread=isinstance(fact, MessageReceived) and not (fact.private or (fact.addressed and fact.by_name)),
        offered=_offered(fact, turn),
        labels={name: action.label for name, action in by_name.items()},
        questions={name: question for name, action in by_name.items() for question in action.questions},
        named=_named(text, turn),
        points=_points(text),
    )


def _offered(fact: Fact, turn: Turn) -> tuple[str, ...]:
    """The files that go with what an action says."""
    if not isinstance(fact, ActionResponded | ActionEnded):
        return ()
    kept = [item for item in turn.state.overheard if isinstance(item.fact, FileOffered)]
    return tuple(label for item in kept if getattr(item.fact, "action", "") == fact.action for label in item.files)


def _head(heard: Heard, turn: Turn) -> str:
    match heard.fact:
        case MessageReceived(author=author, route=route) as message:
            where = f" by {route.medium}" if len(turn.state.routes) > 1 else ""
            whom = "" if message.private else ", to you" if message.by_name else ", in your thread"
            whom = whom if message.addressed else ", not to you"
            return f"{one_line(author.name)}{where}{whom}"
        case ControlPressed(author=author, verb=verb):
            return f"{one_line(author.name)} pressed {verb}"
        case MessageDeleted(author=author) | MessageReacted(author=author):
            return one_line(author.name)
        case SendClosed():
            return "A message of yours"
        case TimerFired():
            return "The time has come"
        case fact:
            names = work_names(turn)
            return f"{names.get(fact.action, 'earlier work')} reports"


def _words(heard: Heard, turn: Turn) -> str:
    """What it says; for what an action told, as it can be passed on."""
    fact = heard.fact
    name = work_names(turn).get(getattr(fact, "action", ""), "earlier work")
    match fact:
        case MessageReceived(text=text, files=files):
            return "\n".join([*([text] if text else []), *(f"(the file {one.name})" for one in files)])
        case ControlPressed(text=text) | ActionResponded(text=text):
            return text
        case MessageDeleted():
            return "(took a message back)"
        case MessageReacted(emoji=emoji):
            return one_line(emoji)
        case FileOffered(file=file):
            return f"{name} offers the file {file.name}"
        case ActionProgressed(text=text) | ActionAnswered(text=text):
            return f"{name}: {text}"
        case ClarificationRequested(text=text, options=options):
            return "\n".join([text, *(f"- {option}" for option in options)])
        case ActionEnded(end=end, text=text):
            return text if end == "succeeded" else f"{name} {end}. {text}".strip()
        case CommandRefused(verb=verb, why=why):
            return f"{name}: {verb} was not possible: {why}"
        case SendClosed(outcome=outcome, why=why, send=ref):
            send = turn.state.sends.get(ref)
            what = f"“{shortened(send.text, 80)}”" if send else "A message"
            return f"{what} {'may not have arrived' if outcome == 'unknown' else 'did not arrive'}: {why}"
        case TimerFired(reason=reason):
            return reason
        case _:
            return ""


def _newest(decided: Sequence[Item]) -> str:
    lines = [f"{item.head}: {indented(item.text)}" for item in decided]
    if len(lines) == 1:
        return lines[0]
    return "\n".join(f"({number}) {line}" for number, line in enumerate(lines, 1))


def _said_before(turn: Turn) -> str:
    state = turn.state
    first = max(0, (len(state.exchanges) - EXCHANGES) // STRIDE * STRIDE)
    lines = []
    if state.summary is not None:
        lines.append(f"Long ago: {indented(state.summary.text)}")
    for exchange in state.exchanges[first:]:
        heard = () if exchange.is_aside else exchange.heard
        lines += [f"{_head(item, turn)}: {indented(_words(item, turn))}" for item in heard]
        lines += [f"{DESK}: {indented(one.text)}" for one in exchange.decided.decisions if isinstance(one, Speak)]
    lines += [f"{_head(item, turn)}: {indented(_words(item, turn))}" for item in state.overheard]
    return "\n".join(["Said before:", *lines]) if lines else ""


# --- the work --------------------------------------------------------------------------------------------------------


def _named(text: str, turn: Turn) -> str:
    """By a word that is of one action alone: of its name, or a longer one of what is known of it. “That” is what one
    alone has finished."""
    names = work_names(turn)
    of = {names[one.key]: _known_by(one) for one in turn.in_flight()}
    said = _words_of(text, 3)
    alone = [name for name, words in of.items() for word in words & said if sum(word in o for o in of.values()) == 1]
    if not alone and _points(text):
        alone = [names[one.key] for one in turn.in_flight() if one.phase in IDLE]
    return alone[0] if len({*alone}) == 1 else ""


def _points(text: str) -> bool:
    said = _WORD.findall(text.casefold())
    return any(word in POINTING and before not in BEFORE_OTHERS for before, word in pairwise(said))


def _known_by(action: ActionView) -> set[str]:
    asked = " ".join(question.text for question in action.questions.values())
    return _words_of(action.name, 3) | _words_of(f"{action.about} {action.last} {asked}", LONG_WORD)


def _words_of(text: str, letters: int) -> set[str]:
    return {word for word in _WORD.findall(text.casefold()) if len(word) >= letters}


def work_names(turn: Turn) -> dict[str, str]:
    """Actions by key, each with its name, and with its label too where two have one name."""
    actions = [*turn.in_flight(), *turn.completed()]
    names = [action.name for action in actions]
    return {
        action.key: action.name if names.count(action.name) == 1 else f"{action.name}_{action.label}"
        for action in actions
    }


def _work(turn: Turn) -> str:
    names = work_names(turn)
    lines = [_line(names[action.key], action) for action in turn.in_flight()]
    head = "Work in flight:" if lines else "No work in flight."
    if ended := [names[action.key] for action in turn.completed()]:
        lines.append(f"Ended: {', '.join(ended[-ENDED_SHOWN:])}")
    return "\n".join([head, *lines])


def _line(name: str, action: ActionView) -> str:
    asked = "; ".join(shortened(question.text, LAST_SHOWN) for question in action.questions.values())
    phase: str = "finished" if action.phase in ("awaiting_input", "hibernated") else action.phase
    last = action.last or (action.doing if action.phase == "running" else "")
    told = f"; last: {shortened(last, LAST_SHOWN)}" if last and not asked else ""
    phase += ", kept private" if action.narrowed else ""
    return f"- {name} ({f'asks: {asked}' if asked else phase}): {shortened(action.about, ABOUT_SHOWN)}{told}"
