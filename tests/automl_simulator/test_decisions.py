"""Decisions of exact mode in VW's simulator equal the numbers of VW's unit tests."""

from __future__ import annotations

from tests.automl_simulator.learners import ExactLearner, Snapshot
from tests.automl_simulator.scenarios import (
    FIFTEEN,
    INCLUSION,
    LONG,
    ONE_DIFF,
    RAND,
    SHORT,
    WEIGHTS,
    Life,
    lived,
)

A, U = b"A", b"U"


def _check_states(seen: Snapshot) -> None:
    """No config waits that is live, and those in live configs are."""
    assert seen.search is not None
    states = [candidate[3] for candidate in seen.search.candidates]
    assert all(states[index] != "live" for _, index in seen.search.queue)
    assert all(states[index] == "live" for index, _ in seen.search.slots)


def _check_exclusions(seen: Snapshot) -> None:
    """Every live config has all interactions but those that its config leaves out."""
    assert seen.search is not None
    n_all = len(seen.search.counts) * (len(seen.search.counts) + 1) // 2
    left_out = [len(seen.search.candidates[index][1]) for index, _ in seen.search.slots]
    assert seen.interactions == tuple(n_all - n for n in left_out)


def test_leases_after_fifteen_events() -> None:
    rates, seen = lived(FIFTEEN)
    search = seen[15].search
    assert search is not None
    assert search.events == 15
    assert search.slots == ((0, False), (3, False), (1, True))
    assert [(elements, lease) for _, elements, lease, _ in search.candidates] == [
        *(((), 10), (((A, A),), 10), (((A, U),), 20), (((U, U),), 20))
    ]
    assert search.updates == (0, 15, 5)
    assert search.queue == ()
    _check_states(seen[15])
    _check_exclusions(seen[15])
    assert rates[-1] > 0.1


def test_the_search_counts_learnt_events() -> None:
    learner = ExactLearner(f"{SHORT} --oracle_type rand")
    search = learner.snapshot().search
    assert search is not None
    assert search.events == 0
    after = lived(WEIGHTS)[1][10].search
    assert after is not None
    assert after.events == 10


def test_rand_with_two_changes_of_taste() -> None:
    rates, seen = lived(RAND)
    search = seen[930].search
    assert search is not None
    assert (len(search.candidates), search.events) == (4, 930)
    assert seen[930].interactions == (3, 2, 2)
    for event in (930, 931):
        _check_states(seen[event])
        _check_exclusions(seen[event])
    assert rates[-1] > 0.4


def test_one_diff_with_a_change_of_taste() -> None:
    rates, seen = lived(ONE_DIFF)
    for event in (644, 645):
        search = seen[event].search
        assert search is not None
        assert (len(search.candidates), search.events) == (4, event)
        _check_states(seen[event])
        _check_exclusions(seen[event])
    assert len(seen[645].interactions) == 3
    assert seen[646].interactions == (3, 2, 2)
    assert rates[-1] > 0.65


def test_inclusion_has_changed_its_champion_once() -> None:
    rates, seen = lived(INCLUSION)
    for event in (4130, 4131, 4132):
        search = seen[event].search
        assert search is not None
        assert search.events == event
        assert [len(elements) for _, elements, _, _ in search.candidates] == [1, 0, 2, 2]
        assert (seen[event].interactions, seen[event].switches) == ((1, 0, 2), 1)
        _check_states(seen[event])
    assert rates[-1] > 0.4


def test_a_namespace_that_comes_late_is_taken_in() -> None:
    life = Life(flags=LONG, events=(100, 101, 1000), seed=88, swap_after=(500,))
    learner, simulator = ExactLearner(life.flags), life.simulator()
    seen: dict[int, Snapshot] = {}

    def rename(event: int, name: str) -> None:
        seen[event] = learner.snapshot()
        simulator.user_namespace = name

    hooks = {100: lambda: rename(100, "Tser"), 101: lambda: rename(101, "User")}
    rate = simulator.run(learner, 1000, swap_after=life.swap_after, hooks=hooks)
    before, after = seen[100].search, seen[101].search
    assert before is not None
    assert after is not None
    assert b"T" not in before.counts
    assert after.counts[b"T"] > 1
    last = learner.snapshot()
    assert last.search is not None
    assert last.search.candidates[0][1] == ()
    assert last.interactions[0] == 6
    assert rate > 0.65


def test_the_search_finds_the_liked_interactions() -> None:
    assert lived(WEIGHTS)[0][-1] > 0.6
