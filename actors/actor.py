"""The loop of one action. All control flow is in `_loop`; what comes next is decided by `next_step`.

One task owns the journal, spawning and cascading. Everything else (code, children, timers, effects) only puts a
happening into the inbox.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, assert_never

from actors import bounds, calls, commands, effects, happenings, idle, prompt, timetable
from actors.children import Children
from actors.entries import ActionEntry, Call, CallClosed, JobStarted, Responded, Spent
from actors.generating import Generating
from actors.inbox import Inbox
from actors.journal import ActionState
from actors.next_step import End, Generate, Respond, Rest, StartCall, next_step
from actors.parent import Parent
from actors.purse import Purse
from actors.sandbox.stubs import Stub
from actors.sandbox.words import CellCalled
from actors.tools import TOOLS
from actors.transcript import Transcript
from actors.words import Happened
from actors.workshop import Workshop
from gateway.events import ActionCommand, Ask
from gateway.journal import Journal, JournalClosed
from gateway.llm.history import within
from gateway.llm.model import Message, Usage


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
        self.held_calls: list[CellCalled] = []  # that came while it stood still
        self.going_to_sleep = False
        self.moved = False  # from another machine, and its model is not told yet
        self.tools = TOOLS
        self._instructions: Message | None = None
        self.purse = Purse(work.limits)  # the root's counts
        self._inbox = Inbox(key)
        self._generating = Generating(self)
        self._tasks: set[asyncio.Task[None]] = set()

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
    def root(self) -> "Actor":
        return self if self.parent is None else self.parent.root

    @property
    def held(self) -> bool:
        return bounds.held(self)

    @property
    def gone(self) -> bool:
        """Its loop has ended, or is about to: it hears nothing more."""
        return self._inbox.closed

    @property
    def has_mail(self) -> bool:
        return self._inbox.has_mail

    async def hear(self, command: ActionCommand, sequence: int = 0) -> None:
        """Returns once it is in the log. Raises Gone, or JournalClosed: then it must be given again after a fold."""
        await self._inbox.hear(command, sequence)

    def happened(self, happening: Happened) -> None:
        self._inbox.happened(happening)

    def wake(self) -> None:
        self._inbox.wake()

    async def append(self, entry: ActionEntry) -> None:
        await self.journal.write(lambda _: entry)
        if isinstance(entry, JobStarted | Responded):
            self._stirred()

    async def close_call(self, call: Call, text: str) -> None:
        await self.append(CallClosed(call=call.id, text=text))

    def settle(self) -> None:
        """Where it is now, after a move that its model was told of."""
        self.moved = False
        self.box.settle(self.state.moves)

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
                try:
                    await self._loop()
                    await self.journal.until(lambda state: not state.outgoing)
                except JournalClosed:  # why it was closed is the writer's to say
                    await asyncio.wait({writing})
                writing.cancel()
        finally:
            self._inbox.close()
            for task in list(self._tasks):
                task.cancel()
            await self.box.close()

    async def _loop(self) -> None:
        await happenings.recover(self)
        while True:
            await self._drain()
            await timetable.see_to(self)
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
                    sleeps = self.state.phase == "hibernated" or self.state.start is None
                    if sleeps and await self._let_go():
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
            await self._generating.next()

    async def _drain(self) -> None:
        """A command waits for one happening at most: code can cause any number of them."""
        await self._inbox.obey_all(self._obey)
        while (happening := self._inbox.next_happening()) is not None:
            await happenings.take(self, happening)
            await self._inbox.obey_all(self._obey)

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
        self._inbox.attend()
        if self._inbox:
            return
        if (seconds := timetable.seconds_left(self)) is None:
            await self._inbox.change()
            return
        sleeping = asyncio.ensure_future(self.work.sleep(seconds))
        try:
            await self._inbox.change(sleeping)
        finally:
            sleeping.cancel()

    async def _let_go(self) -> bool:
        """True when nothing is left to be answered: the loop ends, and the next command opens the action again."""
        if self.state.asks or self._inbox or self._wanted():
            return False
        self._inbox.close()
        return True

    # --- beside a generation -----------------------------------------------------------------------------------------

    async def say_what_you_have(self) -> bool:
        return await self._generating.say_what_you_have()

    async def unless_something_comes(self, work: "asyncio.Task[Any]") -> bool:
        """True once `work` is done; false when a command came first, which has cancelled it."""
        try:
            while not work.done():
                self._inbox.attend()
                if self._inbox.has_steering:
                    return False
                await self._drain_beside()
                await self._inbox.change(work)
        finally:
            work.cancel()
            await asyncio.wait({work})
        return not work.cancelled()

    async def _drain_beside(self) -> None:
        """What can be done while something is generated, because its model is shown nothing of it: all but the ends of
        jobs."""
        while not self._inbox.has_steering and (happening := self._inbox.next_beside()) is not None:
            await happenings.take(self, happening)
        await self._inbox.obey_asks(self._obey)

    def spent(self, model: str, usage: Usage) -> None:
        """What brought no entry of its own."""
        task = asyncio.ensure_future(self.append(Spent(usage=usage, model=model, at=self.work.now())))
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        self.tell_spent(model, usage)

    def generated(self, key: str, usage: Usage | None) -> None:
        """A generation in this tree, of which this is the root, is over: those that waited for it may try again."""
        self.purse.release(key, usage, below=key != self.key)
        self.let_others_spend()

    def let_others_spend(self) -> None:
        if self.purse.refused:
            self.purse.refused = False
            self.wake()
            self.children.wake()

    async def respond(self, text: str, call: str | None) -> None:
        assert self.state.start is not None
        ended = not self.state.start.persist
        text = within(text, calls.RESPONSE_BYTES)
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
