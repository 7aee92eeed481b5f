"""Boosted trees beside their reference implementation, and their state in a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from onlineauto.learners.tree_kernels import add_input, begin_row, learn_trees, score_trees
from onlineauto.learners.tree_records import FIRST, ROUNDS, ROWS, Grown, LoggedOutput
from onlineauto.learners.trees import (
    make_fit,
    make_row,
    make_trees,
    restore_trees,
    trees_state,
)
from onlineauto.state.stored import Stored
from tests.naive.trees import BoostedTrees

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Event = tuple[list[tuple[int, float]], int, float, int]

pytestmark = pytest.mark.lane("sampled")

N_INPUTS = 80


class Trees:
    """Trees, with the methods of the reference implementation."""

    def __init__(self, outputs: int, *, on: bool = True) -> None:
        self.trees = make_trees(N_INPUTS, outputs, on=on)
        self.fit, self.row = make_fit(N_INPUTS, outputs), make_row()

    def _take(self, inputs: list[tuple[int, float]]) -> None:
        begin_row(self.row)
        for at, value in inputs:
            add_input(self.row, at, value)

    def score(self, inputs: list[tuple[int, float]], k: int) -> NDArray[np.float64]:
        self._take(inputs)
        score = np.full(k, np.nan)
        score_trees(self.trees, self.row, k, score)
        return score

    def learn(self, inputs: list[tuple[int, float]], code: int, weight: float, k: int) -> None:
        self._take(inputs)
        learn_trees(self.trees, self.fit, self.row, k, LoggedOutput(code, weight, 0.0))

    def reloaded(self, **changes: Any) -> Trees:
        outputs = self.trees.base.shape[-1] - 1
        state = trees_state(self.trees)
        assert state is not None
        loaded = Trees(outputs)
        restore_trees(Stored(state | changes), loaded.trees, n_inputs=N_INPUTS, outputs=outputs)
        return loaded


def events(n: int, k: int, *, late: int = 0, odd: bool = False) -> list[Event]:
    """Return events whose class depends on two numbers, one at a time, and on a word."""
    draw, made = np.random.default_rng(5), []
    for number in range(n):
        x, y, z = draw.normal(0.0, 1.0, 3).astype(np.float32).tolist()
        word = int(draw.integers(3))
        inputs = [(1, x), (2, y), (3, float(round(z))), (4 + word, 1.0)]
        if odd:
            inputs += [(10 + at, 1.0) for at in np.flatnonzero(draw.random(66) < 0.98).tolist()]
            inputs[2] = 3, [np.nan, np.inf, -1e35, 1.0][number % 4]
            del inputs[number % 2]
        code = (int(x > 0.3) * (1 + word) + int(y > 0.7)) % k if draw.random() < 0.9 else number % k
        open_outputs = k - (number < late)
        made.append((inputs, min(code, open_outputs - 1), [1.0, 0.3, 2.0][number % 3], open_outputs))
    return made


@pytest.mark.parametrize(
    ("n", "k", "special"),
    [(1300, 2, {}), (700, 3, {}), (1000, 7, {"late": 620}), (700, 2, {"odd": True})],
    ids=["two outputs", "three", "seven, one of them later than the first fit", "odd values, many inputs"],
)
def test_scores_are_those_of_the_reference(n: int, k: int, special: dict[str, Any]) -> None:
    trees, reference, learnt = Trees(k), BoostedTrees(), 0.0
    for number, (inputs, code, weight, outputs) in enumerate(events(n, k, **special)):
        if number % 7 == 0:
            expected = reference.score(inputs, outputs)
            assert trees.score(inputs, outputs) == pytest.approx(expected, abs=1e-5)
            learnt = max(learnt, np.ptp(expected))
        for each in (trees, reference):
            each.learn(inputs, code, weight, outputs)
    assert learnt > 0.5


@pytest.mark.ci
def test_scores_are_those_of_the_reference_when_the_first_rows_are_gone() -> None:
    trees, reference = Trees(2), BoostedTrees()
    for inputs, code, weight, outputs in events(2 * ROWS, 2):
        trees.learn(inputs, code, weight, outputs)
        reference.fit_at = max(reference.fit_at, ROWS + 100)  # the reference is slow: it fits once
        trees.trees.tally[Grown.FIT] = max(trees.trees.tally[Grown.FIT], ROWS + 100)
        reference.learn(inputs, code, weight, outputs)
    assert reference.model is not None
    for inputs, _, _, outputs in events(50, 2):
        assert trees.score(inputs, outputs) == pytest.approx(reference.score(inputs, outputs), abs=1e-5)


def test_a_model_replaces_another_only_when_all_of_its_trees_are_grown() -> None:
    trees = Trees(2)
    asked = events(1, 2)[0][0]
    for number, event in enumerate(events(FIRST + ROUNDS, 2), 1):
        trees.learn(*event)
        assert trees.score(asked, 2).any() == (number >= FIRST + ROUNDS - 1)


@pytest.mark.parametrize("saved", [300, FIRST, FIRST + 20, FIRST + ROUNDS - 1, 800])
def test_a_restored_state_continues_to_the_same_state(saved: int) -> None:
    trees = Trees(3)
    stream = events(900, 3)
    for event in stream[:saved]:
        trees.learn(*event)
    loaded = trees.reloaded()
    for event in stream[saved:]:
        for each in (trees, loaded):
            each.learn(*event)
    one, other = trees_state(trees.trees), trees_state(loaded.trees)
    np.testing.assert_equal(one, other)


def test_disabled_trees_store_nothing() -> None:
    trees = Trees(2, on=False)
    for event in events(700, 2):
        trees.learn(*event)
    assert trees_state(trees.trees) is None
    assert not trees.score(events(1, 2)[0][0], 2).any()


def test_a_forged_state_is_rejected() -> None:
    trees = Trees(2)
    for event in events(FIRST + 5, 2):
        trees.learn(*event)
    state = trees_state(trees.trees)
    assert state is not None
    growing = state["next"]
    for changes in (
        {"length": state["length"] + 1},
        {"length": state["length"] * 0 + 65},
        {"input": state["input"] + np.uint32(N_INPUTS)},
        {"value": state["value"] * np.float32(np.nan)},
        {"code": state["code"] + 2},
        {"weight": -state["weight"]},
        {"fit": 0, "next": None},
        {"next": growing | {"split": growing["split"] + np.uint8(64)}},
        {"next": growing | {"column": growing["column"] * 0 + 1}},
        {"next": growing | {"leaf": growing["leaf"][..., :1]}},
        {"next": growing | {"threshold": growing["threshold"] * np.float32(np.nan)}},
        {"next": growing | {"base": growing["base"][:1]}},
        {"model": growing},
    ):
        with pytest.raises(ValueError, match=r"and not|has a"):
            trees.reloaded(**changes)
