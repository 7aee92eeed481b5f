"""Conventions of other tuners: steps from 0, one call per config, DEHB's first rung, PBT's turns, errors."""

from __future__ import annotations

import logging
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onlineauto.cli.main import main
from onlineauto.tune import Categorical, Float, Int, Searcher, State, Study
from onlineauto.tune.schedulers.dehb import Dehb
from onlineauto.tune.schedulers.pbt import Pbt
from onlineauto.tune.workers.trainable import takes_config_only
from tests.tune.studies import asked, state_of

SPACE = {"x": Float(0, 1)}
SMALL = {"a": Int(0, 3), "b": Categorical(["x", "y", "z"])}


def from_zero(config: Any, resource: int, report: Any) -> None:
    """Count epochs from 0, and continue from a checkpoint."""
    done = report.saved or 0
    for epoch in range(done, resource):
        report(float(config["x"]) + epoch, step=epoch, save=epoch + 1)


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("scheduler", ["hyperband", "fifo"])
def test_steps_may_be_counted_from_zero(scheduler: str, workers: int, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    study = Study({"x": Categorical([0.0, 0.5])}, scheduler, storage=url, max_resource=9, max_trials=4)
    best = study.run(from_zero, workers=workers)
    assert best is not None
    assert best.values[9] - best.config["x"] == 8  # type: ignore[operator]
    steps = [(row["resource"], row["value"] - row["config_x"] + 1) for row in study.history()]
    assert all(step == counted for step, counted in steps)
    assert {trial.state for trial in study.trials} <= {State.TERMINATED}


@pytest.mark.parametrize("step", [1.5, -1, "2", None.__class__, float("nan")])
def test_an_invalid_step_fails_only_its_trial(step: Any) -> None:
    def trains(config: Any, resource: int, report: Callable[..., None]) -> None:
        report(1.0, step=step if config["n"] == 1 else resource)

    study = Study({"n": Int(0, 3)}, "fifo", "grid", max_resource=9)
    study.run(trains)
    assert [trial.state for trial in study.trials].count(State.TERMINATED) == 3
    assert "a step is a whole number, 0 or more" in study.trials[1].error


@pytest.mark.parametrize("scheduler", ["hyperband", "race", "asha", "dehb"])
@pytest.mark.parametrize("most", [5, 30])
def test_a_function_of_the_config_alone_is_called_once_for_a_config(scheduler: str, most: int) -> None:
    calls: Counter[Any] = Counter()

    def f(config: Any) -> float:
        calls[config["x"]] += 1
        return float((config["x"] - 0.3) ** 2)

    study = Study(SPACE, scheduler, max_trials=most)
    best = study.run(f)
    assert best is not None
    assert best.resource > 1
    assert len(calls) == sum(calls.values()) == len(study.trials) == most
    assert all(len({*trial.values.values()}) <= 1 for trial in study.trials)


def test_a_function_of_the_config_alone_ends_with_its_round() -> None:
    calls: list[Any] = []
    study = Study(SPACE, max_resource=9)

    def f(config: Any) -> float:
        calls.append(config)
        return float(config["x"])

    study.run(f)
    assert study.rounds == 1
    assert len(calls) == len(study.trials) == 9 + 5 + 3


def test_a_function_of_the_resource_is_called_at_each_rung() -> None:
    assert takes_config_only(lambda config: 0)  # noqa: ARG005
    assert not takes_config_only(lambda config, resource: 0)  # noqa: ARG005
    assert not takes_config_only(lambda *_: 0)
    calls: list[int] = []

    def f(config: Any, resource: int) -> float:
        calls.append(resource)
        return 1.0

    Study(SPACE, max_resource=9, max_trials=9).run(f)
    assert sorted({*calls}) == [1, 3, 9]


class Counts(Searcher):
    """Counts its proposals."""

    name = "counts"
    asked = 0

    def propose(self, number: int, rng: Any) -> Any:  # noqa: ARG002
        Counts.asked += 1
        return {"a": 1, "b": "x"}


@pytest.mark.parametrize("variant", ["population", "slots"])
def test_a_named_searcher_is_asked_for_each_slot_of_dehbs_first_rung(variant: str) -> None:
    Counts.asked = 0
    scheduler = Dehb(variant, allow_duplicates=True)
    study = Study(SMALL, scheduler, Counts(), max_resource=27)
    for number in range(27):
        job = asked(study)
        assert job.config == {"a": 1, "b": "x"}
        assert job.resource == 1
        study.tell(job, float(number))
    assert Counts.asked == 27


@pytest.mark.parametrize("variant", ["population", "slots"])
@pytest.mark.parametrize("searcher", [None, "random", "tpe"])
def test_dehbs_first_rung_has_vectors_not_encoded_configs(variant: str, searcher: str | None) -> None:
    study = Study(SMALL, Dehb(variant, allow_duplicates=True), searcher, max_resource=27)
    for number in range(27):
        study.tell(asked(study), float(number))
    codes = state_of(study)["scheduler"]["codes"][:27]
    assert len(set(map(tuple, codes))) == 27
    space = study.space
    assert [space.decode(code) for code in codes] == [trial.config for trial in study.trials[:27]]
    if searcher is None:
        assert study.settings.searcher[0] == "random"
        assert np.mean(codes) == pytest.approx(0.5, abs=0.1)
        assert np.std(codes) == pytest.approx(12**-0.5, abs=0.05)


@pytest.mark.parametrize("variant", ["population", "slots"])
def test_a_study_of_dehb_keeps_the_searcher_that_it_recorded(variant: str) -> None:
    """The log has tpe, and a study with the default searcher continues with it."""
    from onlineauto.tune.store import MemoryStore

    store = MemoryStore()
    old = Study(SMALL, Dehb(variant), "tpe", storage=store, max_resource=9)
    for _ in range(12):
        job = asked(old)
        old.tell(job, 1.0)
    again = Study(SMALL, Dehb(variant), storage=store, max_resource=9)
    assert again.settings.searcher[0] == "tpe"
    assert [trial.config for trial in again.trials] == [trial.config for trial in old.trials]
    assert state_of(again)["scheduler"]["configs"] == [trial.config for trial in again.trials]


def test_the_parents_of_a_rung_are_the_same_while_it_fills() -> None:
    study = Study({"x": Float(0, 1), "y": Float(0, 1)}, Dehb("slots"), max_resource=9)
    jobs: list[Any] = []
    pools: dict[Any, set[Any]] = {}
    for number in range(200):
        while len(jobs) < 5 and (job := study.ask()) is not None:
            jobs.append(job)
            for bracket, rung, pool in state_of(study)["scheduler"]["parents"]["pools"]:
                pools.setdefault((bracket, rung), set()).add(tuple(pool))
        job = jobs.pop(number * 7 % len(jobs))
        study.tell(job, abs(job.config["x"] - 0.3))
    assert len(pools) > 10
    assert {len(seen) for seen in pools.values()} == {1}


class Rate:
    """A function whose loss decreases with its rate, and that continues from its checkpoint."""

    def __call__(self, config: Any, resource: int, report: Any) -> None:
        loss = 1.0 if report.saved is None else report.saved
        while report.step < resource:
            loss -= config["rate"] / 20
            report(loss, save=loss)


@pytest.mark.parametrize("workers", [0, 1])
def test_pbt_alternates_members_in_one_process(workers: int, tmp_path: Path) -> None:
    study = Study(
        {"rate": Float(0, 1)},
        Pbt(population=4),
        "random",
        max_resource=8,
        storage=f"sqlite:///{tmp_path}/s.db",
    )
    best = study.run(Rate() if not workers else "tests.tune.test_conventions:rate", workers=workers)
    assert best is not None
    assert best.resource == 8
    copies = [trial for trial in study.trials if trial.number >= 4]
    assert copies
    assert all(trial.resume_from is not None for trial in copies)
    first = [row["trial"] for row in study.history() if row["told"]][:4]
    assert first == [0, 1, 2, 3]  # each pauses after its first interval
    assert study.is_done
    assert {trial.state for trial in study.trials} == {State.TERMINATED}


def rate(config: Any, resource: int, report: Any) -> None:
    Rate()(config, resource, report)


def branches() -> tuple[dict[str, Any], Callable[[Any], float]]:
    """Return a space of two branches; the better one is found by few random configs."""
    space: dict[str, Any] = {"kind": Categorical(["a", "b"])}
    for place in range(2):
        space |= {f"{kind}{place}": Float(0, 1, when={"kind": kind}) for kind in "ab"}

    def loss(config: Any) -> float:
        if config["kind"] == "a":
            return 0.4 + 0.5 * float(sum((config[f"a{place}"] - 0.5) ** 2 for place in range(2)))
        return float(min(1.0, 2.5 * sum((config[f"b{place}"] - 0.7) ** 2 for place in range(2)) ** 0.5))

    return space, loss


def test_tpe_is_no_worse_than_random_configs_where_parameters_depend_on_others() -> None:
    space, loss = branches()
    best: dict[str, list[float]] = {"random": [], "tpe": []}
    for searcher, values in best.items():
        for seed in range(8):
            found = Study(space, "fifo", searcher, max_trials=100, seed=seed).run(loss)
            assert found is not None
            values.append(found.value or 0.0)
    assert np.mean(best["tpe"]) < np.mean(best["random"]) / 2
    assert sum(value > 0.35 for value in best["tpe"]) <= 1


@pytest.mark.parametrize("searcher", ["tpe", "random"])
@pytest.mark.parametrize("scheduler", ["hyperband", "asha", "fifo"])
def test_a_small_space_is_tried_before_anything_is_repeated(searcher: str, scheduler: str) -> None:
    study = Study(SMALL, scheduler, searcher, max_resource=9, max_trials=12)
    study.run(lambda config, *_: float(config["a"]))
    configs = {tuple(trial.config.items()) for trial in study.trials}
    assert len(study.trials) == 12
    assert len(configs) >= 11  # one may be drawn too rarely


def test_an_error_of_the_objective_is_reported_with_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    def fails(config: Any) -> float:
        return float(config["nope"])

    study = Study(SPACE, "fifo", max_trials=3)
    with caplog.at_level(logging.WARNING):
        assert study.run(fails) is None
    assert (
        "no trial of the study 'study' has a value; 3 failed, the first with KeyError: 'nope'" in caplog.text
    )
    assert "Study.trials[0].traceback says where" in caplog.text
    assert 'config["nope"]' in study.trials[0].traceback


@pytest.mark.parametrize("verb", ["tune", "worker"])
def test_commands_exit_with_an_error_if_no_trial_has_a_value(
    verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad_in_a_test.py").write_text("def bad(config, resource):\n    raise RuntimeError('no')\n")
    (tmp_path / "s.toml").write_text("rate = {type = 'float', low = 0, high = 1}\n")
    url = "sqlite:///s.db"
    if verb == "worker":
        Study({"rate": Float(0, 1)}, storage=url, max_trials=3)
        assert main(["worker", "--study", url, "--trainable", "bad_in_a_test:bad"]) == 1
    else:
        words = ["--trainable", "bad_in_a_test:bad", "--space", "s.toml", "--max_trials", "3"]
        assert main(["tune", *words]) == 1
        assert "no trial of study has a value" in capsys.readouterr().out


def leaves(config: Any, resource: int) -> float:
    sys.exit(0)


@pytest.mark.parametrize("workers", [0, 1])
def test_a_trainable_that_exits_fails_only_its_trial(workers: int, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    study = Study(SPACE, "fifo", max_trials=2, max_resource=1, storage=url)
    study.run(leaves, workers=workers)
    assert [trial.state for trial in study.trials] == [State.ERRORED] * 2
    assert "SystemExit" in study.trials[0].error
