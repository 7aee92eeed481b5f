"""`onlineauto.tune.pruners`: the same decisions as Optuna's pruners on the same reports."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from onlineauto.errors import OptionError
from onlineauto.tune import create_study, load_study, pruners, samplers
from onlineauto.tune.schedulers import SCHEDULERS
from onlineauto.tune.schedulers.pruning import Pruning
from onlineauto.tune.trial import TrialState
from tests.tune.studies import state_of

pytestmark = pytest.mark.filterwarnings("ignore")  # Optuna warns of what is experimental in it

STEPS, TRIALS = 25, 60
RULES: dict[str, Callable[[Any], Any]] = {
    "none": lambda kit: kit.NopPruner(),
    "median": lambda kit: kit.MedianPruner(),
    "late median": lambda kit: kit.MedianPruner(n_startup_trials=3, n_warmup_steps=4, interval_steps=5),
    "percentile": lambda kit: kit.PercentilePruner(25.0, n_min_trials=7),
    "threshold": lambda kit: kit.ThresholdPruner(lower=-0.4, upper=1.4),
    "late threshold": lambda kit: kit.ThresholdPruner(upper=1.2, n_warmup_steps=3, interval_steps=4),
    "halving": lambda kit: kit.SuccessiveHalvingPruner(),
    "known halving": lambda kit: kit.SuccessiveHalvingPruner(2, 3, 1),
    "bootstrapped halving": lambda kit: kit.SuccessiveHalvingPruner(1, 2, bootstrap_count=4),
    "patience": lambda kit: kit.PatientPruner(None, 3, min_delta=0.05),
    "patient median": lambda kit: kit.PatientPruner(kit.MedianPruner(n_startup_trials=2), 2),
    "patient halving": lambda kit: kit.PatientPruner(kit.SuccessiveHalvingPruner(1), 1),
}


def curves(seed: int) -> np.ndarray:
    """Return noisy learning curves, float64[trials, steps], some of which rise at their end."""
    rng = np.random.default_rng(seed)
    level, rate = rng.random((TRIALS, 1)), rng.random((TRIALS, 1)) + 0.05
    steps = np.arange(STEPS)
    drift = 0.02 * rng.standard_normal((TRIALS, 1)) * steps
    return np.round(level + np.exp(-rate * steps) + drift + 0.1 * rng.standard_normal((TRIALS, STEPS)), 6)


def ends(kit: Any, pruner: Any, direction: str, seed: int, pruned: type[Exception]) -> list[tuple[str, int]]:
    """Return the state and the last step of each trial of a study."""
    table = curves(seed)

    def objective(trial: Any) -> float:
        for step, value in enumerate(table[trial.number].tolist()):
            trial.report(value, step)
            if trial.should_prune():
                raise pruned
        return float(table[trial.number, -1])

    study = kit.create_study(direction=direction, pruner=pruner)
    study.optimize(objective, n_trials=TRIALS)
    return [(trial.state.name, trial.last_step) for trial in study.trials]


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
@pytest.mark.parametrize("rule", RULES)
def test_decisions_are_those_of_optuna(rule: str, direction: str) -> None:
    optuna = pytest.importorskip("optuna")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    from onlineauto import tune

    for seed in range(2):
        ours = ends(tune, RULES[rule](pruners), direction, seed, tune.TrialPruned)
        theirs = ends(optuna, RULES[rule](optuna.pruners), direction, seed, optuna.TrialPruned)
        assert ours == theirs
        prunes = rule != "none" and direction == "minimize"
        assert not prunes or "PRUNED" in {state for state, _ in ours}


def test_hyperband_divides_trials_among_brackets_that_prune_later_and_later() -> None:
    from onlineauto import tune

    for most in (STEPS, "auto"):
        pruner = pruners.HyperbandPruner(max_resource=most)
        last = [
            step for state, step in ends(tune, pruner, "minimize", 0, tune.TrialPruned) if state == "PRUNED"
        ]
        assert {1, 3, 9} <= set(last)  # the first rungs of the three brackets
        assert set(last) <= {1, 3, 9}


@pytest.mark.parametrize("rule", ["late median", "known halving", "patient median"])
def test_a_study_that_is_loaded_or_restored_goes_on_alike(rule: str, tmp_path: Any) -> None:
    def objective(trial: Any) -> float:
        level = trial.suggest_float("level", 0, 1)
        for step in range(9):
            trial.report(level + max(1 - step / 4, 0.001 * step), step)
            if trial.should_prune():
                from onlineauto.tune import TrialPruned

                raise TrialPruned
        return float(level)

    storage = f"sqlite:///{tmp_path}/study.db"
    study = create_study(study_name="a", storage=storage, pruner=RULES[rule](pruners))
    study.optimize(objective, n_trials=15)
    copy = study.settings.progress()
    copy.load_state_dict(json.loads(json.dumps(state_of(study))))
    assert json.dumps(copy.state_dict()) == json.dumps(state_of(study))
    again = load_study(study_name="a", storage=storage)
    study.optimize(objective, n_trials=10)
    again.refresh()
    assert state_of(again) == state_of(study)
    again.optimize(objective, n_trials=5)
    assert len(again.trials) == 30
    assert {"PRUNED", "COMPLETE"} == {trial.state for trial in again.trials}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: pruners.MedianPruner(n_warmup_steps=-1), "n_warmup_steps = -1: give a whole number from 0"),
        (lambda: pruners.PercentilePruner(101.0), "percentile = 101.0: give a number from 0 to 100"),
        (pruners.ThresholdPruner, "give lower=, upper= or both"),
        (
            lambda: pruners.ThresholdPruner(
                "a"  # type: ignore[arg-type]
            ),
            "lower = 'a': give a number",
        ),
        (
            lambda: pruners.HyperbandPruner(reduction_factor=1),
            "reduction_factor = 1: give a whole number from 2",
        ),
        (lambda: pruners.SuccessiveHalvingPruner("most"), "min_resource = 'most'"),
        (lambda: pruners.PatientPruner(pruners.NopPruner(), 2), "give a pruner without patience, or None"),
        (lambda: Pruning("best"), "rule = 'best' is unknown"),
        (lambda: Pruning("halving", lower=3), "rule 'halving' has no option 'lower'"),
        (lambda: Pruning("patience"), "needs patience="),
        (lambda: create_study(pruner="median"), "pruner = 'median': give those of onlineauto.tune.samplers"),  # type: ignore[arg-type]
        (lambda: create_study(pruner=pruners.NopPruner(), scheduler="fifo"), "give one of each"),
        (lambda: create_study(sampler=samplers.RandomSampler(3), seed=4), "give one of each"),
    ],
)
def test_arguments_that_are_not_valid_are_named(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(OptionError) as error:
        make()
    assert message in str(error.value)


def test_pruning_is_a_scheduler_by_name() -> None:
    assert SCHEDULERS["pruning"]().options["percentile"] == 50


def quadratic(trial: Any) -> float:
    return float(trial.suggest_float("x", -2, 2) ** 2 + trial.suggest_int("n", 0, 4, step=2))


@pytest.mark.parametrize(
    ("sampler", "searcher", "options"),
    [
        (samplers.TPESampler(seed=3, n_startup_trials=5, multivariate=True), "tpe", {"startup": 5}),
        (samplers.RandomSampler(3), "random", {}),
        (samplers.CmaEsSampler(seed=3, popsize=6), "cmaes", {"population": 6}),
        (samplers.GPSampler(seed=3, n_startup_trials=4), "gp", {"startup": 4}),
        (samplers.QMCSampler(qmc_type="halton", scramble=True, seed=3), "quasi", {"sequence": "halton"}),
        (samplers.NSGAIISampler(seed=3), "tpe", {}),
    ],
)
def test_samplers_are_searchers_with_a_seed(
    sampler: samplers.Sampler, searcher: str, options: dict[str, Any]
) -> None:
    study = create_study(sampler=sampler)
    assert (study.settings.searcher[0], study.settings.setting.seed) == (searcher, 3)
    assert options.items() <= study.settings.searcher[1].items()
    study.optimize(quadratic, n_trials=20)
    assert len({trial.params["x"] for trial in study.trials}) >= 15
    assert TrialState.COMPLETE in {trial.state for trial in study.trials}


def test_a_grid_is_tried_once_and_ends_the_study(tmp_path: Any) -> None:
    grid: dict[str, list[float]] = {"x": [-1.0, 0.0, 0.5], "n": [0, 4]}
    for _ in range(2):  # the second time, the study is continued
        study = create_study(
            study_name="a",
            storage=f"sqlite:///{tmp_path}/study.db",
            load_if_exists=True,
            sampler=samplers.GridSampler(grid),
        )
        study.optimize(quadratic)
        assert [tuple(trial.params.values()) for trial in study.trials] == [
            (x, n) for x in grid["x"] for n in grid["n"]
        ]
    with pytest.raises(OptionError, match="valid are 1 to"):
        samplers.GridSampler({"x": []})


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda: samplers.TPESampler(gamma=len), "TPESampler(gamma="),
        (lambda: samplers.TPESampler(constant_liar=False), "TPESampler(constant_liar=False)"),
        (lambda: samplers.CmaEsSampler(x0={"x": 1}), "CmaEsSampler(x0="),
        (lambda: samplers.GPSampler(deterministic_objective=True), "GPSampler(deterministic_objective=True)"),
        (lambda: samplers.NSGAIISampler(population_size=50), "NSGAIISampler(population_size=50)"),
    ],
)
def test_arguments_without_a_counterpart_are_refused(make: Callable[[], Any], argument: str) -> None:
    with pytest.raises(OptionError) as error:
        make()
    assert argument in str(error.value)
    assert "is not supported here" in str(error.value)
