"""Rows with labels, as scikit-learn gives them; and what ends a fit, or does not, with advice."""

from __future__ import annotations

import datetime
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow
import pytest
from scipy import sparse

import onlineauto.sklearn
from onlineauto import (
    AutoML,
    AutoMLClassifier,
    AutoMLRegressor,
    InputError,
    OnlineautoError,
    OptionError,
    Workspace,
)

pytestmark = pytest.mark.lane("sampled")

X = np.array([[i % 7, i % 3] for i in range(60)], float)
Y = 10 * X[:, 0] + X[:, 1]
FRAME = pandas.DataFrame(X, columns=["x0", "x1"])


def fitted(rows: Any, y: Any, **options: Any) -> float:
    return AutoMLRegressor().fit(rows, y, **options).predict({"x0": 3.0, "x1": 1.0})


@pytest.mark.parametrize(
    "rows",
    [
        X,
        FRAME,
        polars.DataFrame(FRAME.to_dict("list")),
        pyarrow.table(FRAME.to_dict("list")),
        FRAME.to_dict("records"),
        sparse.csr_array(X),
    ],
    ids=lambda rows: type(rows).__module__,
)
@pytest.mark.parametrize("labels", [np.array, list, pandas.Series, polars.Series, pyarrow.array])
def test_rows_and_labels_apart_are_pairs(rows: Any, labels: Any) -> None:
    pairs = [({"x0": a, "x1": b}, y) for (a, b), y in zip(X.tolist(), Y.tolist(), strict=True)]
    expected = AutoMLRegressor().fit(pairs)
    model = AutoMLRegressor().fit(rows, labels(Y.tolist()))
    assert model.predict({"x0": 3.0, "x1": 1.0}) == expected.predict({"x0": 3.0, "x1": 1.0})
    assert model.predict_each(rows).tolist() == expected.predict_each(FRAME).tolist()


def test_sample_weight_is_the_number_of_events() -> None:
    weights = np.where(X[:, 1] > 0, 0.0, 2.0)
    twice = [({"x0": a, "x1": b}, y, w) for (a, b), y, w in zip(X.tolist(), Y, weights, strict=True)]
    expected = AutoMLRegressor().fit(twice).predict({"x0": 3.0, "x1": 1.0})
    assert fitted(X, Y, sample_weight=weights) == expected
    assert fitted(X, Y) != expected


def test_sample_weight_of_the_adapters() -> None:
    weights = np.where(X[:, 1] > 0, 0.0, 1.0)
    for make in (onlineauto.sklearn.AutoMLRegressor, onlineauto.sklearn.AutoMLClassifier):
        y = Y if make is onlineauto.sklearn.AutoMLRegressor else (Y > 30).astype(int)
        weighed = make(passes=2).fit(X, y, sample_weight=weights)
        alone = make(passes=2).fit(X, y)
        assert weighed.predict(X).shape == (60,)
        assert (weighed.model_.report() != alone.model_.report()) is True
        weighed.partial_fit(X, y, sample_weight=weights)
        with pytest.raises(ValueError, match="sample_weight"):
            make().fit(X, y, sample_weight=[1.0])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda model: model.fit(X, Y[:3]), "there are 60 rows, and y has 3: one for each"),
        (lambda model: model.fit(X, Y, sample_weight=[1]), "there are 60 rows, and sample_weight has 1"),
        (lambda model: model.fit(FRAME, "x1"), r"to name a column: fit_table\(frame, label='x1'\)"),
        (lambda model: model.fit(FRAME, 3), "y is the labels of the rows, and not int"),
        (lambda model: model.fit(FRAME, sample_weight=Y), "sample_weight goes with y"),
        (lambda model: model.fit("events.txt", Y), "the rows are a frame, a matrix or a list of mappings"),
        (lambda model: model.fit_table(FRAME), r"or fit\(X, y\) has separate labels"),
    ],
)
@pytest.mark.parametrize("make", [AutoMLRegressor, AutoMLClassifier])
def test_arguments_that_do_not_fit_together_are_rejected(make: Any, call: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call(make())


@pytest.mark.parametrize("missing", [None, math.nan, pandas.NA, np.float32("nan")])
def test_missing_labels_are_counted_located_and_skipped(missing: Any) -> None:
    labels: list[Any] = [*Y[:2].tolist(), missing, *Y[3:].tolist()]
    without = AutoMLRegressor().fit(np.delete(X, 2, axis=0), np.delete(Y, 2))
    frame = FRAME.assign(y=pandas.Series(labels, dtype=object))
    fits: tuple[Any, ...] = (
        lambda model: model.fit(X, labels),
        lambda model: model.fit(list(zip(FRAME.to_dict("records"), labels, strict=True))),
        lambda model: model.fit_table(frame, label="y"),
        lambda model: model.fit(
            [{"context": row, "label": y} for row, y in zip(FRAME.to_dict("records"), labels, strict=True)]
        ),
    )
    for fit in fits:
        model = AutoMLRegressor()
        with pytest.warns(UserWarning, match=r"1 problem.*\n.*event 2: the label is missing: .*; not learnt"):
            fit(model)
        assert model.events == 59
        assert model.predict({"x0": 3.0, "x1": 1.0}) == without.predict({"x0": 3.0, "x1": 1.0})


def test_nothing_but_missing_labels_is_an_error() -> None:
    with pytest.raises(InputError, match=r"nothing was learnt\n1 problem.*\n.*the label is missing"):
        AutoMLRegressor().fit([({"a": 1}, None)])


@pytest.mark.parametrize("make", [AutoMLRegressor, AutoMLClassifier])
def test_dates_end_a_fit_with_advice(make: Any) -> None:
    when = [datetime.datetime(2026, 1, 1 + i) for i in range(3)]
    frame = pandas.DataFrame({"when": when, "y": [1, 2, 1]})
    advice = (
        "a date or a time, which is no feature: give what matters of it .* such as the weekday and the hour"
    )
    for rows in (frame, polars.from_pandas(frame), frame.to_dict("records")):
        with pytest.raises(InputError, match=f"^event 0: when: .*{advice}"):
            make().fit(rows, [1, 2, 1])
    with pytest.raises(InputError, match="the matrix has dates or times"):
        make().fit(np.array(when, "datetime64[ns]").reshape(-1, 1), [1, 2, 1])
    with pytest.raises(InputError, match="dates or times"):
        getattr(onlineauto.sklearn, make.__name__)().fit(frame[["when"]], [1, 2, 1])


def test_frames_of_bandits_say_what_is_wrong() -> None:
    base = pandas.DataFrame({"u": ["t", "a"], "shown": ["a", "b"], "cost": [-1.0, 0.0], "p": [0.5] * 2})
    log: dict[str, Any] = {"actions": "shown", "cost": "cost", "probability": "p"}
    with pytest.raises(InputError, match="nothing was learnt: the frame has no rows"):
        AutoML().fit_table(base.iloc[:0], **log)
    twice = pandas.concat([base, base[["u"]]], axis=1)
    for call in (
        lambda: AutoML().fit_table(twice, **log),
        lambda: AutoML().fit_table(twice, actions="shown", reward="cost", probability="p"),
        lambda: AutoMLRegressor().fit_table(twice, label="cost"),
        lambda: AutoMLRegressor().fit(twice, [1, 2]),
    ):
        with pytest.raises(InputError, match="the frame has 2 columns with the name 'u'"):
            call()


@pytest.mark.parametrize("make", [AutoML, AutoMLRegressor, AutoMLClassifier])
def test_all_models_have_the_same_parameters(make: Any, tmp_path: Path) -> None:
    model = make(live_configs=2, seed=3, hash_bits=10, begin_with=["a*b"], learning_rate=0.25)
    assert model.workspace.configuration.get("bit_precision") == 10
    assert model.champion.interactions == ("a*b",)
    assert make(live_configs=None, begin_with=["a*b"]).workspace is not None
    with pytest.raises(OptionError, match="name two or three namespaces"):
        make(begin_with=["a"])
    model.save(tmp_path / "m.oam")
    assert make.load(tmp_path / "m.oam").champion.interactions == ("a*b",)


@pytest.mark.parametrize("make", [AutoML, AutoMLRegressor, AutoMLClassifier, Workspace])
def test_a_missing_folder_is_named(make: Any, tmp_path: Path) -> None:
    model, folder = make(), tmp_path / "missing"
    with pytest.raises(
        OnlineautoError, match=rf"cannot write .*m\.oam: the folder {folder} does not exist, make"
    ):
        model.save(folder / "m.oam")
    with pytest.raises(OSError, match="does not exist"):
        model.save(str(folder / "m.oam"))
