"""Numbers of a study before it is drawn: which trials can be compared, what explains their values."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

_BINS = 5
_IN_A_BIN = 6
"""Trials that a bin has at least, on average."""


def compared(values: Sequence[Mapping[str, Any]]) -> tuple[int, list[Mapping[str, Any]]]:
    """Return the resource that most trials came to, and the values that they had there.

    At higher ones there are only those that were promoted, which are much alike.

    Parameters
    ----------
    values : sequence of mapping
        Rows of `Study.history` that were told.
    """
    at: dict[int, dict[int, Mapping[str, Any]]] = {}
    for row in values:
        at.setdefault(row["resource"], {})[row["trial"]] = row
    level = max(at, key=lambda resource: (len(at[resource]), resource))
    return level, list(at[level].values())


def best_so_far(values: Sequence[Mapping[str, Any]], sign: float) -> list[float]:
    """Return the value of the incumbent after each value: the best of those that were given most.

    >>> rows = [{"resource": 1, "value": 0.5}, {"resource": 1, "value": 0.4}, {"resource": 3, "value": 0.45}]
    >>> best_so_far(rows, 1.0)
    [0.5, 0.4, 0.45]
    """
    best: tuple[float, float] = (math.inf, math.inf)
    found = []
    for row in values:
        best = min(best, (-row["resource"], sign * row["value"]))
        found.append(sign * best[1])
    return found


def code_of(declared: Mapping[str, Any], value: Any) -> float:
    """Return the place of a value between the bounds of its parameter, from 0 to 1.

    >>> code_of({"type": "float", "low": 0.01, "high": 1, "log": True}, 0.1)
    0.5
    >>> code_of({"type": "choice", "values": ["a", "b", "c"]}, "b")
    0.5
    """
    if declared["type"] == "choice":
        words = [(isinstance(each, bool), each) for each in declared["values"]]
        return words.index((isinstance(value, bool), value)) / max(len(words) - 1, 1)
    low, high = declared["low"], declared["high"]
    if low == high:
        return 0.5
    if declared["log"]:
        return math.log(value / low) / math.log(high / low)
    return float((value - low) / (high - low))


def importance(rows: Sequence[Mapping[str, Any]], space: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """Return the share of the variance of the values that each parameter explains alone.

    Values are ranked, so that one that went astray does not outweigh all others. A number is cut into up to
    five bins of as many trials each; a word is a bin, and so is a parameter that does not exist. The share is
    corrected for the bins, which explain something by chance; it is 0 if nothing is left. What parameters
    explain only together is not seen.
    """
    ranks = np.argsort(np.argsort([row["value"] for row in rows], kind="stable"), kind="stable")
    return {name: _explained(ranks, _bins(rows, name, declared)) for name, declared in space.items()}


def _bins(rows: Sequence[Mapping[str, Any]], name: str, declared: Mapping[str, Any]) -> NDArray[np.intp]:
    """Return the number of the bin of each row."""
    codes = np.array(
        [code_of(declared, row[key]) if (key := f"config_{name}") in row else -1 for row in rows]
    )
    exists = codes >= 0
    if declared["type"] != "choice" and exists.any():
        count = max(min(_BINS, len(rows) // _IN_A_BIN), 1)
        cuts = np.quantile(codes[exists], np.arange(1, count) / count)
        codes = np.where(exists, np.searchsorted(cuts, codes, side="right"), -1)
    return np.unique(codes, return_inverse=True)[1]


def _explained(ranks: NDArray[np.intp], bins: NDArray[np.intp]) -> float:
    count, total = int(bins.max()) + 1, float(((ranks - ranks.mean()) ** 2).sum())
    if count == 1 or count == len(ranks) or not total:
        return 0.0
    within = sum(
        float(((each - each.mean()) ** 2).sum()) for at in range(count) for each in [ranks[bins == at]]
    )
    return max(1 - within / total * (len(ranks) - 1) / (len(ranks) - count), 0.0)
