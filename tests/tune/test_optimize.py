"""`Study.optimize`: objectives that suggest parameters while they run."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
from math import inf, nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onlineauto.errors import OnlineautoError, OptionError
from onlineauto.tune import (
    ActiveTrial,
    Categorical,
    Float,
    Int,
    Searcher,
    Space,
    Study,
    Trial,
    TrialPruned,
    create_study,
    load_study,
)
from onlineauto.tune.schedulers.hyperband import Hyperband
from onlineauto.tune.searchers import SEARCHERS
from onlineauto.tune.searchers.open_searcher import OpenSearcher
from onlineauto.tune.spaces.space import OpenSpace, SpaceInference
from onlineauto.tune.store import MemoryStore
from onlineauto.tune.trial import TrialState
from tests.tune.studies import records_of


def branches(trial: ActiveTrial) -> float:
    if trial.suggest_categorical("model", ["linear", "trees"]) == "linear":
        return 0.2 + (trial.suggest_float("rate", 0, 1) - 0.3) ** 2
    count = trial.suggest_int("trees", 1, 3)
    return sum((trial.suggest_float(f"depth{number}", 0, 1) - 0.5) ** 2 for number in range(count)) / count


def curve(trial: ActiveTrial) -> float:
    """Report nine steps, counted from 0."""
    x = trial.suggest_float("x", 0, 1)
    for step in range(9):
        trial.report(x + 1 / (step + 1), step)
        if trial.should_prune():
            raise TrialPruned
    return x


def recorded(study: Study) -> list[Any]:
    return [record for record in records_of(study) if "suggested" in record]


def test_conditions_are_inferred_from_suggestions() -> None:
    study = create_study()
    study.optimize(branches, n_trials=60)
    assert len(study.trials) == 60
    when = {name: dict(parameter.when) for name, parameter in study.space.parameters.items()}
    assert when["model"] == {}
    assert when["rate"] == {"model": ("linear",)}
    assert when["trees"] == when["depth0"] == {"model": ("trees",)}
    assert set(when["depth1"]["trees"]) == {2, 3}
    assert when["depth2"] == {"trees": (3,)}
    assert len(recorded(study)) <= 8  # from then on, proposals have the very names that trials suggest
    assert {tuple(trial.config) for trial in study.trials} <= {
        ("model", "rate"),
        ("model", "trees", "depth0"),
        ("model", "trees", "depth0", "depth1"),
        ("model", "trees", "depth0", "depth1", "depth2"),
    }
    assert study.best_value < 0.02
    assert study.best_params["model"] == "trees"


def test_a_condition_of_two_parents_is_found_and_chance_is_none() -> None:
    declared = {
        "a": Categorical([0, 1]),
        "b": Categorical([0, 1]),
        "x": Float(0, 1),
        "z": Float(0, 1),
    }
    configs: list[dict[str, Any]] = [
        {"a": a, "b": b, "x": (a + 2 * b) / 4} | ({"z": 0.5} if a and b else {})
        for a in (0, 1)
        for b in (0, 1)
    ]
    assert inferred(declared, configs)["z"] == {"a": [1], "b": [1]}
    by_number = [{"x": x} | ({"z": 0.5} if x > 0.5 else {}) for x in (0.1, 0.4, 0.6, 0.9)]
    assert inferred({"x": Float(0, 1), "z": Float(0, 1)}, by_number)["z"] == {}


def inferred(parameters: dict[str, Any], configs: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the conditions after all configs, which are asked for after each of them."""
    inference = SpaceInference(parameters)
    for config in configs:
        inference.add(config)
        inference.conditions()
    return inference.conditions()


def test_the_searcher_learns_in_an_open_space() -> None:
    def loss(trial: ActiveTrial) -> float:
        return sum((trial.suggest_float(f"x{number}", 0, 1) - 0.3) ** 2 for number in range(4))

    best = {}
    for searcher in ("tpe", "random"):
        values = []
        for seed in range(3):
            study = create_study(searcher=searcher, seed=seed)
            study.optimize(loss, n_trials=100)
            values.append(study.best_value)
        best[searcher] = np.mean(values)
    assert best["tpe"] < best["random"] / 3


def test_pruned_trials_end_early_and_are_never_the_best() -> None:
    study = create_study()
    study.optimize(curve, n_trials=40)
    states = study.trials_dataframe().state
    assert set(states) == {"COMPLETE", "PRUNED"}
    complete = [trial for trial in study.trials if trial.resource == 10**9]
    assert len(complete) == (states == "COMPLETE").sum()
    assert study.best_value == min(trial.value for trial in complete if trial.value is not None)
    assert all(1 <= trial.resource <= 9 for trial in study.trials if trial not in complete)


def test_a_trial_may_be_pruned_without_the_scheduler() -> None:
    def objective(trial: ActiveTrial) -> float:
        trial.report(5.0, 2)
        raise TrialPruned

    study = create_study(scheduler="fifo")
    study.optimize(objective, n_trials=1)
    assert (study.trials[0].values, study.trials[0].resource) == ([5.0], 2)
    strict = Study(None, min_resource=3, max_resource=9)
    strict.optimize(objective, n_trials=1)
    assert "where its scheduler has not stopped it" in strict.trials[0].error


def test_hyperband_resumes_trials_with_the_same_values() -> None:
    seen: dict[int, set[float]] = {}

    def objective(trial: ActiveTrial) -> float:
        seen.setdefault(trial.number, set()).add(trial.suggest_float("x", 0, 1))
        return curve(trial)

    study = create_study(scheduler=Hyperband(), max_resource=9)
    study.optimize(objective, n_trials=20)
    assert len(study.trials) == 20
    assert study.best_trial.resource == 9
    assert {len(values) for values in seen.values()} == {1}


@pytest.mark.parametrize("scheduler", ["hyperband", "asha"])
def test_a_scheduler_by_name_calls_an_objective_once_for_each_trial(scheduler: str) -> None:
    n_steps: dict[int, int] = {}

    def objective(trial: ActiveTrial) -> float:
        assert trial.number not in n_steps
        x = trial.suggest_float("x", 0, 1)
        for step in range(27):
            n_steps[trial.number] = step + 1
            trial.report(x + 1 / (step + 1), step)
            if step < 26 and trial.should_prune():
                raise TrialPruned
        return x

    study = create_study(scheduler=scheduler, max_resource=27)
    study.optimize(objective, n_trials=60)
    assert [trial.resource for trial in study.trials] == list(n_steps.values())
    assert len(set(n_steps.values())) == 4
    n_complete = list(n_steps.values()).count(27)
    assert n_complete >= {"hyperband": 14, "asha": 4}[scheduler]
    again = create_study(scheduler=scheduler, max_resource=27)
    assert again.settings.scheduler[:2] == study.settings.scheduler[:2]


def test_objectives_may_suggest_a_declared_space() -> None:
    study = Study({"x": Float(0, 1), "y": Float(0, 1)}, "fifo", max_trials=5)
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1))
    assert [len(trial.config) for trial in study.trials] == [2] * 5
    with pytest.raises(OptionError, match=r"is done: Study\.extend\(max_trials=…\) continues it"):
        study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=1)
    with pytest.raises(OptionError, match=r"suggested with .* high 2.*declared with .* high 1"):
        Study({"x": Float(0, 1)}, "fifo").optimize(lambda trial: trial.suggest_float("x", 0, 2), n_trials=1)
    with pytest.raises(OptionError, match="'z' is not in the config of trial 0: the space has x"):
        Study({"x": Float(0, 1)}, "fifo").optimize(lambda trial: trial.suggest_float("z", 0, 2), n_trials=1)


def test_a_parameter_keeps_its_range() -> None:
    study = create_study()
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=2)
    with pytest.raises(OptionError, match=r"'x' is suggested with .*high 2.*keeps its range.*another name"):
        study.optimize(lambda trial: trial.suggest_float("x", 0, 2), n_trials=2)
    assert study.trials[2].state is TrialState.FAIL
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=1)
    assert len(study.trials) == 4

    def twice(trial: ActiveTrial) -> float:
        assert trial.suggest_int("n", 1, 9) == trial.suggest_int("n", 1, 9)
        return trial.suggest_int("n", 2, 9)

    with pytest.raises(OptionError, match="'n' is suggested with"):
        create_study().optimize(twice, n_trials=1)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "the objective returned None: return one number"),
        ("much", "the objective returned 'much'"),
        ((1.0, 2.0), r"the objective returned \(1.0, 2.0\)"),
    ],
)
def test_a_value_that_is_no_number_is_an_error(value: Any, message: str) -> None:
    study = create_study()
    with pytest.raises(OptionError, match=message):
        study.optimize(lambda trial: value, n_trials=3)  # noqa: ARG005
    assert [trial.state for trial in study.trials] == [TrialState.FAIL]
    with pytest.raises(OptionError, match=r"no trial of the study .* has a value; 1 failed, the first with"):
        _ = study.best_value


def test_nan_fails_a_trial_and_the_next_one_begins(caplog: pytest.LogCaptureFixture) -> None:
    study = create_study()
    with caplog.at_level(logging.WARNING):
        study.optimize(
            lambda trial: nan if trial.number == 1 else float(np.float32(trial.number)), n_trials=3
        )
    assert [trial.state for trial in study.trials] == [
        TrialState.COMPLETE,
        TrialState.FAIL,
        TrialState.COMPLETE,
    ]
    assert "trial 1 failed: the value is NaN" in caplog.text
    assert study.best_value == 0
    study.optimize(lambda trial: inf, n_trials=1)  # noqa: ARG005
    assert study.trials[3].value == inf


def test_an_error_of_the_objective_is_raised_or_caught() -> None:
    def fails(trial: ActiveTrial) -> float:
        trial.suggest_float("x", 0, 1)
        raise KeyError("nope")

    study = create_study()
    with pytest.raises(KeyError, match="nope"):
        study.optimize(fails, n_trials=3)
    study.optimize(fails, n_trials=2, catch=(KeyError,))
    study.optimize(fails, n_trials=1, catch=Exception)
    assert [trial.error for trial in study.trials] == ["KeyError: 'nope'"] * 4
    assert "in fails" in study.trials[0].traceback
    assert all(list(trial.params) == ["x"] for trial in study.trials)  # what failed is recorded, too


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_trials": 0}, "n_trials = 0: give a whole number from 1"),
        ({"n_trials": 1.5}, "n_trials = 1.5"),
        ({"timeout": 0}, "timeout = 0: give a number of seconds above 0"),
        ({"n_trials": 1, "n_jobs": 0}, "n_jobs = 0"),
        ({"n_trials": 1, "callbacks": [3]}, r"callbacks = \[3\]: give functions"),
    ],
)
def test_arguments_out_of_range_are_rejected(arguments: dict[str, Any], message: str) -> None:
    study = create_study()
    with pytest.raises(OptionError, match=message):
        study.optimize(branches, **arguments)
    with pytest.raises(OptionError, match="give a function of a trial"):
        study.optimize(3, n_trials=1)  # type: ignore[arg-type]
    assert not study.trials


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"direction": "up"}, "direction = 'up'"),
        ({"scheduler": "dehb"}, "'dehb' needs a space that is declared"),
        ({"scheduler": "pbt"}, "'pbt' needs a space"),
        ({"searcher": "grid"}, "'grid' needs a space"),
    ],
)
def test_invalid_studies_without_a_space_are_rejected(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        create_study(**arguments)
    with pytest.raises(OptionError, match=r"is not declared: call Study\.optimize"):
        create_study().run(lambda config: 0)  # noqa: ARG005


def test_callbacks_receive_each_trial_and_may_stop_the_call() -> None:
    heard: list[tuple[int, float | None]] = []

    def callback(study: Study, trial: Trial) -> None:
        heard.append((trial.number, trial.value))
        if trial.number == 4:
            study.stop()

    study = create_study(direction="maximize")
    study.optimize(lambda trial: trial.number, n_trials=50, callbacks=[callback])
    assert heard == [(number, float(number)) for number in range(5)]
    assert study.best_trial.number == 4
    study.optimize(lambda trial: trial.number, n_trials=2)
    assert len(study.trials) == 7


def test_changes_of_returned_trials_have_no_effect() -> None:
    study = create_study()
    study.optimize(branches, n_trials=12)
    before = study.trials
    study.best_params.clear()
    study.trials[0].config.clear()
    assert study.trials == before
    study.optimize(branches, n_trials=1)


def test_enqueued_trials_come_first_and_may_be_partial() -> None:
    study = create_study()
    study.enqueue_trial({"model": "linear"})
    study.enqueue_trial({"model": "trees", "trees": 1, "depth0": 7})
    study.optimize(branches, n_trials=1)
    assert study.trials[0].params["model"] == "linear"
    with pytest.raises(OptionError, match="depth0 = 7 is outside the space"):
        study.optimize(branches, n_trials=1)


def test_threads_share_the_trials() -> None:
    barrier = threading.Barrier(3, timeout=20)
    threads: set[int] = set()

    def objective(trial: ActiveTrial) -> float:
        if trial.number < 3:
            barrier.wait()  # three trials run at once
        threads.add(threading.get_ident())
        return branches(trial)

    study = create_study()
    study.optimize(objective, n_trials=30, n_jobs=3)
    assert len(study.trials) == 30
    assert len(threads) == 3
    assert all(trial.state is TrialState.COMPLETE for trial in study.trials)


def test_an_error_in_one_thread_ends_the_call() -> None:
    def objective(trial: ActiveTrial) -> float:
        if trial.number == 5:
            raise RuntimeError("five")
        return branches(trial)

    study = create_study()
    with pytest.raises(RuntimeError, match="five"):
        study.optimize(objective, n_trials=1000, n_jobs=2)
    assert len(study.trials) < 20


def test_an_interrupted_trial_continues_with_the_same_values(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'study.db'}"
    values: list[float] = []

    def interrupted(trial: ActiveTrial) -> float:
        values.append(trial.suggest_float("x", 0, 1))
        if trial.number == 2:
            raise KeyboardInterrupt
        return values[-1]

    study = create_study(study_name="a", storage=url)
    with pytest.raises(KeyboardInterrupt):
        study.optimize(interrupted, n_trials=9)
    with pytest.raises(OptionError, match="exists already: give load_if_exists=True"):
        create_study(study_name="a", storage=url)
    again = create_study(study_name="a", storage=url, load_if_exists=True)
    again.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=7)
    assert len(again.trials) == 9
    assert again.trials[2].params == {"x": values[2]}
    loaded = load_study(study_name="a", storage=url)
    assert loaded.trials == again.trials
    assert loaded.space.described() == again.space.described()
    loaded.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=1)
    assert {len(row) for row in loaded.history()} == {6}


KILLED = """
import os, sys
from onlineauto.tune import create_study
from tests.tune.studies import records_of
def objective(trial):
    x = trial.suggest_float("x", 0, 1)
    if trial.number == 3:
        print(x, flush=True)
        os.kill(os.getpid(), 9)
    return x
create_study(study_name="a", storage=sys.argv[1]).optimize(objective, n_trials=9)
"""


def test_a_trial_of_a_killed_process_continues(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'study.db'}"
    done = subprocess.run([sys.executable, "-c", KILLED, url], capture_output=True, text=True, check=False)
    study = load_study(study_name="a", storage=url)
    assert len(study.trials) == 4
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=1)
    if sys.platform == "linux":  # elsewhere the lease has to expire first
        assert study.trials[3].params == {"x": float(done.stdout)}
        assert len(study.trials) == 4


def test_a_snapshot_has_the_suggested_configs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onlineauto.tune.replica._SNAPSHOT_AFTER", 10)
    store = MemoryStore()
    study = create_study(storage=store)
    study.optimize(branches, n_trials=40)
    assert store.snapshot() is not None
    again = load_study(study_name=study.name, storage=store)
    assert again.trials == study.trials
    assert again.space.described() == study.space.described()
    study.optimize(branches, n_trials=5)
    assert load_study(study_name=study.name, storage=store).trials == study.trials


def test_errors_of_a_trial_are_named() -> None:
    def objective(trial: ActiveTrial) -> float:
        with pytest.raises(OptionError, match="step = 0: give a number above 0"):
            trial.suggest_int("n", 1, 9, step=0)
        with pytest.raises(OptionError, match=r"step = 0\.5: does not go with log=True"):
            trial.suggest_float("r", 1, 9, step=0.5, log=True)
        with pytest.raises(OptionError, match=r"step = -1: give a whole number from 0"):
            trial.report(1.0, -1)
        with pytest.raises(OnlineautoError, match="not a name of a parameter"):
            trial.suggest_float(3, 0, 1)  # type: ignore[arg-type]
        return 0.0

    create_study().optimize(objective, n_trials=1)


@pytest.mark.parametrize(
    "record",
    [
        {"kind": "added", "trials": 3},
        {"kind": "added", "trials": [3]},
        {"kind": "added", "trials": [{"config": 1, "resource": 1, "value": 0.5}]},
        {"kind": "added", "trials": [{"config": {}, "resource": 0, "value": 0.5}]},
        {"kind": "added", "trials": [{"config": {}, "resource": 1, "value": nan}]},
        {"kind": "reported", "trial": 3, "attempt": 0, "step": 1, "value": 1.0, "suggested": 3},
        {"kind": "reported", "trial": 3, "attempt": 0, "step": 1, "value": 1.0, "suggested": {"config": {}}},
        {
            "kind": "reported",
            "trial": 3,
            "attempt": 0,
            "step": 1,
            "value": 1.0,
            "suggested": {"config": {}, "parameters": {"x": {"type": "float", "low": 2, "high": 1}}},
        },
    ],
)
def test_a_record_that_does_not_fit_is_skipped(record: dict[str, Any]) -> None:
    store = MemoryStore()
    study = create_study(scheduler="fifo", storage=store)
    study.optimize(branches, n_trials=3)
    job = study.ask()
    store.append(record)
    study.refresh()
    assert [skip.kind for skip in study.skipped] == [record["kind"]]
    assert job is not None
    study.tell(job, 1.0)
    study.optimize(branches, n_trials=2)
    assert len(study.trials) == 6


@pytest.mark.parametrize("name", ["tpe", "gp", "cmaes", "random"])
@pytest.mark.parametrize("seed", range(4))
def test_a_changed_config_leads_to_the_state_of_a_new_beginning(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    parameters: dict[str, Any] = {
        "x": Float(0, 1),
        "n": Int(0, 3),
        "word": Categorical(["a", "b"]),
        "y": Float(0, 1),
        "z": Int(1, 2),
    }
    begun = 0

    def make() -> Searcher:
        nonlocal begun
        begun += 1
        return SEARCHERS[name]()

    searcher = OpenSearcher(make)
    searcher.begin(OpenSpace(), seed=seed)
    for step in range(16 if name == "gp" else 40):
        proposed = searcher.propose(step, np.random.default_rng(step)) or {}
        searcher.on_ask(proposed)
        config = {
            key: proposed.get(key, parameter.draw(rng))
            for key, parameter in parameters.items()
            if key in ("x", "n")
            or (key == "word" and seed % 2)
            or (key == "y" and rng.random() < 0.5)
            or (key == "z" and seed > 1)
        }
        if config.get("n") == 2:
            config.pop("z", None)
        if config != proposed:
            declared = {key: parameters[key] for key in config if key not in searcher.parameters}
            searcher.on_suggested(proposed, config, declared)
        else:
            config = proposed
        searcher.on_result(config, 1, float(config["x"] + rng.random()))
        rebuilt = OpenSearcher(SEARCHERS[name])
        rebuilt.begin(OpenSpace(), seed=seed)
        rebuilt.recall(searcher.remember())
        described = [other.known_space and other.known_space.described() for other in (searcher, rebuilt)]
        assert described[0] == described[1]
        rngs = [np.random.default_rng(step + 1) for _ in range(2)]
        next_proposals = [
            other.propose(step + 1, rng) for other, rng in zip((searcher, rebuilt), rngs, strict=True)
        ]
        assert next_proposals[0] == next_proposals[1], step
    assert begun < 14


def test_a_searcher_that_cannot_change_a_config_begins_again() -> None:
    class Plain(Searcher):
        name = "plain"

        def begin(self, space: Space, *, seed: int) -> None:
            super().begin(space, seed=seed)
            self.seen: list[Any] = []

        def propose(self, number: int, rng: np.random.Generator) -> Any:
            del number
            return self.space.decode(rng.random(self.space.width))

        def on_ask(self, config: Any) -> None:
            self.seen.append(config)

    study = create_study(scheduler="fifo", searcher=Plain())
    study.optimize(
        lambda trial: (
            trial.suggest_float("x", 0, 1)
            + (trial.suggest_float("y", 0, 1) if trial.params["x"] < 0.5 else 0)
        ),
        n_trials=12,
    )
    searcher: Any = study._replica.progress.searcher
    assert searcher.known_space is not None
    assert [dict(config) for config in searcher._inner.seen] == [trial.params for trial in study.trials]
