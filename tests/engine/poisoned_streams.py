"""Streams with one absurd number, and how a model predicts after it beside a model that never saw it."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from onlineauto import Workspace

BEFORE, WAIT, WINDOW = 2000, 500, 500
"""Events before the absurd one, then until a model must have recovered, then over which it is measured."""

_MOST = 8e37  # the inverse of a larger number is read as a probability of 0, which is rejected
TOLERANCE = 0.05
"""Part of the reference's figure by which that of a poisoned model may be worse."""

MODELS: dict[str, dict[str, dict[str, Any]]] = {
    "bandit": {
        "fixed": {"cb_explore_adf": True, "quadratic": ["::"]},
        "search": {"cb_explore_adf": True, "automl": 4, "predict_with": "champion"},
        "ensemble": {"cb_explore_adf": True, "automl": 4},
    },
    "line": {
        "fixed": {"quadratic": ["::"]},
        "search": {"automl": 4, "predict_with": "champion"},
        "ensemble": {"automl": 4},
        "sgd": {"sgd": True},
        "adaptive": {"adaptive": True},
    },
}
USERS, ACTIONS = ("tom", "anna", "bob"), ("sports", "politics", "music")


class Poison(NamedTuple):
    """An absurd number: what it stands for, and its size with its sign."""

    kind: str
    size: float


class Event(NamedTuple):
    """An event as text, and the good action or the label without noise."""

    text: str
    good: float


def bandit_event(draw: random.Random, poison: Poison | None = None, *, scale: float = 1.0) -> Event:
    """Return a user who likes one action, more so if a number is large; logged uniformly."""
    user, x, chosen = draw.randrange(3), draw.random(), draw.randrange(3)
    good = user if x < 0.7 else (user + 1) % 3
    cost = -scale * (draw.random() < (0.8 if chosen == good else 0.2))
    probability, value = 1 / 3, x
    if poison is not None:
        cost = poison.size if poison.kind == "cost" else cost
        value = poison.size if poison.kind == "value" else value
        probability = 1 / min(poison.size, _MOST) if poison.kind == "probability" else probability
    labels = [f"{i}:{cost!r}:{probability!r} " if i == chosen else "" for i in range(3)]
    lines = "".join(f"{labels[i]}|a {name}\n" for i, name in enumerate(ACTIONS))
    return Event(f"shared |u {USERS[user]} |x age:{value!r}\n{lines}\n", good)


def line_event(draw: random.Random, poison: Poison | None = None, *, scale: float = 1.0) -> Event:
    """Return a label that a number and a product of words explain."""
    user, x, action = draw.randrange(3), draw.random(), draw.randrange(3)
    right = scale * (2.0 * (user == action) + 3.0 * x + 1.0)
    label, value, weight = right + scale * 0.1 * draw.gauss(0, 1), x, 1.0
    if poison is not None:
        label = poison.size if poison.kind == "cost" else label
        value = poison.size if poison.kind == "value" else value
        weight = abs(poison.size) if poison.kind == "weight" else weight
    return Event(f"{label!r} {weight!r} |u {USERS[user]} |a {ACTIONS[action]} |x age:{value!r}\n", right)


MAKERS: dict[str, Callable[..., Event]] = {"bandit": bandit_event, "line": line_event}


def make_stream(task: str, n: int, poisons: dict[int, Poison], *, seed: int = 3) -> list[Event]:
    """Return `n` events, of which those at the keys of `poisons` have an absurd number."""
    draw = random.Random(seed)
    return [MAKERS[task](draw, poisons.get(i)) for i in range(n)]


def scores(task: str, options: dict[str, Any], events: Sequence[Event]) -> NDArray[np.float64]:
    """Return for each event whether the best action was ranked first, or the error, as it is learnt."""
    workspace, taken = Workspace(**options), []
    text = "".join(event.text for event in events)
    for _, outcomes in workspace.stream(text.encode()):
        first = outcomes.prediction - 1 if task == "bandit" else outcomes.prediction
        taken.append(np.asarray(first, np.float64))
    found: NDArray[np.float64] = np.concatenate(taken)
    good = np.array([event.good for event in events])
    if len(found) != len(good):
        raise RuntimeError(f"{len(good)} events were written, and {len(found)} were learnt")
    result: NDArray[np.float64] = np.abs(found - good)
    return (result == 0).astype(np.float64) if task == "bandit" else result


class Row(NamedTuple):
    """A cell of the table: the figure of a poisoned model beside that of its reference."""

    task: str
    model: str
    poison: str
    figure: float
    reference: float

    @property
    def recovers(self) -> bool:
        """True if the figure is within the tolerance of the reference's; lines vary by more."""
        if self.task == "bandit":
            return self.figure >= self.reference - TOLERANCE
        return self.figure <= self.reference * (1 + 1.5 * TOLERANCE)


def figure(task: str, options: dict[str, Any], events: Sequence[Event], last: int) -> float:
    """Return the mean over the window that begins `WAIT` events behind event `last`."""
    begin = last + 1 + WAIT
    return float(scores(task, options, events)[begin : begin + WINDOW].mean())


def compare(
    task: str, model: str, options: dict[str, Any], places: Sequence[int], poisons: Iterable[Poison]
) -> list[Row]:
    """Return a row for each poison, which comes at each of the `places`."""
    n = max(places) + 1 + WAIT + WINDOW
    reference = figure(task, options, make_stream(task, n, {}), max(places))
    rows = []
    for poison in poisons:
        events = make_stream(task, n, dict.fromkeys(places, poison))
        found = figure(task, options, events, max(places))
        rows.append(Row(task, model, f"{poison.kind} {poison.size:g}", found, reference))
    return rows


PLACES = {"after 2,000": [BEFORE], "first": [0], "first ten": list(range(10)), "tenth": [9]}
SEVERAL = {"3 in 2,000": [700, 1400, BEFORE]}
