"""`Study.add_trials`: finished trials of another study, of Optuna, of a frame or of a CSV file."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from onlineauto.errors import InputError, OptionError
from onlineauto.tune import ActiveTrial, Categorical, Float, Int, Study, create_study
from onlineauto.tune.store import MemoryStore, StudySnapshot
from tests.tune.studies import state_of

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
    assert (best.config, best.value, best.resource) == (first.best_trial.config, first.best_value, 27)
    valued = [trial for trial in first.trials if trial.value is not None]
    assert len(study.trials) == len(valued)
    study.run(loss)  # added trials do not count
    trials = study.trials
    assert len(trials) == 5 + len(valued)
    assert all(trials[trial.number] == trial for trial in trials)
    assert study.trials[-1].config == valued[0].config


def test_the_searcher_learns_from_added_trials() -> None:
    space = {f"x{number}": Float(0, 1) for number in range(4)}

    def far(config: Any) -> float:
        return float(sum((each - 0.8) ** 2 for each in config.values()))

    rows = [
        {"value": far(config := {f"x{at}": (7 * row + 3 * at) % 31 / 31 for at in range(4)})}
        | {f"params_{name}": value for name, value in config.items()}
        for row in range(100)
    ]
    means = []
    for warm in (False, True):
        study = Study(space, "fifo", max_trials=8)
        if warm:
            study.add_trials(rows)
        study.run(far)
        means.append(sum(trial.value or 0 for trial in study.trials if trial.number >= 0) / 8)
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
    expected = [(trial.config, trial.value) for trial in first.trials if trial.value is not None]
    for found in (study, same):
        assert [(trial.config, trial.value) for trial in found.trials[::-1]] == expected


def test_a_history_gives_the_last_value_of_each_trial() -> None:
    first = earlier()
    study = Study(SPACE, "fifo")
    study.add_trials(first.history())
    assert {trial.value for trial in study.trials} == {each.value for each in first.trials}


def test_added_trials_count_for_parameters_that_are_suggested_later() -> None:
    first = create_study()
    first.optimize(objective, n_trials=30)
    store = MemoryStore()
    study = create_study(storage=store)
    study.add_trials(first.trials)
    assert study.best_value == first.best_value
    study.add_trials([{"value": 0.5, "params_old": 3}])  # a parameter that there is no more
    study.optimize(objective, n_trials=12)
    values = [trial.value for trial in study.trials if trial.number >= 0]
    assert sum(value < 3 for value in values if value is not None) >= 6  # by chance, 3 of 12 would be
    again = Study.load(study.name, storage=store)
    assert again.trials == study.trials


def test_trials_of_optuna_are_added() -> None:
    optuna = pytest.importorskip("optuna")
    optuna_study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    optuna_study.optimize(objective, n_trials=5)
    optuna_study.ask()  # is running, and has no value
    pruned = optuna.trial.TrialState.PRUNED
    optuna_study.add_trial(optuna.create_trial(value=-1.0, state=pruned))
    study = create_study()
    study.add_trials(optuna_study)
    assert study.best_value == optuna_study.best_value
    assert len(study.trials) == 5
    table = create_study()
    table.add_trials(optuna_study.trials_dataframe())
    assert table.trials == study.trials


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ([], "there is no trial with a value"),
        ([{"value": float("nan"), "params_x": 0.5}], "there is no trial with a value"),
        ([{"params_x": 0.5}], "a row has no 'value'; it has params_x"),
        ([{"value": 1, "params_x": 3, "params_n": 1, "params_kind": None}], "trial 0 of 1: "),
        ([{"value": 1}, {"value": -float("inf"), "params_x": 0.5}], "row 1 has the value -inf"),
        ([{"value": "Infinity", "params_x": 0.5}], "row 0 has the value Infinity, which is not finite"),
        ([{"value": 1, "params_y": 3}], "'y' is not in the space; it has x, n, kind, z"),
        (3, "give a study, its trials, rows, a frame or a CSV file"),
        ([3], "int.* is not a trial"),
    ],
)
def test_invalid_rows_are_rejected(source: Any, message: str) -> None:
    study = Study(SPACE, "fifo")
    with pytest.raises(OptionError, match=message):
        study.add_trials(source)
    assert study.trials == []


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            {"params_x": 7.0, "params_n": 3},
            "x = 7.0 is outside the space; valid is type float, low 0, high 1",
        ),
        ({"params_x": "abc", "params_n": 3}, "x = 'abc' is outside the space"),
        ({"params_x": 0.5, "params_n": 3.5}, "n = 3.5 is outside the space; valid is type int"),
    ],
)
def test_rows_outside_of_suggested_ranges_are_rejected(wrong: dict[str, Any], message: str) -> None:
    rows = [{"value": 1.0, "params_x": 1, "params_n": 3.0}, {"value": -9.0, **wrong}]
    study = create_study()
    study.optimize(objective, n_trials=2)
    with pytest.raises(OptionError, match=f"add_trials: trial 1 of 2: {message}"):
        study.add_trials(rows)
    assert len(study.trials) == 2
    early = create_study()
    early.add_trials(rows)  # the ranges are unknown yet
    with pytest.raises(OptionError, match=f"add_trials: trial 1 of the added ones: {message}"):
        early.optimize(objective, n_trials=1)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.csv: No such file"):
        create_study().add_trials(tmp_path / "none.csv")


CHOICES: list[list[Any]] = [
    ["10", "20", "70"],
    ["007", "7", "07"],
    ["1e5", "nan", "None", "inf", "True"],
    [1, 2, 3],
    [1, 2.5, 1e-05, 1e22],
    [True, False],
    [None, 3, 4],
    [None, "a", "None"],
    ["a", 20, "30", None, True, 1.5],
    ["", "a"],
    ["1.0", "1", "0.50", "-0"],
    ["a,b", 'say "x"', " padded ", "zwei\nZeilen", "ü"],
]


@pytest.mark.parametrize("choices", CHOICES, ids=repr)
@pytest.mark.parametrize("source", ["study", "frame", "file"])
@pytest.mark.parametrize("is_open", [True, False])
def test_added_trials_have_the_words_that_they_had(
    choices: list[Any], source: str, is_open: bool, tmp_path: Path
) -> None:
    pytest.importorskip("pandas")

    def suggesting(trial: ActiveTrial) -> float:
        word = trial.suggest_categorical("w", choices)
        return choices.index(word) + trial.suggest_float("x", 0, 1)

    first = create_study(searcher="random", seed=3)
    first.optimize(suggesting, n_trials=12)
    given: Any = first
    if source != "study":
        given = first.trials_dataframe()
    if source == "file":
        given.to_csv(tmp_path / "trials.csv", index=False)
        given = tmp_path / "trials.csv"
    space = {"w": Categorical(choices), "x": Float(0, 1)}
    store = MemoryStore()
    study = (
        create_study(seed=4, storage=store) if is_open else Study(space, "fifo", max_trials=1, storage=store)
    )
    study.add_trials(given)
    study.optimize(suggesting, n_trials=1)

    def words(trials: list[Any]) -> list[str]:
        return [repr(trial.config.get("w", "lost")) for trial in trials]

    added = [trial for trial in study.trials if trial.number < 0][::-1]
    assert words(added) == words(first.trials)
    assert [trial.config["x"] for trial in added] == [trial.config["x"] for trial in first.trials]
    assert repr(study.best_params["w"]) in map(repr, choices)
    again = Study.load(study.name, storage=store)
    assert again.trials == study.trials
    store.save(StudySnapshot(len(store.load()), state_of(study)))
    assert Study.load(study.name, storage=store).trials == study.trials


def test_the_searcher_learns_from_words_that_look_like_numbers(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    words = ["10", "20", "30", "40", "50", "60", "70", "80"]

    def suggesting(trial: ActiveTrial) -> float:
        return float(trial.suggest_categorical("w", words) != "70") + abs(
            trial.suggest_float("x", 0, 1) - 0.3
        )

    first = create_study(seed=3)
    first.optimize(suggesting, n_trials=60)
    first.trials_dataframe().to_csv(tmp_path / "trials.csv", index=False)
    study = create_study(seed=5)
    study.add_trials(tmp_path / "trials.csv")
    study.optimize(suggesting, n_trials=20)
    assert sum(trial.config["w"] == "70" for trial in study.trials if trial.number >= 0) >= 10


def test_conditions_are_inferred_from_a_file_as_from_a_study(tmp_path: Path) -> None:
    pytest.importorskip("pandas")

    def suggesting(trial: ActiveTrial) -> float:
        if trial.suggest_categorical("layers", ["1", "2"]) == "2":
            trial.suggest_int("width", 1, 9)
        return trial.suggest_float("x", 0, 1)

    first = create_study(searcher="random")
    first.optimize(suggesting, n_trials=12)
    first.trials_dataframe().to_csv(tmp_path / "trials.csv", index=False)
    study = create_study()
    study.add_trials(tmp_path / "trials.csv")
    study.optimize(suggesting, n_trials=6)
    assert study.space.parameters["width"].when == {"layers": ("2",)}
    added = [trial for trial in study.trials if trial.number < 0][::-1]
    assert [trial.config for trial in added] == [trial.config for trial in first.trials]


def test_rows_of_other_readers_are_read(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    path = tmp_path / "trials.csv"
    path.write_text("value,params_w,params_x\n1.5,70,\n2.5,10,0.5\n", "utf-8-sig")
    space = {"w": Categorical(["10", "70"]), "x": Float(0, 1, when={"w": "10"})}
    readers: list[Any] = [
        lambda: path,
        lambda: pandas.read_csv(path),
        lambda: pandas.read_csv(path, dtype_backend="numpy_nullable"),
        lambda: pytest.importorskip("polars").read_csv(path),
        lambda: csv.DictReader(path.read_text("utf-8-sig").splitlines()),
    ]
    for read in readers:
        study = Study(space, "fifo")
        study.add_trials(read())
        assert [trial.config for trial in study.trials] == [{"w": "10", "x": 0.5}, {"w": "70"}]
