"""`AutoMLRegressor` and `AutoMLClassifier` with their defaults, beside river's pipelines and FLAML's AutoVW.

    python -m bench.regression.learners [--events N] [--orders N] [--sets NAME ...]
        [--learners NAME ...]

Each event is predicted and then learnt. The sets are the committed regressions, and those that river ships.
The orders are the set's own and shuffles of it. Printed are means over the orders: mean absolute error and
root of the mean squared error; share of right labels and log loss. River's linear models and trees get
standardised numbers and one-hot texts. AutoVW has the settings of FLAML's documentation. LightGBM is refitted
every 2,000 events. What is not installed is left out. `--batch` fits three folds of a regression, in random
order, and predicts the fourth; it prints R² and the time.
"""

from __future__ import annotations

import gzip
import math
import random
import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from itertools import islice
from pathlib import Path
from string import ascii_lowercase
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from bench import kit
from onlineauto import AutoMLClassifier, AutoMLRegressor

Stream: TypeAlias = list[tuple[dict[str, Any], Any]]
FOLDER = Path(__file__).parents[2] / "datasets"
_LEAST = 1e-3


class Result(NamedTuple):
    """The result of a learner on a set in one order."""

    first: float  # mean absolute error, or share of right labels
    second: float  # root of the mean squared error, or log loss
    seconds: float  # of CPU


def _committed(name: str) -> Stream:
    """Read a committed file of VW text as features by name."""
    stream: Stream = []
    with gzip.open(FOLDER / f"reg-{name}.txt.gz", "rt") as file:
        for line in file:
            label, *namespaces = line.split("|")
            features: dict[str, Any] = {}
            for namespace, *words in map(str.split, namespaces):
                for word in words:
                    name_, colon, value = word.partition(":")
                    features[name_ if colon else namespace] = float(value) if colon else word
            stream.append((features, float(label)))
    return stream


def read_river(name: str) -> Stream:
    """Read a set of river."""
    return [(dict(features), label) for features, label in getattr(import_module("river.datasets"), name)()]


REGRESSIONS: dict[str, Callable[[], Stream]] = {
    "bikeshare": lambda: _committed("bikeshare"),
    "diamonds": lambda: _committed("diamonds"),
    "flights": lambda: _committed("flights"),
    "TrumpApproval": lambda: read_river("TrumpApproval"),
    "ChickWeights": lambda: read_river("ChickWeights"),
}
CLASSIFICATIONS: dict[str, Callable[[], Stream]] = {
    "Phishing": lambda: read_river("Phishing"),
    "Bananas": lambda: read_river("Bananas"),
    "ImageSegments": lambda: read_river("ImageSegments"),
}


class Ours:
    """A learner of ours with river's methods."""

    def __init__(self, make: Callable[..., Any]) -> None:
        self._model = make()
        self.learn_one, self.predict_one = self._model.learn, self._model.predict
        if make is AutoMLClassifier:
            self.predict_proba_one = self._model.predict_proba


class LeastSquares:
    """Recursive least squares on standardised numbers and on texts; nothing is forgotten."""

    def __init__(self) -> None:
        self._index: dict[Any, int] = {}
        self._weights, self._spread = np.zeros(1), np.eye(1)
        self._moments: dict[str, list[float]] = {}

    def _row(self, features: dict[str, Any]) -> np.ndarray:
        row = {0: 1.0}
        for name, value in features.items():
            text = isinstance(value, str)
            at = self._index.setdefault((name, value) if text else name, len(self._index) + 1)
            n, mean, squares = (1.0, 0.0, 1.0) if text else self._moments.get(name, [0.0, 0.0, 0.0])
            row[at] = 1.0 if text else (value - mean) / math.sqrt(squares / n) if squares > 0 else 0.0
        more = len(self._index) + 1 - len(self._weights)
        self._weights = np.pad(self._weights, (0, more))
        spread = np.eye(len(self._weights))
        spread[: -more or None, : -more or None] = self._spread
        self._spread = spread
        result = np.zeros(len(self._weights))
        result[[*row]] = [*row.values()]
        return result

    def predict_one(self, features: dict[str, Any]) -> float:
        """Return the label that the weights expect."""
        return float(self._row(features) @ self._weights)

    def learn_one(self, features: dict[str, Any], label: float) -> None:
        """Learn an event, and then its numbers."""
        row = self._row(features)
        gains = self._spread @ row
        unsure = 1.0 + row @ gains
        self._weights = self._weights + gains * (label - row @ self._weights) / unsure
        self._spread -= np.outer(gains, gains) / unsure
        for name, value in features.items():
            if not isinstance(value, str):
                moments = self._moments.setdefault(name, [0.0, 0.0, 0.0])
                moments[0] += 1.0
                off = value - moments[1]
                moments[1] += off / moments[0]
                moments[2] += off * (value - moments[1])


class LightGBM:
    """LightGBM with river's methods, refitted every 2,000 events; before the first fit the mean label."""

    def __init__(self) -> None:
        self._train, self._model = import_module("lightgbm"), None
        self._rows: list[dict[str, Any]] = []
        self._labels: list[float] = []
        self._columns: list[str] = []
        self._codes: dict[Any, int] = {}

    def _table(self, rows: Sequence[dict[str, Any]]) -> np.ndarray:
        values = [[row.get(name, math.nan) for name in self._columns] for row in rows]
        return np.array(
            [
                [self._codes.setdefault(v, len(self._codes)) if isinstance(v, str) else v for v in row]
                for row in values
            ]
        )

    def predict_one(self, features: dict[str, Any]) -> float:
        """Return the label that the last model expects."""
        if self._model is None:
            return float(np.mean(self._labels)) if self._labels else 0.0
        return float(self._model.predict(self._table([features]))[0])

    def learn_one(self, features: dict[str, Any], label: float) -> None:
        """Keep an event, and fit a model of all events if it is time."""
        self._rows.append(features)
        self._labels.append(label)
        if len(self._rows) in (250, 500, 1000) or len(self._rows) % 2000 == 0:
            self.fit()

    def fit(self, source: Stream | tuple[()] = ()) -> None:
        """Fit a model of all events, also those of a source."""
        self._rows += [features for features, _ in source]
        self._labels += [label for _, label in source]
        self._columns = list(dict.fromkeys(name for row in self._rows for name in row))
        nominal = [
            at
            for at, name in enumerate(self._columns)
            if any(isinstance(row.get(name), str) for row in self._rows)
        ]
        data = self._train.Dataset(self._table(self._rows), self._labels, categorical_feature=nominal)
        self._model = self._train.train({"verbose": -1, "num_threads": 1, "seed": 0}, data, 100)

    def predict(self, rows: Sequence[dict[str, Any]]) -> Any:
        """Return the labels of rows."""
        assert self._model is not None
        return self._model.predict(self._table(rows))


class _AutoVW:
    """FLAML's AutoVW with river's methods."""

    def __init__(self) -> None:
        from bench.regression.peer_worker import allow_no_interactions, make

        allow_no_interactions()
        self._model = make(learning_rate=True, seed=0)
        self._line = ""

    def predict_one(self, features: dict[str, Any]) -> float:
        words = (
            f"|{letter} " + (value if isinstance(value, str) else f"{letter}:{value}")
            for letter, (_, value) in zip(ascii_lowercase, features.items(), strict=False)
        )
        self._line = " ".join(words)
        return float(self._model.predict("0 " + self._line))

    def learn_one(self, _: dict[str, Any], label: float) -> None:
        self._model.learn(f"{label} {self._line}")


class LastLabel:
    """Predicts the label of the event before, with river's methods."""

    def __init__(self) -> None:
        self._last: Any = None

    def predict_one(self, _: dict[str, Any]) -> Any:
        """Return the last label; None at first."""
        return self._last

    def predict_proba_one(self, _: dict[str, Any]) -> dict[Any, float]:
        """Return probability 1 for the last label."""
        return {self._last: 1.0}

    def learn_one(self, _: dict[str, Any], label: Any) -> None:
        """Keep a label."""
        self._last = label


def makers(kind: str, n_classes: int) -> dict[str, Callable[[], Any]]:
    """Return the factory of each learner of a kind."""
    compose, pp = import_module("river.compose"), import_module("river.preprocessing")
    linear, tree = import_module("river.linear_model"), import_module("river.tree")
    forest = import_module("river.forest")

    def of(model: Any) -> Any:
        numbers = compose.SelectType((int, float)) | pp.StandardScaler()
        return (numbers + (compose.SelectType(str) | pp.OneHotEncoder())) | model

    if kind == "regression":
        return {
            "onlineauto": lambda: Ours(AutoMLRegressor),
            "lags=3": lambda: Ours(partial(AutoMLRegressor, lags=3)),
            "last label": LastLabel,
            "least squares": LeastSquares,
            "LightGBM": LightGBM,
            "river SRP": lambda: of(import_module("river.ensemble").SRPRegressor(n_models=10, seed=0)),
            "river linear": lambda: of(linear.LinearRegression()),
            "river tree": lambda: of(tree.HoeffdingAdaptiveTreeRegressor(seed=0)),
            "river forest": lambda: of(forest.ARFRegressor(seed=0)),
            "AutoVW": _AutoVW,
        }
    return {
        "onlineauto": lambda: Ours(AutoMLClassifier),
        "last label": LastLabel,
        "river linear": lambda: of(
            linear.LogisticRegression() if n_classes == 2 else linear.SoftmaxRegression()
        ),
        "river tree": lambda: of(tree.HoeffdingAdaptiveTreeClassifier(seed=0)),
        "river forest": lambda: of(forest.ARFClassifier(seed=0)),
    }


def run(learner: Any, stream: Stream, *, kind: str) -> Result:
    """Predict and learn each event."""
    begin = time.process_time()
    first = second = 0.0
    for features, label in stream:
        if kind == "regression":
            error = (learner.predict_one(features) or 0.0) - label
            first, second = first + abs(error), second + error * error
        else:
            found = learner.predict_proba_one(features) or {}
            first += bool(found) and max(found, key=found.__getitem__) == label
            second -= math.log(max(found.get(label, 0.0), _LEAST))
        learner.learn_one(features, label)
    n = len(stream)
    second = math.sqrt(second / n) if kind == "regression" else second / n
    return Result(first / n, second, time.process_time() - begin)


def batch(name: str, events: int) -> None:
    """Print R² and the time of four folds of a set in random order, each predicted by the other three."""
    stream = list(islice(REGRESSIONS[name](), events))
    random.Random(0).shuffle(stream)
    labels = np.array([label for _, label in stream])
    for learner, make in {"onlineauto": AutoMLRegressor, "LightGBM": LightGBM}.items():
        predictions, begin = np.zeros(len(stream)), time.process_time()
        for fold in range(4):
            try:
                model: Any = make()
            except ModuleNotFoundError:
                return
            model.fit([event for at, event in enumerate(stream) if at % 4 != fold])
            predictions[fold::4] = model.predict([features for features, _ in stream[fold::4]])
        score = 1.0 - np.mean((predictions - labels) ** 2) / np.var(labels)
        print(f"{name:14}{learner:14}{score:10.4f}{time.process_time() - begin:8.1f} s", flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table for each kind."""
    parser = kit.parser(
        __doc__,
        events=kit.Option(8000, "how many of each set"),
        orders=5,
        sets=[*REGRESSIONS, *CLASSIFICATIONS],
        json=Path,
    )
    parser.add_argument("--learners", nargs="*")
    parser.add_argument("--batch", action="store_true")
    given = parser.parse_args(arguments)
    if given.batch:
        for name in (name for name in given.sets if name in REGRESSIONS):
            batch(name, given.events)
        return
    kept: dict[str, dict[str, list[Result]]] = {}
    for name in given.sets:
        kind = "regression" if name in REGRESSIONS else "classification"
        whole = list(islice((REGRESSIONS | CLASSIFICATIONS)[name](), given.events))
        print(f"{name}, {len(whole)} events: " + ("MAE, RMSE" if kind == "regression" else "right, log loss"))
        for learner, make in makers(kind, len({label for _, label in whole})).items():
            if given.learners and learner not in given.learners:
                continue
            results = []
            for order in range(given.orders):
                stream = list(whole)
                if order:
                    random.Random(order).shuffle(stream)
                try:
                    results.append(run(make(), stream, kind=kind))
                except ModuleNotFoundError:
                    break
            if results:
                kept.setdefault(name, {})[learner] = results
                first, second, seconds = np.mean(results, axis=0)
                print(f"  {learner:14}{first:12.4f}{second:12.4f}{seconds:8.1f} s", flush=True)
    kit.write_json(given.json, kept)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
