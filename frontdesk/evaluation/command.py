"""`frontdesk eval`: the settings' model, or another, on our scenarios, or others."""

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import click
import msgspec
from rich.console import Console

from frontdesk.evaluation import report
from frontdesk.evaluation.policies import POLICIES, PolicyModel
from frontdesk.evaluation.running import Kept, Result, run
from frontdesk.evaluation.scenario import CannotRead, Scenario, doubts, load
from frontdesk.models import Models
from gateway.llm.model import Model, ModelError
from gateway.record import Record
from gateway.settings import ModelSettings, Settings

HOSTED_AT_ONCE, OWN_AT_ONCE = 6, 1
OWN_HOSTS = frozenset({"127.0.0.1", "::1", "localhost"})
POLICY = "policy:"


class CannotEvaluate(Exception):
    """What is missing, and where to set it."""


class Options(Record, frozen=True, kw_only=True):
    """`parallel` 0: what suits the model's server. `half` "" is both."""

    model: str | None = None
    tool_calls: Literal["native", "schema"] | None = None
    scenarios: Path | None = None
    as_json: bool = False
    half: str = ""
    parallel: int = 0
    again: bool = False


def results_file() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "frontdesk" / "eval.jsonl"


async def evaluate(settings: Settings, options: Options) -> int:
    """Prints the table; the exit code is 0 unless some scenario got no answer. Raises CannotEvaluate."""
    try:
        scenarios = [one for one in load(options.scenarios) if options.half in ("", one.half)]
    except CannotRead as error:
        raise CannotEvaluate(str(error)) from error
    for scenario in scenarios:
        for doubt in doubts(scenario):
            click.echo(f"scenario {scenario.id}: {doubt}", err=True)
    asked = _asked(settings.model, options)
    name = asked.name
    if name is None:
        raise CannotEvaluate('no model is set: write [model] name = "openai/…" in config.toml, or give --model.')
    try:
        async with _model(settings, asked) as model:
            pairs = await _all(scenarios, model, asked, options)
    except ModelError as error:
        raise CannotEvaluate(f"{error.for_operator}. What was decided is kept: the same command goes on.") from error
    if options.as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(report.as_json(pairs, name))))
    else:
        Console(width=None if os.isatty(1) else 160).print(report.shown(pairs, name))
    return 1 if any(result.failed for _, result in pairs) else 0


async def _all(
    scenarios: Sequence[Scenario], model: Model, asked: ModelSettings, options: Options
) -> list[tuple[Scenario, Result]]:
    found: dict[str, tuple[Scenario, Result]] = {}
    kept = Kept(results_file(), about=f"{asked.api_base} {asked.temperature}")
    by_schema = asked.tool_calls == "schema"
    parallel = options.parallel or _at_once(asked)
    async for scenario, result in run(
        scenarios, model, parallel=parallel, kept=kept, by_schema=by_schema, again=options.again
    ):
        found[scenario.id] = (scenario, result)
        sign = "–" if result.failed else "✓" if result.right else "✗"
        came = "from before" if result.key in kept.before and not options.again else f"{result.seconds:.1f} s"
        click.echo(f"{len(found):3}/{len(scenarios)} {sign} {scenario.id} {came}", err=True)
    return [found[scenario.id] for scenario in scenarios]


def _asked(settings: ModelSettings, options: Options) -> ModelSettings:
    """That model alone: what a fallback answers is not its judgement. A policy knows tools, and no schema."""
    name, tool_calls = options.model or settings.name, options.tool_calls or settings.tool_calls
    if name and name.startswith(POLICY):
        tool_calls = "native"
    return msgspec.structs.replace(settings, name=name, tool_calls=tool_calls, fallbacks=())


def _at_once(asked: ModelSettings) -> int:
    """A server on this machine has no more cores for two at once, and its cache is one conversation's."""
    return OWN_AT_ONCE if urlsplit(asked.api_base or "").hostname in OWN_HOSTS else HOSTED_AT_ONCE


@asynccontextmanager
async def _model(settings: Settings, asked: ModelSettings) -> AsyncIterator[Model]:
    name = asked.name or ""
    if name.startswith(POLICY):
        if name.removeprefix(POLICY) not in POLICIES:
            raise CannotEvaluate(f"there is no {name}; there are: {', '.join(POLICY + one for one in POLICIES)}")
        yield PolicyModel(name.removeprefix(POLICY))
        return
    settings = msgspec.structs.replace(settings, model=asked, actor_model=asked)
    models = Models(settings, lambda text: click.echo(text, err=True), roles=("brain",))
    models.start()
    try:
        yield models.brain
    finally:
        await models.close()
