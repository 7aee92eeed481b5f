"""Schedulers give the answers of their papers and of Syne Tune and Ray Tune; the cases are data files.

``events.txt`` has calls and answers, among them those of Ray's `test_trial_scheduler.py` for the median
stopping rule, Hyperband, ASHA and population based training. Rewards are higher if better there, and times
count from 0. Ray's median compares only with trials that have ended, ours also with those that run. Ray's
ASHA compares a trial with those that were at the rung before it; ours counts the trial too, as the paper
does. Ray's PBT moves a word to its neighbour in the list; ours, whose words have no order, does not.
Sequences in which one of these matters are not there, nor are those with NaN, which a study rejects.

Syne Tune (https://github.com/syne-tune/syne-tune, Apache License 2.0) deleted its synchronous Hyperband and
its DEHB with their tests in commit 21b19081. The tables have what its schedulers answered at the commit
before, 7cfb5896. No code is copied. Its DEHB is our variant ``slots``. Differences, each asserted below:

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

from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np
import pytest

from onlineauto.tune import Categorical, Float, Int, Space, Suggestion
from onlineauto.tune.schedulers.brackets import Brackets, Slot
from onlineauto.tune.schedulers.dehb import Dehb
from onlineauto.tune.schedulers.evolution import crossover, mask, mutant
from onlineauto.tune.schedulers.hyperband import SYSTEMS, Hyperband
from onlineauto.tune.schedulers.pbt import Pbt
from onlineauto.tune.schedulers.rungs import geometric
from tests.tune.playing import begun, falling, next_jobs, numbers, play, read_cases, run_queue

pytestmark = pytest.mark.lane("quick")

EVENTS, HYPERBAND, DEHB = (read_cases(f"{name}.txt") for name in ("events", "hyperband", "dehb"))


@pytest.mark.parametrize("name", EVENTS)
def test_a_scheduler_gives_the_answers_of_a_sequence(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SYSTEMS, "9,4,1", lambda *_: [[(9, 1), (4, 3), (1, 9)]])
    play(EVENTS[name])


@pytest.mark.parametrize("name", HYPERBAND)
def test_400_jobs_of_hyperband_are_those_of_syne_tune(name: str) -> None:
    """The name has the minimum and the maximum resource, eta, and the number of workers."""
    ladder, rest = name.split(", ", 1)
    least, most, eta = map(int, ladder.split())
    scheduler = Hyperband()
    searcher = begun(scheduler, min_resource=least, max_resource=most, eta=eta)
    workers = int(rest.split()[0])
    jobs = run_queue(scheduler, searcher, 400, falling, workers=workers, fails="fails" in rest)
    expected = [
        (trial, int(level))
        for run in " ".join(HYPERBAND[name]).split(" | ")
        for level, _, trials in [run.partition(": ")]
        for trial in numbers(trials)
    ]
    assert [(job.trial, job.resource) for job in jobs] == expected


def flat(trial: int, level: int) -> float:
    """Return a loss that is the same at all levels."""
    return float((trial * 11 + 5) % 29)


def rising(trial: int, level: int) -> float:
    return flat(trial, level) + level


def slots(scheduler: Dehb) -> dict[int, list[list[int]]]:
    """Return the trials in the slots of each rung: the better ones of children and their targets."""
    brackets = scheduler.state_dict()["brackets"]["brackets"]
    return {
        int(number): [[trial for trial in rung if trial is not None] for rung in bracket["trials"]]
        for number, bracket in brackets.items()
    }


def dehb_slots(name: str, more: int = 0) -> dict[int, list[list[int]]]:
    """Run the jobs of a case, and some more; return the trials in the slots."""
    words = name.replace(",", "").split()
    count, most = int(words[0]), int(words[3])
    brackets = 2 if "two brackets" in name else 1 if "one bracket" in name else None
    scheduler = Dehb("slots", brackets=brackets)
    searcher = begun(scheduler, max_resource=most)
    workers = int(words[4]) if "workers" in words else 1
    loss = rising if "rise" in name else flat
    run_queue(scheduler, searcher, count + more, loss, workers=workers, fails="fails" in name)
    return slots(scheduler)


@pytest.mark.parametrize("name", DEHB)
def test_slots_of_dehb_have_the_trials_of_syne_tune(name: str) -> None:
    expected = {
        int(number): [numbers(trials) for trials in rungs.split(",")]
        for bracket in " ".join(DEHB[name]).split(" | ")
        for number, _, rungs in [bracket.partition(":")]
    }
    assert dehb_slots(name) == expected


@pytest.mark.parametrize(
    ("name", "slot", "ours", "syne_tune"),
    [
        ("41 jobs to 9, losses that rise with the level", (6, 0, 5), 5, 37),
        ("29 jobs to 9, two brackets", (2, 2, 0), 5, 13),
        ("20 jobs to 9, 9 workers", (1, 1, 0), 17, 9),
        ("44 jobs to 27, 9 workers", (1, 0, 8), 24, 35),
    ],
    ids=["target of another level", "two brackets", "no parent slot", "target is running"],
)
def test_dehb_differs_by_design(name: str, slot: tuple[int, int, int], ours: int, syne_tune: int) -> None:
    """After the equal jobs of its table, the next job has another winner in its slot."""
    bracket, rung, number = slot
    winner = dehb_slots(name, more=1)[bracket][rung][number]
    assert winner == ours != syne_tune


def test_dehb_with_one_kind_of_brackets_continues() -> None:
    """Syne Tune raises `IndexError` after 25 jobs: it seeks the parent slot in a bracket that is not open."""
    assert dehb_slots("30 jobs to 9, one bracket")[2] == [[0, 1, 24, 3]]


def test_targets_of_dehb_are_the_trials_of_parent_slots() -> None:
    """Of each bracket and level: the trials, their targets, and the trials that remain in the slots."""
    scheduler = Dehb("slots")
    searcher = begun(scheduler, max_resource=9)
    rungs: dict[tuple[int, int], tuple[list[int], list[int | None]]] = {}
    for _ in range(39):
        (job,) = next_jobs(scheduler, searcher)
        (bracket, (_, level, _, _)), target = scheduler.state_dict()["running"][str(job.trial)]
        trials, targets = rungs.setdefault((bracket, level), ([], []))
        trials.append(job.trial)
        targets.append(target)
        scheduler.on_result(job.trial, job.resource, flat(job.trial, job.resource))
    expected: dict[tuple[int, int], tuple[str, list[int | None], str]] = {
        (0, 1): ("0-8", [None] * 9, "0-8"),
        (0, 3): ("5 0 8", [None] * 3, "5 0 8"),
        (0, 9): ("5", [None], "5"),
        (1, 3): ("9-11", [5, 0, 8], "5 0 8"),
        (1, 9): ("12", [5], "5"),
        (2, 9): ("13", [5], "5"),
        (3, 1): ("14-22", [0, 1, 2, 3, 4, 5, 6, 7, 8], "0 1 16 3 18 5 6 21 8"),
        (3, 3): ("23-25", [5, 0, 8], "5 0 8"),
        (3, 9): ("26", [5], "26"),
        (4, 3): ("27-29", [5, 0, 8], "5 0 29"),
        (4, 9): ("30", [26], "26"),
        (5, 9): ("31", [26], "26"),
        (6, 1): ("32-34", [0, 1, 16], "0 1 34"),
    }
    assert rungs == {key: (numbers(trials), targets) for key, (trials, targets, _) in expected.items()}
    remaining = iter([rung for bracket in slots(scheduler).values() for rung in bracket])
    assert [next(remaining) for _ in expected] == [numbers(words) for *_, words in expected.values()]


def test_the_last_bracket_of_populations_is_larger_than_that_of_slots() -> None:
    for variant, size in (("population", 3), ("slots", 1)):
        scheduler = Dehb(variant)
        jobs = next_jobs(scheduler, begun(scheduler, max_resource=9), 13 + size)
        assert [job.resource for job in jobs] == [1] * 9 + [3] * 3 + [9] * size + [1]
    scheduler = Dehb()
    jobs = run_queue(scheduler, begun(scheduler, max_resource=9), 13, flat)
    assert [job.trial for job in jobs] == [*range(9), 5, 0, 8, 5]


def test_sizes_of_rungs_are_the_fractions_of_the_paper_rounded_up() -> None:
    for least in range(1, 5):
        for eta in range(2, 6):
            for most in range(least * eta, 300):
                system = geometric(least, most, eta)
                last = len(system) - 1
                assert least * eta**last >= most > least * eta ** (last - 1)
                for bracket, rungs in enumerate(system):
                    total = Fraction(last + 1, len(rungs))
                    sizes = [ceil(total * eta ** (last - bracket - rung)) for rung in range(len(rungs))]
                    levels = [least * eta ** (bracket + rung) for rung in range(len(rungs) - 1)]
                    assert rungs == [*zip(sizes, [*levels, most], strict=True)]


def test_many_open_brackets() -> None:
    """Syne Tune's test of 20,000 jobs with its seed.

    Each row has, after a number of steps: the primary bracket, the brackets that were opened, the new
    trials, and the promotions.
    """
    rng = np.random.RandomState(31415927)
    brackets = Brackets(geometric(2, 200, 3, 6))
    waiting: list[Slot] = []
    trials = promotions = 0
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
            promotions += slot.rung_slot.rung > 0
            waiting.append(slot)
        for slot in waiting[:3]:
            occupy(slot)
        del waiting[:3]
        opened = [slot.bracket for slot in waiting]
        pending = {number: count for number, count in brackets.pending.items() if count}
        assert pending == {number: opened.count(number) for number in set(opened)}
        if len(waiting) >= 200:
            for index in rng.permutation(len(waiting)):
                occupy(waiting[index])
            waiting.clear()
            assert not any(brackets.pending.values())
        if step % 1000 == 0:
            rows.append((step, brackets.primary, brackets.count, trials, promotions))
    assert rows == [
        (1000, 30, 38, 2791, 1209),
        (2000, 72, 79, 5450, 2550),
        (3000, 108, 116, 8152, 3848),
        (4000, 150, 157, 10832, 5168),
        (5000, 186, 193, 13516, 6484),
    ]


@pytest.mark.parametrize(("factor", "fill"), [(0.5, 0.2), (0.75, 0.3), (0.1, 0.4)])
def test_mutation(factor: float, fill: float) -> None:
    """Numbers outside the cube are drawn again; the space and the pairs are those of Syne Tune's test."""
    space = Space({"a": Int(0, 5), "b": Categorical(["a", "b", "c"])})
    rng = np.random.default_rng(3)
    for _ in range(20):
        parents = [rng.random(space.width) for _ in range(3)]
        moved = (parents[1] - parents[2]) * factor + parents[0]
        expected = [fill if number < 0 or number > 1 else number for number in moved]
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


def test_pbt_replaces_the_worst_members() -> None:
    """Ray's test: each of five members reports a larger reward than the one before it."""
    space = Space({"float": Float(0, 100), "int": Int(0, 100), "id": Categorical(list(range(5)))})
    pbt = Pbt(5, interval=10, resample=0.0)
    searcher = begun(pbt, space=space, max_resource=1000)
    for number in range(5):
        searcher.enqueue({"float": 2.0, "int": 10, "id": number})
    next_jobs(pbt, searcher, 5)
    for number in range(5):
        assert pbt.on_report(number, 10, -50.0 * number) == "CONTINUE"
    assert pbt.on_report(0, 15, 100.0) == "CONTINUE"
    for trial, loss in ((0, 100.0), (2, -40.0)):
        assert pbt.on_report(trial, 20, loss) == "STOP"
        pbt.on_result(trial, 20, loss)
    copies: list[Suggestion] = next_jobs(pbt, searcher, 2)
    for copy in copies:
        config: dict[str, Any] = copy.config
        assert copy.resume_from is not None
        assert copy.resume_from.trial in (3, 4)
        assert config["id"] == copy.resume_from.trial
        assert config["float"] in (1.6, 2.4)
        assert config["int"] in (8, 12)
    assert len(copies) == 2
