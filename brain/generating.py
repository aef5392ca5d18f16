"""One turn's generation: ask the model, read what it decides, look up what it asks for, and let it mend what was
refused, a few times at most.

Only look-ups, refused calls and an empty answer are asked about again within the turn; nothing has happened by then.
"""

import contextlib
import hashlib
from collections.abc import Awaitable, Callable, Iterator
from datetime import datetime

import msgspec

from brain import files, outage, prompt, schema
from brain.entries import Decision, Prompted, Recalled, Speak, Wait
from brain.reading import Read, read
from brain.rights import Rights
from brain.tools import Legal
from brain.turn import Turn
from gateway.llm.history import tokens_of
from gateway.llm.model import Generation, Message, Model, ModelError, Request, Usage, said, tool_call
from gateway.record import Record, encode

MAX_MENDS = 2
MAX_LOOKS = 3  # answers with look-ups in them
ENOUGH = "Not done: enough was looked up for now. Decide with what you have."
NO_USE = "the model answered nothing, or only looked things up"
NO_SHAPE = "That was not JSON of the given schema. Once more, whole."
NUDGE = "Nothing came. Reply with text, or call a tool; to stay silent call wait with the reason."

OnSpent = Callable[[str, Usage], None]
LookUp = Callable[[str], Awaitable[Recalled]]


class Made(Record, frozen=True, kw_only=True):
    """What a turn is to commit. `why` says what went wrong on the way, if anything."""

    decisions: tuple[Decision, ...]
    model: str
    usage: Usage
    why: str = ""
    prompt: Prompted | None = None


class _Asking:
    """The model, for one turn; `usage` is what its answers have cost together."""

    def __init__(self, model: Model, on_spent: OnSpent) -> None:
        self._model, self._on_spent = model, on_spent
        self.usage, self.name = Usage(usd=0.0), model.name

    @contextlib.contextmanager
    def spent_unless_done(self) -> Iterator[None]:
        """When it is cancelled, or fails, what was answered before is told as spent."""
        try:
            yield
        except BaseException:
            if self.usage.prompt_tokens:
                self._on_spent(self.name, self.usage)
            raise

    async def __call__(self, request: Request) -> Generation:
        """Raises ModelError."""
        with self.spent_unless_done():
            generation = await self._model.generate(request, self._on_spent)
        self.usage, self.name = _sum(self.usage, generation.usage), generation.model
        return generation


async def generate(
    model: Model,
    frame: prompt.Frame,
    turn: Turn,
    tools: tuple[Legal, ...],
    now: datetime,
    on_spent: OnSpent,
    rights: Rights,
    look_up: LookUp,
) -> Made:
    """Raises ModelError. Cancelling it cancels the model's call."""
    askers = turn.askers()
    sees = not askers or rights.anyone_may(askers, "see")
    request = prompt.request(frame, turn, tools, now, sees=sees)
    ask, prompted = _Asking(model, on_spent), _prompted(request)
    decisions: list[Decision] = []
    why, mends, looks = "", 0, 0
    request, answer = await _first(ask, request, turn, frame)
    while True:
        generation = answer
        if frame.by_schema:
            answer = await _made_sure(ask, answer, request, turn, tools)
            generation = schema.understood(answer, turn, tools)
        local, last = now.astimezone(frame.zone), mends == MAX_MENDS
        found = read(generation, tools, turn, rights, local, decisions, last=last)
        with ask.spent_unless_done():
            looked_up = [await look_up(query) for _, query in found.queries] if looks < MAX_LOOKS else []
        decisions = _together(decisions, [*looked_up, *found.decisions])
        if looked_up and not found.refused:
            looks += 1
        elif found.refused or found.queries or _is_nothing(decisions):
            why = "; ".join(text for text in found.results if text not in ("", "Done.")) or NO_USE
            mends += 1
        else:
            break
        if mends > MAX_MENDS:
            decisions = [one for one in decisions if not _is_beside(one)] if found.refused else decisions
            break
        results = _with(found, [one.found for one in looked_up] or [ENOUGH] * len(found.queries))
        more = _told_as_text(answer, results) if frame.by_schema else _fed_back(answer, found, results, looks + mends)
        request = msgspec.structs.replace(request, messages=[*request.messages, *more])
        answer = await ask(request)
    made = (*files.not_taken(turn), *decisions, *_owned_up(turn, decisions, refused=found.refused))
    return Made(decisions=made, model=ask.name, usage=ask.usage, why=why, prompt=prompted)


def _owned_up(turn: Turn, decisions: list[Decision], *, refused: bool) -> tuple[Decision, ...]:
    if _is_nothing(decisions):
        return outage.nothing_came(turn)
    return outage.not_all(turn, decisions) if refused else ()


async def _made_sure(
    ask: _Asking, answer: Generation, request: Request, turn: Turn, tools: tuple[Legal, ...]
) -> Generation:
    """Of the kind first, then of the work."""
    for first in (True, False):
        if (narrower := schema.doubted(answer, request, turn, tools, first=first)) is None:
            break
        answer = await ask(narrower)
    return answer


async def _first(ask: _Asking, request: Request, turn: Turn, frame: prompt.Frame) -> tuple[Request, Generation]:
    """What a provider refuses in what was said long ago does not end the conversation: it is asked without."""
    try:
        return request, await ask(request)
    except ModelError as error:
        if error.kind != "bad_request" or frame.by_schema or not turn.state.exchanges:
            raise
    bare = msgspec.structs.replace(request, messages=[request.messages[0], *request.messages[-2:]])
    return bare, await ask(bare)


def _together(before: list[Decision], new: list[Decision]) -> list[Decision]:
    """Nothing twice, however often the model says it. Words beside a call that was refused stand only until others are
    said: they may tell of what was not done."""
    if any(isinstance(one, Speak | Wait) for one in new):
        before = [one for one in before if not _is_beside(one)]
    decisions = list(before)
    for one in new:
        if one not in decisions:
            decisions.append(one)
    return decisions


def _is_beside(decision: Decision) -> bool:
    return isinstance(decision, Speak) and not decision.by_tool


def _is_nothing(decisions: list[Decision]) -> bool:
    return all(isinstance(decision, Recalled) for decision in decisions)


def _prompted(request: Request) -> Prompted:
    shown = encode([request.tools, request.messages])
    return Prompted(
        digest=hashlib.blake2b(shown, digest_size=8).hexdigest(),
        messages=len(request.messages),
        tools=len(request.tools),
        tokens=tokens_of(shown.decode()),
    )


def _with(found: Read, looked_up: list[str]) -> list[str]:
    results = list(found.results)
    for (place, _), text in zip(found.queries, looked_up, strict=True):
        results[place] = text
    return results


def _told_as_text(answer: Generation, results: list[str]) -> list[Message]:
    return [said(answer.text or "{}", []), {"role": "user", "content": "\n".join(results) or NO_SHAPE}]


def _fed_back(generation: Generation, found: Read, results: list[str], rounds: int) -> list[Message]:
    if not found.calls:
        text = results[0] if results else NUDGE
        said_so = [said(generation.text, [])] if generation.text.strip() else []
        return [*said_so, {"role": "user", "content": text}]
    calls = [tool_call(f"r{rounds:06d}{n:02d}", call.name, call.arguments) for n, call in enumerate(found.calls)]
    answers = [
        {"role": "tool", "tool_call_id": call["id"], "content": text}
        for call, text in zip(calls, results, strict=False)
    ]
    more = [{"role": "user", "content": text} for text in results[len(calls) :]]
    return [said(generation.text, calls, generation.fields), *answers, *more]


def _sum(one: Usage, other: Usage) -> Usage:
    return Usage(
        prompt_tokens=one.prompt_tokens + other.prompt_tokens,
        completion_tokens=one.completion_tokens + other.completion_tokens,
        usd=None if one.usd is None or other.usd is None else one.usd + other.usd,
        estimated=one.estimated or other.estimated,
    )
