"""One turn's generation: ask the model, read what it decides, and let it mend what was refused, a few times at most.

Only refused calls and an empty answer are asked about again within the turn; nothing has happened by then.
"""

from collections.abc import Callable
from datetime import datetime

from brain import files, outage, prompt
from brain.contacts import May
from brain.entries import Decision
from brain.reading import Read, read
from brain.state import Turn
from brain.tools import Legal
from gateway.llm.model import Generation, Message, Model, Request, Usage, said, tool_call
from gateway.record import Record

MAX_MENDS = 2
NUDGE = "Nothing came. Reply with text, or call a tool; to stay silent call wait with the reason."

OnSpent = Callable[[str, Usage], None]


class Made(Record, frozen=True, kw_only=True):
    """What a turn is to commit. `why` says what went wrong on the way, if anything."""

    decisions: tuple[Decision, ...]
    model: str
    usage: Usage
    why: str = ""


async def generate(
    model: Model, frame: prompt.Frame, turn: Turn, tools: tuple[Legal, ...], now: datetime, on_spent: OnSpent, may: May
) -> Made:
    """Raises ModelError. Cancelling it cancels the model's call."""
    context = prompt.context(turn.state, turn.heard, frame.zone)
    request = prompt.request(frame, turn, tools, now)
    generation = await model.generate(request, on_spent)
    decisions: list[Decision] = []
    usage, why = generation.usage, ""
    for mend in range(MAX_MENDS + 1):
        found = read(generation, tools, turn, context, may, now.astimezone(frame.zone))
        decisions += found.decisions
        if not found.refused and (decisions or mend == MAX_MENDS):
            break
        why = "; ".join(text for text in found.results if text != "Done.") or "the model answered nothing"
        if mend == MAX_MENDS:
            break
        request = Request(messages=[*request.messages, *_mended(generation, found, mend)], tools=request.tools)
        generation = await model.generate(request, on_spent)
        usage = _sum(usage, generation.usage)
    made = (*files.not_taken(turn), *(tuple(decisions) or outage.nothing_came(turn)))
    return Made(decisions=made, model=generation.model, usage=usage, why=why)


def _mended(generation: Generation, found: Read, mend: int) -> list[Message]:
    if not found.calls:
        text = found.results[0] if found.results else NUDGE
        said_so = [said(generation.text, [])] if generation.text.strip() else []
        return [*said_so, {"role": "user", "content": text}]
    calls = [tool_call(f"r{mend:06d}{n:02d}", call.name, call.arguments) for n, call in enumerate(found.calls)]
    results = [
        {"role": "tool", "tool_call_id": call["id"], "content": text}
        for call, text in zip(calls, found.results, strict=False)
    ]
    return [said(generation.text, calls, generation.fields), *results]


def _sum(one: Usage, other: Usage) -> Usage:
    return Usage(
        prompt_tokens=one.prompt_tokens + other.prompt_tokens,
        completion_tokens=one.completion_tokens + other.completion_tokens,
        usd=None if one.usd is None or other.usd is None else one.usd + other.usd,
        estimated=one.estimated or other.estimated,
    )
