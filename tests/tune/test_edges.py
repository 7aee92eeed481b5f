"""Odd uses of studies: steps in a Gaussian process, a rule for two studies, copies, equal configs."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from onlineauto.errors import OptionError
from onlineauto.tune import Float, Int, Parameter, Space, Terminator, create_study
from onlineauto.tune.active_trial import ActiveTrial
from onlineauto.tune.searchers.gp import GpSearcher


def number(trial: ActiveTrial) -> float:
    return float(trial.suggest_float("x", 0, 1))


def test_a_gaussian_process_proposes_steps() -> None:
    study = create_study(searcher="gp")
    study.optimize(lambda trial: (trial.suggest_int("n", 0, 10**7, step=10**5) - 3e6) ** 2, n_trials=25)
    assert all(trial.params["n"] % 10**5 == 0 for trial in study.trials)
    assert abs(study.best_params["n"] - 3_000_000) <= 200_000


@pytest.mark.parametrize(
    "parameter",
    [
        Int(1, 9),
        Int(1, 500, log=True),
        Int(0, 10**7, step=10**5),
        Int(-3, 996),
        Float(0, 1, step=0.1),
        Float(2, 2),
        Float(0, 1),
        Int(0, 10**300),
    ],
    ids=str,
)
def test_candidates_of_a_gaussian_process_have_the_codes_of_configs(parameter: Parameter) -> None:
    searcher = GpSearcher()
    searcher.begin(Space({"x": parameter}), seed=0)
    codes = np.random.default_rng(1).random((300, 1))
    rounded = searcher._rounded(codes)
    if parameter.size > 1000:
        assert np.array_equal(rounded, codes)
        return
    every = [parameter.encode(parameter.decode([at / 5000]))[0] for at in range(5001)]
    for code, own in zip(rounded[:, 0].tolist(), codes[:, 0].tolist(), strict=True):
        assert parameter.encode(parameter.decode([code]))[0] == pytest.approx(code, abs=1e-12)
        assert abs(code - own) <= min(abs(other - own) for other in every) + 1e-12


def test_a_terminator_observes_each_study_from_its_start() -> None:
    rule, n_trials = Terminator(min_improvement=0.01), []
    for _ in range(2):
        study = create_study(searcher="random")
        study.optimize(lambda _: 1.0, n_trials=300, callbacks=[rule])
        n_trials.append(len(study.trials))
    assert n_trials[0] == n_trials[1] > 20
    two = create_study(directions=["minimize", "minimize"])
    with pytest.raises(OptionError, match="one objective"):
        two.optimize(lambda _: (1.0, 2.0), n_trials=2, callbacks=[rule])


def test_trials_can_be_copied_and_pickled() -> None:
    study = create_study()
    study.optimize(number, n_trials=1)
    trial = study.trials[0]
    for same in (copy.deepcopy(trial), pickle.loads(pickle.dumps(trial))):  # noqa: S301
        assert (same.params, same.values, same.intermediate_values) == (
            trial.params,
            trial.values,
            trial.intermediate_values,
        )


def test_attributes_belong_to_the_config_with_which_they_were_enqueued() -> None:
    study = create_study()
    study.enqueue_trial({"x": 0.5})
    study.enqueue_trial({"x": 0.5}, user_attrs={"from": "a guess"})
    study.optimize(number, n_trials=2)
    assert [trial.user_attrs for trial in study.trials] == [{}, {"from": "a guess"}]


def test_frames_of_studies_whose_metric_has_a_name() -> None:
    study = create_study()
    study.set_metric_names(["loss"])
    study.optimize(number, n_trials=2)
    assert study.trials_dataframe()["value"].tolist() == [trial.value for trial in study.trials]


def test_messages_of_tell_and_of_tiny_steps() -> None:
    study = create_study()
    trial = study.ask()
    with pytest.raises(OptionError, match=r"trial = \[1\]: give a whole number"):
        study.tell([1], 1.0)  # type: ignore[arg-type]
    assert study.tell(trial, [0.5]).values == [0.5]
    with pytest.raises(OptionError, match="more than 2\\^53 values"):
        Float(0, 1e300, step=1e-300)


def test_an_infinitely_good_trial_does_not_blind_the_process() -> None:
    study = create_study(searcher="gp")
    study.optimize(lambda trial: -float("inf") if number(trial) < 0.3 else 1.0, n_trials=15)
    assert study.best_value == -float("inf")
