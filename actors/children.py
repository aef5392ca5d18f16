"""The children of one action: born, steered with their parent, and heard by it. A tree has one holder, in one process.

What a parent tells a child is written in the child's own journal; the refs are made from the parent's, so that telling
it again after a crash is harmless.
"""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import msgspec

from actors import calls
from actors.entries import JobStarted
from actors.inbox import Gone
from actors.parent import Parent, ParentLink, child_key
from actors.words import ChildAnswered
from gateway.events import ActionCommand, Answer, Ask, Interject, Pause, Person, Ref, Resume, Start, Stop
from gateway.journal import JournalClosed

if TYPE_CHECKING:
    from actors.actor import Actor


Opens = Callable[[str, Parent], Awaitable["Actor"]]
Settles = Callable[[str], Awaitable[None]]

ASK_TRIES = 3


def own_voice(start: Start) -> Person:
    """As whom a worker speaks to those below it: with the rights of its person."""
    return Person(address=start.by.address, name=f"the worker for {start.by.name}")


class Children:
    """Of one actor. `opens` folds a child's journal and lets it run; `settles` waits until its broken loop has an end,
    or raises Deposed."""

    def __init__(self, opens: Opens, settles: Settles) -> None:
        self._opens, self._settles = opens, settles
        self._of: dict[str, Actor] = {}

    def works(self, job: str) -> bool:
        return job in self._of

    async def begin(self, actor: "Actor", query: str, name: str, *, only: str = "", **waiting: str | None) -> None:
        """`waiting` says what waits for it. Raises calls.NotRun at a bound."""
        limits, start = actor.work.limits, actor.state.start
        assert start is not None
        if actor.only:
            raise calls.NotRun("you only read, and start no workers")
        if not calls.words("query", query).strip():
            raise calls.NotRun("query is missing")
        if start.depth >= limits.max_depth:
            raise calls.NotRun(f"workers may not nest deeper than {limits.max_depth}; do this part yourself")
        if sum(job.kind == "child" for job in actor.transcript.jobs.values()) >= limits.max_children:
            raise calls.NotRun(f"{limits.max_children} workers are busy for you already; wait for one")
        job = JobStarted(
            job=f"child{actor.transcript.jobs_made + 1}",
            kind="child",
            about=query,
            name=name,
            only=only,
            **waiting,  # type: ignore[arg-type]
        )
        await actor.append(job)
        await self.start(actor, job)

    async def start(self, actor: "Actor", job: JobStarted) -> None:
        """Also after a restart: a child that was born already recognises its own start."""
        parent = actor.state.start
        assert parent is not None
        child = await self._opened(actor, job.job)
        ref = Ref(f"act-{actor.key}/jobs", int(job.job.removeprefix("child")), 0)
        await self._tell(
            job.job,
            Start(
                ref=ref,
                conversation=parent.conversation,
                action=child.key,
                by=parent.by,
                name=job.name or "part",
                query=job.about,
                context=parent.context,
                persist=False,
                depth=parent.depth + 1,
                only=job.only,
                files=() if job.only else parent.files,
            ),
        )
        if actor.transcript.paused:  # born in its parent's state
            born = Ref(f"act-{actor.key}/born", ref.batch, 0)
            await self._tell(job.job, Pause(ref=born, conversation=parent.conversation, action=child.key, by=parent.by))

    async def cascade(self, actor: "Actor") -> None:
        """The last word, to the children that work. Again after a restart: its ref stays the same."""
        word = actor.state.last_word
        assert word is not None
        ref = Ref(f"act-{actor.key}/cascade", actor.state.last_word_at, 0)
        for job in list(self._of):
            if job in actor.transcript.jobs:
                await self._tell(job, _passed_on(word, ref, child_key(actor.key, job)))

    async def end(self, actor: "Actor") -> None:
        """Those that its own end left open end with it, also if it was interrupted at that."""
        start = actor.state.start
        for job in [job.job for job in actor.transcript.jobs.values() if job.kind == "child"]:
            assert start is not None
            if job not in self._of:
                await self._opened(actor, job)
            ref, key = Ref(f"act-{actor.key}/end", 1, 0), child_key(actor.key, job)
            if not self._of[job].transcript.ended:
                await self._tell(job, Stop(ref=ref, conversation=start.conversation, action=key, by=start.by))

    async def _opened(self, actor: "Actor", job: str) -> "Actor":
        self._of[job] = child = await self._opens(child_key(actor.key, job), ParentLink(actor))
        return child

    async def steer(self, actor: "Actor", job: str, verb: str, text: str, ref: Ref) -> None:
        """The parent's own word to one child."""
        start = actor.state.start
        assert start is not None
        by, key = own_voice(start), child_key(actor.key, job)
        match verb:
            case "interject":
                command: ActionCommand = Interject(
                    ref=ref, conversation=start.conversation, action=key, by=by, text=text, at=actor.work.now()
                )
            case "pause":
                command = Pause(ref=ref, conversation=start.conversation, action=key, by=by)
            case "resume":
                command = Resume(ref=ref, conversation=start.conversation, action=key, by=by)
            case _:
                command = Stop(ref=ref, conversation=start.conversation, action=key, by=by, why=text)
        await self._tell(job, command)

    async def ask(self, actor: "Actor", ask: JobStarted) -> None:
        """Also of one that has ended, and again after a restart: what it has answered it tells again."""
        start = actor.state.start
        assert start is not None
        assert ask.child is not None
        command = Ask(
            ref=Ref(f"act-{actor.key}/asks", int(ask.job.removeprefix("ask")), 0),
            conversation=start.conversation,
            action=child_key(actor.key, ask.child),
            by=own_voice(start),
            text=ask.about,
        )
        for _ in range(ASK_TRIES):
            child = self._of.get(ask.child) or await self._opened(actor, ask.child)
            try:
                await child.hear(command)
            except (Gone, JournalClosed):
                self._of.pop(ask.child, None)
            else:
                return
        actor.happened(ChildAnswered(job=ask.child, command=command.ref, text="It cannot be asked: it does not open."))

    def wake(self) -> None:
        """Something that they may have waited for has changed, above."""
        for child in self._of.values():
            child.wake()
            child.children.wake()

    async def answer(self, actor: "Actor", job: str, question: str, given: Answer) -> None:
        """Down the path that the question came up."""
        ref = Ref(f"act-{actor.key}/answers", actor.state.commands_taken, 0)
        key = child_key(actor.key, job)
        await self._tell(
            job,
            Answer(
                ref=ref, conversation=given.conversation, action=key, by=given.by, question=question, text=given.text
            ),
        )

    def forget(self, job: str) -> None:
        self._of.pop(job, None)

    async def _tell(self, job: str, command: ActionCommand) -> None:
        child = self._of[job]
        try:
            await child.hear(command)
        except (Gone, JournalClosed):  # it has ended: its end is on the way, or is told again when the tree is folded
            if not child.transcript.ended:  # nothing more is heard here before that: this word is the one told again
                await self._settles(child.key)


def _passed_on(command: Interject | Pause | Resume | Stop, ref: Ref, key: str) -> Interject | Pause | Resume | Stop:
    return msgspec.structs.replace(command, ref=ref, action=key)
