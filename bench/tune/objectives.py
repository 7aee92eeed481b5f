"""Several objectives, constraints and priors: our default searcher beside random configs and Optuna.

    python -m bench.tune.objectives [--seeds 10] [--trials 200] [--only zdt]

Two objectives: the hypervolume that is missing after all trials, with the reference point (11, 11).
Constraints: the best feasible value less the known optimum, and the trials that were infeasible. Priors: the
regret on hartmann6 with a centre near the optimum, and with one in the wrong corner. Optuna is left out if it
is not installed, or has no such thing.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any, Final

import numpy as np

from bench import kit
from bench.tune.functions import HARTMANN_6, hartmann_regret
from onlineauto.tune import Float, Space, Study

Config = dict[str, Any]
_REFERENCE: Final = 11.0
_OF_OPTUNA: Final = {"Optuna TPE": "TPESampler", "Optuna NSGA-II": "NSGAIISampler"}


def _zdt(config: Mapping[str, Any], power: float) -> tuple[float, float]:
    first, *others = config.values()
    g = 1 + 9 * sum(others) / len(others)
    return first, g * (1 - (first / g) ** power)


def _numbers(count: int) -> Space:
    return Space({f"x{at}": Float(0, 1) for at in range(count)})


FRONTS: Final[dict[str, tuple[Space, Callable[[Config], tuple[float, float]], float]]] = {
    "zdt1, 5 numbers": (_numbers(5), lambda config: _zdt(config, 0.5), 121 - 1 / 3),
    "zdt1, 10 numbers": (_numbers(10), lambda config: _zdt(config, 0.5), 121 - 1 / 3),
    "zdt2, 5 numbers": (_numbers(5), lambda config: _zdt(config, 2), 121 - 2 / 3),
    "zdt2, 10 numbers": (_numbers(10), lambda config: _zdt(config, 2), 121 - 2 / 3),
}
"""By name: the space, the two objectives, and the hypervolume of the true front."""


def _branin(config: Mapping[str, Any]) -> tuple[float, float]:
    x, y = config["x"], config["y"]
    bowl = (y - 5.1 * (x / (2 * math.pi)) ** 2 + 5 * x / math.pi - 6) ** 2
    return bowl + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10, (x - 2.5) ** 2 + (y - 7.5) ** 2 - 50


def _gardner(config: Mapping[str, Any]) -> tuple[float, float]:
    x, y = config["x"], config["y"]
    return math.sin(x) + y, math.sin(x) * math.sin(y) + 0.95


CONSTRAINED: Final[dict[str, tuple[Space, Callable[[Config], tuple[float, float]], float]]] = {
    "Branin in a disc": (Space({"x": Float(-5, 10), "y": Float(0, 15)}), _branin, 0.397887),
    "Gardner 2": (Space({"x": Float(0, 6), "y": Float(0, 6)}), _gardner, 0.253236),
}
"""By name: the space, a function of value and constraint, and the optimum."""


def hypervolume(points: Sequence[tuple[float, float]]) -> float:
    """Return the area between points and the reference point.

    >>> hypervolume([(1, 10), (10, 1), (10, 10)])
    19.0
    """
    area, last = 0.0, _REFERENCE
    for first, second in sorted(point for point in points if max(point) < _REFERENCE):
        area += (_REFERENCE - first) * max(last - second, 0.0)
        last = min(last, second)
    return area


def missing(name: str, who: str, seed: int, trials: int) -> list[float]:
    """Return the hypervolume that is missing after all trials."""
    space, objective, whole = FRONTS[name]
    if who in _OF_OPTUNA:
        study = _optuna(who, seed, None, directions=["minimize", "minimize"])
        study.optimize(lambda trial: objective(_suggested(trial, space)), n_trials=trials)
        points = [tuple(trial.values) for trial in study.best_trials]
    else:
        tuner = Study(space, searcher=who, mode=["min"] * 2, max_resource=1, max_trials=trials, seed=seed)
        tuner.run(objective)
        points = [tuple(trial.objectives.values()) for trial in tuner.best_trials]
    return [whole - hypervolume(points)]


def regret(name: str, who: str, seed: int, trials: int) -> list[float]:
    """Return the regret of the best feasible trial, and the number of infeasible trials."""
    space, function, optimum = CONSTRAINED[name]
    if who in _OF_OPTUNA:
        study = _optuna(who, seed, lambda trial: trial.user_attrs["constraints"])

        def objective(trial: Any) -> float:
            value, constraint = function(_suggested(trial, space))
            trial.set_user_attr("constraints", [constraint])
            return value

        study.optimize(objective, n_trials=trials)
        results = [(trial.value, trial.user_attrs["constraints"][0]) for trial in study.trials]
    else:
        tuner = Study(space, "fifo", who, max_resource=1, max_trials=trials, seed=seed)
        tuner.run(lambda config: dict(zip(("value", "constraints"), _listed(function(config)), strict=True)))
        results = [(trial.value or 0.0, trial.constraints["0"]) for trial in tuner.trials]
    feasible = [value for value, constraint in results if constraint <= 0]
    return [min(feasible, default=math.nan) - optimum, float(len(results) - len(feasible))]


def _listed(result: tuple[float, float]) -> tuple[float, list[float]]:
    return result[0], [result[1]]


def with_prior(kind: str, seed: int, trials: int) -> list[float]:
    """Return the regret on hartmann6 with a prior of a kind: none, good or wrong."""
    best = [0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.6573]
    rng = np.random.default_rng(seed)
    centres: dict[str, list[float | None]] = {
        "none": [None] * 6,
        "good": np.clip(best + 0.1 * rng.standard_normal(6), 0, 1).tolist(),
        "wrong": [float(each < 0.5) for each in best],
    }
    priors = zip(HARTMANN_6.parameters, centres[kind], strict=True)
    space = {name: Float(0, 1, prior=centre) for name, centre in priors}
    study = Study(space, "fifo", max_resource=1, max_trials=trials, seed=seed)
    best_trial = study.run(hartmann_regret)
    return [math.nan if best_trial is None or best_trial.value is None else best_trial.value]


def _suggested(trial: Any, space: Space) -> Config:
    return {
        name: trial.suggest_float(name, each.low, each.high)
        for name, each in space.parameters.items()
        if isinstance(each, Float)
    }


def _optuna(who: str, seed: int, constraints: Any, **settings: Any) -> Any:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    sampler = getattr(optuna.samplers, _OF_OPTUNA[who])(seed=seed, constraints_func=constraints)
    return optuna.create_study(sampler=sampler, **settings)


def main(arguments: Sequence[str]) -> int:
    """Print a line for each problem and searcher: means and standard errors."""
    options = kit.parser(__doc__, seeds=10, trials=200, only="").parse_args(arguments)
    warnings.simplefilter("ignore")
    who = ["tpe", "random", *(_OF_OPTUNA if find_spec("optuna") else ())]
    trials = options.trials
    tasks: list[tuple[str, str, Callable[[int], list[float]]]] = []
    for name in FRONTS:
        tasks += [(name, each, lambda s, n=name, e=each: missing(n, e, s, trials)) for each in who]  # type: ignore[misc]
    for name in CONSTRAINED:
        tasks += [(name, each, lambda s, n=name, e=each: regret(n, e, s, trials)) for each in who]  # type: ignore[misc]
    for count in (30, 100):
        for kind in ("none", "good", "wrong"):
            task = lambda s, k=kind, c=count: with_prior(k, s, c)  # noqa: E731
            tasks.append((f"hartmann6, {count} trials", f"prior: {kind}", task))
    for name, each, run in tasks:
        if options.only in name:
            found = np.array([run(seed) for seed in range(options.seeds)])
            mean, error = found.mean(0), found.std(0) / math.sqrt(options.seeds)
            figures = "  ".join(f"{m:9.4f} ± {e:.4f}" for m, e in zip(mean, error, strict=True))
            print(f"{name:24} {each:16} {figures}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
