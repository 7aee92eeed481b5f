"""`ObjectiveStudy`: asked trials that suggest, states, attributes, names and frozen trials, as in Optuna."""

from __future__ import annotations

import logging
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from onlineauto.errors import OptionError
from onlineauto.tune import Float, Int, Study, TrialPruned, create_study, create_trial, load_study
from onlineauto.tune.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from onlineauto.tune.samplers import GridSampler
from onlineauto.tune.store import MemoryStore
from onlineauto.tune.study import StudyDirection
from onlineauto.tune.trial import FrozenTrial, TrialState

COMPLETE, PRUNED, FAIL, RUNNING = (
    TrialState.COMPLETE,
    TrialState.PRUNED,
    TrialState.FAIL,
    TrialState.RUNNING,
)


def curve(trial: Any) -> float:
    """Report three steps; the second trial is pruned, the third one fails."""
    x = trial.suggest_float("x", 0, 1)
    for step in range(3):
        trial.report(x + step, step)
        if trial.number == 1 and step == 1:
            raise TrialPruned
    if trial.number == 2:
        raise ValueError("no")
    return float(x)


def test_states_and_values_are_those_of_optuna() -> None:
    study = create_study(direction="maximize")
    study.optimize(curve, n_trials=4, catch=ValueError)
    running = study.ask()
    assert [trial.state for trial in study.trials] == [COMPLETE, PRUNED, FAIL, COMPLETE, RUNNING]
    assert [trial.number for trial in study.get_trials(states=[PRUNED, FAIL])] == [1, 2]
    assert len(study.get_trials(deepcopy=False)) == 5
    assert [state.is_finished() for state in TrialState] == [False, True, True, True, False]
    first, pruned, failed = study.trials[:3]
    x = first.params["x"]
    assert (first.values, first.value, first.last_step) == ([x], x, 2)
    assert first.intermediate_values == {0: x, 1: x + 1, 2: x + 2}
    assert pruned.values == [pruned.params["x"] + 1]
    assert pruned.intermediate_values.keys() == {0, 1}
    assert (failed.values, failed.error) == (None, "ValueError: no")
    assert first.datetime_complete - first.datetime_start == first.duration < timedelta(minutes=1)
    assert study.trials[running.number].duration is None
    assert (
        repr(first)
        == f"FrozenTrial(number=0, state=COMPLETE, values=[{x}], params={{'x': {x}}}, user_attrs={{}})"
    )
    assert (study.direction, study.directions) == (StudyDirection.MAXIMIZE, [StudyDirection.MAXIMIZE])
    assert study.best_trial.values == [study.best_value]


def test_a_report_that_is_skipped_is_no_intermediate_value() -> None:
    store = MemoryStore()
    study = create_study(storage=store)
    trial = study.ask()
    trial.report(0.5, 0)
    store.append({"kind": "reported", "trial": 0, "attempt": 0, "value": 1.0})  # without a step
    trial.report(0.25, 1)
    study.tell(trial, 0.25)
    assert study.trials[0].intermediate_values == {0: 0.5, 1: 0.25}
    assert len(study.skipped) == 1


def test_steps_from_one_are_reported_as_they_were_counted() -> None:
    study = create_study()
    trial = study.ask()
    for step in (1, 2):
        trial.report(0.5, step)
    study.tell(trial, 0.5)
    assert study.trials[0].intermediate_values == {1: 0.5, 2: 0.5}


def test_an_objective_is_called_again_with_the_best_trial() -> None:
    study = create_study()
    study.optimize(curve, n_trials=1)
    assert curve(study.best_trial) == study.best_value


def test_asked_trials_suggest_and_are_told_by_object_or_number() -> None:
    study = create_study()
    trials = [study.ask() for _ in range(4)]
    for trial in trials:
        trial.suggest_float("x", 0, 1)
    trials[2].report(3.0, 7)
    assert study.tell(trials[0], 0.25).values == [0.25]
    assert study.tell(1, 0.5).state is COMPLETE
    assert study.tell(trials[2], state=PRUNED).values == [3.0]
    assert study.tell(3, state=FAIL).state is FAIL
    assert study.tell(0, 9.0, skip_if_finished=True).values == [0.25]
    with pytest.raises(OptionError, match="trial = 0 has ended, or this study has not asked for it"):
        study.tell(0, 9.0)
    with pytest.raises(OptionError, match=r"give values, or state=PRUNED or FAIL"):
        study.tell(study.ask())
    assert study.tell(4, float("nan")).state is FAIL
    assert study.best_params == trials[0].params


def test_ask_suggests_fixed_distributions() -> None:
    fixed = {
        "rate": FloatDistribution(1e-3, 1, log=True),
        "depth": IntDistribution(2, 10, step=4),
        "loss": CategoricalDistribution(["a", "b"]),
    }
    study = create_study()
    for _ in range(30):
        trial = study.ask(fixed)
        assert trial.params.keys() == fixed.keys()
        study.tell(trial, trial.params["rate"])
    assert {trial.params["depth"] for trial in study.trials} == {2, 6, 10}
    assert study.space.parameters["depth"] == Int(2, 10, step=4)


def test_a_study_that_is_done_has_no_trial_to_ask_for() -> None:
    study = create_study(sampler=GridSampler({"x": [0.5]}))
    trial = study.ask({"x": Float(0, 1)})
    study.tell(trial, trial.params["x"])
    with pytest.raises(OptionError, match=r"has no job now; its state is 'done'"):
        study.ask()


def test_attributes_are_stored_at_once(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path}/study.db"
    study = create_study(study_name="a", storage=storage)
    study.set_user_attr("people", ["Ann", "Bo"])
    study.set_user_attr("data", {"rows": 3})
    trial = study.ask()
    trial.set_user_attr("accuracy", 0.5)
    trial.set_user_attr("accuracy", 0.75)
    other = load_study(study_name="a", storage=storage)
    assert other.user_attrs == study.user_attrs == {"people": ["Ann", "Bo"], "data": {"rows": 3}}
    assert other.trials[0].user_attrs == trial.user_attrs == {"accuracy": 0.75}
    study.tell(trial, 1.0)
    assert study.best_trial.user_attrs == {"accuracy": 0.75}
    assert study.trials_dataframe()["user_attrs_accuracy"].tolist() == [0.75]
    with pytest.raises(OptionError, match="user_attrs cannot be stored: a part is of type object"):
        study.set_user_attr("it", object())
    assert not study.skipped


def test_an_enqueued_trial_has_its_attributes(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path}/study.db"
    study = create_study(study_name="a", storage=storage)
    study.enqueue_trial({"x": 0.5}, user_attrs={"by": "Ann"})
    study.enqueue_trial({"x": 0.5}, user_attrs={"by": "Bo"})
    study.enqueue_trial({"x": 0.25})
    assert {trial.state for trial in study.trials} == {TrialState.WAITING}
    loaded = load_study(study_name="a", storage=storage)
    loaded.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=4)
    study.refresh()
    for other in (study, loaded):
        assert [trial.user_attrs for trial in other.trials] == [{"by": "Ann"}, {"by": "Bo"}, {}, {}]
    with pytest.raises(OptionError, match="user_attrs cannot be stored"):
        study.enqueue_trial({"x": 0.5}, user_attrs={"by": object()})


def test_a_part_of_a_config_may_be_enqueued() -> None:
    study = create_study()
    study.enqueue_trial({"x": 0.5})
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1) + trial.suggest_int("n", 0, 9), n_trials=1)
    assert study.trials[0].params["x"] == 0.5
    assert study.trials[0].params.keys() == {"x", "n"}


def test_attributes_of_a_study_with_a_declared_space() -> None:
    study = Study({"x": Float(0, 1)}, "fifo", max_trials=1)
    study.set_user_attr("data", "iris")
    assert study.user_attrs == {"data": "iris"}


@pytest.mark.parametrize(
    "record",
    [
        {"kind": "noted", "trial": 7, "user_attrs": {}},
        {"kind": "noted", "trial": None, "user_attrs": 3},
        {"kind": "noted", "user_attrs": {}},
    ],
)
def test_attributes_that_do_not_fit_are_skipped(
    record: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    store = MemoryStore()
    study = create_study(storage=store)
    with caplog.at_level(logging.WARNING):
        store.append(record)
        study.refresh()
    assert [skipped.kind for skipped in study.skipped] == ["noted"]
    assert study.user_attrs == {}


def test_metric_names_are_columns_of_the_table() -> None:
    study = create_study(directions=["minimize", "maximize"])
    study.optimize(lambda trial: (trial.suggest_float("x", 0, 1), trial.params["x"] ** 2), n_trials=5)
    assert study.metric_names is None
    study.set_metric_names(["flops", "accuracy"])
    assert study.metric_names == ["flops", "accuracy"]
    frame = study.trials_dataframe(attrs=("number", "values", "params"))
    assert list(frame.columns) == ["number", "values_flops", "values_accuracy", "params_x"]
    x = study.trials[0].params["x"]
    assert study.trials[0].values == [x, x**2]
    assert len(study.best_trials) == 5
    with pytest.raises(OptionError, match="give 2 texts, one per objective"):
        study.set_metric_names(["flops"])
    with pytest.raises(OptionError, match="several objectives: see directions"):
        _ = study.direction


def test_finished_trials_are_added_one_by_one() -> None:
    study = create_study()
    parameters = {"x": FloatDistribution(0, 1)}
    study.add_trial(create_trial(params={"x": 0.5}, distributions=parameters, value=0.25))
    study.add_trial(study.trials[0])
    assert [trial.values for trial in study.trials] == [[0.25], [0.25]]
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=3)
    assert study.best_value <= 0.25
    with pytest.raises(OptionError, match=r"create_trial\(state="):
        create_trial(params={}, value=1.0, state=PRUNED)


def test_a_frozen_trial_has_the_attributes_of_a_trial() -> None:
    study = create_study(retries=1)
    study.optimize(curve, n_trials=2)
    trial = study.trials[1]
    assert isinstance(trial, FrozenTrial)
    assert (trial.resource, trial.attempt, trial.is_feasible) == (2, 0, True)
    assert trial.config == trial.params
    with pytest.raises(AttributeError):
        _ = trial.nothing
    assert study.trials == study.trials
    assert study.trials[0] != study.trials[1]


def test_older_names_of_suggestions() -> None:
    study = create_study()
    trial = study.ask()
    assert 0 <= trial.suggest_uniform("a", 0, 1) <= 1
    assert 1 <= trial.suggest_loguniform("b", 1, 10) <= 10
    assert trial.suggest_discrete_uniform("c", 0, 1, 0.25) in (0, 0.25, 0.5, 0.75, 1)


def test_a_progress_bar_counts_trials(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("tqdm")
    study = create_study()
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=7, show_progress_bar=True)
    assert "7/7" in capsys.readouterr().err
