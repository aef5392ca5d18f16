"""Puts scenarios to a model, some at a time, and keeps each result at once: a run that was broken off goes on."""

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import msgspec

from brain import prompt
from brain.entries import Act, Decision, Recalled, Speak, Steer, Wait
from brain.generating import generate
from brain.recalling import NOTHING
from brain.tools import legal
from frontdesk.evaluation.judging import decided, is_right
from frontdesk.evaluation.scenario import Scenario
from frontdesk.evaluation.staging import Moment, staged
from gateway.llm.model import Generation, Model, ModelError, OnSpent, Request, Usage
from gateway.record import Record, encode

SHOWN = 160
BY_RULE = "rule"
HOPELESS = frozenset({"key_refused", "model_unknown", "unreachable"})  # for the next scenario as well


class Result(Record, frozen=True, kw_only=True):
    """One scenario's. `key` is made of all that the decision follows from; `calls` are requests to the model: 0 where
    the rules before it decided. `failed` is why there was no decision."""

    key: str
    id: str
    model: str
    taken: tuple[str, ...] = ()
    right: bool = False
    text: str = ""
    why: str = ""
    failed: str = ""
    calls: int = 0
    seconds: float = 0.0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    usd: float | None = 0.0


class Kept:
    """Results in a file, a line each; the last one of a key counts. `about` is what else they follow from: where the
    model is served, and how it is asked."""

    def __init__(self, path: Path, about: str = "") -> None:
        self.about = about
        self._path = path
        self._found: dict[str, Result] = {}
        if path.exists():
            for line in path.read_bytes().splitlines():
                try:
                    result = msgspec.json.decode(line, type=Result)
                except msgspec.DecodeError:  # a run was ended while it wrote
                    continue
                self._found[result.key] = result
        self.before = frozenset(self._found)

    def get(self, key: str) -> Result | None:
        return self._found.get(key)

    def put(self, result: Result) -> None:
        self._found[result.key] = result
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("ab") as file:
            file.write(encode(result) + b"\n")


async def run(
    scenarios: Sequence[Scenario],
    model: Model,
    *,
    parallel: int,
    kept: Kept,
    by_schema: bool = False,
    again: bool = False,
) -> AsyncIterator[tuple[Scenario, Result]]:
    """In the order in which they are done. A scenario that the model gave no answer to is not kept. Raises ModelError
    where no other would be answered either."""
    slots = asyncio.Semaphore(parallel)

    async def one(scenario: Scenario) -> tuple[Scenario, Result]:
        async with slots:
            moment = staged(scenario, by_schema=by_schema)
            key = _key(scenario, moment, model, kept.about)
            result = None if again else kept.get(key)
            if result is None:
                result = await _asked(key, scenario, moment, model)
                if not result.failed:
                    kept.put(result)
            return scenario, result

    tasks = [asyncio.create_task(one(scenario)) for scenario in scenarios]
    try:
        for done in asyncio.as_completed(tasks):
            yield await done
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _nothing_found(query: str) -> Recalled:
    """A scenario has no past but what its prompt shows."""
    return Recalled(query=query, found=NOTHING)


async def _asked(key: str, scenario: Scenario, moment: Moment, model: Model) -> Result:
    if moment.turn is None:
        taken = decided(moment.by_rule, moment.ids)
        return Result(
            key=key,
            id=scenario.id,
            model=BY_RULE,
            taken=taken,
            right=is_right(taken, scenario),
            text=_shown(moment.by_rule),
        )
    tools = legal(moment.turn, moment.rights, moment.turn.askers())
    counting = _Counting(model)
    began = time.monotonic()
    try:
        made = await generate(
            counting, moment.frame, moment.turn, tools, moment.now, lambda *_: None, moment.rights, _nothing_found
        )
    except ModelError as error:
        if error.kind in HOPELESS:
            raise
        return Result(key=key, id=scenario.id, model=model.name, failed=error.for_operator)
    taken = decided(made.decisions, moment.ids)
    return Result(
        key=key,
        id=scenario.id,
        model=made.model,
        taken=taken,
        right=is_right(taken, scenario),
        text=_shown(made.decisions),
        why=made.why,
        calls=counting.calls,
        seconds=round(time.monotonic() - began, 3),
        prompt_tokens=made.usage.prompt_tokens,
        completion_tokens=made.usage.completion_tokens,
        usd=made.usage.usd,
    )


class _Counting:
    def __init__(self, model: Model) -> None:
        self._model, self.calls = model, 0

    @property
    def name(self) -> str:
        return self._model.name

    async def generate(self, request: Request, on_spent: OnSpent | None = None) -> Generation:
        self.calls += 1
        return await self._model.generate(request, on_spent)


def _key(scenario: Scenario, moment: Moment, model: Model, about: str) -> str:
    asked: object = None
    if moment.turn is not None:
        tools = legal(moment.turn, moment.rights, moment.turn.askers())
        asked = prompt.request(moment.frame, moment.turn, tools, moment.now)
    return hashlib.sha256(encode([model.name, about, scenario, asked])).hexdigest()[:24]


def _shown(decisions: Sequence[Decision]) -> str:
    return "; ".join(_words(one) for one in decisions)[:SHOWN]


def _words(decision: Decision) -> str:
    match decision:
        case Speak(text=text) | Steer(text=text) | Wait(reason=text) | Act(query=text):
            return text
        case _:
            return ""


def spent(results: Sequence[Result]) -> Usage:
    usd = [one.usd for one in results]
    return Usage(
        prompt_tokens=sum(one.prompt_tokens for one in results),
        completion_tokens=sum(one.completion_tokens for one in results),
        usd=None if None in usd else sum(one for one in usd if one is not None),
    )
