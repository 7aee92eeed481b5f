"""Run the script of FLAML's documentation for AutoVW, with one import changed.

Its data, NewFuelCar of OpenML, is not part of this package; the prices of diamonds stand in: numbers, some
missing, and categories as codes, in columns that are grouped into namespaces in their order.

Next: 18 and 19 have scripts of Optuna and Ray Tune.
"""

import gzip
from itertools import islice
from string import ascii_lowercase

import numpy as np

from onlineauto import datasets
from onlineauto.autovw import AutoVW  # in place of: from flaml import AutoVW

DATA = datasets.path("reg-diamonds")
EVENTS, NAMESPACES = 10_000, 5


def number(feature: str) -> float:
    """Return the value of a feature, or the code of a category."""
    return float(feature.split(":")[1]) if ":" in feature else codes.setdefault(feature, len(codes))


codes: dict[str, float] = {}
labels, rows = [], []
with gzip.open(DATA, "rt") as file:
    for line in islice(file, EVENTS):
        label, *spaces = line.split("|")
        labels.append(label.strip())
        rows.append([number(feature) for space in spaces for feature in space.split()[1:]])
X = np.array(rows)
X[::97, 2] = np.nan

groups = np.array_split(np.arange(X.shape[1]), NAMESPACES)
examples = [
    f"{label} |"
    + "|".join(
        f"{space} " + " ".join(f"{column}:{row[column]:.6f}" for column in columns)
        for space, columns in zip(ascii_lowercase, groups, strict=False)
    )
    for label, row in zip(labels, X, strict=True)
]
print(examples[0])


def progressive_loss(learner: AutoVW) -> float:
    """Return the mean squared error of predictions, each made before its label is learnt."""
    losses = []
    for example in examples:
        predicted = learner.predict(example)
        learner.learn(example)
        losses.append((predicted - float(example.split("|")[0])) ** 2)
    return sum(losses) / len(losses)


fixed = AutoVW(max_live_model_num=1, search_space={"quiet": ""})
print(f"no search: {progressive_loss(fixed):.4f}")
interactions = AutoVW(max_live_model_num=5, search_space={"interactions": AutoVW.AUTOMATIC, "quiet": ""})
print(f"interactions searched: {progressive_loss(interactions):.4f}")
both = AutoVW(
    max_live_model_num=5,
    # FLAML's loguniform(lower=2e-10, upper=1.0) says the same of the learning rate
    search_space={"interactions": AutoVW.AUTOMATIC, "learning_rate": AutoVW.AUTOMATIC, "quiet": ""},
    init_config={"interactions": set(), "learning_rate": 0.5},
)
print(f"interactions and learning rate searched: {progressive_loss(both):.4f}")
