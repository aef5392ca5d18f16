"""The fold of an action's journal: its transcript, its commands, its effects, and the facts that it tells upward.

Pure. A child tells nothing to a lane: what it has to say goes to its parent, in the same process.
"""

from typing import Any

from actors.entries import (
    ActionEntry,
    AskAnswered,
    Asked,
    Briefed,
    EffectEnded,
    EffectStarted,
    Failed,
    Generated,
    Interjected,
    JobEnded,
    JobStarted,
    Notified,
    Paused,
    Refused,
    Responded,
    Resumed,
    SandboxLost,
    Stopped,
)
from actors.transcript import Transcript
from gateway.actions import Phase
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
    Interject,
    Pause,
    Ref,
    Resume,
    Start,
    Stop,
)
from gateway.journal import Emitted, Outgoing, forget_emitted
from gateway.seen import Seen

DOING_CHARACTERS = 120


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
        self.answers: dict[str, str] = {}  # rpc -> the answer that ended it, while its code may ask again
        self.effects: dict[str, EffectEnded | None] = {}  # rpc -> its end, None while nobody knows
        self.used_session = False  # the stateful session: what a lost sandbox takes with it
        self.child_questions: dict[tuple[str, str], JobStarted | JobEnded] = {}  # (child, its question) -> as it stands
        self.last_word: Interject | Pause | Resume | Stop | None = None  # handed down again after a restart
        self.last_word_at = 0  # which of the commands it was
        self.result = ""
        self.code: list[tuple[str, str]] = []  # cell, what ran
        self._seen = Seen()
        self._facts = 0

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
            self.answers[rpc] = entry.value
        self._note_child_question(entry)
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
            case JobStarted(kind="question", job=job, about=text, options=options):
                self._fact(ClarificationRequested, question=job, text=text, options=options)
            case JobEnded():
                self._tell_end_of_job(entry)
            case Interjected() if self.phase == "awaiting_input":
                self._change("running", "taking up what was said")
            case Paused():
                self._change("paused")
            case Resumed():
                self._change("running")
            case Asked(command=command):
                self.asks[command.ref] = command
            case AskAnswered(command=ref, asked=asked, text=text):
                self.asks.pop(ref, None)
                self._fact(ActionAnswered, command=ref, asked=asked, text=text)
            case Refused(command=ref, verb=verb, why=why):
                self._fact(CommandRefused, command=ref, verb=verb, why=why)
            case Notified(text=text, quiet=True):
                self._change(doing=text)
            case Notified(text=text):
                self._fact(ActionProgressed, text=text)
            case Responded(text=text, ended=False):
                self.phase, self.result = "awaiting_input", text
                self._fact(ActionResponded, text=text)
            case Responded(text=text):
                self._end("succeeded", text)
            case Failed(text=text):
                self._end("failed", text)
            case Stopped(report=report):
                self._end("stopped", report)
            case EffectStarted(rpc=rpc):
                self.effects[rpc] = None
            case EffectEnded(rpc=rpc):
                self.effects[rpc] = entry
            case Emitted(through=through):
                forget_emitted(self.outgoing, through)
            case _:
                pass

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
