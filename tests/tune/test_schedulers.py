"""Schedulers: the public conformance suite, and the rules of each scheduler."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlineauto.errors import OptionError
from onlineauto.testing import check_scheduler
from onlineauto.tune import (
    SCHEDULERS,
    SEARCHERS,
    Decision,
    Float,
    Scheduler,
    Searcher,
    Setting,
    State,
    Study,
    Suggestion,
)
from onlineauto.tune.schedulers.asha import Asha
from onlineauto.tune.schedulers.dehb import Dehb
from onlineauto.tune.schedulers.fifo import FifoScheduler
from onlineauto.tune.schedulers.hyperband import Hyperband
from onlineauto.tune.schedulers.median import Median
from onlineauto.tune.schedulers.pbt import Pbt
from onlineauto.tune.schedulers.rungs import mislead, quantile
from tests.tune.playing import SPACE, begun, next_jobs

pytestmark = pytest.mark.lane("sampled")

C, S = Decision.CONTINUE, Decision.STOP


def next_job(scheduler: Scheduler, searcher: Searcher) -> Suggestion:
    (job,) = next_jobs(scheduler, searcher)
    return job


@pytest.mark.ci
@pytest.mark.parametrize(
    "make",
    [
        *SCHEDULERS.values(),
        partial(Hyperband, "hpbandster", brackets=2),
        partial(Dehb, "slots"),
        partial(Asha, "stopping"),
        partial(Pbt, 3, interval=2),
    ],
)
def test_conformance(make: Callable[[], Scheduler]) -> None:
    check_scheduler(make)


class Forgetful(FifoScheduler):
    """Its state does not contain that there are no more configs."""

    name = "forgetful"

    def state_dict(self) -> dict[str, Any]:
        return super().state_dict() | {"exhausted": False, "trials": 0}


def test_the_suite_finds_an_incomplete_state() -> None:
    with pytest.raises(AssertionError, match="the same calls give"):
        check_scheduler(Forgetful)


def test_a_rung_is_compared_at_its_level() -> None:
    scheduler = Hyperband()
    searcher = begun(scheduler, max_resource=9)
    job = next_job(scheduler, searcher)
    assert scheduler.on_report(job.trial, 1, 0.1) is S
    with pytest.raises(ValueError, match="ended at 3, not at its rung's level 1"):
        scheduler.on_result(job.trial, 3, 0.1)


@pytest.mark.parametrize("limit", [1, 5, 20, 100])
def test_hyperband_ends_when_there_are_no_more_trials(limit: int) -> None:
    scheduler = Hyperband()
    searcher = begun(scheduler, limit=limit)
    states: dict[int, State] = {}
    while (job := scheduler.suggest(searcher)) is not None:
        states |= scheduler.on_result(job.trial, job.resource, job.trial * 0.1)
    assert scheduler.is_done
    assert states == dict.fromkeys(range(limit), State.TERMINATED)


@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=40), st.floats(0, 1))
def test_quantile_equals_that_of_numpy(values: list[float], share: float) -> None:
    assert quantile(sorted(values), share) == np.quantile(values, share)


def test_the_quantile_of_a_rung_is_that_of_its_losses() -> None:
    rng = np.random.default_rng(0)
    for eta in range(2, 7):
        for mode in (1, -1):
            scheduler = Asha("stopping")
            searcher = begun(scheduler, eta=eta, max_resource=eta**2)
            values = rng.standard_normal(20)
            for value in values.tolist():
                job = next_job(scheduler, searcher)
                scheduler.on_report(job.trial, 1, mode * value)
            expected = np.quantile(values, 1 / eta if mode == 1 else 1 - 1 / eta)
            assert mode * scheduler.quantile(0) == pytest.approx(expected, rel=1e-12)


def test_pbt_copies_the_best_and_ends_the_worst() -> None:
    scheduler = Pbt(population=2, interval=1, share=0.5)
    searcher = begun(scheduler, max_resource=9)
    first, second = next_job(scheduler, searcher), next_job(scheduler, searcher)
    assert (first.resume_from, second.resume_from) == (None, None)
    assert scheduler.suggest(searcher) is None
    assert scheduler.on_report(0, 1, 0.0) is C
    assert scheduler.on_report(1, 1, 1.0) is S
    assert scheduler.on_result(1, 1, 1.0) == {1: State.TERMINATED}
    copy = next_job(scheduler, searcher)
    assert (copy.trial, copy.resume_from, copy.resource) == (2, (0, 1), 9)
    assert copy.config != first.config
    SPACE.check(copy.config)
    assert scheduler.on_report(2, 2, -1.0) is C
    assert scheduler.on_report(0, 2, 0.0) is S
    scheduler.on_result(0, 2, 0.0)
    again = next_job(scheduler, searcher)
    assert again.resume_from == (2, 2)
    assert again.config != copy.config


@pytest.mark.parametrize("workers", [1, 2, 3, 4, 8])
def test_pbt_has_its_whole_population_with_any_number_of_workers(workers: int) -> None:
    """Copies must not replace members that have not begun."""
    scheduler = Pbt(population=8, interval=2)
    searcher = begun(scheduler, max_resource=8)
    running: dict[int, int] = {}  # by trial: its step
    fresh, compared = set[int](), dict[int, set[int]]()
    draw = Random(workers)
    while not scheduler.is_done:
        job = scheduler.suggest(searcher) if len(running) < workers else None
        if job is not None:
            if job.resume_from is None:
                fresh.add(job.trial)
            running[job.trial] = 0 if job.resume_from is None else job.resume_from.resource
            continue
        trial, loss = draw.choice(list(running)), draw.random()
        running[trial] = step = running[trial] + 1
        compared.setdefault(step, set()).add(trial)
        if scheduler.on_report(trial, step, loss) is S:
            del running[trial]
            scheduler.on_result(trial, step, loss)
    assert len(fresh) == 8
    assert fresh <= compared[2]
    assert len(compared[8]) <= 8


@pytest.mark.parametrize(
    "make",
    [
        lambda: Hyperband("other"),
        lambda: Dehb("other"),
        lambda: Dehb(factor=0.0),
        lambda: Asha("other"),
        lambda: Median(0),
        lambda: Pbt(1),
        lambda: Setting(space=SPACE, eta=1),
        lambda: Setting(space=SPACE, min_resource=0),
        lambda: Setting(space=SPACE, min_resource=9, max_resource=3),
        lambda: Setting(space=SPACE, max_resource=1.5),  # type: ignore[arg-type]
    ],
)
def test_options_out_of_range_are_rejected(make: Callable[[], object]) -> None:
    with pytest.raises(OptionError, match=r"valid|whole number|at least 2"):
        make()


@pytest.mark.parametrize("name", ["hyperband", "dehb", "asha"])
def test_a_ladder_of_one_rung_is_rejected(name: str) -> None:
    with pytest.raises(OptionError, match="let max_resource be 3 or more"):
        begun(SCHEDULERS[name](), max_resource=1)


@pytest.mark.parametrize("side_by_side", [1, 3, 8])
@pytest.mark.parametrize("mode", ["min", "max"])
def test_pbt_ends_if_the_first_values_are_the_best(mode: str, side_by_side: int) -> None:
    """Without `max_trials`, each member and its successors train for `max_resource` together."""
    study = Study({"x": Float(0, 1)}, "pbt", max_resource=9, mode=mode)
    sign, steps = 1 if mode == "min" else -1, 0
    running: list[tuple[Any, int]] = []
    while not study.is_done and steps < 1000:
        while len(running) < side_by_side and (job := study.ask()) is not None:
            running.append((job, job.resume_from.resource if job.resume_from else 0))
        job, step = running.pop(0)
        step, steps = step + 1, steps + 1
        value = sign * (step + job.config["x"])
        if study.report(job, step, value) == "STOP":
            study.tell(job, value)
        else:
            running.append((job, step))
    assert study.is_done
    assert steps == 8 * 9
    assert len(study.trials) > 8


def _begun_at(curve: Callable[[float, int], float], n_jobs: int = 150) -> tuple[list[int], Asha, Searcher]:
    """Return the first levels of trials of ASHA with curves of a number, in their order."""
    setting = Setting(space=SPACE, max_resource=27)
    scheduler, searcher = Asha(), SEARCHERS["random"]()
    searcher.begin(setting.space, seed=0)
    scheduler.begin(setting)
    firsts = []
    for _ in range(n_jobs):
        job = scheduler.suggest(searcher)
        assert job is not None
        if job.resume_from is None:
            firsts.append(job.resource)
        code = float(setting.space.encode(job.config)[0])
        scheduler.on_result(job.trial, job.resource, curve(code, job.resource))
        copy = Asha()
        copy.begin(setting)
        copy.load_state_dict(json.loads(json.dumps(scheduler.state_dict())))
        assert copy.state_dict() == scheduler.state_dict()
    return firsts, scheduler, searcher


def test_asha_leaves_a_rung_whose_losses_mislead() -> None:
    parallel, _, searcher = _begun_at(lambda x, level: x + 1 / level)
    assert set(parallel) == {1}
    assert searcher.lowest == 1
    noise = np.random.default_rng(0)
    crossing, _, searcher = _begun_at(lambda x, level: float(noise.random()) if level == 1 else x + 1 / level)
    n_before = crossing.index(3)
    assert crossing == [1] * n_before + [3] * (len(crossing) - n_before)
    assert 20 < n_before < 60
    assert searcher.lowest == 3


def test_rungs_mislead_only_with_enough_trials() -> None:
    rising = [(float(at), float(at % 4 + at)) for at in range(12)]
    assert not mislead(rising)
    falling = [(before, -after) for before, after in rising]
    assert mislead(falling)
    assert not mislead(falling[:7])
