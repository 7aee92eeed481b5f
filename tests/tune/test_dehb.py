"""DEHB: its strategies, and laws that other implementations violate."""

from __future__ import annotations

import json
from math import inf
from typing import Any

import numpy as np
import pytest

from onlineauto.errors import OptionError
from onlineauto.testing import check_scheduler
from onlineauto.tune import Categorical, Float, Int, State, Study
from onlineauto.tune.schedulers import Suggestion
from onlineauto.tune.schedulers.dehb import Dehb
from onlineauto.tune.schedulers.evolution import STRATEGIES, mutant, offspring
from onlineauto.tune.schedulers.rungs import hpbandster
from onlineauto.tune.searchers import SEARCHERS, Searcher
from onlineauto.tune.store import MemoryStore
from tests.tune.playing import SPACE, begun, next_jobs
from tests.tune.studies import asked, records_of

pytestmark = pytest.mark.lane("ci")


def new_scheduler(
    variant: str = "population", *, brackets: int | None = None, ladder: tuple[int, int] = (1, 27)
) -> tuple[Dehb, Searcher]:
    scheduler = Dehb(variant, brackets=brackets)
    return scheduler, begun(scheduler, min_resource=ladder[0], max_resource=ladder[1])


def running(scheduler: Dehb, job: Suggestion) -> tuple[int, int, int, int, int | None]:
    """Return the bracket, rung, level and slot of a running job, and its target."""
    (bracket, (rung, level, slot, _)), target = scheduler.state_dict()["running"][str(job.trial)]
    return bracket, rung, level, slot, target


def bracket_state(scheduler: Dehb, number: int) -> dict[str, Any]:
    state: dict[str, Any] = scheduler.state_dict()["brackets"]["brackets"][str(number)]
    return state


def loss_of(job: Suggestion) -> float:
    return sum((float(str(value)) - 0.3) ** 2 for value in job.config.values()) + 1 / job.resource


@pytest.mark.parametrize("variant", ["population", "slots"])
def test_losses_of_different_levels_are_never_compared(variant: str) -> None:
    """A promoted trial keeps the loss of each level."""
    scheduler, searcher = new_scheduler(variant)
    seen: dict[int, set[float]] = {}
    for step in range(400):
        job = scheduler.suggest(searcher)
        assert job is not None
        loss = job.resource * 1000.0 + step % 7
        seen.setdefault(job.resource, set()).add(loss)
        scheduler.on_result(job.trial, job.resource, loss)
    state = scheduler.state_dict()
    if variant == "population":
        for level, population in state["parents"].items():
            assert set(population["losses"]) - {inf} <= seen[int(level)]
    for number, bracket in state["brackets"]["brackets"].items():
        for rung, losses in enumerate(bracket["losses"]):
            level = 3 ** (int(number) % 4 + rung)
            assert {loss for loss in losses if loss is not None} <= seen[level]


@pytest.mark.parametrize("variant", ["population", "slots"])
@pytest.mark.parametrize("brackets", [1, 2, 3, 4])
def test_dehb_runs_with_any_number_of_brackets(variant: str, brackets: int) -> None:
    scheduler, searcher = new_scheduler(variant, brackets=brackets)
    for _ in range(300):
        (job,) = next_jobs(scheduler, searcher, 1)
        scheduler.on_result(job.trial, job.resource, loss_of(job))
    assert scheduler.rounds >= 2


def test_a_parent_slot_has_the_level_of_its_slot() -> None:
    scheduler, searcher = new_scheduler("slots", brackets=3)
    levels: dict[int, set[int]] = {}
    for _ in range(400):
        (job,) = next_jobs(scheduler, searcher, 1)
        levels.setdefault(job.trial, set()).add(job.resource)
        *_, level, _, target = running(scheduler, job)
        if target is not None:
            assert level in levels[target]
        scheduler.on_result(job.trial, job.resource, loss_of(job))


@pytest.mark.parametrize("variant", ["population", "slots"])
def test_a_job_ends_once_and_is_then_forgotten(variant: str) -> None:
    scheduler, searcher = new_scheduler(variant)
    for _ in range(300):
        (job,) = next_jobs(scheduler, searcher, 1)
        assert len(scheduler.state_dict()["running"]) == 1
        scheduler.on_result(job.trial, job.resource, loss_of(job))
    assert scheduler.state_dict()["running"] == {}
    with pytest.raises(KeyError):
        scheduler.on_result(job.trial, job.resource, 0.0)


@pytest.mark.parametrize("variant", ["population", "slots"])
def test_dehb_continues_if_all_trials_fail(variant: str) -> None:
    scheduler, searcher = new_scheduler(variant)
    for _ in range(200):
        (job,) = next_jobs(scheduler, searcher, 1)
        assert scheduler.on_error(job.trial) == {}
    for _ in range(200):
        (job,) = next_jobs(scheduler, searcher, 1)
        scheduler.on_result(job.trial, job.resource, loss_of(job))


def test_a_child_without_a_parent_slot_remains() -> None:
    """The child is not compared with a trial of another level, however large its loss is."""
    scheduler, searcher = new_scheduler("slots")
    jobs = next_jobs(
        scheduler, searcher, 28
    )  # 27 of the first bracket, which is not complete, and one of the second
    for job in jobs[:27]:
        scheduler.on_result(job.trial, job.resource, 0.0)
    child = jobs[27]
    assert child.resource == 3
    assert running(scheduler, child)[-1] is None
    scheduler.on_result(child.trial, child.resource, 9e9)
    state = bracket_state(scheduler, 1)
    assert (state["losses"][0][0], state["trials"][0][0]) == (9e9, child.trial)


def test_a_result_is_recorded_in_the_bracket_of_its_job() -> None:
    """With forty running jobs, the second rung of the first bracket is still promoted."""
    scheduler, searcher = new_scheduler("population")
    jobs = next_jobs(scheduler, searcher, 60)
    first = [job for job in jobs if running(scheduler, job)[0] == 0]
    assert len(first) == 27
    assert len({running(scheduler, job)[0] for job in jobs}) > 4
    for job in first:
        scheduler.on_result(job.trial, job.resource, loss_of(job))
    promoted = next_jobs(scheduler, searcher, 9)
    assert {job.resource for job in promoted} == {3}
    assert {job.trial for job in promoted} <= {job.trial for job in first}
    assert all(job.resume_from == (job.trial, 1) for job in promoted)


def test_offspring_does_not_change_its_parents() -> None:
    rng = np.random.default_rng(0)
    pool = [rng.random(6) for _ in range(8)]
    target = rng.random(6)
    before = [each.copy() for each in (*pool, target)]
    for _ in range(100):
        offspring(target, pool, [1, 2, 3], rng, factor=0.5, rate=0.5)
    assert all((old == new).all() for old, new in zip(before, [*pool, target], strict=True))


def test_dehb_has_all_rungs_of_a_long_ladder() -> None:
    scheduler, searcher = new_scheduler("population", ladder=(1, 243))
    assert {job.resource for job in next_jobs(scheduler, searcher, 500)} == {3**rung for rung in range(6)}


@pytest.mark.parametrize("variant", ["population", "slots"])
@pytest.mark.parametrize("workers", [1, 4])
def test_dehb_continues_from_its_state(variant: str, workers: int) -> None:
    """A restored state gives the same jobs, also while four workers run."""
    scheduler, searcher = new_scheduler(variant)
    jobs: list[Suggestion] = []
    for _ in range(150):
        jobs += next_jobs(scheduler, searcher, workers - len(jobs))
        job = jobs.pop(0)
        scheduler.on_result(job.trial, job.resource, loss_of(job))
    again, other = new_scheduler(variant)
    again.load_state_dict(json.loads(json.dumps(scheduler.state_dict())))
    other.load_state_dict(json.loads(json.dumps(searcher.state_dict())))
    for _ in range(100):
        jobs += (new := next_jobs(scheduler, searcher, workers - len(jobs)))
        assert next_jobs(again, other, len(new)) == new
        job = jobs.pop(0)
        changed = scheduler.on_result(job.trial, job.resource, loss_of(job))
        assert again.on_result(job.trial, job.resource, loss_of(job)) == changed


def test_a_value_is_one_small_record() -> None:
    """The size of a record does not grow with the study."""
    study = Study({"x": Float(0, 1)}, scheduler="dehb")
    for _ in range(300):
        job = asked(study)
        study.tell(job, 1.0)
    records = records_of(study)
    assert len(records) == 2 * 300
    assert max(len(json.dumps(record)) for record in records) < 250


@pytest.mark.parametrize("variant", ["population", "slots"])
def test_an_objective_that_raises_fails_only_its_trial(variant: str) -> None:
    calls = [0]

    def raising(config: object, resource: int) -> float:
        calls[0] += 1
        if calls[0] == 5:
            raise ArithmeticError("the fifth")
        return 1.0 / resource

    study = Study({"x": Float(0, 1)}, scheduler=Dehb(variant), max_trials=50)
    best = study.run(raising)
    assert best is not None
    errored = [trial for trial in study.trials if trial.state is State.ERRORED]
    assert [trial.error for trial in errored] == ["ArithmeticError: the fifth"]
    assert len(study.trials) == 50


def test_the_first_bracket_has_as_many_new_configs_as_its_first_rung() -> None:
    scheduler, searcher = new_scheduler("population", ladder=(3, 27))
    populations = scheduler.state_dict()["parents"]
    assert {level: len(state["codes"]) for level, state in populations.items()} == {"3": 9, "9": 3, "27": 3}
    for _ in range(sum(size for size, _ in hpbandster(3, 27, 3)[0])):
        (job,) = next_jobs(scheduler, searcher, 1)
        scheduler.on_result(job.trial, job.resource, loss_of(job))
    assert len(scheduler.state_dict()["configs"]) == 9


def test_the_first_bracket_of_slots_halves_the_configs_of_the_searcher() -> None:
    scheduler, searcher = new_scheduler("slots")
    other = SEARCHERS["random"]()
    other.begin(SPACE, seed=0)
    jobs = next_jobs(scheduler, searcher, 27)
    assert [job.config for job in jobs] == [other.ask() for _ in jobs]
    for job in jobs:
        scheduler.on_result(job.trial, job.resource, loss_of(job))
    best = sorted(jobs, key=loss_of)[:9]
    assert [job.trial for job in next_jobs(scheduler, searcher, 9)] == [job.trial for job in best]


def test_an_equal_child_replaces_a_member_but_not_the_trial_of_a_slot() -> None:
    for variant in ("population", "slots"):
        scheduler, searcher = new_scheduler(variant)
        for _ in range(300):
            (job,) = next_jobs(scheduler, searcher, 1)
            bracket, rung, level, slot, target = running(scheduler, job)
            scheduler.on_result(job.trial, job.resource, 1.0)
            if variant == "population":
                assert scheduler.state_dict()["parents"][str(level)]["trials"][target] == job.trial
            elif bracket > 0 and target is not None:
                assert bracket_state(scheduler, bracket)["trials"][rung][slot] != job.trial


def test_dehb_ends_in_a_small_space() -> None:
    study = Study({"n": Int(0, 3), "word": Categorical(["a", "b"])}, scheduler="dehb", max_resource=9)
    jobs = 0
    while (job := study.ask()) is not None:
        study.tell(job, float(job.trial))
        jobs += 1
    assert study.is_done
    assert len(study.trials) <= 8
    assert len({tuple(trial.config.items()) for trial in study.trials}) == len(study.trials)


@pytest.mark.parametrize("strategy", STRATEGIES[2::3])
def test_a_strategy_is_a_scheduler_that_improves(strategy: str) -> None:
    check_scheduler(lambda: Dehb(strategy=strategy))
    study = Study(
        {"x": Float(0, 1), "y": Float(0, 1)}, Dehb(strategy=strategy), max_resource=9, max_trials=120
    )
    best = study.run(lambda config: (config["x"] - 0.3) ** 2 + (config["y"] - 0.7) ** 2)
    assert best is not None
    assert best.value is not None
    assert best.value < 0.02


def test_strategies_have_the_formulas_of_differential_evolution() -> None:
    parents = [np.array([each]) for each in (0.5, 0.4, 0.2, 0.6, 0.3)]
    target, best, fill = np.array([0.9]), np.array([0.1]), np.array([0.0])
    expected = {"rand1": 0.6, "rand2": 0.75, "rand2dir": 0.475, "best1": 0.15, "best2": None}
    expected |= {"currenttobest1": 0.55, "randtobest1": 0.4}
    for name, value in expected.items():
        found = mutant(parents, 0.5, fill, strategy=f"{name}_bin", target=target, best=best)
        assert found.tolist() == pytest.approx([0.0 if value is None else value])  # outside: filled


def test_slots_have_one_strategy() -> None:
    with pytest.raises(OptionError, match="strategy = 'best1_bin': valid for slots are rand1_bin"):
        Dehb("slots", strategy="best1_bin")


@pytest.mark.parametrize("searcher", ["random", "quasi"])
def test_dehb_records_that_a_small_space_is_exhausted(searcher: str) -> None:
    space = {"c": Categorical(["a", "b"]), "k": Int(1, 3, when={"c": ["a"]})}
    for seed in range(4):
        store = MemoryStore()
        study = Study(space, "dehb", searcher, max_resource=3, seed=seed, storage=store)
        held = []
        while (job := study.ask()) is not None:
            held.append(job)
        for job in held:
            study.tell(job, 0.5)
            study.ask()
        study.enqueue({"c": "b"})
        for _ in range(3):
            study.ask()
        fresh = Study.load("study", storage=store)
        assert fresh.trials == study.trials
        assert not list(fresh.skipped)
