"""An action's snapshot: its fold as one struct, and back. The shape is stored; add fields with defaults only."""

from datetime import datetime
from typing import TYPE_CHECKING

from actors.entries import EffectEnded, Hibernated, JobEnded, JobStarted
from actors.spending import Spending, SpendingFrozen
from actors.struggle import Struggle
from actors.transcript import Transcript, TranscriptFrozen
from gateway.actions import Phase
from gateway.events import Ask, Interject, Pause, Ref, Resume, Start, Stop
from gateway.files import Attachment
from gateway.journal import Outgoing
from gateway.record import Record, decode
from gateway.seen import Seen

if TYPE_CHECKING:
    from actors.journal import ActionState


class ActionFrozen(Record, frozen=True, kw_only=True):
    """An action's snapshot: what `ActionState` holds, name by name."""

    transcript: TranscriptFrozen
    start: Start | None
    phase: Phase
    outgoing: list[Outgoing]
    through: int
    commands_taken: int
    asks: list[Ask]
    answers: dict[str, JobEnded]
    answered: list[tuple[Ref, str]]
    children: list[str]
    handles: dict[str, str]
    gone: dict[str, str]
    effects: dict[str, EffectEnded | None]
    used_session: bool
    child_questions: list[tuple[tuple[str, str], JobStarted | JobEnded]]
    last_word: Interject | Pause | Resume | Stop | None
    result: str
    spending: SpendingFrozen
    struggle: list[tuple[list[str], bool]]
    word_at: datetime | None
    idle_since: datetime | None
    asleep: Hibernated | None
    live: bool
    reminded: list[str]
    code: list[tuple[str, str]]
    seen: dict[str, tuple[int, int]]
    facts: int
    last_word_at: int = 0
    offered: list[Attachment] = []
    shown: dict[str, int] = {}
    has_files: bool = False
    moves: int = 0


def freeze(state: "ActionState") -> ActionFrozen:
    return ActionFrozen(
        transcript=state.transcript.freeze(),
        start=state.start,
        phase=state.phase,
        outgoing=state.outgoing,
        through=state.through,
        commands_taken=state.commands_taken,
        asks=list(state.asks.values()),
        answers=state.answers,
        answered=list(state.answered.items()),
        children=state.children,
        handles=state.handles,
        gone=state.gone,
        effects=state.effects,
        used_session=state.used_session,
        child_questions=list(state.child_questions.items()),
        last_word=state.last_word,
        result=state.result,
        spending=state.spending.freeze(),
        struggle=state.struggle.freeze(),
        word_at=state.word_at,
        idle_since=state.idle_since,
        asleep=state.asleep,
        live=state.live,
        reminded=sorted(state.reminded),
        code=state.code,
        seen=state.seen.marks,
        facts=state.facts,
        last_word_at=state.last_word_at,
        offered=state.offered,
        shown=state.shown,
        has_files=state.has_files,
        moves=state.moves,
    )


def thaw(state: "ActionState", frozen: bytes) -> None:
    """Into a fresh state. Raises Undecodable."""
    kept: ActionFrozen = decode(frozen, ActionFrozen)
    state.transcript = Transcript.thawed(kept.transcript)
    state.start, state.phase, state.outgoing = kept.start, kept.phase, kept.outgoing
    state.through, state.commands_taken = kept.through, kept.commands_taken
    state.asks = {ask.ref: ask for ask in kept.asks}
    state.answers, state.effects, state.used_session = kept.answers, kept.effects, kept.used_session
    state.answered, state.children = dict(kept.answered), kept.children
    state.handles, state.gone = kept.handles, kept.gone
    state.child_questions, state.last_word = dict(kept.child_questions), kept.last_word
    state.result, state.code = kept.result, kept.code
    state.spending, state.struggle = Spending.thawed(kept.spending), Struggle.thawed(kept.struggle)
    state.word_at, state.idle_since = kept.word_at, kept.idle_since
    state.asleep, state.live, state.reminded = kept.asleep, kept.live, {*kept.reminded}
    state.seen, state.facts, state.last_word_at = Seen(kept.seen), kept.facts, kept.last_word_at
    state.offered, state.shown = kept.offered, kept.shown
    state.has_files, state.moves = kept.has_files or bool(kept.code), kept.moves
