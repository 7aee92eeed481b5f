"""A row has the same prediction and learning by every source type of regression and classification."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pandas
import polars
import pytest

import onlineauto
from onlineauto import OnlineautoError
from tests.property.door_events import Leaf, drawn_leaf

pytest.importorskip("river")
pytest.importorskip("sklearn")

import onlineauto.river
import onlineauto.sklearn

pytestmark = pytest.mark.lane("sampled")

COLUMNS = ("n", "m", "s", "b")
CLASSES = ("x", "y", "z")


def drawn_row(random: Random) -> dict[str, Leaf]:
    """Return a row of values of any kind and library."""
    row = {name: drawn_leaf(random) for name in COLUMNS}
    if random.random() < 0.03:
        value = random.choice([math.inf, -math.inf, 1e39, -3.5e38])
        row["n"] = Leaf(value, value)
    return row


class Model:
    """A model, how it learns a row, and how it predicts one."""

    def __init__(self, learn: Callable[[Any, Any], Any], predict: Callable[[Any], Any]) -> None:
        self.learn, self.predict = learn, predict


def frame_of(kind: Any, row: dict[str, Leaf], label: Any = None) -> Any:
    """Return the row as a frame."""
    columns = {name: [leaf.plain] for name, leaf in row.items()} | ({} if label is None else {"y": [label]})
    if kind is polars:
        return polars.DataFrame(columns, strict=False)
    return pandas.DataFrame({name: pandas.Series(each, dtype=object) for name, each in columns.items()})


def dressed_of(row: dict[str, Leaf]) -> dict[str, Any]:
    return {name: leaf.dressed for name, leaf in row.items()}


def models(kind: str) -> dict[str, Model]:
    """Return a model for each door; `kind` is that of the class."""
    make = getattr(onlineauto, kind)
    by_row, by_fit, by_frame, by_polars, by_y = (make(live_configs=2) for _ in range(5))
    river = getattr(onlineauto.river, kind)(live_configs=2)
    sklearn = getattr(onlineauto.sklearn, kind)(live_configs=2)
    classes = {"classes": list(CLASSES)} if kind.endswith("Classifier") else {}

    def of(model: Any) -> Callable[[Any], Any]:
        return lambda row: _answer(model, dressed_of(row))

    def partial_fit(row: Any, y: Any) -> None:
        sklearn.partial_fit(frame_of(pandas, row), np.array([y]), **classes)

    return {
        "learn": Model(lambda row, y: by_row.learn(dressed_of(row), y), of(by_row)),
        "pairs": Model(lambda row, y: by_fit.fit([(dressed_of(row), y)]), of(by_fit)),
        "pandas": Model(lambda row, y: by_frame.fit_table(frame_of(pandas, row, y), label="y"), of(by_frame)),
        "polars": Model(
            lambda row, y: by_polars.fit_table(frame_of(polars, row, y), label="y"), of(by_polars)
        ),
        "X, y": Model(lambda row, y: by_y.fit([dressed_of(row)], [y]), of(by_y)),
        "river": Model(lambda row, y: river.learn_one(dressed_of(row), y), of(river.model)),
        "scikit-learn": Model(partial_fit, lambda row: _of_sklearn(sklearn, row)),
    }


def _answer(model: Any, row: dict[str, Any]) -> Any:
    if hasattr(model, "predict_proba"):
        found = model.predict_proba(row)
        return [found.get(label, 0.0) for label in CLASSES]
    return model.predict(row)


def _of_sklearn(model: Any, row: dict[str, Leaf]) -> Any:
    frame = frame_of(pandas, row)
    if hasattr(model, "classes_"):
        return model.predict_proba(frame)[0].tolist()
    return model.predict(frame)[0]


def is_beyond(leaf: Leaf) -> bool:
    """Return whether a value is a number that no float32 has."""
    return isinstance(leaf.plain, float) and abs(leaf.plain) > float(np.finfo(np.float32).max)


@pytest.mark.parametrize("kind", ["AutoMLRegressor", "AutoMLClassifier"])
def test_every_source_type_learns_the_same_row(kind: str) -> None:
    doors, random = models(kind), Random(kind)
    for number in range(60):
        row = drawn_row(random)
        bad = is_beyond(row["n"])
        y = random.choice(CLASSES) if kind.endswith("Classifier") else random.choice([0, 1, 2.5, -3])
        refused = set()
        for name, door in doors.items():
            with warnings.catch_warnings(record=True) as warned:
                warnings.simplefilter("always")
                try:
                    door.learn(row, y)
                except (OnlineautoError, ValueError):
                    refused.add(name)
            if any("not learnt" in str(each.message) for each in warned):  # a number far beyond all before
                refused.add(name)
        assert refused in (set(), set(doors)), (number, row)
        assert refused or not bad, (number, row)
        asked = drawn_row(random)
        if number < 5 or any(map(is_beyond, asked.values())):
            continue
        expected = doors["learn"].predict(asked)
        for name, door in doors.items():
            assert np.allclose(door.predict(asked), expected, rtol=1e-3, atol=1e-4), (number, name, asked)
