"""What Syne Tune's synchronous Hyperband and DEHB do, as sequences of jobs, losses and promotions.

Syne Tune (https://github.com/syne-tune/syne-tune, Apache License 2.0) deleted both schedulers and their tests
`test_hyperband_sychronous.py` and `test_dehb.py` in commit 21b19081. The numbers of the four tests are here.
All other rows and digests are what its schedulers answered at the commit before, 7cfb5896, to the losses of
this file. No code is copied.

Syne Tune's DEHB is our variant ``slots``. Differences, each asserted below:

* Syne Tune compares a child with the latest loss of its target, at any level. Ours has the same level.
* If fewer brackets than levels alternate, Syne Tune finds targets of other levels, or raises `IndexError`.
  Ours has the parent slot of the same level.
* If a slot has no parent slot yet, Syne Tune draws a target at random. Ours then has no target.
* If a target is running, Syne Tune skips the selection. Ours has the target's loss at this level.
* If too few trials of a rung succeed, Syne Tune promotes failed ones, in the order of the slots. Ours never
  does: the next rung is smaller, and the best trial is first.
* Our default variant ``population`` has the rungs of hpbandster: the last bracket is larger.
* Syne Tune accepts a ladder of one rung. Ours rejects it; see `test_rungs.py`.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from onlineauto.tune import Categorical, Float, Int, Setting, Space, State
from onlineauto.tune.schedulers.brackets import Brackets, Slot
from onlineauto.tune.schedulers.dehb import Dehb
from onlineauto.tune.schedulers.evolution import crossover, mask, mutant
from onlineauto.tune.schedulers.hyperband import SYSTEMS, Hyperband
from onlineauto.tune.schedulers.rungs import geometric
from onlineauto.tune.searchers.random import RandomSearcher

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from onlineauto.tune.schedulers.scheduler import Scheduler, Suggestion

pytestmark = pytest.mark.lane("quick")

SPACE = Space({"x": Float(0, 1), "y": Float(0, 1)})
JobRow = tuple[int | None, ...]
"""A job: trial, bracket, level and slot; for DEHB also the target, and the trial that remains in the slot."""


def new_searcher(limit: int | None = None) -> RandomSearcher:
    searcher = RandomSearcher()
    searcher.begin(SPACE, seed=0)
    searcher.limit = limit
    return searcher


def digest(rows: Iterable[Sequence[object]]) -> str:
    lines = "\n".join(" ".join(map(str, row)) for row in rows)
    return sha256(lines.encode()).hexdigest()[:16]


def test_geometric_systems_of_4660_ladders() -> None:
    found = sha256()
    for least in range(1, 5):
        for eta in range(2, 6):
            for most in range(least * eta, 300):
                found.update(repr(geometric(least, most, eta)).encode())
    assert found.hexdigest()[:16] == "04edc9c92bd72ffa"


def test_a_bracket(monkeypatch: pytest.MonkeyPatch) -> None:
    """The numbers of Syne Tune's test of a bracket: which slots are free, and which trials are promoted."""
    monkeypatch.setitem(SYSTEMS, "9, 4, 1", lambda *_: [[(9, 1), (4, 3), (1, 9)]])
    scheduler, searcher = Hyperband("9, 4, 1"), new_searcher(limit=9)
    scheduler.begin(Setting(space=SPACE, max_resource=9))
    first = [3.0, 5.0, 1.0, 4.0, 9.0, 6.0, 2.0, 7.0, 8.0]

    def asked(count: int, level: int, trials: list[int]) -> list[Suggestion]:
        jobs = [job for _ in range(count) if (job := scheduler.suggest(searcher)) is not None]
        assert [(job.trial, job.resource) for job in jobs] == [(trial, level) for trial in trials]
        return jobs

    def ended(jobs: list[Suggestion], losses: list[float]) -> list[list[int]]:
        """Return the trials that each result ends."""
        changes = [
            scheduler.on_result(job.trial, job.resource, loss) for job, loss in zip(jobs, losses, strict=True)
        ]
        return [sorted(trial for trial in each if each[trial] is State.TERMINATED) for each in changes]

    def pending() -> int:
        return sum(scheduler._brackets.pending.values())

    assert ended(asked(3, 1, [0, 1, 2]), first[:3]) == [[], [], []]
    assert pending() == 0
    jobs = asked(3, 1, [3, 4, 5])
    assert pending() == 3
    assert ended(jobs[1:], first[4:6]) == [[], []]
    assert pending() == 1
    more = asked(3, 1, [6, 7, 8])
    assert pending() == 4
    assert ended(more[1:], first[7:9]) == [[], []]
    assert pending() == 2
    assert asked(1, 1, []) == []  # all slots are occupied or pending
    assert ended(jobs[:1], first[3:4]) == [[]]
    assert asked(1, 1, []) == []
    assert ended(more[:1], first[6:7]) == [[1, 4, 5, 7, 8]]
    jobs = asked(9, 3, [2, 6, 0, 3])
    assert pending() == 4
    assert ended(jobs, [3.1, 3.0, 2.9, 3.0]) == [[], [], [], [2, 3, 6]]
    assert ended(asked(9, 9, [0]), [1.0]) == [[0]]
    assert scheduler.is_done


def test_many_open_brackets() -> None:
    """Syne Tune's test of 20,000 jobs with its seed: the same job each time, and as many jobs are pending.

    Each row has, after so many steps: the primary bracket, the brackets that were opened, the new trials, the
    promotions, and the start of the digest of all jobs so far.
    """
    rng = np.random.RandomState(31415927)
    brackets = Brackets(geometric(2, 200, 3, 6))
    waiting: list[Slot] = []
    trials = promotions = 0
    jobs = sha256()
    rows = []

    def occupy(slot: Slot) -> None:
        nonlocal trials
        if slot.rung_slot.trial is None:
            brackets[slot.bracket].assign(slot.rung_slot, trials)
            trials += 1
        brackets.on_result(slot, rng.random())

    for step in range(1, 5001):
        for _ in range(4):
            slot = brackets.next_slot()
            assert slot is not None
            rung, level, number, _ = slot.rung_slot
            promotions += rung > 0
            jobs.update(f"{slot.bracket} {rung} {level} {number}\n".encode())
            waiting.append(slot)
        for slot in waiting[:3]:
            occupy(slot)
        del waiting[:3]
        numbers = [slot.bracket for slot in waiting]
        pending = {number: count for number, count in brackets.pending.items() if count}
        assert pending == {number: numbers.count(number) for number in set(numbers)}
        if len(waiting) >= 200:
            for index in rng.permutation(len(waiting)):
                occupy(waiting[index])
            waiting.clear()
            assert not any(brackets.pending.values())
        if step % 1000 == 0:
            rows.append((step, brackets.primary, brackets.count, trials, promotions, jobs.hexdigest()[:12]))
    assert rows == [
        (1000, 30, 38, 2791, 1209, "e7431373ff01"),
        (2000, 72, 79, 5450, 2550, "5a188643ee09"),
        (3000, 108, 116, 8152, 3848, "6d56ae1c5705"),
        (4000, 150, 157, 10832, 5168, "c84dfa51ad85"),
        (5000, 186, 193, 13516, 6484, "b1cbbec89208"),
    ]


def no_failure(trial: int) -> bool:
    return False


def a_tenth(trial: int) -> bool:
    return trial % 10 == 3


def falling(trial: int, level: int) -> float:
    """Return a loss whose order changes with the level."""
    return float((trial * 11 + 5) % 29) - (trial % 4) * level


def hyperband_rows(
    count: int,
    ladder: tuple[int, int, int],
    workers: int,
    fails: Callable[[int], bool],
    loss: Callable[[int, int], float] = falling,
) -> tuple[list[JobRow], list[list[int]]]:
    """Run a queue of jobs; return the row of each job, and the trials that it ends without a promotion."""
    scheduler, searcher = Hyperband(), new_searcher()
    scheduler.begin(Setting(space=SPACE, min_resource=ladder[0], max_resource=ladder[1], eta=ladder[2]))
    rows: list[JobRow] = []
    dropped = []
    jobs: list[Suggestion] = []
    while len(rows) < count:
        jobs += asked(scheduler, searcher, workers - len(jobs))
        job = jobs.pop(0)
        bracket, (_, level, slot, _) = scheduler._running[job.trial]
        rows.append((job.trial, bracket, level, slot))
        changed = (
            scheduler.on_error(job.trial)
            if fails(job.trial)
            else scheduler.on_result(job.trial, level, loss(job.trial, level))
        )
        own = {job.trial} if level == ladder[1] else set()
        dropped.append(sorted({each for each in changed if changed[each] is State.TERMINATED} - own))
    return rows, dropped


def asked(scheduler: Scheduler, searcher: RandomSearcher, count: int) -> list[Suggestion]:
    return [job for _ in range(count) if (job := scheduler.suggest(searcher)) is not None]


def test_two_rounds_of_hyperband() -> None:
    """Bracket, level, the trials in the order of the jobs, and those that the last of them ends."""
    rows, dropped = hyperband_rows(44, (1, 9, 3), 1, no_failure)
    rungs: dict[tuple[int | None, int | None], tuple[list[int | None], list[int]]] = {}
    for (trial, bracket, level, _), ended in zip(rows, dropped, strict=True):
        trials = rungs.get((bracket, level), ([], []))[0]
        rungs[bracket, level] = [*trials, trial], ended
    assert rungs == {
        (0, 1): ([0, 1, 2, 3, 4, 5, 6, 7, 8], [1, 2, 4, 6, 7, 8]),
        (0, 3): ([5, 0, 3], [0, 3]),
        (0, 9): ([5], []),
        (1, 3): ([9, 10, 11, 12, 13], [9, 10, 12]),
        (1, 9): ([13, 11], []),
        (2, 9): ([14, 15, 16], []),
        (3, 1): ([17, 18, 19, 20, 21, 22, 23, 24, 25], [17, 20, 22, 23, 24, 25]),
        (3, 3): ([18, 21, 19], [19, 21]),
        (3, 9): ([18], []),
        (4, 3): ([26, 27, 28, 29, 30], [27, 28, 30]),
        (4, 9): ([26, 29], []),
        (5, 9): ([31], []),
    }


@pytest.mark.parametrize(
    ("fails", "ladder", "expected"),
    [
        (no_failure, (1, 9, 3), ["2640a7090894a69b", "09f097b4301f8d2a", "f03d3275ba34aa5f"]),
        (no_failure, (1, 81, 3), ["69bc91634a849cb0", "2ad0c598072b86d6", "92d212f0b051bfd1"]),
        (no_failure, (1, 10, 2), ["09bb47fc2eb5da11", "e5b439da554a2f72", "ac5dfda833637a09"]),
        (no_failure, (2, 200, 3), ["47a5d9c630da9b50", "c8029babbf88b4f3", "bfe8e57f3ca83782"]),
        (no_failure, (1, 64, 4), ["1fbd593430d89a85", "bf8ac36bbc8561e1", "83ac5c46eacd6314"]),
        (a_tenth, (1, 9, 3), ["7c1b20289ef6fe2a", "f617a0f5b7ef90a0", "7f2e3126f6ce995c"]),
        (a_tenth, (1, 81, 3), ["32a7c40f04ee0b35", "cd49c1bf15bc5486", "8ad688cc9528913f"]),
        (a_tenth, (1, 10, 2), ["1cf5a04d152fce4e", "8b6b695a013e5ce5", "e50a4e37cf4102c5"]),
        (a_tenth, (2, 200, 3), ["c8421e18d90937dc", "429e568f1068e320", "7da13b3a42ef157f"]),
        (a_tenth, (1, 64, 4), ["c8ee78b6ae42ae82", "0065ba718a55c192", "fa333dd1e03c7445"]),
    ],
)
def test_400_jobs_of_hyperband(
    fails: Callable[[int], bool], ladder: tuple[int, int, int], expected: list[str]
) -> None:
    assert [digest(hyperband_rows(400, ladder, workers, fails)[0]) for workers in (1, 4, 30)] == expected


def test_failed_trials_are_promoted_by_syne_tune_only() -> None:
    """Only the trials 5 and 7 succeed, and 7 is the better one. The first rung has 9 slots, the second 3."""
    rows, _ = hyperband_rows(
        14, (1, 9, 3), 1, lambda trial: trial not in (5, 7), lambda trial, _: -float(trial)
    )
    syne_tune = [(5, 0, 3, 0), (7, 0, 3, 1), (0, 0, 3, 2), (7, 0, 9, 0), (9, 1, 3, 0)]
    assert rows[:9] == [(trial, 0, 1, trial) for trial in range(9)]
    assert rows[9:] == [(7, 0, 3, 0), (5, 0, 3, 1), (7, 0, 9, 0), (9, 1, 3, 0), (10, 1, 3, 1)]
    assert rows[9:] != syne_tune


@pytest.mark.parametrize(("factor", "fill"), [(0.5, 0.2), (0.75, 0.3), (0.1, 0.4)])
def test_mutation(factor: float, fill: float) -> None:
    """Numbers outside the cube are drawn again; the space and the pairs are those of Syne Tune's test."""
    space = Space({"a": Int(0, 5), "b": Categorical(["a", "b", "c"])})
    rng = np.random.default_rng(3)
    for _ in range(20):
        parents = [rng.random(space.width) for _ in range(3)]
        moved = (parents[1] - parents[2]) * factor + parents[0]
        expected = [fill if each < 0 or each > 1 else each for each in moved]
        assert mutant(parents, factor, np.full(space.width, fill)).tolist() == expected


@pytest.mark.parametrize(
    ("rate", "drawn", "forced", "expected"),
    [
        (0.5, [0.45, 0.7], 1, [True, False]),
        (0.2, [0.45, 0.1], 0, [False, True]),
        (0.1, [0.15, 0.55], 0, [True, False]),
    ],
)
def test_crossover(rate: float, drawn: list[float], forced: int, expected: list[bool]) -> None:
    """The code of a word is crossed as one block."""
    chosen = mask(rate, drawn, forced)
    assert chosen.tolist() == expected
    crossed = crossover(np.zeros(4), np.ones(4), chosen, [1, 3])
    assert crossed.tolist() == [float(expected[0])] + [float(expected[1])] * 3


def flat(trial: int, level: int) -> float:
    """Return a loss that is the same at all levels."""
    return float((trial * 11 + 5) % 29)


def rising(trial: int, level: int) -> float:
    return flat(trial, level) + level


def dehb_rows(
    count: int,
    loss: Callable[[int, int], float] = flat,
    *,
    most: int = 9,
    workers: int = 1,
    brackets: int | None = None,
    fails: Callable[[int], bool] = no_failure,
) -> list[JobRow]:
    """Run a queue of jobs of the variant ``slots``; return the row of each job."""
    scheduler, searcher = Dehb("slots", brackets=brackets), new_searcher()
    scheduler.begin(Setting(space=SPACE, max_resource=most))
    rows: list[JobRow] = []
    jobs: list[Suggestion] = []
    while len(rows) < count:
        jobs += asked(scheduler, searcher, workers - len(jobs))
        job = jobs.pop(0)
        slot, _ = scheduler._running[job.trial]
        rung, level, number, _ = slot.rung_slot
        target = scheduler._parents.target(slot)  # the latest, as in Syne Tune
        remains = None
        if fails(job.trial):
            scheduler.on_error(job.trial)
        else:
            scheduler.on_result(job.trial, level, loss(job.trial, level))
            remains = scheduler._brackets[slot.bracket].trials[rung][number]
        rows.append((job.trial, slot.bracket, level, number, target, remains))
    return rows


def test_brackets_of_dehb() -> None:
    """Bracket, level, the trials, their targets, and the trials that remain in the slots."""
    rungs: dict[tuple[int | None, int | None], list[tuple[int | None, int | None, int | None]]] = {}
    for trial, bracket, level, _, target, remains in dehb_rows(39):
        rungs.setdefault((bracket, level), []).append((trial, target, remains))
    expected = {
        (0, 1): ([0, 1, 2, 3, 4, 5, 6, 7, 8], [None] * 9, [0, 1, 2, 3, 4, 5, 6, 7, 8]),
        (0, 3): ([5, 0, 8], [None] * 3, [5, 0, 8]),
        (0, 9): ([5], [None], [5]),
        (1, 3): ([9, 10, 11], [5, 0, 8], [5, 0, 8]),
        (1, 9): ([12], [5], [5]),
        (2, 9): ([13], [5], [5]),
        (3, 1): (
            [14, 15, 16, 17, 18, 19, 20, 21, 22],
            [0, 1, 2, 3, 4, 5, 6, 7, 8],
            [0, 1, 16, 3, 18, 5, 6, 21, 8],
        ),
        (3, 3): ([23, 24, 25], [5, 0, 8], [5, 0, 8]),
        (3, 9): ([26], [5], [26]),
        (4, 3): ([27, 28, 29], [5, 0, 8], [5, 0, 29]),
        (4, 9): ([30], [26], [26]),
        (5, 9): ([31], [26], [26]),
        (6, 1): ([32, 33, 34], [0, 1, 16], [0, 1, 34]),
    }
    lists = {key: tuple(map(list, zip(*rung, strict=True))) for key, rung in rungs.items()}
    assert lists == expected


@pytest.mark.parametrize(
    ("most", "workers", "expected"),
    [
        (9, 1, ("a99a24383fe0f0dd", "3c2cf627f9893177")),
        (9, 2, ("58cf6e3be2ed5954", "133622d592d05697")),
        (9, 4, ("691836df8c86e665", "0e45df331b8045e5")),
        (27, 1, ("00fab1c0f0a9ed42", "4a2901587231bd8f")),
        (27, 2, ("39e7007e54d024f0", "ac6e02c826600e50")),
        (27, 4, ("9635dbfacff4ae1f", "dddff86ce071d775")),
        (81, 1, ("fa9e4c7fa661aaf6", "8cceb5a4dec93620")),
        (81, 2, ("221d2b5811e62175", "30a2ba4fc6bd12d7")),
        (81, 4, ("500cd552a2a6e37c", "0c8be037a444178f")),
    ],
)
def test_300_jobs_of_dehb(most: int, workers: int, expected: tuple[str, str]) -> None:
    """Without failures, and with a tenth of the trials failing."""
    assert (
        digest(dehb_rows(300, most=most, workers=workers)),
        digest(dehb_rows(300, most=most, workers=workers, fails=a_tenth)),
    ) == expected


@pytest.mark.parametrize(
    ("options", "same", "syne_tune", "ours"),
    [
        ({"loss": rising}, "9eb6ecc5c18a8d7d", (37, 6, 1, 5, 5, 37), (37, 6, 1, 5, 5, 5)),
        ({"brackets": 2}, "d175a46ec6e039b5", (25, 2, 9, 0, 13, 13), (25, 2, 9, 0, 5, 5)),
        ({"brackets": 1}, "d303f29d9b5c0e06", (18, 1, 3, 0, 0, 18), (18, 1, 3, 0, 5, 18)),
        ({"workers": 9}, "d03985fdc3b661a4", (17, 1, 9, 0, None, 9), (17, 1, 9, 0, None, 17)),
        ({"workers": 9, "most": 27}, "12c43e7b005cb557", (35, 1, 3, 8, 24, 35), (35, 1, 3, 8, 24, 24)),
    ],
    ids=["other level", "two brackets", "one bracket", "no parent slot", "target runs"],
)
def test_dehb_differs_by_design(options: dict[str, Any], same: str, syne_tune: JobRow, ours: JobRow) -> None:
    """The first job that differs from Syne Tune's, after equal jobs, of which there is a digest."""
    rows = dehb_rows(60, **options)
    first = rows.index(ours)
    assert digest(rows[:first]) == same
    assert syne_tune not in rows


def test_dehb_with_one_kind_of_brackets_goes_on() -> None:
    """Syne Tune raises `IndexError` after 25 jobs: it seeks the parent slot in a bracket that is not open."""
    assert dehb_rows(30, brackets=1)[25:] == [
        (21, 1, 9, 0, 5, 5),
        (22, 2, 1, 0, 0, 0),
        (23, 2, 1, 1, 1, 1),
        (24, 2, 1, 2, 11, 24),
        (25, 2, 1, 3, 3, 3),
    ]


def test_the_default_variant_has_the_same_first_round_but_for_the_last_bracket() -> None:
    scheduler, searcher = Dehb(), new_searcher()
    scheduler.begin(Setting(space=SPACE, max_resource=9))
    syne_tune = [[(9, 1), (3, 3), (1, 9)], [(3, 3), (1, 9)], [(1, 9)]]
    slots = Dehb("slots")
    slots.begin(Setting(space=SPACE, max_resource=9))
    assert slots._brackets.system == syne_tune
    assert scheduler._brackets.system == [*syne_tune[:2], [(3, 9)]]
    trials = []
    for _ in range(13):
        (job,) = asked(scheduler, searcher, 1)
        trials.append(job.trial)
        scheduler.on_result(job.trial, job.resource, flat(job.trial, job.resource))
    assert trials == [*range(9), 5, 0, 8, 5]
