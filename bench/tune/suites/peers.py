"""Peers as a process that is asked for configs and told losses by lines of JSON, in its own environment.

A request has `tuner`, `space`, `seed`, `lowest`, `highest` and `trials`. The answer has a config, a level,
and the seconds of processor time that the peer has needed so far. The next request is the loss, and so on
until null ends the run. Nothing of this project is imported here.
"""

from __future__ import annotations

import json
import logging
import math
import sys
import tempfile
import time
import warnings
from collections.abc import Generator
from pathlib import Path
from typing import Any

Tuner = Generator[tuple[list[Any], int], float, None]
ETA = 3


def names_of(request: dict[str, Any]) -> list[str]:
    return [f"p{at:02}" for at in range(len(request["space"]))]


def levels_of(request: dict[str, Any]) -> list[int]:
    """Return the levels of a ladder: lowest, lowest * 3, … and the highest."""
    levels = [request["lowest"]]
    while levels[-1] * ETA < request["highest"]:
        levels.append(levels[-1] * ETA)
    return sorted({*levels, request["highest"]})


def optuna(request: dict[str, Any], sampler: str, *, prunes: bool = False) -> Tuner:
    import optuna as package

    package.logging.set_verbosity(package.logging.ERROR)
    pruner: Any = package.pruners.NopPruner()
    if prunes:
        pruner = package.pruners.HyperbandPruner(request["lowest"], request["highest"], ETA)
    study = package.create_study(
        sampler=getattr(package.samplers, sampler)(seed=request["seed"]), pruner=pruner
    )
    levels = range(request["lowest"], request["highest"] + 1) if prunes else [request["highest"]]
    while True:
        trial = study.ask()
        config = []
        for name, (kind, low, high) in zip(names_of(request), request["space"], strict=True):
            if kind == "words":
                config.append(trial.suggest_categorical(name, list(range(high))))
            else:
                config.append(getattr(trial, f"suggest_{kind}")(name, low, high))
        for level in levels:
            loss = yield config, level
            if prunes:
                trial.report(loss, level)
                if trial.should_prune():
                    study.tell(trial, state=package.trial.TrialState.PRUNED)
                    break
        else:
            study.tell(trial, loss)


def space_of(request: dict[str, Any]) -> Any:
    """Return a space of ConfigSpace."""
    from ConfigSpace import Categorical, ConfigurationSpace, Float, Integer

    space = ConfigurationSpace(seed=request["seed"])
    for name, (kind, low, high) in zip(names_of(request), request["space"], strict=True):
        if kind == "words":
            space.add(Categorical(name, list(range(high))))
        else:
            space.add((Float if kind == "float" else Integer)(name, (low, high)))
    return space


def plain(request: dict[str, Any], config: Any) -> list[Any]:
    """Return the values of a config in the order of the space, as plain numbers."""
    values = [config[name] for name in names_of(request)]
    return [
        float(v) if kind == "float" else int(v)
        for v, (kind, *_) in zip(values, request["space"], strict=True)
    ]


def _at_level(config: Any, seed: int = 0, budget: float = 0) -> float:
    """Stand for the function, which SMAC inspects and, when it is asked and told, does not call."""
    raise NotImplementedError


def _whole(config: Any, seed: int = 0) -> float:
    raise NotImplementedError


def smac(request: dict[str, Any], facade: str) -> Tuner:
    import smac as package
    from smac.runhistory.dataclasses import TrialValue

    kind = getattr(package, facade)
    multi = facade == "MultiFidelityFacade"
    budgets = {"min_budget": request["lowest"], "max_budget": request["highest"]} if multi else {}
    with tempfile.TemporaryDirectory() as folder:
        scenario = package.Scenario(
            space_of(request),
            deterministic=True,
            n_trials=request["trials"],
            seed=request["seed"],
            output_directory=Path(folder),
            **budgets,
        )
        how = {"intensifier": kind.get_intensifier(scenario, eta=ETA)} if multi else {}
        tuner = kind(scenario, _at_level if multi else _whole, overwrite=True, logging_level=False, **how)
        while True:
            trial = tuner.ask()
            level = min(max(round(trial.budget), 1), request["highest"]) if multi else request["highest"]
            loss = yield plain(request, trial.config), level
            tuner.tell(trial, TrialValue(cost=loss))


def dehb(request: dict[str, Any]) -> Tuner:
    from dehb import DEHB

    with tempfile.TemporaryDirectory() as folder:
        tuner = DEHB(
            cs=space_of(request),
            min_fidelity=request["lowest"],
            max_fidelity=request["highest"],
            eta=ETA,
            n_workers=1,
            seed=request["seed"],
            output_path=folder,
            log_level="ERROR",
        )
        while True:
            job = tuner.ask()
            level = max(round(job["fidelity"]), 1)
            loss = yield plain(request, job["config"]), level
            tuner.tell(job, {"fitness": loss, "cost": float(level)})


def syne_tune(request: dict[str, Any], kind: str, **options: Any) -> Tuner:
    """Run a scheduler of Syne Tune with one worker: trials are stopped or paused as it decides."""
    import datetime

    from syne_tune import config_space as spaces
    from syne_tune.backend.trial_status import Trial
    from syne_tune.optimizer import baselines

    space: dict[str, Any] = {"epochs": request["highest"]}
    for name, (of, low, high) in zip(names_of(request), request["space"], strict=True):
        space[name] = (
            spaces.choice(list(range(high)))
            if of == "words"
            else (spaces.uniform if of == "float" else spaces.randint)(low, high)
        )
    how: dict[str, Any] = {"metric": "loss", "random_seed": request["seed"], **options}
    if request["lowest"] < request["highest"]:
        how |= {"time_attr": "epoch", "max_t": request["highest"]}
    scheduler = getattr(baselines, kind)(space, **how)
    trials: dict[int, Any] = {}
    reached: dict[int, int] = {}
    now = datetime.datetime(2026, 1, 1)
    while True:
        suggestion = scheduler.suggest()
        if suggestion.spawn_new_trial_id:
            trial = Trial(len(trials), suggestion.config, now)
            trials[trial.trial_id], reached[trial.trial_id] = trial, 0
            scheduler.on_trial_add(trial)
        else:
            trial = trials[suggestion.checkpoint_trial_id]
        start = reached[trial.trial_id] + 1
        levels = range(max(start, request["lowest"]), request["highest"] + 1)
        config = plain(request, trial.config)
        for level in levels:
            loss = yield config, level
            reached[trial.trial_id] = level
            result = {"loss": loss, "epoch": level}
            if level == request["highest"]:
                scheduler.on_trial_complete(trial, result)
                break
            if scheduler.on_trial_result(trial, result) != "CONTINUE":
                break


def neps(request: dict[str, Any], optimizer: str) -> Tuner:
    import neps as package
    from neps.optimizers import load_optimizer
    from neps.optimizers.ask_and_tell import AskAndTell

    space: dict[str, Any] = {}
    for name, (kind, low, high) in zip(names_of(request), request["space"], strict=True):
        if kind == "words":
            space[name] = package.HPOCategorical(list(range(high)))
        else:
            space[name] = (package.HPOFloat if kind == "float" else package.HPOInteger)(low, high)
    if request["lowest"] < request["highest"]:
        space["epoch"] = package.HPOInteger(request["lowest"], request["highest"], is_fidelity=True)
    seed_all(request["seed"])
    tuner = AskAndTell(load_optimizer(optimizer, package.SearchSpace(space))[0])
    while True:
        trial = tuner.ask()
        level = int(trial.config.get("epoch", request["highest"]))
        loss = yield plain(request, trial.config), level
        tuner.tell(trial, loss)


def seed_all(seed: int) -> None:
    """Seed the global generators, for a peer that takes no seed."""
    import random

    import numpy as np
    import torch

    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002 - what the peer uses
    torch.manual_seed(seed)


TUNERS: dict[str, Any] = {
    "Optuna TPE": lambda request: optuna(request, "TPESampler"),
    "Optuna GP": lambda request: optuna(request, "GPSampler"),
    "Optuna TPE + Hyperband pruner": lambda request: optuna(request, "TPESampler", prunes=True),
    "SMAC": lambda request: smac(request, "HyperparameterOptimizationFacade"),
    "SMAC multi-fidelity": lambda request: smac(request, "MultiFidelityFacade"),
    "DEHB": dehb,
    "Syne Tune ASHA": lambda request: syne_tune(request, "ASHA"),
    "Syne Tune BOHB": lambda request: syne_tune(request, "BOHB"),
    "NePS BO": lambda request: neps(request, "bayesian_optimization"),
    "NePS PriorBand": lambda request: neps(request, "priorband"),
}


def main() -> None:
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    answers, sys.stdout = sys.stdout, sys.stderr  # peers print
    for line in sys.stdin:
        request = json.loads(line)
        before = time.process_time()
        tuner, loss = TUNERS[request["tuner"]](request), None
        while True:
            answer = tuner.send(loss)
            seconds = time.process_time() - before
            print(json.dumps([*answer, seconds]), file=answers, flush=True)
            loss = json.loads(sys.stdin.readline())
            if loss is None:
                break
            if not math.isfinite(loss):
                raise ValueError(f"loss {loss}")
        tuner.close()


if __name__ == "__main__":
    main()
