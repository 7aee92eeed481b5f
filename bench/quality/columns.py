"""Bandit logs as columns of numbers, for learners that know no text."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from bench.quality.logs import BanditLog, unlabelled

Features: TypeAlias = dict[str, str | float]


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Rows of features as numbers."""

    values: NDArray[np.float64]  # [rows, columns]; NaN is missing
    nominal: NDArray[np.bool_]  # whether a column's numbers stand for names


def _features(line: str) -> Features:
    """Return the features of a line by column: a name, or the place in the namespace of what has none.

    >>> _features("shared |a x:1.5 blue |b 7 |v :0.5 :0.25")
    {'a x': 1.5, 'a 1': 'blue', 'b 0': '7', 'v 0': 0.5, 'v 1': 0.25}
    """
    found: Features = {}
    for letter, *words in map(str.split, line.split("|")[1:]):
        for place, word in enumerate(words):
            name, colon, value = word.partition(":")
            found[f"{letter} {name if colon and name else place}"] = float(value) if colon else word
    return found


def table(lines: Sequence[str], *, ordinal: bool) -> Table:
    """Turn lines into a table; if `ordinal`, words that end in numbers, as ``x_7`` or ``7``, become these.

    >>> table(["|a x:1.5 |b red |c y_7", "|a x:2 |b blue |c na"], ordinal=True).values.tolist()
    [[1.5, 0.0, 7.0], [2.0, 1.0, nan]]
    """
    rows = [_features(line) for line in lines]
    names = dict.fromkeys(name for row in rows for name in row)
    columns = [_column([row.get(name) for row in rows], ordinal=ordinal) for name in names]
    return Table(
        np.column_stack([values for values, _ in columns]), np.array([nominal for _, nominal in columns])
    )


def _column(cells: list[str | float | None], *, ordinal: bool) -> tuple[list[float], bool]:
    """Return the numbers of a column, and whether they stand for names."""
    if ordinal or not any(isinstance(cell, str) for cell in cells):
        with suppress(ValueError):
            return [_number(cell) for cell in cells], False
    codes = {cell: float(code) for code, cell in enumerate(dict.fromkeys(cells))}
    return [codes[cell] for cell in cells], True


def _number(cell: str | float | None) -> float:
    """Return the number at the end of a word, or NaN for what is missing."""
    if isinstance(cell, str):
        cell = cell.rpartition("_")[2]
    return float("nan") if cell is None or cell == "na" else float(cell)


def save_columns(log: BanditLog, path: Path) -> None:
    """Write a log as arrays, to an ``.npz`` file.

    ``shared`` has a row for each event, ``lines`` one for each different line of an action, and ``line``
    [events, actions] says which are those of an event. Beside the first two lies which of their columns are
    nominal. ``fixed`` says whether all events have the same actions.
    """
    texts = [unlabelled(event).decode().split("\n") for event in log.events]
    numbers: dict[str, int] = {}
    line = np.array([[numbers.setdefault(text, len(numbers)) for text in lines] for _, *lines in texts])
    shared = table([text[0] for text in texts], ordinal=True)
    lines = table(list(numbers), ordinal=False)
    np.savez(
        path,
        shared=shared.values,
        shared_nominal=shared.nominal,
        lines=lines.values,
        lines_nominal=lines.nominal,
        line=line,
        fixed=(line == line[0]).all(),
        logged=log.actions,
        reward=log.observed,
    )
