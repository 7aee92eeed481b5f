"""Boosted trees of the costs of logged actions: reference implementation, files and merging."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from onlineauto.learners.tree_kernels import add_input, begin_row, learn_trees, score_trees
from onlineauto.learners.tree_records import (
    FIRST_OF_COSTS,
    ROUNDS_OF_COSTS,
    ROWS,
    WIDTH,
    Grown,
    LoggedOutput,
)
from onlineauto.learners.trees import (
    TreeBranch,
    forget_rows,
    make_fit,
    make_row,
    make_trees,
    merge_trees,
    restore_trees,
    trees_state,
    trees_to_predict,
)
from onlineauto.state.stored import Stored
from tests.naive.trees import CostTrees

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Event = tuple[list[tuple[int, float]], int, float, float]

pytestmark = pytest.mark.lane("sampled")

N_INPUTS, K = 90, 5
FITTED = FIRST_OF_COSTS + ROUNDS_OF_COSTS


class Trees:
    """Trees, with the methods of the reference implementation."""

    def __init__(self) -> None:
        self.trees = make_trees(N_INPUTS, K, costs=True)
        self.fit, self.row = make_fit(N_INPUTS, K, costs=True), make_row()

    def _take(self, inputs: list[tuple[int, float]]) -> None:
        begin_row(self.row)
        for at, value in inputs:
            add_input(self.row, at, value)

    def score(self, inputs: list[tuple[int, float]]) -> NDArray[np.float64]:
        self._take(inputs)
        score = np.full(K, np.nan)
        k = int(self.trees.outputs[self.trees.tally[Grown.MODEL]])
        score_trees(self.trees, self.row, k, score)
        return score[:k]

    def learn(self, inputs: list[tuple[int, float]], action: int, cost: float, weight: float, k: int) -> None:
        self._take(inputs)
        learn_trees(self.trees, self.fit, self.row, k, LoggedOutput(action, weight, cost))

    def learnt(self, events: list[Event], k: int = K) -> Trees:
        for event in events:
            self.learn(*event, k)
        return self

    def reloaded(self, **changes: Any) -> Trees:
        state = trees_state(self.trees)
        assert state is not None
        loaded = Trees()
        restore_trees(Stored(state | changes), loaded.trees, n_inputs=N_INPUTS, outputs=K)
        return loaded


def events(n: int, *, seed: int = 5, scale: float = 1.0, numbers: int = 2, words: int = 12) -> list[Event]:
    """Return events whose cost depends on the action with a number and with one of the words."""
    draw, made = np.random.default_rng(seed), []
    for number in range(n):
        values = draw.normal(0.0, 1.0, numbers).astype(np.float32).tolist()
        inputs = [(1 + at, value) for at, value in enumerate(values)]
        word = int(draw.integers(words))
        inputs += [(20 + word, 1.0), (20 + words, 1.0)]
        inputs += [(40 + at, 1.0) for at in range(4) if draw.random() < 0.6]
        action = int(draw.integers(K))
        seen = values[0] > 0.2 * action if values else word % 3 == 0
        cost = scale * (float(seen) + (word % K == action) + 0.1 * draw.normal())
        made.append((inputs, action, cost, [1.0, 0.3, 2.0][number % 3]))
    return made


@pytest.mark.parametrize(
    "stream",
    [{}, {"numbers": 0}, {"numbers": 12, "words": 3}, {"scale": 1e-5}, {"words": 18, "scale": 1e4}],
    ids=["numbers and words", "words", "numbers", "small costs", "large costs"],
)
def test_scores_are_those_of_the_reference(stream: dict[str, Any]) -> None:
    trees, reference, learnt = Trees(), CostTrees(), 0.0
    scale = stream.get("scale", 1.0)
    for number, (inputs, action, cost, weight) in enumerate(events(1150, **stream)):
        k = K if number > 560 else K - 1  # an action that is newer than the first fit
        if number % 7 == 0:
            expected = reference.score(inputs)
            assert trees.score(inputs) == pytest.approx(expected, abs=1e-5 * scale, rel=1e-5)
            learnt = max(learnt, np.ptp(expected) if len(expected) else 0.0)
        for each in (trees, reference):
            each.learn(inputs, min(action, k - 1), cost, weight, k)
    assert learnt > 0.5 * scale


@pytest.mark.ci
def test_scores_are_those_of_the_reference_when_the_first_rows_are_gone() -> None:
    trees, reference = Trees(), CostTrees()
    for inputs, action, cost, weight in events(ROWS + 200):
        reference.fit_at = max(reference.fit_at, ROWS + 100)  # the reference is slow: it fits once
        trees.trees.tally[Grown.FIT] = max(trees.trees.tally[Grown.FIT], ROWS + 100)
        for each in (trees, reference):
            each.learn(inputs, action, cost, weight, K)
    for inputs, _, _, _ in events(50):
        assert trees.score(inputs) == pytest.approx(reference.score(inputs), abs=1e-5)


def test_trees_predict_costs_that_depend_on_action_and_context_together() -> None:
    trees, asked = Trees().learnt(events(2500)), events(300, seed=8)
    errors = [trees.score(inputs)[action] - cost for inputs, action, cost, _ in asked]
    assert np.mean(np.square(errors)) < 0.3 * np.var([cost for _, _, cost, _ in asked])


def test_fits_follow_when_events_have_doubled() -> None:
    trees, changes, model = Trees(), [], 0
    for number, event in enumerate(events(2200), 1):
        trees.learn(*event, K)
        if trees.trees.tally[Grown.MODEL] != model:
            model = int(trees.trees.tally[Grown.MODEL])
            changes.append(number)
    assert changes == [fit + ROUNDS_OF_COSTS - 1 for fit in (512, 1024, 2048)]


@pytest.mark.parametrize("learnt", [100, FIRST_OF_COSTS, FIRST_OF_COSTS + 20, 900, ROWS + 300])
def test_trees_that_forget_continue_like_new_ones_with_the_latest_rows(learnt: int) -> None:
    before, after = events(learnt), events(FITTED, seed=9)
    trees, new = Trees().learnt(before), Trees()
    forget_rows(trees.trees, trees.fit, FIRST_OF_COSTS)
    if learnt >= FIRST_OF_COSTS:
        new.trees.tally[Grown.FIT] += 1
    new.learnt(before[-FIRST_OF_COSTS:]).learnt(after)
    trees.learnt(after)
    for inputs, _, _, _ in events(30, seed=3):
        np.testing.assert_array_equal(trees.score(inputs), new.score(inputs))
    assert trees.trees.tally[Grown.FIT] == new.trees.tally[Grown.FIT]


def test_equal_costs_grow_no_tests() -> None:
    stream = [(inputs, action, 3.0, weight) for inputs, action, _, weight in events(FITTED)]
    assert Trees().learnt(stream).score(stream[0][0]) == pytest.approx(np.full(K, 3.0))


@pytest.mark.parametrize("saved", [300, FIRST_OF_COSTS, FIRST_OF_COSTS + 20, FITTED - 1, 1100])
def test_a_restored_state_continues_to_the_same_state(saved: int) -> None:
    stream = events(1200)
    trees = Trees().learnt(stream[:saved])
    loaded = trees.reloaded().learnt(stream[saved:])
    np.testing.assert_equal(trees_state(trees.learnt(stream[saved:]).trees), trees_state(loaded.trees))


def test_a_predict_only_model_has_no_rows() -> None:
    trees, asked = Trees().learnt(events(700)), events(20)
    small = trees_to_predict(trees.trees)
    state = trees_state(small)
    assert state is not None
    assert state.keys() == {"model"}
    restored = trees_to_predict(make_trees(N_INPUTS, K, costs=True))
    for stored in (state, trees_state(trees.trees)):
        restore_trees(Stored(stored), restored, n_inputs=N_INPUTS, outputs=K)
        for inputs, *_ in asked:
            other = Trees()
            other.trees = restored
            np.testing.assert_array_equal(other.score(inputs), trees.score(inputs))
    assert trees_state(trees_to_predict(Trees().trees)) is None


def test_a_forged_state_is_rejected() -> None:
    trees = Trees().learnt(events(FIRST_OF_COSTS + 5))
    state = trees_state(trees.trees)
    assert state is not None
    for changes in (
        {"cost": state["cost"][1:]},
        {"cost": state["cost"] * np.float32(np.nan)},
        {"length": state["length"] * 0 + WIDTH + 1},
        {"code": state["code"] + K},
        {"model": state["next"]},
    ):
        with pytest.raises(ValueError, match=r"and not|has a"):
            trees.reloaded(**changes)


def branch(trees: Trees, inputs: NDArray[np.int64] | None = None, outputs: Any = None) -> TreeBranch:
    inputs = np.arange(N_INPUTS) if inputs is None else inputs
    return TreeBranch(trees.trees, inputs, np.arange(K) if outputs is None else np.asarray(outputs))


def merged(*parts: TreeBranch) -> Trees:
    trees = Trees()
    trees.trees = merge_trees(parts[0], parts[1:])
    return trees


def test_merged_trees_have_the_rows_of_all_branches() -> None:
    base = Trees().learnt(events(400))
    one, other = (base.reloaded().learnt(events(n, seed=n)) for n in (300, 150))
    both = merged(branch(base), branch(one), branch(other))
    assert both.trees.tally[Grown.EVENTS] == 850
    costs = [cost for n, seed in ((400, 5), (300, 300), (150, 150)) for _, _, cost, _ in events(n, seed=seed)]
    assert sorted(both.trees.cost[:850].tolist()) == sorted(np.array(costs, np.float32).tolist())
    assert set(both.trees.cost[400:430].tolist()) & set(one.trees.cost[400:430].tolist())
    assert set(both.trees.cost[820:850].tolist()) & set(other.trees.cost[540:550].tolist())
    asked = events(10, seed=3)
    for inputs, *_ in asked:
        np.testing.assert_array_equal(both.score(inputs), one.score(inputs))
    again = merged(branch(base), branch(other), branch(one))
    np.testing.assert_equal(trees_state(both.trees), trees_state(again.trees))
    state = trees_state(both.reloaded().learnt(events(700)).trees)
    assert state is not None
    np.testing.assert_equal(state, trees_state(both.learnt(events(700)).trees))


def test_a_fit_that_was_due_begins_after_a_merge() -> None:
    base = Trees().learnt(events(300))
    ends = [base.reloaded().learnt(events(200, seed=seed)) for seed in (1, 2)]
    both = merged(branch(base), *map(branch, ends))
    assert not len(both.score([]))
    both.learnt(events(ROUNDS_OF_COSTS, seed=3))
    assert len(both.score([])) == K


def test_a_merge_maps_inputs_and_actions() -> None:
    base, stream = Trees(), events(700)
    one = base.reloaded().learnt(stream)
    inputs = np.roll(np.arange(N_INPUTS), 7)
    outputs = [2, 0, 4, 1, 3]
    moved = merged(branch(base), branch(one, inputs, outputs))
    for known, *_ in stream[:20]:
        score = moved.score([(int(inputs[at]), value) for at, value in known])
        np.testing.assert_array_equal(score[outputs], one.score(known))
    fewer = merged(
        branch(base), branch(one, np.where(np.arange(N_INPUTS) == 1, -1, inputs), [0, 1, -1, 2, 3])
    )
    fewer.reloaded().learnt(events(900))
    assert len(fewer.score([])) == 4


def test_a_branch_that_learnt_nothing_changes_nothing() -> None:
    base = Trees().learnt(events(FIRST_OF_COSTS + 10))
    one = base.reloaded().learnt(events(100, seed=1))
    alone = merged(branch(base), branch(one))
    beside = merged(branch(base), branch(one), branch(base))
    np.testing.assert_equal(trees_state(alone.trees), trees_state(beside.trees))
