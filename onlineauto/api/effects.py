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


class Effect(NamedTuple):
    """The usual values of a feature, and the mean prediction over rows in which it has each of them."""

    values: list[Any]
    means: NDArray[np.float64]  # float64[n_values, n_outputs]
    # The mean over rows of the largest less the smallest prediction, of the output for which that is largest.
    size: float


def effects_of(
    predict: Predict, rows: Sequence[Mapping[Any, Any]], *, further: Sequence[Mapping[Any, Any]] = ()
) -> dict[Any, Effect]:
    """Return the effect of each feature of some rows, and of features that only `further` rows have."""
    sample, found = sample_rows(rows), {}
    listed = [*rows, *further]
    for name in dict.fromkeys(name for row in listed for name in row):
        values = _values([plain(row[name]) for row in listed if name in row])
        if len(values) > 1:
            outputs = predict([{**row, name: value} for value in values for row in sample])
            outputs = outputs.reshape(len(values), len(sample), -1)
            size = float(np.ptp(outputs, axis=0).mean(axis=0).max())
            found[name] = Effect(values, outputs.mean(axis=1), size)
    return found


def largest_first(effects: Mapping[str, Effect], *, outputs: bool) -> dict[str, dict[str, Any]]:
    """Return effects as mappings by feature, the largest first; without `outputs`, of the only output."""
    return {
        name: {"size": size, "values": values, "predictions": means if outputs else means[:, 0]}
        for name, (values, means, size) in sorted(effects.items(), key=lambda item: -item[1].size)
    }


def effects_of_actions(
    predict: Callable[[Mapping[str, Any], list[dict[str, Any]]], NDArray[np.float64]],
    contexts: Sequence[Mapping[str, Any]],
    actions: Sequence[Mapping[str, Any]],
) -> dict[str, Effect]:
    """Return the effects of features of contexts and of actions on the prediction of each action.

    A value of an action's feature is given to all actions that have this feature.
    """
    rows = [_by_feature(context, "context") for context in contexts]
    listed = [_by_feature(action, "actions") for action in actions]

    def respond(changed: Sequence[Mapping[Any, Any]]) -> NDArray[np.float64]:
        of_actions = [
            [{name: row.get(name, action[name]) for name in action} for action in listed] for row in changed
        ]
        contexts = [{name: value for name, value in row.items() if name[0] == "context"} for row in changed]
        return np.array(
            [
                predict(_by_namespace(context), list(map(_by_namespace, those)))
                for context, those in zip(contexts, of_actions, strict=True)
            ]
        )

    found = effects_of(respond, rows, further=listed)
    return {".".join(map(str, _shortened(name))): effect for name, effect in found.items()}


def _shortened(name: tuple[str, ...]) -> tuple[str, ...]:
    """Return the name of a feature, without the owner ``context`` unless the rest begins like an owner."""
    owner, namespace, *_ = name
    return name[1:] if owner == "context" and namespace not in ("context", "actions") else name


def _by_feature(features: Mapping[str, Any], owner: str) -> dict[tuple[str, ...], Any]:
    """Return features by their owner, namespace and, in a nested mapping, name.

    >>> _by_feature({"hour": 9, "user": {"age": 30}}, "context")
    {('context', 'hour'): 9, ('context', 'user', 'age'): 30}
    """
    found: dict[tuple[str, ...], Any] = {}
    for namespace, content in features.items():
        if isinstance(content, Mapping):
            found |= {(owner, namespace, name): value for name, value in content.items()}
        else:
            found[owner, namespace] = content
    return found


def _by_namespace(found: Mapping[tuple[str, ...], Any]) -> dict[str, Any]:
    """Return the features of a result of `_by_feature`."""
    features: dict[str, Any] = {}
    for (_, namespace, *name), value in found.items():
        before = features.get(namespace)
        members = before if isinstance(before, dict) else {}
        features[namespace] = {**members, name[0]: value} if name else value
    return features


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
