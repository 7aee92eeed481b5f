"""Explain the predictions of any model of rows: parts by feature, and effects over the values of a feature.

A prediction is explained by switching the features of a background row to those of the event one by one, in
their order and in the reverse order, and by averaging the change that each feature makes: an estimate of its
Shapley value with two permutations. The parts and the base add up to the prediction.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from onlineauto.errors import InputError, kind_of
from onlineauto.formats.mappings.values import plain

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    Predict = Callable[[Sequence[Mapping[str, Any]]], NDArray[np.float64]]

_MOST_ROWS: Final = 100
"""Maximum number of background rows; of more rows, evenly spaced ones are used."""
_POINTS: Final = 9
"""Number of values of a feature at which an effect is computed."""


class Contributions(NamedTuple):
    """The parts of a prediction, which has one or more outputs."""

    # float64[n_outputs]: the prediction, and the mean prediction of the background.
    prediction: NDArray[np.float64]
    base: NDArray[np.float64]
    parts: dict[str, NDArray[np.float64]]  # float64[n_outputs]: what each feature adds.


def sample_rows(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return up to 100 evenly spaced rows."""
    if not rows:
        raise InputError("there are no rows: pass rows like those that the model has learnt")
    for i, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise InputError(
                f"row {i} is {kind_of(row)}, not a mapping of name to value: give a list of mappings, a "
                "frame or a matrix"
            )
    indices = np.linspace(0, len(rows) - 1, min(len(rows), _MOST_ROWS)).astype(int)
    return [rows[index] for index in indices]


def parts_of(
    predict: Predict, features: Mapping[str, Any], background: Sequence[Mapping[str, Any]]
) -> Contributions:
    """Return the parts of the prediction of an event against background rows."""
    names = list(features)
    total: NDArray[np.float64] = np.zeros(0)
    paths = [(row, order) for row in background for order in (names, names[::-1])]
    for row, order in paths:
        mixed, rows = dict(row), [dict(row)]
        for name in order:
            mixed[name] = features[name]
            rows.append(dict(mixed))
        for extra in row.keys() - features.keys():
            mixed.pop(extra)
        rows.append(mixed)
        outputs = predict(rows)
        steps = np.vstack([outputs[:1], np.diff(outputs, axis=0)])
        by_name = [steps[1 + order.index(name)] for name in names]
        arranged = np.vstack([steps[:1], *by_name, steps[-1:], outputs[-1:]])
        total = arranged if not total.size else total + arranged
    base, *effects, missing, prediction = total / len(paths)
    parts = dict(zip(names, effects, strict=True))
    if missing.any():
        parts["features that are missing"] = missing
    return Contributions(prediction, base, parts)


def effects_of(
    predict: Predict, rows: Sequence[Mapping[str, Any]]
) -> dict[str, tuple[list[Any], NDArray[np.float64]]]:
    """Return for each feature of some rows its usual values, and the mean prediction at each.

    The largest effect is first. Predictions are float64[n_values, n_outputs].
    """
    sample = sample_rows(rows)
    found = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        values = _values([plain(row[name]) for row in rows if name in row])
        if len(values) < 2:
            continue
        changed = [{**row, name: value} for value in values for row in sample]
        outputs = predict(changed)
        found[name] = values, outputs.reshape(len(values), len(sample), -1).mean(axis=1)
    size = {name: float(np.ptp(means, axis=0).max()) for name, (_, means) in found.items()}
    return {name: found[name] for name in sorted(found, key=lambda name: -size[name])}


def _values(values: list[Any]) -> list[Any]:
    """Return quantiles of numbers, or the most frequent words; none of lists and mappings."""
    known = [value for value in values if isinstance(value, int | float | str)]
    numbers = [value for value in known if not isinstance(value, str | bool)]
    if known and len(numbers) == len(known):
        distinct = sorted(set(numbers))
        if len(distinct) <= _POINTS:
            return distinct
        return sorted(set(np.quantile(numbers, np.linspace(0.02, 0.98, _POINTS)).tolist()))
    return [value for value, _ in Counter(known).most_common(_POINTS)]
