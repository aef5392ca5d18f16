"""A figure: what was measured, its bound, and the least that this machine allows, measured in the same run."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from rich.table import Table


@dataclass(frozen=True, kw_only=True)
class Figure:
    what: str
    value: float
    unit: str
    bound: float | None = None
    floor: float | None = None
    note: str = ""

    @property
    def well(self) -> bool:
        return self.bound is None or self.value <= self.bound

    @property
    def cells(self) -> tuple[str, ...]:
        ratio = f"{self.value / self.floor:.1f} x" if self.floor else ""
        return (
            self.what,
            f"{_number(self.value)} {self.unit}".strip(),
            "" if self.bound is None else f"<= {_number(self.bound)}",
            "" if self.bound is None else ("yes" if self.well else "NO"),
            "" if self.floor is None else _number(self.floor),
            ratio,
            self.note,
        )


HEADS = ("figure", "measured", "bound", "met", "floor", "ratio", "")


def table(figures: Sequence[Figure]) -> Table:
    made = Table(*HEADS, box=None, pad_edge=False)
    for figure in figures:
        made.add_row(*figure.cells, style="" if figure.well else "bold red")
    return made


def markdown(figures: Sequence[Figure]) -> str:
    rows = [HEADS, ("---",) * len(HEADS), *(figure.cells for figure in figures)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def p(samples: Sequence[float], percent: int) -> float:
    return statistics.quantiles(samples, n=100, method="inclusive")[percent - 1]


def _number(value: float) -> str:
    if value == int(value):
        return f"{int(value):,}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
