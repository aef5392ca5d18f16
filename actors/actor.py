"""The loop of one action. All control flow is in `_loop`; what comes next is decided by `transcript.next_step`.

One task owns the journal, spawning and cascading. Everything else (code, children, timers, effects) only puts a
happening into the inbox. Only a generation is ever cancelled.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, assert_never

from actors import calls, commands, happenings, prompt
from actors.children import Children, Gone, Parent
from actors.entries import (
    ActionEntry,
    Call,
    CallClosed,
    Failed,
    Generated,
    JobStarted,
    Nudged,
    Responded,
    Spent,
)
from actors.journal import ActionState
from actors.tools import TOOLS
from actors.transcript import End, Generate, Respond, Rest, StartCall, Transcript, next_step
from actors.words import AskDone, Happened
from actors.workshop import Workshop
from gateway.events import ActionCommand, Ask
from gateway.journal import Journal
from gateway.llm.model import Generation, Message, ModelError, RawCall, Request, Usage, parsed_arguments

log = logging.getLogger(__name__)

EMPTY_MAX = 2  # generations without anything, before the action says so
REFUSED_MAX = 3  # generations in a row whose calls could not run
MODEL_TRIES = 5
MODEL_PAUSE_SECONDS = 5.0
NUDGE = "Nothing came. Call a tool, or respond with text."


class Actor:
    """`wanted` says that a command is on its way: whatever has ended waits for it."""

    def __init__(
        self,
        key: str,
        journal: Journal[ActionState],
        work: Workshop,
        children: Children,
        parent: Parent | None,
        *,
        wanted: Callable[[], bool],
    ) -> None:
        self._wanted = wanted
        self.key, self.journal, self.work, self.children, self.parent = key, journal, work, children, parent
        self.box = work.box(key, self.happened)
        self.effects_running: set[str] = set()  # rpcs
        self.tools = TOOLS
        self.instructions: Message = {"role": "system", "content": prompt.instructions(work.primitives.values())}
        self._mail: deque[tuple[ActionCommand, int, asyncio.Future[None]]] = deque()
        self._inbox: deque[Happened] = deque()
        self._changed = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._gone = False
        self._empty = self._refused = self._model_failures = 0
        self._word_at = asyncio.get_running_loop().time()

    @property
    def state(self) -> ActionState:
        return self.journal.state

    @property
    def transcript(self) -> Transcript:
        return self.journal.state.transcript

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
            match next_step(self.transcript):
                case Generate():
                    if not await self._ask_at_a_bound():
                        await self._generate()
                case StartCall(call):
                    if not await self.drain_commands():
                        await calls.start(self, call)
                case Respond(text):
                    if not await self.drain_commands():
                        await self.respond(text, None)
                case Rest():
                    await self._something_happens()
                case End():
                    if await self._wind_up():
                        return
                case _ as never:
                    assert_never(never)

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
            if not isinstance(command, Ask):
                self._word_at = asyncio.get_running_loop().time()
            await commands.obey(self, command, sequence)

    async def _something_happens(self) -> None:
        self._changed.clear()
        if not (self._inbox or self._mail):
            await self._changed.wait()

    async def _wind_up(self) -> bool:
        """Children first (a stop has been cascaded to them); then what is being asked. True when nothing is left."""
        await self.children.end(self)
        if not self.state.asks and not self._mail and not self._wanted():
            await self.box.kill()
            self._gone = True
            return True
        await self._something_happens()
        return False

    # --- generating --------------------------------------------------------------------------------------------------

    async def _generate(self) -> None:
        """Race one generation against the commands. An `ask` is answered beside it; all others cancel it."""
        request = asyncio.create_task(self._ask_model())
        try:
            while not request.done():
                self._changed.clear()
                if any(not isinstance(command, Ask) for command, _, _ in self._mail):
                    return
                await self._drain_asks()
                changed = asyncio.create_task(self._changed.wait())
                try:
                    await asyncio.wait({request, changed}, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    changed.cancel()
        finally:
            request.cancel()
            await asyncio.wait({request})
        try:
            generation = request.result()
        except ModelError as error:
            await self._bear(error)
        else:
            self._model_failures = 0
            await self._record(generation)

    async def _drain_asks(self) -> None:
        """What is asked, and what it came to: neither is rendered, so the generation goes on."""
        while self._mail and isinstance(self._mail[0][0], Ask):
            command, sequence, future = self._mail[0]
            await self._obey(command, sequence)
            self._mail.popleft()
            if not future.done():
                future.set_result(None)
        for answered in [one for one in self._inbox if isinstance(one, AskDone)]:
            self._inbox.remove(answered)
            await happenings.take(self, answered)

    async def _ask_model(self) -> Generation:
        request = Request(messages=[self.instructions, *self.transcript.messages], tools=TOOLS)
        return await self.work.model.generate(request, self.spent)

    def spent(self, model: str, usage: Usage) -> None:
        entry = Spent(usage=usage, model=model)
        task = asyncio.ensure_future(self.append(entry))
        task.add_done_callback(lambda done: done.cancelled() or done.exception())

    async def _record(self, generation: Generation) -> None:
        text = generation.text.strip()
        if not text and not generation.calls:
            await self._nudge()
            return
        self._empty = 0
        made = [self._call(n, raw) for n, raw in enumerate(generation.calls)]
        self._refused = self._refused + 1 if made and all(call.refused for call in made) else 0
        await self.append(
            Generated(
                text=text,
                calls=tuple(made),
                fields=generation.fields,
                model=generation.model,
                usage=generation.usage,
            )
        )
        if self._refused >= REFUSED_MAX:
            for call in made:
                await self.close_call(call, f"Not run: {call.refused}.")
            await self.give_up("My model keeps writing calls that cannot be run.")

    def _call(self, n: int, raw: RawCall) -> Call:
        safe, arguments = parsed_arguments(raw.arguments)
        refused = ""
        if not raw.complete:
            refused = "the call was cut off; make it again, whole"
        elif arguments is None:
            refused = "the arguments are no JSON object"
        call_id = f"c{self.transcript.calls_made + n:08d}"
        return Call(id=call_id, name=raw.name, arguments=safe, fields=raw.fields, refused=refused)

    async def _nudge(self) -> None:
        self._empty += 1
        if self._empty <= EMPTY_MAX:
            await self.append(Nudged(text=NUDGE))
        else:
            self._empty = 0
            await self.give_up("My model answered nothing, several times.")

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
        await self.give_up("My model cannot be reached or is not set up right; the person who runs me has been told.")

    async def give_up(self, why: str) -> None:
        """Honest, and without losing a session that may go on later."""
        assert self.state.start is not None
        if self.state.start.persist and not self.transcript.jobs:
            await self.append(Responded(text=f"I could not go on: {why} Tell me to go on when it may work again."))
        else:
            await self.append(Failed(text=f"I could not go on: {why}"))
        self.tell_parent()

    async def respond(self, text: str, call: str | None) -> None:
        assert self.state.start is not None
        await self.append(Responded(text=text, call=call, ended=not self.state.start.persist))
        self.tell_parent()

    async def _ask_at_a_bound(self) -> bool:
        """True when a bound was met: a person decides whether it goes on."""
        minutes = (asyncio.get_running_loop().time() - self._word_at) / 60
        limits = self.work.limits
        if self.transcript.steps < limits.max_steps and minutes < limits.max_minutes:
            return False
        what = f"{self.transcript.steps} steps" if self.transcript.steps >= limits.max_steps else f"{minutes:.0f} min"
        job = JobStarted(
            job=f"question{self.transcript.jobs_made + 1}",
            kind="question",
            about=f"I have worked on this for {what}. Shall I go on?",
            options=("go on", "stop here and say what you have"),
            bound=True,
        )
        self._word_at = asyncio.get_running_loop().time()
        await self.ask_person(job)
        return True

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
            self.parent.child_ended(self.key, self.state.result)

    def answer_code(self, job: JobStarted, text: str) -> None:
        """To the code that asked, if it was code."""
        if job.rpc:
            self.box.reply(job.rpc, text)

    def answer_again(self, ask: Ask) -> None:
        commands.answer_beside(self, ask)

    async def start_child(
        self, query: str, name: str, *, call: str | None = None, cell: str | None = None, rpc: str | None = None
    ) -> None:
        """Raises calls.NotRun at a bound."""
        limits, start = self.work.limits, self.state.start
        assert start is not None
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
            call=call,
            cell=cell,
            rpc=rpc,
        )
        await self.append(job)
        await self.children.start(self, job)
