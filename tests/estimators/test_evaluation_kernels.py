"""Off-policy estimates, compared with their reference implementation."""

from __future__ import annotations

import numpy as np
import pytest

from onlineauto.estimators.evaluation_kernels import (
    DR,
    ESTIMATES,
    EVENTS,
    IPS,
    OBSERVED,
    REWARDS,
    SNIPS,
    SQUARES,
    WEIGHTS,
    Logged,
    bounds_of,
    evaluate_events,
    make_evidence,
)
from tests.naive.evaluation import Evaluator

FLOOR = 0.1


def logged(seed: int, n: int, *, low: float = 0.0, high: float = 1.0) -> Logged:
    """Return events of two actions; some predictions are out of range."""
    draw = np.random.default_rng(seed)
    probability = draw.choice([FLOOR, 0.4, 0.5], n)
    first = draw.random(n)
    pmf = np.column_stack([first, 1 - first]).ravel()
    action = 2 * np.arange(n) + draw.integers(2, size=n)
    width = high - low
    return Logged(
        weight=pmf[action] / probability,
        reward=draw.choice([low, high], n),
        probability=probability,
        action=action,
        start=np.column_stack([2 * np.arange(n), 2 * np.arange(n) + 2]),
        predicted=draw.uniform(low - width / 4, high + width / 4, 2 * n),
        pmf=pmf,
    )


@pytest.mark.parametrize("seed", range(4))
def test_estimates_equal_the_reference(seed: int) -> None:
    low, high = [(0.0, 1.0), (-3.0, 5.0)][seed % 2]
    events = logged(seed, 300, low=low, high=high)
    evidence = make_evidence(low, high, floor=FLOOR)
    bounds = np.empty((300, 3, 2))
    evaluate_events(evidence, events, 0.05, bounds)
    twin = Evaluator(low, high, FLOOR, 0.05)
    for i, after in enumerate(bounds):
        pmf, costs = events.pmf[2 * i : 2 * i + 2], events.predicted[2 * i : 2 * i + 2].clip(low, high)
        predicted = costs[events.action[i] - 2 * i]
        twin.add(
            float(events.weight[i]), float(events.reward[i]), float(predicted), float((pmf * costs).sum())
        )
        assert after[DR] == pytest.approx(twin.interval(), rel=1e-9, abs=1e-9)
    totals = evidence.totals
    assert totals[[EVENTS, OBSERVED]].tolist() == [300, 300]
    assert totals[WEIGHTS] == pytest.approx(events.weight.sum())
    assert totals[SQUARES] == pytest.approx((events.weight**2).sum())
    assert totals[REWARDS] == pytest.approx((events.weight * events.reward).sum())
    assert totals[ESTIMATES] == pytest.approx(sum(twin.xs))


def test_intervals_of_the_logging_policy_allow_for_the_drawn_actions() -> None:
    """Rewards follow from actions and are predicted perfectly, so actions alone make the mean uncertain."""
    covered = 0
    for seed in range(100):
        action = (np.random.default_rng(seed).random(600) >= 0.8).astype(np.int64)
        events = Logged(
            weight=np.ones(600),
            reward=np.where(action == 0, 1.0, 0.0),
            probability=np.where(action == 0, 0.8, 0.2),
            action=2 * np.arange(600) + action,
            start=np.column_stack([2 * np.arange(600), 2 * np.arange(600) + 2]),
            predicted=np.tile([1.0, 0.0], 600),
            pmf=np.zeros(0),
        )
        evidence = make_evidence(np.inf, -np.inf, floor=1.0)
        evaluate_events(evidence, events, 0.05, np.empty((0, 3, 2)))
        low, high = bounds_of(evidence, DR, 0.05)
        covered += low <= 0.8 <= high
    assert covered >= 95


def test_blocks_of_any_size_give_the_same() -> None:
    whole, parts = (make_evidence(np.inf, -np.inf, floor=None) for _ in "ab")
    events = logged(7, 300)
    evaluate_events(whole, events, 0.05, np.empty((0, 3, 2)))
    for first in range(0, 300, 7):
        rows = slice(first, first + 7)
        names = ("weight", "reward", "probability", "action", "start")
        part = events._replace(**{name: getattr(events, name)[rows] for name in names})
        evaluate_events(parts, part, 0.05, np.empty((0, 3, 2)))
    for one, other in zip(whole, parts, strict=True):
        assert one.tobytes() == other.tobytes()


def test_range_and_floor_are_learnt_before_events_count() -> None:
    evidence = make_evidence(np.inf, -np.inf, floor=None)
    bounds = np.empty((300, 3, 2))
    evaluate_events(evidence, logged(1, 300), 0.05, bounds)
    assert (bounds[:100] == (-np.inf, np.inf)).all()
    assert np.isfinite(bounds[100:]).all()
    assert evidence.totals[OBSERVED] == 200


def test_a_single_value_of_rewards_gives_no_interval() -> None:
    evidence = make_evidence(np.inf, -np.inf, floor=None)
    same = logged(1, 300)._replace(reward=np.ones(300))
    evaluate_events(evidence, same, 0.05, np.empty((0, 3, 2)))
    assert [bounds_of(evidence, way, 0.05) for way in (IPS, SNIPS, DR)] == [(-np.inf, np.inf)] * 3
    assert evidence.totals[OBSERVED] == 0
