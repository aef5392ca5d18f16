"""The fold of an action's journal: its transcript, its commands, its effects, and the facts that it tells upward.

Pure. A child tells nothing to a lane: what it has to say goes to its parent, in the same process.
"""

from datetime import datetime
from typing import Any

from actors import frozen, telling
from actors.entries import (
    ActionEntry,
    AskAnswered,
    Asked,
    Briefed,
    CallClosed,
    Closed,
    EffectEnded,
    EffectStarted,
    Failed,
    Hibernated,
    Interjected,
    JobEnded,
    JobStarted,
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
from actors.frozen import ActionFrozen
from actors.spending import Spending
from actors.struggle import Struggle
from actors.transcript import Transcript
from gateway.actions import Phase
from gateway.events import Ask, Interject, Pause, Ref, Resume, Start, Stop
from gateway.files import Attachment
from gateway.journal import Emitted, Outgoing, forget_emitted
from gateway.seen import Seen

ANSWERS_KEPT = 50


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
        self.has_files = False  # a workspace in which something may be
        self.moves = 0  # to another machine, without what was on the last one
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
        self.shown: dict[str, int] = {}  # cell that runs -> how much of its output was shown
        self.seen = Seen()
        self.facts = 0

    def freeze(self) -> ActionFrozen:
        return frozen.freeze(self)

    def thaw(self, kept: bytes) -> None:
        frozen.thaw(self, kept)

    def knows(self, command: Ref) -> bool:
        return command in self.seen

    @property
    def is_child(self) -> bool:
        return self.start is not None and self.start.depth > 0

    def apply(self, entry: ActionEntry) -> None:
        self._note_command(entry)
        for fact in telling.remarks(entry, self.phase, self.transcript):
            self._tell(*fact)
        if isinstance(entry, JobEnded) and (rpc := self.transcript.jobs[entry.job].rpc):
            self.answers[rpc] = entry
        self._note_output(entry)
        self._note_sandbox(entry)
        self._note_child_question(entry)
        self._note_time(entry)
        self.spending.apply(entry, self.transcript)
        self.struggle.apply(entry, self.transcript)
        self.transcript.apply(entry)
        self._note_the_rest(entry)
        was, self.phase = self.phase, telling.phase_after(self.phase, entry, self.transcript)
        for fact in telling.told(entry, was, self):
            self._tell(*fact)

    def _note_output(self, entry: ActionEntry) -> None:
        match entry:
            case CallClosed(call=call, shown=shown) if shown:
                self.shown[self.transcript.waits[call]] = shown
            case JobEnded(job=job):
                self.shown.pop(job, None)
            case _:
                pass

    def _note_sandbox(self, entry: ActionEntry) -> None:
        """What is in it, and whether it has processes."""
        match entry:
            case Briefed(files=files) | Interjected(files=files):
                self.has_files = self.has_files or bool(files)
            case JobStarted(kind="cell", job=job, about=code, stateful=stateful):
                self.code.append((job, code))
                self.live = self.has_files = True
                self.used_session = self.used_session or stateful
            case Hibernated():
                self.asleep, self.live, self.used_session = entry, False, False
            case Woken(session=session, moved=moved):
                self.asleep, self.live, self.used_session = None, session, session
                self._note_move(moved)
            case SandboxLost(moved=moved):
                self.live = self.used_session = False
                self._note_move(moved)
            case Responded(ended=True) | Failed() | Stopped() | Closed():
                self.live = False
            case _:
                pass

    def _note_move(self, moved: bool) -> None:
        self.has_files = self.has_files and not moved
        self.moves += moved

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
            case _:
                pass

    def _note_time(self, entry: ActionEntry) -> None:
        """Who spoke when, what is idle since when."""
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
            case JobStarted(kind="child", job=job, rpc=rpc):
                self.children.append(job)
                if rpc:
                    self.handles[rpc] = job
            case Reminded(job=job):
                self.reminded.add(job)
            case Responded(ended=False, at=at):
                self.idle_since = at
            case Responded() | Failed() | Stopped() | Closed():
                self.idle_since = None
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
        self.seen.add(ref)
        self.commands_taken += 1
        self.through = max(self.through, entry.through)

    def _note_the_rest(self, entry: ActionEntry) -> None:
        match entry:
            case Briefed(start=start):
                self.start = start
            case Asked(command=command):
                self.asks[command.ref] = command
            case AskAnswered(command=ref, text=text):
                self.asks.pop(ref, None)
                if self.is_child:
                    self.answered[ref] = text
                    if len(self.answered) > ANSWERS_KEPT:
                        del self.answered[next(iter(self.answered))]
            case Offered(file=file):
                self.offered.append(file)
            case EffectStarted(rpc=rpc):
                self.effects[rpc] = None
            case EffectEnded(rpc=rpc):
                self.effects[rpc] = entry
            case Responded(text=text) | Closed(text=text) | Failed(text=text) | Stopped(report=text):
                self.result = text
            case Emitted(through=through):
                forget_emitted(self.outgoing, through)
            case _:
                pass

    def _tell(self, fact: Any, values: dict[str, Any]) -> None:
        if self.start is not None:
            values = {"conversation": self.start.conversation, **values}
        if self.is_child or "conversation" not in values:
            return
        self.facts += 1
        ref = Ref(f"act-{self.key}", self.facts, 0)
        if "usd" in fact.__struct_fields__:
            values = {**values, "usd": round(self.spending.usd, 6)}
        body = fact(ref=ref, action=self.key, **values)
        self.outgoing.append(Outgoing(subject=f"evt.act.{self.key}", ref=ref, body=body))
