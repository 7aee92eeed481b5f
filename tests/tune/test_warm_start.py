"""`Study.add_trials`: finished trials of another study, of Optuna, of a frame or of a CSV file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from onlineauto.errors import InputError, OptionError
from onlineauto.tune import Categorical, Float, Int, Study, create_study

if TYPE_CHECKING:
    from pathlib import Path

    from onlineauto.tune import ActiveTrial

SPACE = {
    "x": Float(0, 1),
    "n": Int(1, 9),
    "kind": Categorical(["a", None, True, 3]),
    "z": Float(0, 1, when={"kind": "a"}),
}


def objective(trial: ActiveTrial) -> float:
    return abs(trial.suggest_float("x", 0, 1) - 0.3) + trial.suggest_int("n", 1, 9)


def loss(config: Any, resource: int = 1) -> float:
    return float(abs(config["x"] - 0.3) + config["n"] + 1 / resource)


def earlier() -> Study:
    study = Study(SPACE, max_resource=9, max_trials=12)
    study.run(loss)
    return study


def test_another_study_is_continued_under_a_new_name() -> None:
    first = earlier()
    study = Study(SPACE, "fifo", max_resource=27, max_trials=5)
    study.add_trials(first)
    best = study.best
    assert best is not None
    assert first.best is not None
    assert (best.config, best.value, best.resource) == (first.best.config, first.best.value, 27)
    valued = [each for each in first.trials if each.value is not None]
    assert len(study.trials) == len(valued)
    study.run(loss)  # added trials do not count
    trials = study.trials
    assert len(trials) == 5 + len(valued)
    assert all(trials[each.number] == each for each in trials)
    assert study.trials[-1].config == valued[0].config


def test_the_searcher_learns_from_added_trials() -> None:
    space = {f"x{each}": Float(0, 1) for each in range(4)}

    def far(config: Any) -> float:
        return float(sum((each - 0.8) ** 2 for each in config.values()))

    rows = [
        {"value": far(config := {f"x{at}": (7 * row + 3 * at) % 31 / 31 for at in range(4)})}
        | {f"params_{name}": each for name, each in config.items()}
        for row in range(100)
    ]
    means = []
    for warm in (False, True):
        study = Study(space, "fifo", max_trials=8)
        if warm:
            study.add_trials(rows)
        study.run(far)
        means.append(sum(each.value or 0 for each in study.trials if each.number >= 0) / 8)
    assert means[1] < means[0] / 2


def test_a_csv_file_of_a_study_is_read_back(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    first = earlier()
    frame = first.trials_dataframe()
    assert list(frame.columns)[:2] == ["number", "value"]
    frame.to_csv(tmp_path / "trials.csv", index=False)
    study, same = Study(SPACE, "fifo"), Study(SPACE, "fifo")
    study.add_trials(tmp_path / "trials.csv")
    same.add_trials(frame)
    expected = [(each.config, each.value) for each in first.trials if each.value is not None]
    for found in (study, same):
        assert [(each.config, each.value) for each in found.trials[::-1]] == expected


def test_a_history_gives_the_last_value_of_each_trial() -> None:
    first = earlier()
    study = Study(SPACE, "fifo")
    study.add_trials(first.history())
    assert {each.value for each in study.trials} == {each.value for each in first.trials}


def test_an_open_study_learns_what_its_objective_suggests_later() -> None:
    first = create_study()
    first.optimize(objective, n_trials=30)
    study = create_study()
    study.add_trials(first.trials)
    assert study.best_value == first.best_value
    study.add_trials([{"value": 0.5, "params_old": 3}])  # a parameter that there is no more
    study.optimize(objective, n_trials=12)
    values = [each.value for each in study.trials if each.number >= 0]
    assert sum(value < 3 for value in values if value is not None) >= 6  # by chance, 3 of 12 would be
    again = Study.load(study.name, storage=study._store)
    assert again.trials == study.trials


def test_trials_of_optuna_are_added() -> None:
    optuna = pytest.importorskip("optuna")
    theirs = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    theirs.optimize(objective, n_trials=5)
    theirs.ask()  # is running, and has no value
    pruned = optuna.trial.TrialState.PRUNED
    theirs.add_trial(optuna.create_trial(value=-1.0, state=pruned))
    study = create_study()
    study.add_trials(theirs)
    assert study.best_value == theirs.best_value
    assert len(study.trials) == 5
    table = create_study()
    table.add_trials(theirs.trials_dataframe())
    assert table.trials == study.trials


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ([], "there is no trial with a value"),
        ([{"value": float("nan"), "params_x": 0.5}], "there is no trial with a value"),
        ([{"params_x": 0.5}], "a row has no 'value'; it has params_x"),
        ([{"value": 1, "params_x": 3, "params_n": 1, "params_kind": None}], "trial 0 of 1: "),
        ([{"value": 1, "params_y": 3}], "'y' is not in the space; it has x, n, kind, z"),
        (3, "give a study, its trials, rows, a frame or a CSV file"),
        ([3], "int.* is not a trial"),
    ],
)
def test_what_cannot_be_added_is_refused(source: Any, message: str) -> None:
    study = Study(SPACE, "fifo")
    with pytest.raises(OptionError, match=message):
        study.add_trials(source)
    assert study.trials == []


def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.csv: No such file"):
        create_study().add_trials(tmp_path / "none.csv")
