"""How an action's loop comes to its next generation: raced against its commands, written in the log, or borne.

Only a generation is ever cancelled.
"""

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec

from actors import bounds, calls, compaction
from actors.entries import Call, Generated, Nudged
from actors.tools import NAMES
from gateway.llm.history import within
from gateway.llm.model import Generation, Message, ModelError, RawCall, Request, Usage, parsed_arguments
from gateway.llm.written_calls import has_marks, written_calls
from gateway.record import encode

if TYPE_CHECKING:
    from actors.actor import Actor

MODEL_TRIES = 5
MODEL_PAUSE_SECONDS = 5.0
MODEL_PATIENCE_SECONDS = 120.0  # a model that wants more time is not waited for in silence
NUDGE = "Nothing came. Call a tool, or respond with text."
CUT = "Your answer was cut off at the length that you are allowed, and nobody has seen it. Give it again, shorter; put \
what is long into a file."
HALF_A_CALL = "Part of that was to be a call, and cannot be read; nobody has seen it. Call the tool itself."
CALLS_MAX = 50
GENERATED_BYTES = 150_000  # of its calls together; its text beside
ENTRY_BYTES = 240_000  # of all; what is left is for the provider's own fields


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
        if not generation.calls and (written := written_calls(generation.text, NAMES, whole=not generation.cut)):
            generation = msgspec.structs.replace(generation, text="", calls=written)
        half_a_call = not generation.calls and has_marks(generation.text)
        if generation.calls or (generation.text.strip() and not generation.cut and not half_a_call):
            await self._record(generation)
        else:
            self._actor.spent(generation.model, generation.usage)
            nothing = half_a_call or not generation.text.strip()
            again = HALF_A_CALL if half_a_call else NUDGE if nothing else CUT
            await self._actor.append(Nudged(text=again, empty=nothing, cut=not nothing))

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
        summary = "" if generation.cut else generation.text
        entry = compaction.compacted(summary, actor.transcript.messages[:before], limit)
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
        actor, text = self._actor, within(generation.text.strip(), calls.RESPONSE_BYTES)
        made = self._calls(generation.calls)
        await actor.append(
            Generated(
                text=text,
                calls=made,
                fields=_kept(generation.fields, ENTRY_BYTES - len(encode([text, made]))),
                model=generation.model,
                usage=generation.usage,
                at=actor.work.now(),
            )
        )
        actor.tell_spent(generation.model, generation.usage)

    def _calls(self, written: tuple[RawCall, ...]) -> tuple[Call, ...]:
        """As far as an entry holds them: what is beyond is refused, or left out."""
        made: list[Call] = []
        room = GENERATED_BYTES
        for raw in written[:CALLS_MAX]:
            safe, arguments = parsed_arguments(raw.arguments)
            refused = ""
            if not raw.complete:
                refused = "the call was cut off; make it again, whole"
            elif arguments is None:
                refused = "the arguments are no JSON object"
            if len(encode(safe)) > room:
                safe, refused = "{}", "the arguments are too long; write what is long into a file, piece by piece"
            room -= len(encode(safe))
            fields = _kept(raw.fields, room)
            room -= len(encode(fields))
            number = self._actor.transcript.calls_made + len(made)
            name = raw.name[: calls.NAME_CHARACTERS]
            made.append(Call(id=f"c{number:08d}", name=name, arguments=safe, fields=fields, refused=refused))
        return tuple(made)

    async def _bear(self, error: ModelError) -> None:
        """Tries again for a while, still listening; then says so. A session is kept: it can be told to go on."""
        actor = self._actor
        self._failures += 1
        wanted = error.retry_after_seconds or 0.0
        if error.retryable and self._failures < MODEL_TRIES and wanted <= MODEL_PATIENCE_SECONDS:
            pause = max(MODEL_PAUSE_SECONDS * 2 ** (self._failures - 1), wanted)
            await actor.unless_something_comes(asyncio.create_task(asyncio.sleep(pause)))
            return
        self._failures = 0
        actor.work.operator(f"The action {actor.key} cannot go on. {error.for_operator}")
        await bounds.without_model(actor, error)


def _kept(fields: dict[str, Any] | None, room: int) -> dict[str, Any] | None:
    """As far as an entry holds them: of thoughts as they are told the beginning and the end; others stand whole, or not
    at all."""
    if fields is None or len(encode(fields)) <= room:
        return fields
    thoughts = fields.get("reasoning_content")
    return {"reasoning_content": within(thoughts, max(room - 30, 0))} if isinstance(thoughts, str) else None
