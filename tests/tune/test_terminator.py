"""`Terminator`: a study ends when another improvement is proved to be improbable, and rarely too early."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from onlineauto.errors import OptionError
from onlineauto.tune import Float, Study, Terminator, TrialPruned, create_study


def first(trial: Any) -> float:
    return float(trial.suggest_float("x", 0, 1))


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_a_study_ends_when_an_improvement_is_improbable(direction: str) -> None:
    study = create_study(searcher="random", direction=direction)
    rule = Terminator(0.01, chance=0.1)
    study.optimize(first, n_trials=500, callbacks=[rule])
    assert 50 < len(study.trials) < 150
    assert rule.bound <= 0.1


def test_the_bound_is_that_of_independent_trials() -> None:
    """With uniform values, the next trial improves on the best value x with the probability x."""
    wrong, ended = 0, []
    for seed in range(40):
        study = create_study(searcher="random", seed=seed)
        rule = Terminator(chance=0.08, confidence=0.8)
        study.optimize(first, n_trials=400, callbacks=[rule])
        ended.append(len(study.trials))
        wrong += study.best_value > 0.08
    assert max(ended) < 400
    assert wrong <= 40 * 0.2


def test_threads_count_each_trial_once() -> None:
    study = create_study(scheduler="fifo")
    study.optimize(lambda trial: 0.0, n_trials=500, n_jobs=4, callbacks=[Terminator()])  # noqa: ARG005
    assert 60 <= len(study.trials) <= 60 + 4


def test_a_larger_improvement_that_does_not_matter_ends_sooner() -> None:
    lengths = []
    for least in (0.0, 0.2):
        study = create_study(searcher="random", seed=3)
        study.optimize(lambda trial: 1 / (1 + trial.number), n_trials=600, callbacks=[Terminator(least)])
        lengths.append(len(study.trials))
    assert lengths[0] == 600  # each trial improves
    assert lengths[1] < 100


def test_trials_that_fail_or_are_pruned_are_no_improvements() -> None:
    def objective(trial: Any) -> float:
        if trial.number % 3 == 1:
            raise ValueError("no")
        trial.report(-5.0, 1)
        if trial.number % 3 == 2:
            raise TrialPruned
        return 1.0

    study = create_study(scheduler="fifo")
    study.optimize(objective, n_trials=500, catch=ValueError, callbacks=[Terminator()])
    assert len(study.trials) < 100
    nothing = create_study()
    nothing.optimize(lambda trial: float("nan"), n_trials=150, callbacks=[Terminator()])  # noqa: ARG005
    assert len(nothing.trials) == 150  # without a value, there is nothing to improve on


def test_it_is_a_stopper_of_a_run() -> None:
    study = Study({"x": Float(0, 1)}, "fifo", "random", max_resource=1, max_trials=500)
    study.run(lambda config: config["x"], stoppers=[Terminator(0.01)])
    assert 50 < len(study.trials) < 150
    again = Study({"x": Float(0, 1)}, "hyperband", "random", max_resource=9, max_trials=900)
    again.run(lambda config, resource: config["x"] + 1 / resource, stoppers=[Terminator(0.01)])
    assert 50 < len(again.trials) < 900


def test_the_bound_falls_while_nothing_improves() -> None:
    study = create_study(scheduler="fifo")
    rule, bounds = Terminator(chance=0.01), []
    study.optimize(lambda trial: 0.0, n_trials=120, callbacks=[rule, lambda *_: bounds.append(rule.bound)])  # noqa: ARG005
    assert bounds[0] == 1.0
    assert 0.01 < bounds[-1] < 0.06
    assert (np.diff(bounds) <= 0).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"chance": 0}, "chance = 0: give a probability above 0 and below 1"),
        ({"confidence": 1}, "confidence = 1"),
        ({"min_improvement": -1}, "min_improvement = -1"),
    ],
)
def test_options_that_are_not_valid_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        Terminator(**options)
