"""The CSV files of figures, and what is known of the run that made them."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "docs" / "benchmarks" / "data"
RUN = "run.json"
RATIO = "\N{MULTIPLICATION SIGN}"
MEAN = "mean"
"""The row of the mean over all logs."""


class Figure(NamedTuple):
    """The median of a number and its range, over seeds or rounds."""

    row: str
    column: str
    median: float
    low: float
    high: float
    unit: str


def figure(row: str, column: str, values: Iterable[float], unit: str) -> Figure:
    """Return the median and the range of some values."""
    known = [float(value) for value in values]
    return Figure(row, column, median(known), min(known), max(known), unit)


def write(path: Path, figures: Sequence[Figure]) -> None:
    """Write a CSV file with a line for each figure."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(Figure._fields)
        for each in figures:
            numbers = [f"{number:.6g}" for number in (each.median, each.low, each.high)]
            writer.writerow([each.row, each.column, *numbers, each.unit])


def read(name: str, folder: Path = DATA) -> list[Figure]:
    """Return the figures of a CSV file; none if there is no file."""
    path = folder / f"{name}.csv"
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        _, *lines = csv.reader(file)
    return [
        Figure(row, column, float(middle), float(low), float(high), unit)
        for row, column, middle, low, high, unit in lines
    ]


def read_run(folder: Path = DATA) -> dict[str, Any]:
    """Return what is known of the run."""
    path = folder / RUN
    if not path.exists():
        return {"quick": False, "versions": {}, "sections": {}}
    found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return found


def write_run(run: Mapping[str, Any], folder: Path = DATA) -> None:
    """Write what is known of the run."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / RUN).write_text(json.dumps(run, indent=1, ensure_ascii=False) + "\n", "utf-8")
