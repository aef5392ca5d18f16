"""What it cost: by day, person, and conversation or work, from the views. For whoever runs the gateway."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from frontdesk.people import people
from gateway import looking, views
from gateway.settings import Settings

NOBODY = "(nobody in particular)"
UNDATED = "earlier"  # written before costs had a time
UNPRICED = "* calls to models without a known price: {}. Their tokens are counted, their money is not."


@dataclass
class Cost:
    talk_usd: float = 0.0
    work_usd: float = 0.0
    calls: int = 0
    tokens: int = 0
    unpriced: int = 0

    def add(self, row: dict[str, Any]) -> None:
        if row["work"]:
            self.work_usd += row["usd"]
        else:
            self.talk_usd += row["usd"]
        self.calls += row["calls"]
        self.tokens += row["prompt_tokens"] + row["completion_tokens"]
        self.unpriced += row["unpriced"]


def lines(settings: Settings, days: int, today: date) -> list[str]:
    """The newest day first, each with who cost most first, and a sum. Raises ViewsFailed."""
    since = today - timedelta(days=days - 1)
    return [*_lines(settings, settings.store.path, since)]


def _lines(settings: Settings, store: Path, since: date) -> Iterator[str]:
    named = _named(settings)
    by_day: dict[str, dict[str, Cost]] = defaultdict(lambda: defaultdict(Cost))
    for row in looking.costs(views.path_of(store), since.isoformat()):
        by_day[row["day"]][named(row["who"], row["place"])].add(row)
        by_day[row["day"]][""].add(row)
    unpriced = 0
    for day in sorted(by_day, reverse=True):
        total = by_day[day].pop("")
        unpriced += total.unpriced
        yield _line(day or UNDATED, total)
        for who, cost in sorted(by_day[day].items(), key=lambda item: -item[1].talk_usd - item[1].work_usd):
            yield f"  {_line(who, cost)}"
    if unpriced:
        yield UNPRICED.format(f"{unpriced:,}")


def _named(settings: Settings) -> Callable[[str, str], str]:
    """Who is meant by an address: in a private conversation whoever that is with, however they came to have it."""
    known = people(settings)
    by_address = {str(address): person.name for person in known for address in person.addresses}
    by_place = {f"p-{person.key}": person.name for person in known}

    def name(who: str, place: str) -> str:
        return (by_place.get(place) or by_address.get(who, who)) if who else NOBODY

    return name


def _line(what: str, cost: Cost) -> str:
    star = " *" if cost.unpriced else ""
    money = f"{cost.talk_usd + cost.work_usd:.4f} USD (talk {cost.talk_usd:.4f}, work {cost.work_usd:.4f}){star}"
    return f"{what}: {money}, calls {cost.calls:,}, tokens {cost.tokens:,}"
