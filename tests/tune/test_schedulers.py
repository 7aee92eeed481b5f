"""Schedulers: the suite that users have too, and the rules of each one."""

from __future__ import annotations

from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any

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
    Int,
    Scheduler,
    Setting,
    Space,
    State,
    Study,
)
from onlineauto.tune.schedulers.asha import Asha
from onlineauto.tune.schedulers.dehb import Dehb
from onlineauto.tune.schedulers.fifo import FifoScheduler
from onlineauto.tune.schedulers.hyperband import Hyperband
from onlineauto.tune.schedulers.median import Median
from onlineauto.tune.schedulers.pbt import Pbt
from onlineauto.tune.schedulers.rungs import quantile

if TYPE_CHECKING:
    from collections.abc import Callable

    from onlineauto.tune import Searcher, Suggestion

pytestmark = pytest.mark.lane("sampled")

SPACE = Space({"x": Float(0, 1), "n": Int(1, 100)})
C, S = Decision.CONTINUE, Decision.STOP


def new_searcher(scheduler: Scheduler, *, limit: int | None = None, **ladder: int) -> Searcher:
    searcher = SEARCHERS["random"]()
    searcher.begin(SPACE, seed=0)
    searcher.limit = limit
    scheduler.begin(Setting(space=SPACE, **ladder))
    return searcher


def asked(scheduler: Scheduler, searcher: Searcher) -> Suggestion:
    job = scheduler.suggest(searcher)
    assert job is not None
    return job


@pytest.mark.ci
@pytest.mark.parametrize(
    "make",
    [
        *SCHEDULERS.values(),
        partial(Hyperband, "hpbandster", 2),
        partial(Dehb, "slots"),
        partial(Asha, "stopping"),
        partial(Pbt, 3, 2),
    ],
)
def test_conformance(make: Callable[[], Scheduler]) -> None:
    check_scheduler(make)


class Forgetful(FifoScheduler):
    """Forgets in its state that it has no more configs."""

    name = "forgetful"

    def state_dict(self) -> dict[str, Any]:
        return super().state_dict() | {"exhausted": False, "trials": 0}


def test_the_suite_finds_a_state_that_is_not_in_the_state() -> None:
    with pytest.raises(AssertionError, match="the same calls give"):
        check_scheduler(Forgetful)


def test_hyperband_resumes_the_best_of_a_rung_and_ends_the_others() -> None:
    scheduler = Hyperband()
    searcher = new_searcher(scheduler, max_resource=9)
    jobs = [asked(scheduler, searcher) for _ in range(9)]
    assert {(job.resource, job.resume_from) for job in jobs} == {(1, None)}
    changes = [scheduler.on_result(job.trial, 1, abs(job.trial - 4.2)) for job in jobs]
    assert changes[:8] == [{trial: State.PAUSED} for trial in range(8)]
    assert changes[8] == {trial: State.TERMINATED for trial in range(9) if trial not in (3, 4, 5)}
    resumed = [asked(scheduler, searcher) for _ in range(3)]
    assert [(job.trial, job.resource, job.resume_from) for job in resumed] == [
        (trial, 3, (trial, 1)) for trial in (4, 5, 3)
    ]
    assert [job.config for job in resumed] == [jobs[trial].config for trial in (4, 5, 3)]


def test_hyperband_lets_nobody_wait() -> None:
    scheduler = Hyperband()
    searcher = new_searcher(scheduler, max_resource=9)
    jobs = [asked(scheduler, searcher) for _ in range(30)]
    assert [job.resource for job in jobs] == [1] * 9 + [3] * 5 + [9] * 3 + [1] * 9 + [3] * 4


def test_hyperband_goes_on_without_failed_trials() -> None:
    scheduler = Hyperband(brackets=1)
    searcher = new_searcher(scheduler, max_resource=9)
    jobs = [asked(scheduler, searcher) for _ in range(9)]
    for job in jobs[:7]:
        assert scheduler.on_error(job.trial) == {}
    scheduler.on_result(7, 1, 0.5)
    assert scheduler.on_result(8, 1, 0.4) == {8: State.PAUSED}
    assert [asked(scheduler, searcher).trial for _ in range(2)] == [8, 7]
    assert asked(scheduler, searcher).resource == 1


def test_a_rung_is_compared_at_its_level() -> None:
    scheduler = Hyperband()
    searcher = new_searcher(scheduler, max_resource=9)
    job = asked(scheduler, searcher)
    assert scheduler.on_report(job.trial, 1, 0.1) is S
    with pytest.raises(ValueError, match="ended at 3, not at its rung's level 1"):
        scheduler.on_result(job.trial, 3, 0.1)


@pytest.mark.parametrize("limit", [1, 5, 20, 100])
def test_hyperband_ends_when_there_are_no_more_trials(limit: int) -> None:
    scheduler = Hyperband()
    searcher = new_searcher(scheduler, limit=limit)
    states: dict[int, State] = {}
    while (job := scheduler.suggest(searcher)) is not None:
        states |= scheduler.on_result(job.trial, job.resource, job.trial * 0.1)
    assert scheduler.is_done
    assert states == dict.fromkeys(range(limit), State.TERMINATED)


def test_asha_stops_what_is_not_among_the_best_so_far() -> None:
    scheduler = Asha("stopping")
    searcher = new_searcher(scheduler, min_resource=3, max_resource=81)
    decisions = []
    for loss in (1.0, 0.9, 0.8, 1.2):
        job = asked(scheduler, searcher)
        assert job.resource == 81
        assert scheduler.on_report(job.trial, 1, loss) is C
        decisions.append(scheduler.on_report(job.trial, 3, loss))
    assert decisions == [C, C, C, S]
    assert [scheduler.levels[scheduler._at[trial]] for trial in range(3)] == [9, 9, 9]


def test_asha_promotes_as_soon_as_there_is_somebody_to_promote() -> None:
    scheduler = Asha()
    searcher = new_searcher(scheduler, max_resource=9)
    for loss in (3.0, 2.0):
        job = asked(scheduler, searcher)
        scheduler.on_result(job.trial, job.resource, loss)
    third = asked(scheduler, searcher)
    assert (third.trial, third.resource) == (2, 1)
    assert scheduler.on_result(2, 1, 4.0) == {2: State.PAUSED}
    promoted = asked(scheduler, searcher)
    assert (promoted.trial, promoted.resource, promoted.resume_from) == (1, 3, (1, 1))
    assert asked(scheduler, searcher).trial == 3


@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=40), st.floats(0, 1))
def test_the_quantile_is_numpys(values: list[float], share: float) -> None:
    assert quantile(sorted(values), share) == np.quantile(values, share)


def test_the_quantile_of_a_rung_is_that_of_its_losses() -> None:
    rng = np.random.default_rng(0)
    for eta in range(2, 7):
        for mode in (1, -1):
            scheduler = Asha("stopping")
            searcher = new_searcher(scheduler, eta=eta, max_resource=eta**2)
            values = rng.standard_normal(20)
            for value in values.tolist():
                job = asked(scheduler, searcher)
                scheduler.on_report(job.trial, 1, mode * value)
            expected = np.quantile(values, 1 / eta if mode == 1 else 1 - 1 / eta)
            assert mode * scheduler.quantile(0) == pytest.approx(expected, rel=1e-12)


def test_median_stops_what_is_worse_than_half_the_others() -> None:
    scheduler = Median(grace_population=1)
    searcher = new_searcher(scheduler, max_resource=9)
    trials = [asked(scheduler, searcher).trial for _ in range(3)]
    decisions = [
        scheduler.on_report(trial, 1, loss) for trial, loss in zip(trials, (2.0, 1.0, 5.0), strict=True)
    ]
    assert decisions == [C, C, S]


def test_median_compares_running_averages() -> None:
    scheduler = Median(grace_population=1)
    searcher = new_searcher(scheduler, max_resource=9)
    first, second = asked(scheduler, searcher).trial, asked(scheduler, searcher).trial
    assert [scheduler.on_report(first, step, 2.0) for step in (1, 2)] == [C, C]
    assert scheduler.on_report(second, 1, 0.0) is C
    assert scheduler.on_report(second, 2, 3.9) is C  # on average 1.95


def test_pbt_copies_the_best_and_ends_the_worst() -> None:
    scheduler = Pbt(population=2, interval=1, share=0.5)
    searcher = new_searcher(scheduler, max_resource=9)
    first, second = asked(scheduler, searcher), asked(scheduler, searcher)
    assert (first.resume_from, second.resume_from) == (None, None)
    assert scheduler.suggest(searcher) is None
    assert scheduler.on_report(0, 1, 0.0) is C
    assert scheduler.on_report(1, 1, 1.0) is S
    assert scheduler.on_result(1, 1, 1.0) == {1: State.TERMINATED}
    copy = asked(scheduler, searcher)
    assert (copy.trial, copy.resume_from, copy.resource) == (2, (0, 1), 9)
    assert copy.config != first.config
    SPACE.check(copy.config)
    assert scheduler.on_report(2, 2, -1.0) is C
    assert scheduler.on_report(0, 2, 0.0) is S
    scheduler.on_result(0, 2, 0.0)
    again = asked(scheduler, searcher)
    assert again.resume_from == (2, 2)
    assert again.config != copy.config


def test_the_interval_of_a_copy_counts_from_its_checkpoint() -> None:
    scheduler = Pbt(population=2, interval=2)
    searcher = new_searcher(scheduler, max_resource=9)
    jobs = [asked(scheduler, searcher) for _ in range(2)]
    assert [scheduler.on_report(job.trial, 2, float(job.trial)) for job in jobs] == [C, S]
    scheduler.on_result(1, 2, 1.0)
    assert asked(scheduler, searcher).resume_from == (0, 2)
    assert [scheduler.on_report(2, step, 9.0) for step in (3, 4)] == [C, S]


def test_pbt_compares_once_in_an_interval() -> None:
    scheduler = Pbt(population=2, interval=3)
    searcher = new_searcher(scheduler, max_resource=9)
    asked(scheduler, searcher)
    asked(scheduler, searcher)
    decisions = []
    for step in (1, 2, 3):
        decisions += [scheduler.on_report(0, step, 0.0), scheduler.on_report(1, step, 1.0)]
    assert decisions == [C, C, C, C, C, S]


@pytest.mark.parametrize("workers", [1, 2, 3, 4, 8])
def test_pbt_has_its_whole_population_with_any_number_of_workers(workers: int) -> None:
    """Copies took the places of members that had not begun: with two workers there were 5 of 8."""
    scheduler = Pbt(population=8, interval=2)
    searcher = new_searcher(scheduler, max_resource=8)
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
def test_options_out_of_range_are_refused(make: Callable[[], object]) -> None:
    with pytest.raises(OptionError, match=r"valid|whole number|at least 2"):
        make()


@pytest.mark.parametrize("name", ["hyperband", "dehb", "asha"])
def test_a_ladder_of_one_rung_is_refused(name: str) -> None:
    with pytest.raises(OptionError, match="let max_resource be 3 or more"):
        new_searcher(SCHEDULERS[name](), max_resource=1)


@pytest.mark.parametrize("side_by_side", [1, 3, 8])
@pytest.mark.parametrize("mode", ["min", "max"])
def test_pbt_ends_although_the_best_values_are_the_earliest(mode: str, side_by_side: int) -> None:
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
    again = Study({"x": Float(0, 1)}, Pbt(), max_resource=9, mode=mode)
    state = study._current().scheduler.state_dict()
    again._current().scheduler.load_state_dict(state)
    assert again._current().scheduler.state_dict() == state
