"""The results as a table by axis, each wrong decision beside the right ones, and as JSON. Pure."""

import statistics
from collections.abc import Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from frontdesk.evaluation.running import Result, spent
from frontdesk.evaluation.scenario import Scenario

Pairs = Sequence[tuple[Scenario, Result]]


def shown(pairs: Pairs, model: str) -> RenderableType:
    parts: list[RenderableType] = [_axes(pairs)]
    if wrong := [(scenario, result) for scenario, result in pairs if not result.right]:
        parts.append(_wrong(wrong))
    return Group(*parts, Text("\n".join(lines(pairs, model))))


def _axes(pairs: Pairs) -> Table:
    table = Table("axis", "right", "of", "%", "s", "tokens in", "out", box=None, header_style="bold")
    groups = list(dict.fromkeys(scenario.group for scenario, _ in pairs))
    for name, chosen in [*((group, [p for p in pairs if p[0].group == group]) for group in groups), ("all", pairs)]:
        one = figures(chosen)
        table.add_row(
            name,
            str(one["right"]),
            str(one["of"]),
            f"{one['percent']:.0f}",
            f"{one['seconds']:.1f}",
            f"{one['prompt_tokens']:.0f}",
            f"{one['completion_tokens']:.0f}",
            style="bold" if name == "all" else None,
        )
    return table


def _wrong(pairs: Pairs) -> Table:
    table = Table("wrong", "message", "decided", "right", box=None, header_style="bold", title_justify="left")
    for scenario, result in pairs:
        taken = result.failed or f"{' + '.join(result.taken)}{f' “{result.text}”' if result.text else ''}"
        table.add_row(scenario.id, scenario.message, taken, " | ".join(scenario.right))
    return table


def figures(pairs: Pairs) -> dict[str, Any]:
    """`seconds` and tokens are means over the decisions that a model took."""
    results = [result for _, result in pairs]
    asked = [result for result in results if result.calls]
    right = sum(result.right for result in results)
    return {
        "right": right,
        "of": len(results),
        "percent": 100 * right / len(results) if results else 0.0,
        "seconds": _mean([one.seconds for one in asked]),
        "seconds_p95": _p95([one.seconds for one in asked]),
        "prompt_tokens": _mean([one.prompt_tokens for one in asked]),
        "completion_tokens": _mean([one.completion_tokens for one in asked]),
        "completion_tokens_max": max((one.completion_tokens for one in asked), default=0),
    }


def told_apart(pairs: Pairs) -> dict[str, tuple[int, int]]:
    """What must never go wrong: how often it did, of how many."""
    remarks = [(s, r) for s, r in pairs if s.place == "shared" and set(s.right) == {"wait"}]
    ends = [(s, r) for s, r in pairs if all(one.startswith(("stop:", "pause:")) for one in s.right)]
    return {
        "remarks to others, answered": (sum(r.taken != ("wait",) for _, r in remarks), len(remarks)),
        "stop or pause, taken for a correction": (
            sum(any(one.startswith("interject:") for one in r.taken) for _, r in ends),
            len(ends),
        ),
    }


def lines(pairs: Pairs, model: str) -> list[str]:
    everything, usage = figures(pairs), spent([result for _, result in pairs])
    cost = "its price is not known" if usage.usd is None else f"${usage.usd:.4f}"
    by_half = {half: figures([p for p in pairs if p[0].half == half]) for half in ("tuning", "held-out")}
    return [
        "",
        f"{model}: {everything['right']} of {everything['of']} right ({everything['percent']:.0f} %); "
        + ", ".join(f"{half} half {one['right']} of {one['of']}" for half, one in by_half.items() if one["of"]),
        f"{everything['seconds']:.1f} s a decision (95th percentile {everything['seconds_p95']:.1f} s), at most "
        f"{everything['completion_tokens_max']} tokens generated",
        *(f"{what}: {wrong} of {of}" for what, (wrong, of) in told_apart(pairs).items() if of),
        f"{usage.prompt_tokens:,} tokens read, {usage.completion_tokens:,} written: {cost}",
    ]


def as_json(pairs: Pairs, model: str) -> dict[str, Any]:
    groups = dict.fromkeys(scenario.group for scenario, _ in pairs)
    usage = spent([result for _, result in pairs])
    return {
        "model": model,
        "all": figures(pairs),
        "halves": {half: figures([p for p in pairs if p[0].half == half]) for half in ("tuning", "held-out")},
        "axes": {group: figures([p for p in pairs if p[0].group == group]) for group in groups},
        "mistaken": {what: {"wrong": wrong, "of": of} for what, (wrong, of) in told_apart(pairs).items()},
        "usd": usage.usd,
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "scenarios": [
            {
                "id": scenario.id,
                "half": scenario.half,
                "decided": list(result.taken),
                "right": list(scenario.right),
                "is_right": result.right,
                "text": result.text,
                "why": result.why,
                "failed": result.failed,
                "seconds": result.seconds,
                "prompt_tokens": result.prompt_tokens,
                "completion_tokens": result.completion_tokens,
                "usd": result.usd,
            }
            for scenario, result in pairs
        ],
    }


def _mean(values: Sequence[float]) -> float:
    return round(statistics.fmean(values), 2) if values else 0.0


def _p95(values: Sequence[float]) -> float:
    return round(sorted(values)[min(len(values) - 1, int(0.95 * len(values)))], 2) if values else 0.0
