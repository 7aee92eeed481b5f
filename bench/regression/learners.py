"""`AutoMLRegressor` and `AutoMLClassifier` with their defaults, beside river's pipelines and FLAML's AutoVW.

    python -m bench.regression.learners [--events N] [--orders N] [--sets NAME ...]
        [--learners NAME ...]

Each event is predicted and then learnt. The sets are the committed regressions, and those that river ships.
The orders are the set's own and shuffles of it. Printed are means over the orders: mean absolute error and
root of the mean squared error; share of right labels and log loss. ``last label`` predicts the label of the
event before. River's linear models and trees get standardised numbers and one-hot texts. AutoVW has the
settings of FLAML's documentation, and is left out where it is not installed.
"""

from __future__ import annotations

import gzip
import math
import random
import time
import warnings
from collections.abc import Callable, Sequence
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


def _makers(kind: str, n_classes: int) -> dict[str, Callable[[], Any]]:
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
            "last label": LastLabel,
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
    given = parser.parse_args(arguments)
    kept: dict[str, dict[str, list[Result]]] = {}
    for name in given.sets:
        kind = "regression" if name in REGRESSIONS else "classification"
        whole = list(islice((REGRESSIONS | CLASSIFICATIONS)[name](), given.events))
        print(f"{name}, {len(whole)} events: " + ("MAE, RMSE" if kind == "regression" else "right, log loss"))
        for learner, make in _makers(kind, len({label for _, label in whole})).items():
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
