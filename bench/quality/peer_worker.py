"""The process that runs peers on bandit logs: VW, LightGBM refitted now and then, or river's forest.

Reads one JSON object from its standard input and answers with one: ``{"seconds": ..., "greedy": [...]}``, the
seconds of CPU without imports, and the action that the peer thought best before each event. For VW
the request is ``{"peer": "VW", "argv": [...]}``, and for others ``{"peer": ..., "file": ..., "seed": int}``
with a file of `bench.quality.columns.save_columns`. With ``{"import": NAME}`` it only says the version
of a package. Either may be ``{"error": ...}``.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from math import isnan
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

warnings.simplefilter("ignore")

EVERY = 2000
"""Events between two refits; the first are after 250, 500 and 1,000."""
TREES = 100
SETTINGS = {
    "objective": "l2",
    "cat_smooth": 1,
    "cat_l2": 1,
    "num_threads": 1,
    "deterministic": True,
    "verbose": -1,
}
FOREST = 10


class Columns:
    """A log as columns."""

    def __init__(self, path: str) -> None:
        with np.load(path) as arrays:
            self.shared, self.lines = arrays["shared"], arrays["lines"]
            self.line, self.logged, self.reward = arrays["line"], arrays["logged"], arrays["reward"]
            self.fixed = bool(arrays["fixed"])
            self.nominal = np.flatnonzero(np.concatenate([arrays["shared_nominal"], arrays["lines_nominal"]]))
        self.events, self.actions = self.line.shape
        self.of_context = self.nominal[self.nominal < self.shared.shape[1]]

    def joined(self, events: NDArray[np.int64], actions: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return contexts beside actions, a row for each pair."""
        return np.concatenate([self.shared[events], self.lines[self.line[events, actions]]], axis=1)


def blocks(events: int) -> Iterator[tuple[int, int]]:
    """Begin and end of what is predicted by one fit."""
    begins = [250, 500, 1000, *range(EVERY, events, EVERY)]
    begins = [begin for begin in begins if begin < events]
    yield from zip(begins, [*begins[1:], events], strict=True)


def _fit(
    x: NDArray[np.float64], y: NDArray[np.float64], *, nominal: NDArray[np.int64], leaves: int, seed: int
) -> Any:
    lightgbm = import_module("lightgbm")
    data = lightgbm.Dataset(x, y, categorical_feature=nominal.tolist(), params={"verbose": -1})
    return lightgbm.train({**SETTINGS, "seed": seed, "num_leaves": leaves}, data, TREES)


def lightgbm_one(log: Columns, seed: int) -> NDArray[np.int64]:
    """One model of contexts and actions."""
    greedy: NDArray[np.int64] = np.random.default_rng(seed).integers(0, log.actions, log.events)
    for begin, end in blocks(log.events):
        past, block = np.arange(begin), np.arange(begin, end)
        x, y = log.joined(past, log.logged[:begin]), log.reward[:begin]
        model = _fit(x, y, nominal=log.nominal, leaves=63, seed=seed)
        pairs = np.repeat(block, log.actions), np.tile(np.arange(log.actions), end - begin)
        greedy[begin:end] = model.predict(log.joined(*pairs)).reshape(-1, log.actions).argmax(axis=1)
    return greedy


def lightgbm_each(log: Columns, seed: int) -> NDArray[np.int64]:
    """One model for each action."""
    greedy: NDArray[np.int64] = np.random.default_rng(seed).integers(0, log.actions, log.events)
    for begin, end in blocks(log.events):
        scores = np.full((end - begin, log.actions), log.reward[:begin].mean())
        for action in range(log.actions):
            rows = np.flatnonzero(log.logged[:begin] == action)
            if len(rows):
                x, y = log.shared[rows], log.reward[rows]
                model = _fit(x, y, nominal=log.of_context, leaves=31, seed=seed)
                scores[:, action] = model.predict(log.shared[begin:end])
        greedy[begin:end] = scores.argmax(axis=1)
    return greedy


def forest(log: Columns, seed: int) -> NDArray[np.int64]:
    """River's adaptive random forest, one for each action where these are fixed."""
    names = set((log.of_context if log.fixed else log.nominal).tolist())
    leaves = "mean" if names else "adaptive"  # the linear models of the latter take no names
    make = import_module("river.forest").ARFRegressor
    models = [
        make(n_models=FOREST, leaf_prediction=leaves, seed=seed)
        for _ in range(log.actions if log.fixed else 1)
    ]
    greedy = np.empty(log.events, np.int64)
    for event in range(log.events):
        rows = [_mapping(row, names) for row in _rows(log, event)]
        scores = [models[i % len(models)].predict_one(row) for i, row in enumerate(rows)]
        greedy[event] = int(np.argmax(scores))
        logged = int(log.logged[event])
        models[logged % len(models)].learn_one(rows[logged], float(log.reward[event]))
    return greedy


def _rows(log: Columns, event: int) -> NDArray[np.float64]:
    if log.fixed:
        return np.broadcast_to(log.shared[event], (log.actions, log.shared.shape[1]))
    return log.joined(np.full(log.actions, event), np.arange(log.actions))


def _mapping(row: NDArray[np.float64], names: set[int]) -> dict[int, str | float]:
    """Return the present values of a row, with names as text."""
    cells = enumerate(row.tolist())
    return {i: f"{value:g}" if i in names else value for i, value in cells if not isnan(value)}


def vw(argv: list[str]) -> dict[str, Any]:
    """Run Vowpal Wabbit, its output thrown away."""
    vowpalwabbit = import_module("vowpalwabbit")
    printed = os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (1, 2):
        os.dup2(nothing, descriptor)
    begin = time.process_time()
    vowpalwabbit.Workspace(arg_list=argv).finish()
    seconds = time.process_time() - begin
    os.dup2(printed, 1)
    with open(argv[argv.index("-p") + 1], encoding="utf-8") as file:  # noqa: PTH123 - as short as it gets
        greedy = [int(line.partition(":")[0]) for line in file if line.strip()]
    return {"seconds": seconds, "greedy": greedy}


LEARNERS: dict[str, Callable[[Columns, int], NDArray[np.int64]]] = {
    "LightGBM": lightgbm_one,
    "LightGBM each": lightgbm_each,
    "ARF": forest,
}


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Handle a request."""
    try:
        if "import" in request:
            import_module(request["import"])
            return {"version": importlib.metadata.version(request["import"])}
        if request["peer"] == "VW":
            return vw(request["argv"])
        log = Columns(request["file"])
        import_module("river.forest" if request["peer"] == "ARF" else "lightgbm")
        begin = time.process_time()
        greedy = LEARNERS[request["peer"]](log, request["seed"])
        return {"seconds": time.process_time() - begin, "greedy": greedy.tolist()}
    except Exception:  # to be reported by who asked
        return {"error": traceback.format_exc()}


if __name__ == "__main__":
    print(json.dumps(answer(json.loads(sys.stdin.readline()))), flush=True)
