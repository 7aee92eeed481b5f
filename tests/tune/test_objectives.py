"""Studies with several objectives, and with constraints."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onlineauto.errors import OptionError
from onlineauto.tune import (
    ActiveTrial,
    Float,
    Space,
    State,
    Study,
    TrialPruned,
    create_study,
    draw_study,
)
from onlineauto.tune.searchers.outcome import INFEASIBLE, losses_of
from onlineauto.tune.searchers.pareto import added_volumes, by_hypervolume, front, ranked, spread
from onlineauto.tune.store import MemoryStore, StudySnapshot, open_store
from tests.tune.studies import asked, records_of, state_of

SPACE = Space({"x": Float(0, 1), "y": Float(0, 1)})


def two(config: Any) -> tuple[float, float]:
    """Return two losses whose front is y = 0."""
    return config["x"], (1 + config["y"]) * (1 - config["x"] ** 0.5) + config["y"]


def named(config: Any, resource: int) -> dict[str, Any]:
    """Return a loss, a size that should be large, and a constraint on the loss."""
    del resource
    return {"loss": config["x"], "size": config["x"] + config["y"], "constraints": [0.3 - config["x"]]}


def dominated(one: dict[str, float], others: list[dict[str, float]], signs: dict[str, float]) -> bool:
    pairs = [[(sign * each[name], sign * one[name]) for name, sign in signs.items()] for each in others]
    return any(all(a <= b for a, b in pair) and any(a < b for a, b in pair) for pair in pairs)


def test_front_and_ranks_agree_with_the_definition() -> None:
    rng = np.random.default_rng(0)
    for count, width in ((1, 2), (40, 2), (60, 3), (50, 4)):
        losses = rng.integers(0, 6, (count, width)).astype(float)
        names = [str(at) for at in range(width)]
        rows = [dict(zip(names, row, strict=True)) for row in losses.tolist()]
        signs = dict.fromkeys(names, 1.0)
        left, fronts = set(range(count)), []
        while left:
            fronts.append({at for at in left if not dominated(rows[at], [rows[o] for o in left], signs)})
            left -= fronts[-1]
        assert set(front(losses).tolist()) == fronts[0]
        order = ranked(losses, count).tolist()
        assert sorted(order) == list(range(count))
        number = [next(at for at, front_rows in enumerate(fronts) if row in front_rows) for row in order]
        assert number == sorted(number)
        few = ranked(losses, 3).tolist()
        best = sorted(row for front_rows in fronts[:3] for row in front_rows)
        assert set(few[:3]) <= set(best)


def test_a_crowded_trial_of_a_front_comes_later() -> None:
    losses = np.array([[0, 10.0], [1, 9], [1.1, 8.9], [5, 5], [10, 0]])
    order = spread(losses, np.arange(5)).tolist()
    assert set(order[:2]) == {0, 4}
    assert order[2] == 3
    assert sorted(spread(np.array([[np.inf, 0], [0, np.inf], [1, 1]]), np.arange(3)).tolist()) == [0, 1, 2]


def volume(points: np.ndarray, reference: int) -> int:
    """Return the number of cells of the integer grid below a reference point that some point dominates."""
    cells = itertools.product(range(reference), repeat=points.shape[1])
    return sum(bool((points <= np.array(cell)).all(axis=1).any()) for cell in cells)


@given(
    st.integers(2, 4).flatmap(
        lambda k: st.tuples(
            *[st.lists(st.lists(st.integers(0, 5), min_size=k, max_size=k), min_size=1, max_size=6)] * 2
        )
    )
)
@settings(max_examples=60, deadline=None)
def test_added_volumes_are_differences_of_volumes(lists: tuple[list[list[int]], list[list[int]]]) -> None:
    points, rows = (np.array(entries) for entries in lists)
    expected = [volume(np.vstack([points, row]), 5) - volume(points, 5) for row in rows]
    assert added_volumes(points.astype(float), 5.0)(rows.astype(float)).tolist() == pytest.approx(expected)
    alone = added_volumes(np.empty((0, points.shape[1])), 5.0)(rows.astype(float))
    assert alone.tolist() == pytest.approx([volume(rows[[at]], 5) for at in range(len(rows))])


@pytest.mark.parametrize("n_objectives", [3, 4])
def test_a_front_is_sorted_by_what_each_row_adds(n_objectives: int) -> None:
    losses = np.abs(np.random.default_rng(0).normal(size=(60, n_objectives)))
    losses /= np.linalg.norm(losses, axis=1)[:, None]
    scaled = (losses - losses.min(0)) / (losses.max(0) - losses.min(0))
    chosen = list[int]()
    while len(chosen) < 9:  # without the shortcuts: all gains again after each row
        gains = added_volumes(scaled[chosen], 1.5)(scaled)
        chosen.append(int(np.argmax(gains)))
    order = by_hypervolume(losses, np.arange(60), 9).tolist()
    assert order[:9] == chosen
    assert sorted(order) == list(range(60))


def test_many_objectives_are_sorted_by_volume_as_far_as_it_is_bounded() -> None:
    losses = np.abs(np.random.default_rng(0).normal(size=(50, 7)))
    losses[3] = np.inf
    rows = front(losses)
    order = by_hypervolume(losses, rows, 20)
    assert set(order.tolist()) == set(rows.tolist())
    equal = np.full((4, 3), INFEASIBLE)
    assert sorted(by_hypervolume(equal, np.arange(4), 2).tolist()) == [0, 1, 2, 3]


def test_tpe_approaches_a_front_of_three_objectives() -> None:
    space, left = Space({f"x{at}": Float(0, 1) for at in range(5)}), []
    for searcher in ("random", "tpe"):
        study = Study(space, "fifo", searcher, mode=["min"] * 3, max_resource=1, max_trials=120, seed=0)
        study.run(on_sphere)
        points = np.array([list(trial.objectives.values()) for trial in study.best_trials])
        left.append(float(np.median(np.linalg.norm(points, axis=1) - 1)))
    assert left[1] < 0.4 * left[0], left


def on_sphere(config: Any) -> tuple[float, float, float]:
    """Return three losses whose front is the part of a sphere with radius 1 (DTLZ2)."""
    first, second, *others = config.values()
    radius = 1 + sum((x - 0.5) ** 2 for x in others)
    a, b = first * math.pi / 2, second * math.pi / 2
    return (
        radius * math.cos(a) * math.cos(b),
        radius * math.cos(a) * math.sin(b),
        radius * math.sin(a),
    )


@pytest.mark.parametrize("searcher", ["tpe", "random", "quasi", "grid"])
def test_best_trials_are_those_that_no_other_dominates(searcher: str) -> None:
    pytest.importorskip("scipy") if searcher == "quasi" else None
    study = Study(SPACE, searcher=searcher, mode=["min", "max"], max_resource=1, max_trials=40)
    study.run(two)
    signs = {"0": 1.0, "1": -1.0}
    values = [trial.objectives for trial in study.trials]
    expected = [at for at, one in enumerate(values) if not dominated(one, values, signs)]
    assert [trial.number for trial in study.best_trials] == expected
    assert study.objectives == ["0", "1"]
    with pytest.raises(OptionError, match="several objectives: see best_trials"):
        _ = study.best_trial


def test_tpe_approaches_the_front() -> None:
    def area(searcher: str) -> float:
        space = {f"x{at}": Float(0, 1) for at in range(5)}

        def zdt(config: Any) -> list[float]:
            first, *others = config.values()
            g = 1 + 9 * sum(others) / 4
            return [first, g * (1 - (first / g) ** 0.5)]

        study = Study(space, searcher=searcher, mode=["min", "min"], max_resource=1, max_trials=100)
        study.run(zdt)
        return float(np.mean([sum(trial.objectives.values()) for trial in study.best_trials]))

    assert area("tpe") < 0.6 * area("random")


def test_stored_study_has_the_same_front_and_continues(url: str) -> None:
    settings: dict[str, Any] = {"mode": {"loss": "min", "size": "max"}, "max_resource": 3, "storage": url}
    study = Study(SPACE, max_trials=15, **settings)
    study.run(named, workers=2)
    loaded = Study.load("study", storage=url)
    assert loaded.trials == study.trials
    assert loaded.best_trials == study.best_trials
    assert loaded.objectives == ["loss", "size"]
    assert all(trial.is_feasible == (trial.objectives["loss"] >= 0.3) for trial in loaded.trials)
    assert all(trial.is_feasible for trial in loaded.best_trials)
    row = loaded.history()[-1]
    assert row["value_size"] == row["config_x"] + row["config_y"]
    assert row["constraint_0"] == 0.3 - row["config_x"]
    more = Study(SPACE, max_trials=20, **settings)
    more.run(named)
    assert len(more.trials) == 20
    with pytest.raises(OptionError, match="exists already with mode"):
        Study(SPACE, **{**settings, "mode": {"loss": "min", "size": "min"}})


def test_a_snapshot_restores_objectives_constraints_and_the_searcher(url: str) -> None:
    study = Study(SPACE, mode={"loss": "min", "size": "max"}, max_resource=3, max_trials=30, storage=url)
    study.run(named)
    store = open_store(url, "study")
    snapshot = StudySnapshot(len(store.load()), state_of(study))
    store.save(snapshot)
    copy = Study.load("study", storage=url)
    assert copy.trials == study.trials
    assert state_of(copy) == snapshot.state


def test_objective_suggests_parameters_and_returns_several_values() -> None:
    def objective(trial: ActiveTrial) -> tuple[float, float]:
        x = trial.suggest_float("x", 0, 1)
        kind = trial.suggest_categorical("kind", ["a", "b"])
        trial.set_constraint("limit", x - 0.9)
        return x, (1 - x) ** 2 + (trial.suggest_float("z", 0, 1) if kind == "b" else 0)

    study = create_study(directions=["minimize", "minimize"])
    study.optimize(objective, n_trials=40)
    assert 3 <= len(study.best_trials) < 40
    assert all(trial.constraints["limit"] <= 0 for trial in study.best_trials)
    assert {trial.number for trial in study.trials if not trial.is_feasible} == {
        trial.number for trial in study.trials if float(str(trial.config["x"])) > 0.9
    }
    frame = pytest.importorskip("pandas") and study.trials_dataframe()
    assert {"values_0", "values_1", "constraints_limit"} <= set(frame.columns)
    named_study = create_study(directions={"loss": "minimize", "gain": "maximize"})
    named_study.optimize(lambda trial: {"gain": 1.0, "loss": trial.suggest_float("x", 0, 1)}, n_trials=3)
    assert named_study.trials[0].objectives["gain"] == 1.0


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            {"scheduler": "hyperband"},
            "scheduler='hyperband' compares one objective; with several, it is 'fifo'",
        ),
        ({"scheduler": "median"}, "compares one objective"),
        ({"searcher": "gp"}, "'gp' learns one objective; auto, random, quasi, grid, tpe take several"),
        ({"searcher": "cmaes"}, "'cmaes' learns one objective"),
        ({"mode": ["min"]}, "valid are min, max; or for several objectives a list of two or more"),
        ({"mode": {"loss": "min"}}, "a list of two or more"),
        ({"mode": ["min", "up"]}, r"mode = \['min', 'up'\]: valid are"),
        ({"mode": {"constraints": "min", "loss": "min"}}, "valid are min, max"),
        ({"mode": []}, "valid are min, max"),
        ({"mode": 3}, "mode = 3: valid are"),
    ],
)
def test_invalid_combinations_of_settings_are_rejected(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(OptionError, match=words):
        Study(SPACE, **{"mode": ["min", "min"], "max_trials": 5, **settings})


def test_ray_pruning_and_added_trials_need_one_objective() -> None:
    study = Study(SPACE, mode=["min", "min"], max_resource=1, max_trials=2)
    with pytest.raises(OptionError, match="several objectives do not run on Ray"):
        study.run(two, executor="ray")
    with pytest.raises(OptionError, match="add_trials takes trials of one objective"):
        study.add_trials([{"value": 1.0, "config_x": 0, "config_y": 0}])

    def objective(trial: ActiveTrial) -> Any:
        trial.suggest_float("x", 0, 1)
        trial.report(1.0, 1)
        raise TrialPruned

    suggesting = create_study(directions=["minimize"] * 2)
    suggesting.optimize(objective, n_trials=1)
    assert suggesting.trials[0].error == "it was pruned without a value for each objective"
    with pytest.raises(OptionError, match="direction = 'up'"):
        create_study(directions=["minimize", "up"])


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (1.0, "the result is 1.0: return 2 numbers, one per objective"),
        ((1.0, 2.0, 3.0), "return 2 numbers"),
        ({"0": 1.0}, "the result has 0: give 0, 1"),
        ({"0": 1.0, "1": 2.0, "2": 3.0}, "the result has 0, 1, 2: give 0, 1"),
    ],
)
def test_a_result_has_a_value_for_each_objective(result: Any, words: str) -> None:
    study = Study(SPACE, mode=["min", "min"], max_resource=1, max_trials=2)
    job = asked(study)
    with pytest.raises(OptionError, match=words):
        study.tell(job, result)
    assert study.trials[0].state is State.RUNNING
    study.tell(job, np.array([1.0, 2.0]))
    assert study.trials[0].objectives == {"0": 1.0, "1": 2.0}
    study.run(lambda _config: result)
    assert words in study.trials[1].error


@pytest.mark.parametrize("result", [(1.0, float("nan")), ("a", 1.0), {"0": 1, "1": 2, "constraints": ["b"]}])
def test_a_value_that_is_not_a_number_fails_the_trial(result: Any) -> None:
    study = Study(SPACE, mode=["min", "min"], max_resource=1, max_trials=1)
    study.run(lambda _config: result)
    assert study.trials[0].state is State.ERRORED
    assert study.trials[0].error.endswith(("not a number", "no number"))
    assert study.best_trials == []


def constrained(config: Any, resource: int = 1) -> dict[str, Any]:
    return {"value": config["x"], "constraints": {"least": 0.5 - config["x"], "other": -1.0}}


@pytest.mark.parametrize("scheduler", ["hyperband", "asha", "race", "dehb", "median", "fifo", "pbt"])
def test_the_best_trial_is_feasible(scheduler: str) -> None:
    study = Study(SPACE, scheduler, max_resource=9, max_trials=30, seed=1)
    study.run(constrained)
    assert any(not trial.is_feasible for trial in study.trials)
    assert study.best_trial.is_feasible
    highest = max(trial.resource for trial in study.trials if trial.is_feasible)
    feasible = [trial for trial in study.trials if trial.is_feasible and trial.resource == highest]
    assert study.best_value == min(trial.value or 0.0 for trial in feasible)
    assert study.best_trials == [study.best_trial]


def test_hyperband_resumes_feasible_trials_first() -> None:
    study = Study(SPACE, "hyperband", "random", max_resource=9, max_trials=9, seed=0)
    while (job := study.ask()) is not None:
        study.tell(job, constrained(job.config))
    first = [trial for trial in study.trials if trial.number < 9]
    resumed = [trial for trial in first if trial.attempt]
    feasible = sum(trial.is_feasible for trial in first)
    assert 3 <= feasible < 9
    assert resumed
    assert all(trial.is_feasible for trial in resumed)


def test_a_resumed_trial_of_a_function_of_the_config_keeps_its_constraints() -> None:
    study = Study(SPACE, "hyperband", "random", max_resource=9, max_trials=9, seed=0)
    study.run(constrained)
    assert all(trial.constraints for trial in study.trials)
    assert any(trial.attempt for trial in study.trials)


def test_the_best_infeasible_trial_has_the_least_violation() -> None:
    study = Study(SPACE, "fifo", "random", max_resource=1, max_trials=3)
    for violation, value in ((3.0, -5.0), (1.0, 10.0), (float("inf"), -9.0)):
        job = asked(study)
        study.tell(job, {"value": value, "constraints": [violation, -100.0]})
    assert study.best_trial.number == 1
    assert study.best_trials == []
    losses = [
        losses_of({"value": -1e299, "constraints": {"a": each}}, {"value": 1.0})[0] for each in (0, 1e-9)
    ]
    assert losses == [-1e299, pytest.approx(INFEASIBLE)]


@pytest.mark.ci
@pytest.mark.parametrize("searcher", ["tpe", "gp", "cmaes"])
def test_searchers_avoid_infeasible_configs(searcher: str) -> None:
    pytest.importorskip({"cmaes": "cmaes"}.get(searcher, "numpy"))
    study = Study(SPACE, "fifo", searcher, max_resource=1, max_trials=60)
    study.run(lambda config: {"value": -config["y"], "constraints": [config["y"] - 0.5 - config["x"] / 4]})
    late = [trial for trial in study.trials if trial.number >= 30]
    assert sum(trial.is_feasible for trial in late) > 10
    assert -0.75 <= study.best_value < -0.6


def test_a_record_of_one_objective_has_neither_values_nor_constraints() -> None:
    study = Study(SPACE, "fifo", "random", max_resource=1, max_trials=2)
    study.run(lambda config: config["x"])
    told = [record for record in records_of(study) if record["kind"] == "told"]
    assert all(set(record) == {"kind", "trial", "attempt", "resource", "value"} for record in told)


def test_a_record_with_damaged_values_is_skipped() -> None:
    store = MemoryStore()
    study = Study(SPACE, mode=["min", "min"], max_resource=1, max_trials=2, storage=store)
    asked(study)
    record = {"kind": "told", "trial": 0, "attempt": 0, "resource": 1, "value": 1.0, "values": {"0": None}}
    store.append(record)
    study.refresh()
    assert study.skipped[0].why == "values = {'0': None}"
    store.append({**record, "values": {"0": 1.0}})
    study.refresh()
    assert study.skipped[1].why == "values = {'0': 1.0}: the objectives are 0, 1"


def test_picture_of_a_front(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    study = Study(SPACE, mode={"loss": "min", "size": "max"}, max_resource=1, max_trials=20)
    study.run(named)
    draw_study(study).save(tmp_path / "front.svg")
    text = (tmp_path / "front.svg").read_text("utf-8")
    infeasible = sum(not trial.is_feasible for trial in study.trials)
    assert f"20 trials · {len(study.best_trials)} are dominated by no other · {infeasible} violate" in text
    assert "what explains objective size" in text
