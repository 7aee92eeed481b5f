"""The process that runs LightGBM, refitted now and then, and river's pipelines on single lines.

Reads one JSON object, ``{"file": ..., "who": ...}``, from its standard input and answers with one:
``{"seconds": ..., "predictions": [...]}``, the seconds of CPU, without imports and reading. Without ``file``
it only imports both and answers ``{"versions": {...}}``. Either may be ``{"error": ...}``. It imports NumPy,
LightGBM and river, and nothing else.

A word has a place in its namespace, and is a name unless all words of the place are numbers; so LightGBM and
river know the order of bins made by hand.
"""

from __future__ import annotations

import importlib.metadata
import json
import sys
import time
import traceback
import warnings
from importlib import import_module
from typing import Any

import numpy as np

warnings.simplefilter("ignore")

Rows = list[dict[str, "str | float"]]

FIRST, EVERY, TREES = (250, 500, 1000), 2000, 100
"""Lines after which LightGBM is first fitted, lines between later fits, and trees."""


def table(lines: list[str]) -> tuple[Rows, list[float]]:
    """Return the features of each line by column, and the labels."""
    rows: Rows = []
    labels = []
    for line in lines:
        label, *parts = line.split("|")
        labels.append(float(label.split()[0]))
        row: dict[str, str | float] = {}
        for name, *words in (part.split() for part in parts):
            for place, word in enumerate(words):
                feature, colon, value = word.partition(":")
                row[f"{name} {feature if colon else place}"] = float(value) if colon else word
        rows.append(row)
    return as_numbers(rows), labels


def as_numbers(rows: Rows) -> Rows:
    """Return rows in which columns that have numbers alone are numbers.

    >>> as_numbers([{"a": "7", "b": "x"}, {"a": "8", "b": "9"}])
    [{'a': 7.0, 'b': 'x'}, {'a': 8.0, 'b': '9'}]
    """
    names = {name for row in rows for name, value in row.items() if not _is_number(value)}
    return [{name: value if name in names else float(value) for name, value in row.items()} for row in rows]


def _is_number(value: str | float) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True


def lightgbm(rows: Rows, labels: list[float]) -> list[float]:
    """Predict each line by what was fitted last; before that, the mean of the labels so far."""
    fit: Any = import_module("lightgbm").train
    data: Any = import_module("lightgbm").Dataset
    columns = list(dict.fromkeys(name for row in rows for name in row))
    codes: dict[tuple[str, str], float] = {}
    x = np.full((len(rows), len(columns)), np.nan)
    for at, row in enumerate(rows):
        for place, name in enumerate(columns):
            value = row.get(name, np.nan)
            text = isinstance(value, str)
            x[at, place] = codes.setdefault((name, str(value)), float(len(codes))) if text else value
    nominal = sorted({columns.index(name) for name, _ in codes})
    settings = {"objective": "l2", "num_threads": 1, "deterministic": True, "verbose": -1, "num_leaves": 31}
    begins = [begin for begin in (*FIRST, *range(EVERY, len(rows), EVERY)) if begin < len(rows)]
    y = np.array(labels)
    predictions = (np.cumsum(y) - y) / np.maximum(np.arange(len(y)), 1)
    for begin, end in zip(begins, [*begins[1:], len(rows)], strict=True):
        past = data(x[:begin], y[:begin], categorical_feature=nominal, params={"verbose": -1})
        predictions[begin:end] = fit(settings, past, TREES).predict(x[begin:end])
    found: list[float] = predictions.tolist()
    return found


def pipeline(who: str) -> Any:
    """Make a pipeline of river: numbers are scaled, names become features of their own."""
    compose, preprocessing = import_module("river.compose"), import_module("river.preprocessing")
    if who == "river linear":
        model = import_module("river.linear_model").LinearRegression()
    elif who == "river tree":
        model = import_module("river.tree").HoeffdingAdaptiveTreeRegressor(seed=0)
    else:
        model = import_module("river.forest").ARFRegressor(seed=0)
    numbers = compose.SelectType(float) | preprocessing.StandardScaler()
    return (numbers + (compose.SelectType(str) | preprocessing.OneHotEncoder())) | model


def river(who: str, rows: Rows, labels: list[float]) -> list[float]:
    """Predict and learn each line."""
    model, predictions = pipeline(who), []
    for row, label in zip(rows, labels, strict=True):
        predictions.append(float(model.predict_one(row)))
        model.learn_one(row, label)
    return predictions


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Handle a request."""
    try:
        file = request.get("file")
        if file is None:
            for name in ("lightgbm", "river"):
                import_module(name)
            return {"versions": {name: importlib.metadata.version(name) for name in ("lightgbm", "river")}}
        with open(file, encoding="utf-8") as source:  # noqa: PTH123 - as short as it gets
            rows, labels = table(source.read().splitlines())
        import_module("lightgbm" if request["who"] == "LightGBM" else "river.forest")
        begin = time.process_time()
        of_river = request["who"] != "LightGBM"
        predictions = river(request["who"], rows, labels) if of_river else lightgbm(rows, labels)
        return {"seconds": time.process_time() - begin, "predictions": predictions}
    except Exception:  # to be reported by who asked
        return {"error": traceback.format_exc()}


if __name__ == "__main__":
    print(json.dumps(answer(json.loads(sys.stdin.readline()))), flush=True)
