"""The loop of one action. All control flow is in `_loop`; what comes next is decided by `transcript.next_step`.

One task owns the journal, spawning and cascading. Everything else (code, children, timers, effects) only puts a
happening into the inbox. Only a generation is ever cancelled. Times (a question's, an idle session's) are looked up in
the fold whenever the loop rests, so a restart forgets none.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine
from datetime import datetime
from functools import partial
from typing import Any, assert_never

import msgspec

from actors import bounds, calls, commands, compaction, effects, happenings, idle, prompt
from actors.children import Children, Gone, Parent
from actors.entries import (
    ActionEntry,
    Call,
    CallClosed,
    Generated,
    JobStarted,
    Nudged,
    Reminded,
    Responded,
    Spent,
)
from actors.journal import ActionState
from actors.sandbox.stubs import Stub
from actors.tools import TOOLS
from actors.transcript import End, Generate, Respond, Rest, StartCall, Transcript, next_step
from actors.words import BESIDE, Happened
from actors.workshop import Workshop
from gateway.events import ActionCommand, Ask
from gateway.journal import Journal
from gateway.llm.model import Generation, Message, ModelError, RawCall, Request, Usage, parsed_arguments

log = logging.getLogger(__name__)

MODEL_TRIES = 5
MODEL_PAUSE_SECONDS = 5.0
NUDGE = "Nothing came. Call a tool, or respond with text."


class Actor:
    """`wanted` says that a command is on its way: whatever has ended or sleeps waits for it. `stirred` is called when
    it may have become idle, or has processes."""

    def __init__(
        self,
        key: str,
        journal: Journal[ActionState],
        work: Workshop,
        children: Children,
        parent: Parent | None,
        *,
        wanted: Callable[[], bool],
        stirred: Callable[[], None],
    ) -> None:
        self._wanted, self._stirred = wanted, stirred
        self.key, self.journal, self.work, self.children, self.parent = key, journal, work, children, parent
        self.box = work.box(key, self.happened)
        self.effects_running: set[str] = set()  # rpcs
        self.going_to_sleep = False
        self.tools = TOOLS
        self._instructions: Message | None = None
        self._mail: deque[tuple[ActionCommand, int, asyncio.Future[None]]] = deque()
        self._inbox: deque[Happened] = deque()
        self._changed = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._gone = False
        self._model_failures = 0
        self._compact_at = work.limits.compact_tokens

    @property
    def state(self) -> ActionState:
        return self.journal.state

    @property
    def transcript(self) -> Transcript:
        return self.journal.state.transcript

    @property
    def only(self) -> str:
        """The one family of primitives that it may use; "" for all."""
        return self.state.start.only if self.state.start else ""

    @property
    def stubs(self) -> list[Stub]:
        return prompt.stubs(self.work.primitives.values(), self.only)

    @property
    def instructions(self) -> Message:
        if self._instructions is None:
            text = prompt.instructions(self.work.primitives.values(), self.only) + self.work.told
            self._instructions = {"role": "system", "content": text}
        return self._instructions

    @property
    def held(self) -> bool:
        return bounds.held(self)

    @property
    def has_mail(self) -> bool:
        return bool(self._mail)

    async def hear(self, command: ActionCommand, sequence: int = 0) -> None:
        """Returns once it is in the log. Raises Gone, or JournalClosed: then it must be given again after a fold."""
        if self._gone:
            raise Gone(self.key)
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._mail.append((command, sequence, future))
        self._changed.set()
        await future

    def happened(self, happening: Happened) -> None:
        self._inbox.append(happening)
        self._changed.set()

    def wake(self) -> None:
        self._changed.set()

    async def append(self, entry: ActionEntry) -> None:
        await self.journal.write(lambda _: entry)
        if isinstance(entry, JobStarted | Responded):
            self._stirred()

    async def close_call(self, call: Call, text: str) -> None:
        await self.append(CallClosed(call=call.id, text=text))

    def spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        """A task that only ever ends in a happening."""
        task = asyncio.create_task(work, name=f"{name} of {self.key}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # --- the loop ----------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Until the action has ended and all that came for it is answered."""
        try:
            async with asyncio.TaskGroup() as group:
                writing = group.create_task(self.journal.run())
                await self._loop()
                await self.journal.until(lambda state: not state.outgoing)
                writing.cancel()
        finally:
            self._gone = True
            for task in list(self._tasks):
                task.cancel()
            for _, _, future in self._mail:
                if not future.done():
                    future.set_exception(Gone(self.key))
                    future.exception()
            await self.box.close()

    async def _loop(self) -> None:
        await happenings.recover(self)
        while True:
            await self._drain()
            await self._see_to_the_clock()
            match next_step(self.transcript):
                case Generate():
                    await self._go_on()
                case StartCall(call):
                    if not await self.drain_commands():
                        await calls.start(self, call)
                case Respond(text):
                    if not await self.drain_commands():
                        await self.respond(text, None)
                case Rest():
                    if self.state.phase == "hibernated" and await self._let_go():
                        return
                    await self.something_happens()
                case End():
                    await self.children.end(self)
                    if await self._let_go():
                        await self.box.kill()
                        return
                    await self.something_happens()
                case _ as never:
                    assert_never(never)

    async def _go_on(self) -> None:
        """The next generation, or what must come before it."""
        if self.state.asleep is not None:
            await idle.wake(self)
        elif self.transcript.winding_up:
            await bounds.wind_up(self)
        elif self.held:
            await self.something_happens()
        elif not await bounds.gave_up(self) and not await bounds.met(self):
            if compaction.due(self.transcript, self._compact_at):
                await self._compact()
            else:
                await self._generate()

    async def _drain(self) -> None:
        while self._inbox:
            await happenings.take(self, self._inbox.popleft())
        while self._mail:
            command, sequence, future = self._mail[0]
            await self._obey(command, sequence)
            self._mail.popleft()
            if not future.done():
                future.set_result(None)

    async def drain_commands(self) -> bool:
        """What is durable in `cmd` already, though its delivery has not come yet. True if there was anything new."""
        if self.parent is not None:
            return False
        waiting = await self.work.waiting(self.key, self.state.through)
        new = [(sequence, command) for sequence, command in waiting if not self.state.knows(command.ref)]
        for sequence, command in new:
            await self._obey(command, sequence)
        return bool(new)

    async def _obey(self, command: ActionCommand, sequence: int) -> None:
        if not self.state.knows(command.ref):
            await commands.obey(self, command, sequence)
        elif self.parent is not None and (told := self.state.answered.get(command.ref)) is not None:
            self.parent.child_answered(self.key, command.ref, told)

    async def something_happens(self) -> None:
        """Or the next thing is due by the clock."""
        self._changed.clear()
        if self._inbox or self._mail:
            return
        waiting: set[asyncio.Future[Any]] = {asyncio.ensure_future(self._changed.wait())}
        if (due := self._next_due()) is not None:
            seconds = max(0.0, (due - self.work.now()).total_seconds())
            waiting.add(asyncio.ensure_future(self._until(seconds)))
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in waiting:
                one.cancel()

    async def _until(self, seconds: float) -> None:
        await self.work.sleep(seconds)

    async def _let_go(self) -> bool:
        """True when nothing is left to be answered: the loop ends, and the next command opens the action again."""
        if self.state.asks or self._mail or self._inbox or self._wanted():
            return False
        self._gone = True
        return True

    # --- the clock ---------------------------------------------------------------------------------------------------

    def _due(self) -> list[tuple[datetime, Callable[[], Coroutine[Any, Any, None]]]]:
        """What is to be done, and when."""
        found: list[tuple[datetime, Callable[[], Coroutine[Any, Any, None]]]] = []
        state, limits = self.state, self.work.limits
        if self.transcript.ended:
            return found
        for job in self.transcript.jobs.values():
            if job.expires_at is not None and not job.child:
                found.append((job.expires_at, partial(commands.expire, self, job)))
            if job.remind_at is not None and self.parent is None and job.job not in state.reminded:
                found.append((job.remind_at, partial(self.append, Reminded(job=job.job))))
        if state.idle_since is not None and state.phase in ("awaiting_input", "hibernated"):
            found.append((state.idle_since + limits.close_after, partial(idle.close, self)))
            if idle.is_idle(self):
                found.append((state.idle_since + limits.hibernate_after, partial(idle.hibernate, self)))
        return found

    def _next_due(self) -> datetime | None:
        return min((at for at, _ in self._due()), default=None)

    async def _see_to_the_clock(self) -> None:
        while (due := min(self._due(), key=lambda one: one[0], default=None)) and due[0] <= self.work.now():
            before = self.state.transcript.jobs.keys(), self.state.phase, len(self.state.reminded)
            await due[1]()
            if before == (self.state.transcript.jobs.keys(), self.state.phase, len(self.state.reminded)):
                return  # something came first

    # --- generating --------------------------------------------------------------------------------------------------

    async def _generate(self) -> None:
        generation = await self._asked()
        if generation is None:
            return
        if generation.text.strip() or generation.calls:
            await self._record(generation)
        else:
            self.spent(generation.model, generation.usage)
            await self.append(Nudged(text=NUDGE, empty=True))

    async def say_what_you_have(self) -> bool:
        """One answer without any call; false when something came first."""
        generation = await self._asked(tool_choice="none")
        if generation is None:
            return False
        if generation.text.strip():
            await self._record(msgspec.structs.replace(generation, calls=()))
        return True

    async def _compact(self) -> None:
        """In a call of its own, which a command cuts short as it does any generation."""
        before, limit = len(self.transcript.messages), self.work.limits.compact_tokens
        generation = await self._asked({"role": "user", "content": compaction.ASKED}, tool_choice="none")
        if generation is None:
            return
        self.spent(generation.model, generation.usage)
        entry = compaction.compacted(generation.text, self.transcript.messages[:before], limit)
        if entry is not None:
            await self.append(entry)
        self._compact_at = max(limit, int(compaction.size(self.transcript.messages) * compaction.AGAIN_SHARE))

    async def _asked(self, *more: Message, tool_choice: str = "auto") -> Generation | None:
        """Races one generation against the commands. An `ask` is answered beside it; all others cancel it."""
        messages = [self.instructions, *self.transcript.messages, *more]
        request = Request(messages=messages, tools=self.tools, tool_choice=tool_choice)
        generating = asyncio.create_task(self.work.model.generate(request, self.spent))
        if not await self.unless_something_comes(generating):
            return None
        try:
            generation = generating.result()
        except ModelError as error:
            await self._bear(error)
            return None
        self._model_failures = 0
        return generation

    async def unless_something_comes(self, work: "asyncio.Task[Any]") -> bool:
        """True once `work` is done; false when a command came first, which has cancelled it."""
        try:
            while not work.done():
                self._changed.clear()
                if any(not isinstance(command, Ask) for command, _, _ in self._mail):
                    return False
                await self._drain_beside()
                changed = asyncio.create_task(self._changed.wait())
                try:
                    await asyncio.wait({work, changed}, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    changed.cancel()
        finally:
            work.cancel()
            await asyncio.wait({work})
        return not work.cancelled()

    async def _drain_beside(self) -> None:
        """What can be done while something is generated, because its model is shown nothing of it: all but the ends of
        jobs."""
        for happening in [one for one in self._inbox if isinstance(one, BESIDE)]:
            self._inbox.remove(happening)
            await happenings.take(self, happening)
        while self._mail and isinstance(self._mail[0][0], Ask):
            command, sequence, future = self._mail[0]
            await self._obey(command, sequence)
            self._mail.popleft()
            if not future.done():
                future.set_result(None)

    def spent(self, model: str, usage: Usage) -> None:
        """What brought no entry of its own."""
        task = asyncio.ensure_future(self.append(Spent(usage=usage, model=model)))
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        self.tell_spent(model, usage)

    async def _record(self, generation: Generation) -> None:
        made = [self._call(n, raw) for n, raw in enumerate(generation.calls)]
        await self.append(
            Generated(
                text=generation.text.strip(),
                calls=tuple(made),
                fields=generation.fields,
                model=generation.model,
                usage=generation.usage,
            )
        )
        self.tell_spent(generation.model, generation.usage)

    def _call(self, n: int, raw: RawCall) -> Call:
        safe, arguments = parsed_arguments(raw.arguments)
        refused = ""
        if not raw.complete:
            refused = "the call was cut off; make it again, whole"
        elif arguments is None:
            refused = "the arguments are no JSON object"
        call_id = f"c{self.transcript.calls_made + n:08d}"
        return Call(id=call_id, name=raw.name, arguments=safe, fields=raw.fields, refused=refused)

    async def _bear(self, error: ModelError) -> None:
        """Tries again for a while, still listening; then says so. A session is kept: it can be told to go on."""
        self._model_failures += 1
        if error.retryable and self._model_failures < MODEL_TRIES:
            pause = MODEL_PAUSE_SECONDS * 2 ** (self._model_failures - 1)
            self._changed.clear()
            if not self._mail:
                waiting = asyncio.create_task(self._changed.wait())
                await asyncio.wait({waiting}, timeout=pause)
                waiting.cancel()
            return
        self._model_failures = 0
        self.work.operator(f"The action {self.key} cannot go on. {error.for_operator}")
        await bounds.without_model(self)

    async def respond(self, text: str, call: str | None) -> None:
        assert self.state.start is not None
        ended = not self.state.start.persist
        await self.append(Responded(text=text, call=call, ended=ended, at=self.work.now()))
        self.tell_parent()

    # --- what goes up and down ---------------------------------------------------------------------------------------

    async def ask_person(self, question: JobStarted) -> None:
        await self.append(question)
        self.tell_question(question)

    def tell_question(self, question: JobStarted) -> None:
        if self.parent is not None:
            self.parent.child_asked(self.key, question)

    def tell_progress(self, text: str) -> None:
        if self.parent is not None:
            self.parent.child_progressed(self.key, text)

    def tell_parent(self) -> None:
        if self.parent is not None and self.transcript.ended:
            state = self.state
            self.parent.child_ended(self.key, state.result, state.phase, state.spending, tuple(state.offered))

    def tell_spent(self, model: str, usage: Usage) -> None:
        if self.parent is not None:
            self.parent.child_spent(self.key, model, usage)

    def answer_code(self, job: JobStarted, text: str, *, failed: bool = False) -> None:
        """To the code that asked, if it was code."""
        if job.rpc:
            effects.answer_code(self, job.rpc, text, failed)

    def answer_again(self, ask: Ask) -> None:
        commands.answer_beside(self, ask)

    async def start_child(self, query: str, name: str, *, only: str = "", **waiting: str | None) -> None:
        """`waiting` says what waits for it. Raises calls.NotRun at a bound."""
        limits, start = self.work.limits, self.state.start
        assert start is not None
        if self.only:
            raise calls.NotRun("you only read, and start no workers")
        if not query.strip():
            raise calls.NotRun("query is missing")
        if start.depth >= limits.max_depth:
            raise calls.NotRun(f"workers may not nest deeper than {limits.max_depth}; do this part yourself")
        if sum(job.kind == "child" for job in self.transcript.jobs.values()) >= limits.max_children:
            raise calls.NotRun(f"{limits.max_children} workers are busy for you already; wait for one")
        job = JobStarted(
            job=f"child{self.transcript.jobs_made + 1}",
            kind="child",
            about=query,
            name=name,
            only=only,
            **waiting,  # type: ignore[arg-type]
        )
        await self.append(job)
        await self.children.start(self, job)
