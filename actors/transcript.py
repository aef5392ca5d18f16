"""From an action's entries to the messages that its model sees. Pure.

The one rule that all others follow from: a call is closed exactly once, and a job ends exactly once. A job that ends
while a call waits for it closes that call; one that ends later becomes a user-role message that names it, held until no
call is open. So every prefix of the log renders validly, and each request extends the last.
"""

from collections.abc import Mapping

from actors.entries import (
    AskAnswered,
    Asked,
    Bound,
    Briefed,
    Call,
    CallClosed,
    Closed,
    Compacted,
    EffectEnded,
    EffectStarted,
    Failed,
    Generated,
    Hibernated,
    Interjected,
    JobAwaited,
    JobEnded,
    JobStarted,
    Notified,
    Nudged,
    Offered,
    Paused,
    Refused,
    Reminded,
    Responded,
    Resumed,
    SandboxLost,
    Spent,
    Stopped,
    Woken,
)
from gateway.events import Interject, Start
from gateway.journal import Emitted, Owned, Released
from gateway.llm.model import Message, said, tool_call
from gateway.record import Record

SUMMARY = """\
(Your transcript had become long. What came before, but for what people said to you, which stands above word by word, \
was replaced by this summary, which you wrote yourself:)
{summary}"""
CONTEXT = "\n\nWhat was said before, for context:\n"
UNSENT = "(Your last text went out as a remark, not as the response: this came first.)\n"
STOPS = ("stop", "give up")  # an answer to a bound that begins so
UNSEEN = (  # by its model
    Asked
    | AskAnswered
    | Refused
    | Notified
    | Offered
    | Reminded
    | Hibernated
    | EffectStarted
    | EffectEnded
    | Spent
    | Owned
    | Released
    | Emitted
)


class Illegal(Exception):
    """An entry that would make the sequence invalid for a provider."""


class TranscriptFrozen(Record, frozen=True, kw_only=True):
    """A transcript's part of a snapshot, name by name."""

    messages: list[Message]
    open: dict[str, Call]
    waits: dict[str, str]
    jobs: dict[str, JobStarted]
    draft: str | None
    calls_made: int
    jobs_made: int
    steps: int
    paused: bool
    responded: bool
    ended: bool
    winding_up: Bound
    verbatim: list[int]
    deferred: list[Message]
    notes: list[str]
    answers: list[str] = []


class Transcript:
    """`messages` is valid for a provider whenever `open` is empty."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.open: dict[str, Call] = {}  # calls without a result, in the order they were made
        self.waits: dict[str, str] = {}  # call -> job: the calls that have been started
        self.jobs: dict[str, JobStarted] = {}
        self.draft: str | None = None  # text without a call: the response, unless something comes first
        self.calls_made = 0
        self.jobs_made = 0
        self.steps = 0  # generations since a person's last word
        self.paused = False
        self.responded = False  # nothing to do until the next word
        self.ended = False
        self.winding_up: Bound = ""  # at which bound it was told to stop there and say what it has
        self._verbatim: set[int] = set()  # places of the messages that a compaction keeps word by word
        self._answers: list[str] = []  # of people: a compaction keeps them too
        self._deferred: list[Message] = []
        self._notes: list[str] = []  # answered inside running code: shown with whatever the model sees next

    def freeze(self) -> TranscriptFrozen:
        return TranscriptFrozen(
            messages=self.messages,
            open=self.open,
            waits=self.waits,
            jobs=self.jobs,
            draft=self.draft,
            calls_made=self.calls_made,
            jobs_made=self.jobs_made,
            steps=self.steps,
            paused=self.paused,
            responded=self.responded,
            ended=self.ended,
            winding_up=self.winding_up,
            verbatim=sorted(self._verbatim),
            deferred=self._deferred,
            notes=self._notes,
            answers=self._answers,
        )

    @classmethod
    def thawed(cls, kept: TranscriptFrozen) -> "Transcript":
        t = cls()
        t.messages, t.open, t.waits, t.jobs, t.draft = kept.messages, kept.open, kept.waits, kept.jobs, kept.draft
        t.calls_made, t.jobs_made, t.steps = kept.calls_made, kept.jobs_made, kept.steps
        t.paused, t.responded, t.ended = kept.paused, kept.responded, kept.ended
        t.winding_up, t._verbatim = kept.winding_up, {*kept.verbatim}
        t._deferred, t._notes, t._answers = kept.deferred, kept.notes, kept.answers
        return t

    def apply(self, entry: object) -> None:
        match entry:
            case Briefed(start=start, notes=notes, files=files):
                self._verbatim.add(len(self.messages))
                self._say(_brief(start, notes, files))
            case Nudged(text=text, empty=empty, cut=cut):
                self._say(text)
                self.steps += empty or cut
            case SandboxLost(text=text) | Woken(text=text):
                self._say(text)
            case Generated():
                self._generate(entry)
            case JobStarted(job=job, call=call):
                self.jobs[job] = entry
                self.jobs_made += 1
                if call:
                    self.waits[call] = job
            case JobAwaited(job=job, call=call):
                self.waits[call] = job
            case JobEnded():
                self._end_job(entry)
            case CallClosed(call=call, text=text):
                self._close(call, text)
            case Interjected(command=command, files=files):
                if self.open:
                    raise Illegal("an interjection closes the open calls first")
                self._verbatim.add(len(self.messages))
                self._say(f"{UNSENT if self.draft is not None else ''}{_word(command)}{with_files(files)}")
                self.responded, self.steps, self.winding_up = False, 0, ""
            case Paused() | Resumed():
                draft = self.draft  # it stays, and is sent after the resume
                self._say("[paused]" if isinstance(entry, Paused) else "[resumed]")
                self.paused, self.draft = isinstance(entry, Paused), draft
            case Responded(call=call, ended=ended):
                self.draft, self.responded, self.ended, self.winding_up = None, True, ended, ""
                if call:
                    self._close(call, "Delivered.")
            case Stopped() | Failed() | Closed():
                self.ended = True
            case Compacted(summary=summary, through=through):
                self._compact(summary, through)
            case _ if not isinstance(entry, UNSEEN):
                raise TypeError(f"an action's journal holds no {type(entry).__name__}")

    def _generate(self, generated: Generated) -> None:
        if self.open:
            raise Illegal("nothing is generated while calls are open")
        calls = [tool_call(call.id, call.name, call.arguments, call.fields) for call in generated.calls]
        if generated.text or calls:
            self.messages.append(said(generated.text, calls, generated.fields))
        self.open = {call.id: call for call in generated.calls}
        self.calls_made += len(calls)
        self.draft = generated.text if generated.text and not calls else None
        self.steps += 1

    def _end_job(self, ended: JobEnded) -> None:
        started = self.jobs.pop(ended.job)
        if started.kind == "question" and ended.command is not None:
            self.steps = 0  # a person has spoken
            self._answers += [] if started.bound else [ended.text]
        if started.bound and ended.value.strip().casefold().startswith(STOPS):
            self.winding_up = started.met or "steps"
        if started.cell in self.jobs or (started.kind == "question" and started.child in self.jobs):
            # The code or the child that asked has the answer.
            self._notes.append(ended.text)
            return
        waiting = [call for call, job in self.waits.items() if job == ended.job]
        for call in waiting:
            self._close(call, ended.text)
        if not waiting:
            self._say(ended.text)
            self.responded = False

    def _say(self, text: str) -> None:
        if self.open:  # nothing may stand between a call and its result
            self._deferred.append({"role": "user", "content": text})
            return
        self.messages.append({"role": "user", "content": "\n".join([*self._notes, text])})
        self._notes, self.draft = [], None

    def _close(self, call: str, text: str) -> None:
        if call not in self.open:
            raise Illegal(f"{call} is not open")
        del self.open[call]
        self.waits.pop(call, None)
        content = "\n".join([*self._notes, text]) or "(no output)"
        self.messages.append({"role": "tool", "tool_call_id": call, "content": content})
        self._notes = []
        if not self.open:
            self.messages += self._deferred
            self._deferred = []

    def _compact(self, summary: str, through: int) -> None:
        if self.open or any(message["role"] == "tool" for message in self.messages[through : through + 1]):
            raise Illegal("a compaction does not part a call from its result")
        kept = [self.messages[place] for place in sorted(self._verbatim) if place < through]
        later = {place - through + len(kept) + 1 for place in self._verbatim if place >= through}
        questions = [f"{job.job}: “{job.about}”" for job in self.jobs.values() if job.kind == "question"]
        text = SUMMARY.format(summary=summary)
        if questions:
            text += f"\n\nQuestions that are open: {'; '.join(questions)}"
        if self._answers:
            text += "\n\nWhat people answered, word by word:" + "".join(f"\n{one}" for one in self._answers)
        self.messages = [*kept, {"role": "user", "content": text}, *self.messages[through:]]
        self._verbatim = {*range(len(kept)), *later}

    def snapshot(self, interim: Mapping[str, str], question: str) -> list[Message]:
        """The messages of an `ask`: the transcript's own as an exact prefix, then what is true now. Changes nothing."""
        results = [
            {"role": "tool", "tool_call_id": call, "content": interim.get(call, "Not finished.")} for call in self.open
        ]
        return [*self.messages, *results, *self._deferred, {"role": "user", "content": question}]


def with_files(files: tuple[str, ...]) -> str:
    """Below a person's words, each with how it begins."""
    lines = (line.partition("\n") for line in files)
    return "".join(f"\n  [file: {named}]{newline}{beginning}" for named, newline, beginning in lines)


def _brief(start: Start, notes: tuple[str, ...], files: tuple[str, ...]) -> str:
    kept = "".join(f"\n- {note}" for note in notes)
    noted = f"\n\nNotes from earlier tasks (they may be out of date):{kept}" if notes else ""
    said = f"{CONTEXT}{start.context}" if start.context else ""
    return f"[task from {start.by.name}] {_indented(start.query)}{with_files(files)}{noted}{said}"


def _word(command: Interject) -> str:
    at = f", {command.at.strftime('%a %H:%M')} UTC" if command.at else ""
    via = f" on {command.via}" if command.via else ""
    return f"[{command.by.name}{via}{at}] {_indented(command.text)}"


def _indented(text: str) -> str:
    """So that no line of a text from outside can look like another person's word."""
    return "\n  ".join(text.strip().splitlines())
