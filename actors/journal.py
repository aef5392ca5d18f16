"""The fold of an action's journal: its transcript, its commands, its effects, and the facts that it tells upward.

Pure. A child tells nothing to a lane: what it has to say goes to its parent, in the same process.
"""

from datetime import datetime
from typing import Any

from actors.entries import (
    ActionEntry,
    AskAnswered,
    Asked,
    Briefed,
    Closed,
    EffectEnded,
    EffectStarted,
    Failed,
    Generated,
    Hibernated,
    Interjected,
    JobEnded,
    JobStarted,
    Notified,
    Offered,
    Paused,
    Refused,
    Reminded,
    Responded,
    Resumed,
    SandboxLost,
    Stopped,
    Woken,
)
from actors.spending import Spending, SpendingFrozen
from actors.struggle import Struggle
from actors.transcript import Transcript, TranscriptFrozen
from gateway.actions import IN_FLIGHT, Phase
from gateway.events import (
    ActionAnswered,
    ActionChanged,
    ActionEnded,
    ActionPhase,
    ActionProgressed,
    ActionResponded,
    Ask,
    ClarificationClosed,
    ClarificationRequested,
    CommandRefused,
    FileOffered,
    Interject,
    Pause,
    Ref,
    Resume,
    Start,
    Stop,
)
from gateway.files import Attachment
from gateway.journal import Emitted, Outgoing, forget_emitted
from gateway.record import Record, decode
from gateway.seen import Seen

DOING_CHARACTERS = 120
ANSWERS_KEPT = 50


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


class ActionState:
    def __init__(self, key: str) -> None:
        self.key = key
        self.transcript = Transcript()
        self.start: Start | None = None
        self.phase: Phase = "running"
        self.outgoing: list[Outgoing] = []
        self.through = 0  # the last command of `cmd` that has an entry here
        self.commands_taken = 0
        self.asks: dict[Ref, Ask] = {}  # without an answer yet
        self.answers: dict[str, JobEnded] = {}  # rpc -> the end of its job, while its code may ask again
        self.answered: dict[Ref, str] = {}  # what its parent asked it lately
        self.children: list[str] = []  # all that it has started, ended or not
        self.handles: dict[str, str] = {}  # rpc -> the child that it started
        self.gone: dict[str, str] = {}  # a question that ended without an answer -> why
        self.effects: dict[str, EffectEnded | None] = {}  # rpc -> its end, None while nobody knows
        self.used_session = False  # the stateful session: what a lost sandbox takes with it
        self.child_questions: dict[tuple[str, str], JobStarted | JobEnded] = {}  # (child, its question) -> as it stands
        self.last_word: Interject | Pause | Resume | Stop | None = None  # handed down again after a restart
        self.last_word_at = 0  # which of the commands it was
        self.result = ""
        self.offered: list[Attachment] = []  # files for the person
        self.spending = Spending()
        self.struggle = Struggle()
        self.word_at: datetime | None = None  # a person's last word
        self.idle_since: datetime | None = None  # of a session that waits for its next word, awake or not
        self.asleep: Hibernated | None = None  # until it is awake again
        self.live = False  # there may be processes of its own
        self.reminded: set[str] = set()
        self.code: list[tuple[str, str]] = []  # cell, what ran
        self._seen = Seen()
        self._facts = 0

    def freeze(self) -> ActionFrozen:
        return ActionFrozen(
            transcript=self.transcript.freeze(),
            start=self.start,
            phase=self.phase,
            outgoing=self.outgoing,
            through=self.through,
            commands_taken=self.commands_taken,
            asks=list(self.asks.values()),
            answers=self.answers,
            answered=list(self.answered.items()),
            children=self.children,
            handles=self.handles,
            gone=self.gone,
            effects=self.effects,
            used_session=self.used_session,
            child_questions=list(self.child_questions.items()),
            last_word=self.last_word,
            result=self.result,
            spending=self.spending.freeze(),
            struggle=self.struggle.freeze(),
            word_at=self.word_at,
            idle_since=self.idle_since,
            asleep=self.asleep,
            live=self.live,
            reminded=sorted(self.reminded),
            code=self.code,
            seen=self._seen.marks,
            facts=self._facts,
            last_word_at=self.last_word_at,
            offered=self.offered,
        )

    def thaw(self, frozen: bytes) -> None:
        kept: ActionFrozen = decode(frozen, ActionFrozen)
        self.transcript = Transcript.thawed(kept.transcript)
        self.start, self.phase, self.outgoing = kept.start, kept.phase, kept.outgoing
        self.through, self.commands_taken = kept.through, kept.commands_taken
        self.asks = {ask.ref: ask for ask in kept.asks}
        self.answers, self.effects, self.used_session = kept.answers, kept.effects, kept.used_session
        self.answered, self.children = dict(kept.answered), kept.children
        self.handles, self.gone = kept.handles, kept.gone
        self.child_questions, self.last_word = dict(kept.child_questions), kept.last_word
        self.result, self.code = kept.result, kept.code
        self.spending, self.struggle = Spending.thawed(kept.spending), Struggle.thawed(kept.struggle)
        self.word_at, self.idle_since = kept.word_at, kept.idle_since
        self.asleep, self.live, self.reminded = kept.asleep, kept.live, {*kept.reminded}
        self._seen, self._facts, self.last_word_at = Seen(kept.seen), kept.facts, kept.last_word_at
        self.offered = kept.offered

    def knows(self, command: Ref) -> bool:
        return command in self._seen

    @property
    def is_child(self) -> bool:
        return self.start is not None and self.start.depth > 0

    def apply(self, entry: ActionEntry) -> None:
        self._note_command(entry)
        if isinstance(entry, Interjected | Generated):
            self._tell_remark(entry)
        if isinstance(entry, JobEnded) and (rpc := self.transcript.jobs[entry.job].rpc):
            self.answers[rpc] = entry
        self._note_child_question(entry)
        self._note_time(entry)
        self.spending.apply(entry, self.transcript)
        self.struggle.apply(entry, self.transcript)
        self.transcript.apply(entry)
        self._tell(entry)

    def _note_child_question(self, entry: ActionEntry) -> None:
        match entry:
            case JobStarted(child=str() as child, question=str() as question):
                self.child_questions[child, question] = entry
            case JobEnded(job=job):
                started = self.transcript.jobs[job]
                if started.child and started.question:
                    self.child_questions[started.child, started.question] = entry
            case Interjected(command=word) | Paused(command=word) | Resumed(command=word) | Stopped(command=word):
                self.last_word, self.last_word_at = word, self.commands_taken
            case SandboxLost():
                self.used_session = False
            case _:
                pass

    def _note_time(self, entry: ActionEntry) -> None:
        """Who spoke when, what is idle since when, and whether it has processes."""
        match entry:
            case Briefed(at=at) | Interjected(at=at) | Resumed(at=at):
                self.word_at = at
                self.idle_since = None
            case JobEnded(job=job, by=by, at=at):
                started = self.transcript.jobs[job]
                self.reminded.discard(job)
                if started.kind == "question" and at is not None:  # the time until then was a person's
                    self.word_at = at
                if started.kind == "question" and by is None:
                    self.gone[job] = entry.text
                if started.kind != "ask":
                    self.idle_since = None
            case JobStarted(kind="cell"):
                self.live = True
            case JobStarted(kind="child", job=job, rpc=rpc):
                self.children.append(job)
                if rpc:
                    self.handles[rpc] = job
            case Reminded(job=job):
                self.reminded.add(job)
            case Responded(ended=False, at=at):
                self.idle_since = at
            case Hibernated():
                self.asleep, self.live, self.used_session = entry, False, False
            case Woken(session=session):
                self.asleep, self.live, self.used_session = None, session, session
            case SandboxLost():
                self.live = False
            case Responded() | Failed() | Stopped() | Closed():
                self.live, self.idle_since = False, None
            case _:
                pass

    def _note_command(self, entry: Any) -> None:
        match entry:
            case Briefed(start=command) | Interjected(command=command) | Paused(command=command):
                ref = command.ref
            case Resumed(command=command) | Asked(command=command) | Stopped(command=command):
                ref = command.ref
            case Refused(command=ref) | JobEnded(command=Ref() as ref):
                pass
            case _:
                return
        self._seen.add(ref)
        self.commands_taken += 1
        self.through = max(self.through, entry.through)

    def _tell_remark(self, entry: Interjected | Generated) -> None:
        """A text that turned out not to be the response was still said, and must be heard."""
        t = self.transcript
        if isinstance(entry, Interjected) and t.draft and not t.jobs:
            self._fact(ActionProgressed, text=t.draft)
        if isinstance(entry, Generated) and entry.text and (t.jobs or entry.calls):
            self._change(doing=entry.text)
        if isinstance(entry, Generated) and entry.text and not entry.calls and t.jobs:
            self._fact(ActionProgressed, text=entry.text)

    def _tell(self, entry: Any) -> None:
        match entry:
            case Briefed(start=start):
                self.start = start
                self._change("running", "starting")
            case JobStarted(kind="cell", job=job, about=code, stateful=stateful):
                self.code.append((job, code))
                self.used_session = self.used_session or stateful
                self._change(doing=_first_words(code))
            case JobStarted(kind="question"):
                self._ask(entry)
            case Reminded(job=job):
                self._ask(self.transcript.jobs[job], again=True)
            case JobEnded():
                self._tell_end_of_job(entry)
            case Interjected() if self.phase in ("awaiting_input", "hibernated"):
                self._change("running", "taking up what was said")
            case Paused():
                self._change("paused")
            case Resumed():
                self._change("running")
            case Asked(command=command):
                self.asks[command.ref] = command
            case AskAnswered(command=ref, asked=asked, text=text):
                self.asks.pop(ref, None)
                if self.is_child:
                    self.answered[ref] = text
                    if len(self.answered) > ANSWERS_KEPT:
                        del self.answered[next(iter(self.answered))]
                self._fact(ActionAnswered, command=ref, asked=asked, text=text)
            case Refused(command=ref, verb=verb, why=why):
                self._fact(CommandRefused, command=ref, verb=verb, why=why)
            case Notified(text=text, quiet=True):
                self._change(doing=text)
            case Notified(text=text):
                self._fact(ActionProgressed, text=text)
            case Offered(file=file):
                self.offered.append(file)
                self._fact(FileOffered, file=file)
            case Hibernated():
                self._change("hibernated")
            case Responded() | Closed() | Failed() | Stopped():
                self._tell_what_came_of_it(entry)
            case EffectStarted(rpc=rpc):
                self.effects[rpc] = None
            case EffectEnded(rpc=rpc):
                self.effects[rpc] = entry
            case Emitted(through=through):
                forget_emitted(self.outgoing, through)
            case _:
                pass

    def _tell_what_came_of_it(self, entry: Responded | Closed | Failed | Stopped) -> None:
        match entry:
            case Responded(text=text, ended=False):
                self.phase, self.result = "awaiting_input", text
                self._fact(ActionResponded, text=text)
            case Responded(text=text) | Closed(text=text):
                self._end("succeeded", text)
            case Failed(text=text):
                self._end("failed", text)
            case Stopped(report=report):
                self._end("stopped", report)

    def _ask(self, question: JobStarted, *, again: bool = False) -> None:
        self._fact(
            ClarificationRequested,
            question=question.job,
            text=question.about,
            options=question.options,
            default=question.default or "",
            again=again,
        )

    def _tell_end_of_job(self, ended: JobEnded) -> None:
        if ended.job.startswith("question"):
            self._fact(ClarificationClosed, question=ended.job)
        if self.phase == "awaiting_input" and not self.transcript.responded:
            self._change("running")

    def _end(self, end: Any, text: str) -> None:
        self.phase, self.result = end, text
        self._fact(ActionEnded, end=end, text=text)

    def _change(self, phase: ActionPhase | None = None, doing: str = "") -> None:
        if phase is not None:
            self.phase = phase
        if self.phase in IN_FLIGHT:  # after its end nothing changes
            self._fact(ActionChanged, phase=self.phase, doing=" ".join(doing.split())[:DOING_CHARACTERS])

    def _fact(self, fact: Any, **values: Any) -> None:
        if self.start is None or self.is_child:
            return
        self._facts += 1
        ref = Ref(f"act-{self.key}", self._facts, 0)
        body = fact(ref=ref, conversation=self.start.conversation, action=self.key, **values)
        self.outgoing.append(Outgoing(subject=f"evt.act.{self.key}", ref=ref, body=body))


def _first_words(code: str) -> str:
    """A comment at the top says best what code is for."""
    lines = [line.strip() for line in code.splitlines() if line.strip()]
    comment = next((line.lstrip("# ") for line in lines[:3] if line.startswith("#")), "")
    return comment or f"running: {lines[0]}" if lines else "running code"
