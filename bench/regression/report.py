"""What the runs on single lines come to: tables, and whether what is asked holds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

_TIMES = 300
_WIDTH = 24


@dataclass(frozen=True, slots=True)
class Run:
    """A contender on a stream: squared error, seconds of CPU, changes of champion (ours only)."""

    name: str
    contender: str
    seed: int
    lines: int
    error: float
    seconds: float
    changes: int | None = None

    @property
    def speed(self) -> float:
        """Lines a second of CPU."""
        return self.lines / self.seconds


Table = dict[str, dict[str, list[Run]]]
"""Runs by set and by contender, seed 0 first."""


def _table(runs: Sequence[Run]) -> Table:
    table: Table = defaultdict(lambda: defaultdict(list))
    for run in runs:
        table[run.name][run.contender].append(run)
    return table


def _is_peer(contender: str) -> bool:
    return contender.startswith("AutoVW")


def _error(runs: Sequence[Run]) -> float:
    """The error on the stream as it is: ours, or the median over AutoVW's own seeds."""
    return median(run.error for run in runs) if _is_peer(runs[0].contender) else runs[0].error


def _ratio(row: dict[str, list[Run]]) -> float:
    """How many times as many lines a second as the faster AutoVW."""
    peers = [median(run.speed for run in runs) for contender, runs in row.items() if _is_peer(contender)]
    return median(run.speed for run in row["stack"]) / max(peers)


def _spread(values: Sequence[float]) -> str:
    """The median and the range, if there are several."""
    if min(values) == max(values):
        return f"{values[0]:.4f}"
    return f"{median(values):.4f} ({min(values):.4f}-{max(values):.4f})"


def _lines(title: str, contenders: Sequence[str], rows: dict[str, list[str]], width: int) -> list[str]:
    head = f"{title:12}" + "".join(f"{contender:>{width}}" for contender in contenders)
    return [
        "",
        head,
        *(f"{name:12}" + "".join(f"{c:>{width}}" for c in cells) for name, cells in rows.items()),
    ]


def printed(runs: Sequence[Run], *, contenders: Sequence[str]) -> str:
    """Make the tables."""
    table = _table(runs)
    ours = [contender for contender in contenders if not _is_peer(contender)]
    peers = len(ours) < len(contenders)
    as_it_is, orders, speeds = {}, {}, {}
    for name, row in table.items():
        as_it_is[name] = [
            _spread([run.error for run in row[c]] if _is_peer(c) else [row[c][0].error]) for c in contenders
        ]
        orders[name] = [_spread([run.error for run in row[c]]) for c in ours]
        speeds[name] = [f"{median(run.speed for run in row[c]):,.0f}" for c in contenders]
        speeds[name] += [f"{_ratio(row):,.0f}"] if peers else []
    several = max(len(row["plain"]) for row in table.values()) if table else 0
    lines = ["squared error, median (range) over seeds; ours on the stream as it is"]
    lines += _lines("", contenders, as_it_is, _WIDTH)
    if several > 1:
        lines += ["", f"ours, on the stream as it is and {several - 1} random orders of it"]
        lines += _lines("", ours, orders, _WIDTH)
    lines += ["", "lines a second of CPU" + "; stack over the faster AutoVW" * peers]
    lines += _lines("", [*contenders, *["ratio"] * peers], speeds, 14)
    return "\n".join([*lines, ""])


def verdicts(runs: Sequence[Run]) -> dict[str, bool]:
    """What is asked, as far as there is anything to compare with, and whether it holds."""
    rows = list(_table(runs).values())
    plain = sum(_error(row["stack"]) < min(_error(row["plain"]), _error(row["-q ::"])) for row in rows)
    asked = {"less error than the better of plain and -q ::, on all sets but one": plain >= len(rows) - 1}
    if all("AutoVW NI+LR" in row for row in rows):
        asked["less error than AutoVW NI+LR, on every set"] = all(
            _error(row["stack"]) < _error(row["AutoVW NI+LR"]) for row in rows
        )
        asked[f"{_TIMES} times as many lines a second as AutoVW, on every set"] = all(
            _ratio(row) >= _TIMES for row in rows
        )
    return asked
