"""Learning curves of real models on the sets that scikit-learn ships, recorded once in `curves.npz`.

    python -m bench.tune.suites.curves [FILE]

Each table has all configs of a grid and the loss on held-out rows after each of 27 epochs: of a perceptron,
where an epoch is a pass over the rows, or of gradient boosting, where it is two trees. Losses are log losses,
or mean squared errors as a part of the variance. To record them takes ten minutes; the file is committed, so
that everybody compares tuners on the same numbers.
"""

from __future__ import annotations

import itertools
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np

EPOCHS: Final = 27
FILE: Final = Path(__file__).with_name("curves.npz")
_TREES: Final = 2
_WORST: Final = 20.0
"""Losses are cut here, and a loss that is not finite becomes this."""
GRIDS: Final[dict[str, dict[str, Sequence[Any]]]] = {
    "perceptron": {
        "learning_rate_init": [1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3],
        "width": [8, 16, 32, 64, 128],
        "alpha": [1e-5, 1.0],
        "batch_size": [16, 64, 256],
        "activation": ["relu", "tanh"],
    },
    "boosting": {
        "learning_rate": [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.0],
        "max_depth": [1, 2, 3, 4, 5],
        "subsample": [0.5, 1.0],
        "min_samples_leaf": [1, 4, 16],
        "max_features": [0.25, 1.0],
    },
}
"""The values of each parameter in their order, by model."""
TABLES: Final = {
    "perceptron, digits": "load_digits",
    "perceptron, breast cancer": "load_breast_cancer",
    "perceptron, wine": "load_wine",
    "boosting, breast cancer": "load_breast_cancer",
    "boosting, diabetes": "load_diabetes",
}
"""The function of `sklearn.datasets` by the name of the table, which begins with the model."""


@cache
def read() -> dict[str, np.ndarray]:
    """Return the losses by the name of the table: float64[sizes of the grid …, epochs]."""
    with np.load(FILE) as tables:
        return {
            name: tables[name].astype(float).reshape(*map(len, GRIDS[name.split(",")[0]].values()), EPOCHS)
            for name in TABLES
        }


def rows_of(loader: str) -> list[np.ndarray]:
    """Return standardised inputs for training and for the loss, and the labels of both."""
    from sklearn import datasets
    from sklearn.model_selection import train_test_split
    from sklearn.preprocessing import StandardScaler

    inputs, labels = getattr(datasets, loader)(return_X_y=True)
    rows = train_test_split(inputs, labels, train_size=min(600, 2 * len(labels) // 3), random_state=0)
    scaler = StandardScaler().fit(rows[0])
    return [scaler.transform(rows[0]), scaler.transform(rows[1]), *rows[2:]]


def perceptron(config: Mapping[str, Any], rows: Sequence[np.ndarray]) -> Iterator[float]:
    from sklearn.neural_network import MLPClassifier

    train, test, labels, truth = rows
    settings = {name: value for name, value in config.items() if name != "width"}
    model = MLPClassifier((config["width"],), random_state=0, **settings)
    for _ in range(EPOCHS):
        model.partial_fit(train, labels, classes=np.unique(labels))
        yield _log_loss(model.predict_proba(test), truth)


def boosting(config: Mapping[str, Any], rows: Sequence[np.ndarray]) -> Iterator[float]:
    from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor

    train, test, labels, truth = rows
    regression = len(np.unique(labels)) > 10
    kind = GradientBoostingRegressor if regression else GradientBoostingClassifier
    model = kind(n_estimators=_TREES * EPOCHS, random_state=0, **config).fit(train, labels)
    predictions = list((model.staged_predict if regression else model.staged_predict_proba)(test))
    for predicted in predictions[_TREES - 1 :: _TREES]:
        yield (
            float(((predicted - truth) ** 2).mean() / truth.var())
            if regression
            else _log_loss(predicted, truth)
        )


def _log_loss(probabilities: np.ndarray, truth: np.ndarray) -> float:
    return float(-np.log(np.maximum(probabilities[np.arange(len(truth)), truth], 1e-12)).mean())


def main(words: Sequence[str]) -> int:
    """Train all configs on all sets, and write the losses."""
    warnings.simplefilter("ignore")
    tables: dict[str, np.ndarray] = {}
    for name, loader in TABLES.items():
        rows = rows_of(loader)
        grid = GRIDS[name.split(",")[0]]
        train = perceptron if name.startswith("perceptron") else boosting
        with np.errstate(all="ignore"):
            losses = [
                list(train(dict(zip(grid, each, strict=True)), rows))
                for each in itertools.product(*grid.values())
            ]
        tables[name] = np.clip(np.nan_to_num(losses, nan=_WORST), 0, _WORST).astype(np.float16)
        print(name, tables[name].shape, tables[name][:, -1].min(), np.median(tables[name][:, -1]), flush=True)
    np.savez_compressed(Path(words[0]) if words else FILE, **tables)  # type: ignore[arg-type]
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
