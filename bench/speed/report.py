"""From samples to figures: medians, ratios, whether they meet their targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from bench.speed.table import CONTENDERS, Row

Samples = dict[str, dict[str, list[float]]]
"""Numbers by contender and by their name, one for each round."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """What a row came to; `over` and `under` are the medians it is made of."""

    row: Row
    figure: float
    over: float
    under: float | None

    @property
    def met(self) -> bool:
        """Whether it meets the target."""
        return self.row.is_met(self.figure)

    def as_json(self) -> dict[str, Any]:
        """Return all of it as plain values."""
        row = self.row
        return {
            "name": row.name,
            "what": row.what,
            "over": row.over,
            "over_median": self.over,
            "under": row.under,
            "under_median": self.under,
            "figure": self.figure,
            "unit": row.unit,
            "target": row.target,
            "least": row.least,
            "met": self.met,
        }


def value_of(samples: Samples, measurement: str) -> float:
    """Return the median of ``"contender"`` (its seconds) or ``"contender/number"``."""
    name, _, number = measurement.partition("/")
    return median(samples[name][number or "seconds"])


def figures_of(rows: Sequence[Row], samples: Samples) -> list[Figure]:
    """Make the figures of some rows."""
    figures = []
    for row in rows:
        over = value_of(samples, row.over)
        under = value_of(samples, row.under) if row.under else None
        figure = over if under is None else over / under
        figures.append(Figure(row=row, figure=figure, over=over, under=under))
    return figures


def printed(figures: Sequence[Figure], *, start_up: Mapping[str, float], samples: Samples) -> str:
    """Return the table as text, our start-up and the notes below it."""
    lines = [f"{'row':14} {'over':>10} {'under':>10} {'figure':>10} {'':5} {'target':>9}  met"]
    for figure in figures:
        row = figure.row
        under = "" if figure.under is None else f"{figure.under:10.4f}"
        sign = "≥" if row.least else "≤"
        lines.append(
            f"{row.name:14} {figure.over:10.4f} {under:>10} {figure.figure:10.3f} {row.unit:5} "
            f"{sign}{row.target:8g}  {'yes' if figure.met else 'NO'}"
        )
    lines.append("")
    lines += [f"{row.row.name:14} {row.row.what}" for row in figures]
    lines += ["", "start-up, in no figure above: "]
    lines += [f"  {name}: {seconds:.3f} s" for name, seconds in start_up.items()]
    return "\n".join([*lines, *_notes(samples)])


def _notes(samples: Samples) -> list[str]:
    """Say of a cold start what it compiled."""
    if "cold" not in samples:
        return []
    missed = max(samples["cold"]["missed"])
    if min(samples["cold"]["warmup"]) == 0:
        return ["cold: there is no `onlineauto warmup`; these are runs of four kinds, one after the other"]
    flags = " ".join(CONTENDERS["cold"].flags)
    return [f"cold: `onlineauto {flags}`; runs of four kinds then compiled {missed:.0f} kernels more"]
