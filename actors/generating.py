"""How an action's loop comes to its next generation: raced against its commands, written in the log, or borne.

Only a generation is ever cancelled.
"""

import asyncio
from typing import TYPE_CHECKING

import msgspec

from actors import bounds, compaction
from actors.entries import Call, Generated, Nudged
from gateway.llm.model import Generation, Message, ModelError, RawCall, Request, Usage, parsed_arguments

if TYPE_CHECKING:
    from actors.actor import Actor

MODEL_TRIES = 5
MODEL_PAUSE_SECONDS = 5.0
NUDGE = "Nothing came. Call a tool, or respond with text."


class Generating:
    """Of one actor."""

    def __init__(self, actor: "Actor") -> None:
        self._actor = actor
        self._failures = 0
        self._compact_at = actor.work.limits.compact_tokens

    async def next(self) -> None:
        """The next generation, or the compaction that must come before it."""
        if compaction.due(self._actor.transcript, self._compact_at):
            await self._compact()
            return
        generation = await self._asked()
        if generation is None:
            return
        if generation.text.strip() or generation.calls:
            await self._record(generation)
        else:
            self._actor.spent(generation.model, generation.usage)
            await self._actor.append(Nudged(text=NUDGE, empty=True))

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
        actor = self._actor
        before, limit = len(actor.transcript.messages), actor.work.limits.compact_tokens
        generation = await self._asked({"role": "user", "content": compaction.ASKED}, tool_choice="none")
        if generation is None:
            return
        actor.spent(generation.model, generation.usage)
        entry = compaction.compacted(generation.text, actor.transcript.messages[:before], limit)
        if entry is not None:
            await actor.append(entry)
        self._compact_at = max(limit, int(compaction.size(actor.transcript.messages) * compaction.AGAIN_SHARE))

    async def _asked(self, *more: Message, tool_choice: str = "auto") -> Generation | None:
        """Races one generation against the commands. An `ask` is answered beside it; all others cancel it."""
        actor, root = self._actor, self._actor.root
        if not root.purse.reserve(actor.key, root.state.spending):
            await actor.something_happens()
            return None
        messages = [actor.instructions, *actor.transcript.messages, *more]
        request = Request(messages=messages, tools=actor.tools, tool_choice=tool_choice)
        generating = asyncio.create_task(actor.work.model.generate(request, actor.spent))
        usage: Usage | None = None
        try:
            if not await actor.unless_something_comes(generating):
                return None
            generation = generating.result()
            usage = generation.usage
        except ModelError as error:
            await self._bear(error)
            return None
        finally:
            root.generated(actor.key, usage)
        self._failures = 0
        return generation

    async def _record(self, generation: Generation) -> None:
        actor = self._actor
        made = [self._call(n, raw) for n, raw in enumerate(generation.calls)]
        await actor.append(
            Generated(
                text=generation.text.strip(),
                calls=tuple(made),
                fields=generation.fields,
                model=generation.model,
                usage=generation.usage,
                at=actor.work.now(),
            )
        )
        actor.tell_spent(generation.model, generation.usage)

    def _call(self, n: int, raw: RawCall) -> Call:
        safe, arguments = parsed_arguments(raw.arguments)
        refused = ""
        if not raw.complete:
            refused = "the call was cut off; make it again, whole"
        elif arguments is None:
            refused = "the arguments are no JSON object"
        call_id = f"c{self._actor.transcript.calls_made + n:08d}"
        return Call(id=call_id, name=raw.name, arguments=safe, fields=raw.fields, refused=refused)

    async def _bear(self, error: ModelError) -> None:
        """Tries again for a while, still listening; then says so. A session is kept: it can be told to go on."""
        actor = self._actor
        self._failures += 1
        if error.retryable and self._failures < MODEL_TRIES:
            await actor.pause_unless_told(MODEL_PAUSE_SECONDS * 2 ** (self._failures - 1))
            return
        self._failures = 0
        actor.work.operator(f"The action {actor.key} cannot go on. {error.for_operator}")
        await bounds.without_model(actor)
