"""Status cards: what each says, and when it is shown or changed. By code alone, from what the conversation knows.

A card stands where the work was asked for, if that medium can edit what it has sent. It comes at once where work began
without a word, lets choose, or has something to tell; else when it takes long. What matters to a person is changed at
once, what it is at only now and then.
"""

import asyncio
import re
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

from brain.entries import Carded
from brain.hold import Pace
from brain.state import LaneState
from brain.working import ActionView
from gateway.actions import verbs
from gateway.cards import MEDIUMS, Button, Card, press
from gateway.clock import Now
from gateway.journal import Journal

ABOUT_CHARACTERS, DOING_CHARACTERS, QUESTION_CHARACTERS, OPTION_CHARACTERS = 200, 120, 400, 40
OPTIONS = 8
AT_ONCE = datetime.min.replace(tzinfo=UTC)

_SIGNS = re.compile(r"([\\`*_{}\[\]()<>#+\-.!|~])")
_ENDS = {"awaiting_input": "done", "hibernated": "done", "succeeded": "done", "failed": "failed", "stopped": "stopped"}


class Plan(NamedTuple):
    """`again` is when to look again, if nothing happens before."""

    due: list[Carded]
    again: datetime | None


async def keep(journal: Journal[LaneState], zone: ZoneInfo, now: Now, pace: Pace) -> None:
    """For ever. What was shown is in the fold, so a restart shows nothing twice."""
    while True:
        state, moment = journal.state, now()
        live = state.live
        due, again = plan(state, zone, moment, pace)
        if due:
            await journal.write(lambda state, moment=moment: plan(state, zone, moment, pace).due)  # type: ignore[misc]
            continue
        with suppress(TimeoutError):
            async with asyncio.timeout(None if again is None else (again - moment).total_seconds()):
                await journal.until(lambda state, live=live: state.live > live)  # type: ignore[misc]


def plan(state: LaneState, zone: ZoneInfo, now: datetime, pace: Pace) -> Plan:
    due, later = [], []
    if state.moved:
        return Plan([], None)
    for action in state.actions.values():
        if action.route.medium not in MEDIUMS or (action.card is None and not action.in_flight) or action.elsewhere:
            continue
        card = card_of(action, zone)
        at = _when(action, card, pace)
        if at is not None and at <= now:
            due.append(Carded(action=action.key, card=card, at=now))
        elif at is not None:
            later.append(at)
    return Plan(due, min(later, default=None))


def _when(action: ActionView, card: Card, pace: Pace) -> datetime | None:
    """When the card is to be shown so; None for never."""
    shown = action.card
    if card == shown or (shown.ended if shown else card.ended):
        return None
    if shown is None:
        began = action.began or action.since
        at_once = began is None or action.told or bool(_answers(action))
        return AT_ONCE if at_once or began is None else began + timedelta(seconds=pace.card_seconds)
    if (card.buttons, card.ended) != (shown.buttons, shown.ended) or _head(card) != _head(shown):
        return AT_ONCE
    return (action.card_at or AT_ONCE) + timedelta(seconds=pace.card_rest_seconds)


def _head(card: Card) -> str:
    return card.text.partition("\n")[0]


def card_of(action: ActionView, zone: ZoneInfo) -> Card:
    lines = [f"**{_plain(action.name, 60)}** · {_state(action, zone)}", _plain(action.about, ABOUT_CHARACTERS)]
    if action.phase not in ("running", "paused"):
        return Card(text="\n".join(lines), ended=True)
    if (doing := action.doing or action.last) and action.phase == "running":
        lines.append(f"_{_plain(doing, DOING_CHARACTERS)}_")
    lines += [f"Asks: {_plain(question.text, QUESTION_CHARACTERS)}" for question in action.questions.values()]
    return Card(text="\n".join(lines), buttons=(*_answers(action), *_steering(action)))


def _state(action: ActionView, zone: ZoneInfo) -> str:
    if action.phase in _ENDS:
        return _ENDS[action.phase]
    if action.phase == "paused":
        return "paused"
    if action.questions:
        return "waits for an answer"
    began = action.began or action.since
    return f"working since {began.astimezone(zone):%H:%M}" if began else "working"


def _answers(action: ActionView) -> list[Button]:
    options = [
        Button(
            text=_one_line(option, OPTION_CHARACTERS), press=press("answer", _reference(action), question.question, n)
        )
        for question in action.questions.values()
        for n, option in enumerate(question.options)
        if option.strip()
    ]
    return options[:OPTIONS]


def _steering(action: ActionView) -> list[Button]:
    legal = verbs(action.phase, False)
    return [
        Button(text=verb.capitalize(), press=press(verb, _reference(action)))
        for verb in ("pause", "resume", "stop")
        if verb in legal
    ]


def _reference(action: ActionView) -> str:
    return f"{action.label}-{action.mark}"


def _plain(text: str, characters: int) -> str:
    """As Markdown that shows just this."""
    return _SIGNS.sub(r"\\\1", _one_line(text, characters))


def _one_line(text: str, characters: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= characters else line[: characters - 1] + "…"
