"""The worker's rules: the transcript, read as a model reads it, to the next call or the response. Pure.

What people said becomes a row of jobs. A correction changes the job that is not done yet; a follow-up waits its turn.
"""

import re

import msgspec

from frontdesk.rehearsal import code, words
from frontdesk.rehearsal.answers import call, calls, say
from gateway.llm.model import Generation, Message, Request

CAN = "I can compute totals or averages, gross or net, by region or product, for a month, and send a result by mail."
ABSENT = (
    "There is nothing here that I could work with: figures and mail come with the demo (`make demo`). "
    "The rehearsal model is for trying all but the work."
)
_WORD = re.compile(r"^(?:\(Your last text[^\n]*\n)?\[(?!paused\]|resumed\])([^\]]+)\] (.*)", re.DOTALL)
_CELL = re.compile(r"^(cell\d+) (ended: (\w+)|still runs|is lost)", re.MULTILINE)


class Job(msgspec.Struct):
    """A figure, a mail (`recipient`), or something not understood (`unclear`)."""

    texts: list[str]
    recipient: str = ""
    hints: list[str] = []
    unclear: str = ""
    stale: bool = False  # it was changed while its code ran
    done: bool = False
    reported: bool = False
    result: str = ""


class Work:
    """All jobs so far, and the code that runs."""

    def __init__(self, messages: list[Message]) -> None:
        self.jobs: list[Job] = []
        self.running: str | None = None
        self._at: Job | None = None
        self._wrote_code = False
        for message in messages:
            content = str(message.get("content") or "")
            if message["role"] == "assistant":
                self._did(message, content)
            elif message["role"] == "user" and (word := _WORD.match(content)):
                if " asks, beside the work" not in word[1]:
                    self._hear(word[2].partition("\n\nWhat was said before")[0])
            else:
                self._came(content)

    @property
    def next(self) -> Job | None:
        return next((job for job in self.jobs if not job.done), None)

    @property
    def unreported(self) -> list[Job]:
        return [job for job in self.jobs if job.done and not job.reported]

    @property
    def at(self) -> Job | None:
        return self._at

    def _hear(self, text: str) -> None:
        current = next((job for job in reversed(self.jobs) if not job.done), None)
        recipient = words.recipient(text)
        if recipient is not None:
            self.jobs.append(Job(texts=[], recipient=recipient))
        elif words.named_spec(text) or words.is_work(text):
            if current is not None and not current.recipient and not words.is_next(text):
                current.texts.append(text)
                current.stale = current is self._at
            else:
                self.jobs.append(Job(texts=[*self._figures(), text]))
        elif current is not None and current.recipient:
            current.hints.append(text)
            current.stale = current is self._at
        else:
            self.jobs.append(Job(texts=[], unclear=text, done=True, result=f"I don't understand “{text}”. {CAN}"))

    def _figures(self) -> list[str]:
        """What was wanted last: a follow-up names only what is different."""
        return next((job.texts for job in reversed(self.jobs) if job.texts), [])

    def _did(self, message: Message, content: str) -> None:
        made = [entry["function"] for entry in message.get("tool_calls") or ()]
        if content or any(one["name"] == "notify" for one in made):
            for job in self.unreported:
                job.reported = True
        self._wrote_code = any(one["name"] == "execute_code" for one in made)
        if self._wrote_code:
            self._at = self.next
            if self._at is not None:
                self._at.stale = False

    def _came(self, content: str) -> None:
        found = _CELL.search(content)
        if found is None:
            if content.startswith("Not run:") and self._wrote_code:
                self._finish(f"That did not work: {content}")
            return
        self.running = found[1] if found[2] == "still runs" else None
        if self.running is None and self._at is not None and self._at.stale and not self._at.recipient:
            self._at = None  # it had ended before it could be interrupted: these figures are not wanted any more
        elif found[3] == "ok":
            self._finish(content[found.end() :].partition("\n")[2].strip() or "Done; there was no output.")
        elif found[3] in ("error", "exit"):
            absent = "there is no primitives." in content
            self._finish(ABSENT if absent else f"That did not work: {_last_line(content)}")
        elif self.running is None:
            self._at = None  # interrupted or lost: it is begun again

    def _finish(self, result: str) -> None:
        if self._at is not None:
            self._at.done, self._at.result = True, result
        self._at, self.running = None, None


def decide(request: Request, pace_seconds: float) -> Generation:
    work = Work([message for message in request.messages if message["role"] != "system"])
    if request.tool_choice == "none":
        return say(_beside(work))
    if work.running is not None and work.at is not None:
        tool = call("interrupt_code", cell=work.running) if work.at.stale else None
        return calls(tool or call("continue_code", cell=work.running, seconds=60))
    told = "\n\n".join(job.result for job in work.unreported)
    job = work.next
    if job is None:
        return say(told or "There is nothing to do.")
    run = call("execute_code", code=_code(job, pace_seconds), stateful=True)
    return calls(call("notify", text=told), run) if told else calls(run)


def _code(job: Job, pace_seconds: float) -> str:
    if job.recipient:
        return code.mail(job.recipient, job.hints)
    return code.compute(words.figure(job.texts), pace_seconds)


def _beside(work: Work) -> str:
    done = sum(job.done for job in work.jobs)
    at = next((job for job in work.jobs if not job.done), None)
    if at is None:
        return f"Nothing is open; {done} pieces of work are done."
    what = f"sending it to {at.recipient}" if at.recipient else words.title(words.figure(at.texts))
    return f"I'm at “{what}”, and {done} pieces of work are done."


def _last_line(content: str) -> str:
    lines = [line for line in content.splitlines() if line.strip()]
    return re.sub(r"^\w*(Error|Exception): ", "", lines[-1]) if lines else content
