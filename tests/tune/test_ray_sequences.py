"""What Ray Tune's tests of its schedulers expect, as sequences of values and answers.

The sequences are those of its `test_trial_scheduler.py` for the median stopping rule, Hyperband, ASHA and
population based training. Rewards are higher if better, and times there count from 0. Ray's median compares
only with trials that have ended; ours also with those that run. Ray's ASHA compares a trial with those that
were at the rung before it; ours counts the trial too, as the paper does. Ray's PBT moves a word to its
neighbour in the list; ours, whose words have no order, does not. Sequences in which one of these matters are
not here, nor are those with NaN, which a study rejects.
"""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

import pytest

from onlineauto.tune import Categorical, Decision, Float, Int, Setting, Space
from onlineauto.tune.schedulers.asha import Asha
from onlineauto.tune.schedulers.hyperband import Hyperband
from onlineauto.tune.schedulers.median import Median
from onlineauto.tune.schedulers.pbt import Pbt
from onlineauto.tune.searchers.random import RandomSearcher

if TYPE_CHECKING:
    from onlineauto.tune.schedulers.scheduler import Scheduler, Suggestion

SPACE = Space({"x": Float(0, 1)})
RISING = [100.0 * at for at in range(10)]
CONSTANT = [450.0] * 5
CONTINUE, STOP = Decision.CONTINUE, Decision.STOP


@pytest.mark.parametrize(
    ("grace", "samples", "others", "third"),
    [
        (0, 2, [RISING, CONSTANT], [(1, 260, CONTINUE), (2, 260, STOP)]),
        (3, 2, [RISING, CONSTANT], [(1, 10, CONTINUE), (2, 10, CONTINUE), (3, 10, STOP)]),
        (0, 2, [RISING], [(5, 10, CONTINUE)]),
        (0, 2, [RISING, [*CONSTANT, 1000.0]], [(5, 10, STOP)]),
        (0, 1, [RISING], [(5, 450, CONTINUE), (6, 0, STOP)]),
    ],
    ids=["median", "grace period", "too few", "enough", "mean of one"],
)
def test_median(
    grace: int, samples: int, others: list[list[float]], third: list[tuple[int, float, Decision]]
) -> None:
    searcher = RandomSearcher()
    searcher.begin(SPACE, seed=0)
    rule = Median(grace_population=samples)
    rule.begin(Setting(space=SPACE, min_resource=grace + 1, max_resource=1000))
    for rewards in others:
        begun = rule.suggest(searcher)
        assert begun is not None
        for at, reward in enumerate(rewards):
            assert rule.on_report(begun.trial, at + 1, -reward) is CONTINUE
        rule.on_result(begun.trial, len(rewards), -1000.0)
    begun = rule.suggest(searcher)
    assert begun is not None
    assert [rule.on_report(begun.trial, at + 1, -float(reward)) for at, reward, _ in third] == [
        answer for *_, answer in third
    ]


@pytest.mark.parametrize(
    ("most", "eta", "first"),
    [
        (81, 3, [(81, 1), (34, 3), (15, 9), (8, 27), (5, 81)]),
        (1000, 10, [(1000, 1), (134, 10), (20, 100), (4, 1000)]),
    ],
)
def test_sizes_of_the_first_rungs(most: int, eta: int, first: list[tuple[int, int]]) -> None:
    searcher = RandomSearcher()
    searcher.begin(SPACE, seed=0)
    hyperband = Hyperband()
    hyperband.begin(Setting(space=SPACE, max_resource=most, eta=eta))
    asked: dict[int, int] = {}
    for _ in range(sum(size for size, _ in first)):  # no trial ends, so each bracket is opened in turn
        begun = hyperband.suggest(searcher)
        assert begun is not None
        asked[begun.resource] = asked.get(begun.resource, 0) + 1
    assert [(size, level) for level, size in sorted(asked.items())] == first


def test_successive_halving_keeps_the_best_third_rounded_up() -> None:
    searcher = RandomSearcher()
    searcher.begin(SPACE, seed=0)
    hyperband = Hyperband(brackets=1)
    hyperband.begin(Setting(space=SPACE, max_resource=81))
    searcher.limit = 81
    sizes = []
    last = list(range(81))
    while not hyperband.is_done:
        jobs: list[Suggestion] = []
        while len(jobs) < len(last) and (job := hyperband.suggest(searcher)) is not None:
            jobs.append(job)
        sizes.append((len(jobs), jobs[0].resource))
        assert sorted(job.trial for job in jobs) == sorted(last)
        for job in jobs:
            hyperband.on_result(job.trial, job.resource, -float(job.trial))
        last = sorted(last)[-ceil(len(last) / 3) :]
        if jobs[0].resource == 81:
            break
    assert sizes == [(81, 1), (27, 3), (9, 9), (3, 27), (1, 81)]


def begin(scheduler: Scheduler, count: int) -> list[int]:
    """Begin trials of random configs, and return their numbers."""
    searcher = RandomSearcher()
    searcher.begin(SPACE, seed=0)
    begun = [scheduler.suggest(searcher) for _ in range(count)]
    return [each.trial for each in begun if each is not None]


def two_trials(scheduler: Scheduler) -> list[int]:
    """Begin three trials, of which two report; neither is stopped."""
    first, second, third = begin(scheduler, 3)
    for trial, rewards in ((first, RISING), (second, CONSTANT)):
        for at, reward in enumerate(rewards[1:], start=1):
            assert scheduler.on_report(trial, at, -reward) is CONTINUE
    return [first, second, third]


@pytest.mark.parametrize(
    ("least", "most", "eta", "reporter", "reports"),
    [
        (1, 10, 4, 1, [(101, 0, STOP)]),
        (3, 100, 3, 2, [(1, 10, CONTINUE), (2, 10, CONTINUE), (3, 10, STOP)]),
        (1, 100, 4, 1, [(5, 450, CONTINUE), (6, 0, CONTINUE)]),
    ],
    ids=["on complete", "grace period", "metrics"],
)
def test_asha(
    least: int, most: int, eta: int, reporter: int, reports: list[tuple[int, float, Decision]]
) -> None:
    scheduler = Asha("stopping")
    scheduler.begin(Setting(space=SPACE, min_resource=least, max_resource=most, eta=eta))
    trials = two_trials(scheduler)
    scheduler.on_result(trials[0], 10, -1000.0)
    assert [scheduler.on_report(trials[reporter], at, -float(reward)) for at, reward, _ in reports] == [
        answer for *_, answer in reports
    ]


def test_asha_stops_all_trials_at_the_end() -> None:
    scheduler = Asha("stopping")
    scheduler.begin(Setting(space=SPACE, max_resource=10))
    assert {scheduler.on_report(trial, 10, 2.0) for trial in begin(scheduler, 10)} == {STOP}


def test_asha_stops_the_worse_of_four_trials() -> None:
    scheduler = Asha("stopping")
    scheduler.begin(Setting(space=SPACE, max_resource=3, eta=2))
    trials = zip(begin(scheduler, 4), [10.0, 8.0, 6.0, 4.0], strict=True)
    assert [scheduler.on_report(trial, 2, -reward) for trial, reward in trials] == [
        CONTINUE,
        STOP,
        STOP,
        STOP,
    ]


def test_asha_is_saved_and_restored() -> None:
    setting = Setting(space=SPACE, max_resource=10, eta=2)
    scheduler, restored = Asha("stopping"), Asha("stopping")
    scheduler.begin(setting)
    trials = begin(scheduler, 11)
    assert {scheduler.on_report(trial, 1, -10.0) for trial in trials[:5]} == {CONTINUE}
    assert scheduler.on_report(trials[5], 1, -5.0) is STOP
    restored.begin(setting)
    restored.load_state_dict(scheduler.state_dict())
    assert restored.on_report(trials[6], 1, -4.0) is STOP
    assert restored.on_report(trials[10], 1, -2.0) is STOP


def population() -> tuple[Pbt, RandomSearcher]:
    """Begin five members, of which each reports a larger reward than the one before it."""
    space = Space({"float": Float(0, 100), "int": Int(0, 100), "id": Categorical(list(range(5)))})
    searcher, pbt = RandomSearcher(), Pbt(5, interval=10, resample=0.0)
    searcher.begin(space, seed=0)
    pbt.begin(Setting(space=space, max_resource=1000))
    for at in range(5):
        searcher.enqueue({"float": 2.0, "int": 10, "id": at})
        pbt.suggest(searcher)
    assert {pbt.on_report(at, 10, -50.0 * at) for at in range(5)} == {CONTINUE}
    return pbt, searcher


def test_pbt_keeps_promising_members() -> None:
    pbt, _ = population()
    reports = [(0, 15, 200.0), (0, 20, 200.0), (1, 30, 201.0), (4, 30, 199.0)]
    assert {pbt.on_report(trial, at, -reward) for trial, at, reward in reports} == {CONTINUE}


def test_pbt_replaces_the_worst_members() -> None:
    pbt, searcher = population()
    assert pbt.on_report(0, 15, 100.0) is CONTINUE
    assert pbt.on_report(0, 20, 100.0) is STOP
    assert pbt.on_report(2, 20, -40.0) is STOP
    pbt.on_result(0, 20, 100.0)
    pbt.on_result(2, 20, -40.0)
    for _ in range(2):
        copy = pbt.suggest(searcher)
        assert copy is not None
        assert copy.resume_from is not None
        assert copy.resume_from.trial in (3, 4)
        assert copy.config["id"] == copy.resume_from.trial
        assert copy.config["float"] in (1.6, 2.4)
        assert copy.config["int"] in (8, 12)
