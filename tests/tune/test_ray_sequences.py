"""What Ray Tune's tests of its schedulers expect, as sequences of values and answers.

The sequences are those of its `test_trial_scheduler.py` for the median stopping rule and for Hyperband.
Rewards are higher if better, and times there count from 0. Ray's median compares only with trials that have
ended; ours also with those that run, so that sequences in which that matters are not here.
"""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

import pytest

from onlineauto.tune import Decision, Float, Setting, Space
from onlineauto.tune.schedulers.hyperband import Hyperband
from onlineauto.tune.schedulers.median import Median
from onlineauto.tune.searchers.random import RandomSearcher

if TYPE_CHECKING:
    from onlineauto.tune.schedulers.scheduler import Suggestion

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
