"""Laws of merging the ends of a round."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from onlineauto import Workspace
from onlineauto.cluster.partitions.merge import merge_weights
from onlineauto.cluster.partitions.state import TableCells
from onlineauto.engine.ensemble.branches import exponential_retention, merge_statistic, shares
from onlineauto.learners.gradient_kernels import GRADIENTS, SCALE


@pytest.mark.parametrize("keeps", [0.9, 0.9995, 1.0])
def test_consecutive_branches_merge_to_the_statistic_of_a_single_learner(keeps: float) -> None:
    rng = np.random.default_rng(1)
    sizes = [3, 40, 1, 700]
    values = [rng.normal(size=n) for n in sizes]

    def learn(start: float, new: np.ndarray[Any, Any]) -> float:
        for value in new:
            start = keeps * start + float(value)
        return start

    base, alone = 2.5, 2.5
    for new in values:
        alone = learn(alone, new)
    ends = [np.array(learn(base, new)) for new in values]
    parts = shares(sizes, exponential_retention(keeps), ordered=True)
    assert float(merge_statistic(base, ends, parts)) == pytest.approx(alone, rel=1e-12)


def table(weights: list[float], gradients: list[float], scales: list[float]) -> TableCells:
    statistics = np.zeros((len(weights), 3, 1), np.float32)
    statistics[:, GRADIENTS, 0], statistics[:, SCALE, 0] = gradients, scales
    return TableCells(np.arange(len(weights)), (np.array(weights, np.float32)[:, None], statistics))


def test_weights_are_averaged_over_the_ends_that_have_learnt_them() -> None:
    rule = Workspace().learner.rule
    base = table([0.0, 1.0, 1.0], [0.0, 2.0, 5.0], [0.0, 1.0, 1.0])
    one = table([0.3, 2.0, 1.0], [4.0, 3.0, 5.0], [1.0, 1.0, 1.0])
    other = table([0.0, 5.0, 1.0], [0.0, 5.0, 5.0], [0.0, 1.0, 1.0])
    merged = merge_weights(base, [one, other], rule)
    weights, statistics = merged.values
    assert weights[0, 0] == np.float32(0.3)  # only one end has the feature
    assert weights[1, 0] == pytest.approx(1.0 + (1.0 + 4.0) / 2.0)
    assert weights[2, 0] == 1.0  # no end has changed it
    assert statistics[:, GRADIENTS, 0].tolist() == [4.0, 6.0, 5.0]
    assert statistics[:, SCALE, 0].tolist() == [1.0, 1.0, 1.0]


def test_an_end_with_a_click_counts_like_one_without() -> None:
    """The squared gradient of a click is far larger, so it must not decide how much an end counts."""
    rule = Workspace().learner.rule
    base = table([0.02], [10.0], [1.0])
    ends = [table([0.1], [11.0], [1.0]), *(table([0.0], [10.01], [1.0]) for _ in range(3))]
    weights, _ = merge_weights(base, ends, rule).values
    assert weights[0, 0] == pytest.approx(0.025)


def test_a_larger_scale_of_one_end_rescales_the_weights_of_others() -> None:
    """Predictions for a value do not change: a weight is stored relative to the scale of its feature."""
    rule = Workspace().learner.rule
    base = table([0.8], [2.0], [1.0])
    grown = table([0.2], [2.0], [4.0])  # the weight that an update leaves when the scale grows to 4
    other = table([0.8], [3.0], [1.0])
    weights, statistics = merge_weights(base, [grown, other], rule).values
    assert weights[0, 0] == pytest.approx(0.2)
    assert statistics[0, SCALE, 0] == 4.0


def test_without_squared_gradients_all_ends_that_change_a_weight_count_alike() -> None:
    rule = Workspace(sgd=True).learner.rule
    assert not rule.adaptive
    base = table([1.0, 1.0], [0.0, 0.0], [0.0, 0.0])
    one, other = (table(weights, [0.0, 0.0], [0.0, 0.0]) for weights in ([2.0, 3.0], [4.0, 1.0]))
    weights, _ = merge_weights(base, [one, other], rule).values
    assert weights[:, 0].tolist() == [3.0, 3.0]
