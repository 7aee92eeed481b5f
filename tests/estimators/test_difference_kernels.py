"""The test of loss differences of unknown range: power and false alarms."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from onlineauto.estimators.difference_kernels import (
    BOUND,
    RESTARTS,
    SPREAD_SIZE,
    observe_any_difference,
    observe_difference_within,
    share,
)
from onlineauto.estimators.paired import ChampionTest
from onlineauto.estimators.paired_kernels import BETTER, SIZE, is_better
from onlineauto.jit import kernel, local_array

EVENTS, STREAMS, LEVEL = 6000, 100, 0.05
_state, _spread = local_array(SIZE, np.float64), local_array(SPREAD_SIZE, np.float64)


@kernel
def found_after(differences: NDArray[np.float64], at_level: float) -> int:
    """Return the number of events until the challenger is proved better; 0 if it never is."""
    state, spread = _state(), _spread()
    state[:] = spread[:] = 0.0
    for i in range(len(differences)):
        observe_any_difference(state, spread, differences[i], 0.0)
        if is_better(state, at_level * share(spread)):
            return i + 1
    return 0


@kernel
def found_within(differences: NDArray[np.float64], reaches: NDArray[np.float64], at_level: float) -> int:
    """Return the number of events until a proof if the range of each event is known; 0 if there is none."""
    state, spread = _state(), _spread()
    state[:] = spread[:] = 0.0
    for i in range(len(differences)):
        observe_difference_within(state, spread, differences[i], reaches[i])
        if is_better(state, at_level * share(spread)):
            return i + 1
    return 0


def of_predictions(rng: np.random.Generator, gain: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return gains and ranges for rare labels of 0 or 1; one event in 20 counts 20 times."""
    one, other = rng.uniform(0.0, 0.4, (2, EVENTS))
    chance = (one + other) / 2.0 + gain * (other - one)
    label, counts = rng.random(EVENTS) < chance, np.where(rng.random(EVENTS) < 0.05, 20.0, 1.0)
    sizes = [np.abs((one - each) ** 2 - (other - each) ** 2) for each in (0.0, 1.0)]
    return counts * ((one - label) ** 2 - (other - label) ** 2), counts * np.maximum(*sizes)


def test_false_alarms_are_rare_with_known_ranges() -> None:
    logs = [of_predictions(np.random.default_rng(seed), 0.0) for seed in range(STREAMS)]
    found = sum(found_within(*log, LEVEL) > 0 for log in logs)
    assert found <= STREAMS * LEVEL + 4 * np.sqrt(STREAMS * LEVEL)


def test_a_gain_is_found_sooner_with_known_ranges() -> None:
    logs = [of_predictions(np.random.default_rng(seed), 0.5) for seed in range(20)]
    within = [found_within(*log, LEVEL) or EVENTS for log in logs]
    without = [found_after(log[0], LEVEL) or EVENTS for log in logs]
    assert np.median(within) < 0.5 * np.median(without)


def gaussian(rng: np.random.Generator) -> NDArray[np.float64]:
    return rng.normal(size=EVENTS)


def heavy(rng: np.random.Generator) -> NDArray[np.float64]:
    return rng.standard_t(1.5, EVENTS)


def shrinking(rng: np.random.Generator) -> NDArray[np.float64]:
    """Return differences of losses of models that learn."""
    return rng.choice([-1.0, 1.0], EVENTS) * np.exp(-np.arange(EVENTS) / 400)


def bursts(rng: np.random.Generator) -> NDArray[np.float64]:
    """Return differences with alternating variance."""
    return rng.normal(size=EVENTS) * np.where(np.arange(EVENTS) // 500 % 2, 20.0, 1.0)


def alternating(rng: np.random.Generator) -> NDArray[np.float64]:
    """Return gains for a while, then losses for as long."""
    return rng.normal(size=EVENTS) - 0.2 * np.where(np.arange(EVENTS) // 200 % 2, -1.0, 1.0)


def skewed(rng: np.random.Generator) -> NDArray[np.float64]:
    """Return small gains, and once in 20 events a loss 19 times as large."""
    return np.where(rng.random(EVENTS) < 0.05, -19.0, 1.0)


NULLS = [gaussian, heavy, shrinking, bursts, alternating, skewed]


@pytest.mark.parametrize("draw", NULLS, ids=lambda draw: draw.__name__)
def test_false_alarms_are_rare_with_learnt_ranges(draw: Callable[..., NDArray[np.float64]]) -> None:
    found = sum(found_after(draw(np.random.default_rng(seed)), LEVEL) > 0 for seed in range(STREAMS))
    assert found <= STREAMS * LEVEL + 4 * np.sqrt(STREAMS * LEVEL)


def test_a_gain_is_found() -> None:
    for seed in range(20):
        rng = np.random.default_rng(seed)
        assert 0 < found_after(rng.normal(0.3, 1.0, EVENTS), LEVEL) < 1500


def test_one_large_loss_bounds_later_gains_for_a_while() -> None:
    """After a large loss small gains prove less for as many events again, but not forever."""
    state, spread = np.zeros(SIZE), np.zeros(SPREAD_SIZE)
    small = np.random.default_rng(0).normal(0.2, 1.0, 20_000)
    for d in (*small[:100], -800.0):
        observe_any_difference(state, spread, d, 0.0)
    assert spread[BOUND] == 800
    before = state[BETTER]
    for d in small[:100]:
        observe_any_difference(state, spread, d, 0.0)
    assert spread[BOUND] == 800
    assert state[BETTER] < 1.1 * before
    for d in small:
        observe_any_difference(state, spread, d, 0.0)
    assert spread[BOUND] < 50
    assert spread[RESTARTS] >= 1
    assert is_better(state, LEVEL * share(spread))


def test_nan_counts_as_no_difference() -> None:
    state, spread = np.zeros(SIZE), np.zeros(SPREAD_SIZE)
    for d in (np.nan, np.inf, -np.inf):
        observe_any_difference(state, spread, d, 0.0)
    assert not state.any()
    assert not spread.any()


def test_all_restarts_together_have_one_level() -> None:
    spread = np.zeros(SPREAD_SIZE)
    parts = []
    for restarts in range(60):
        spread[RESTARTS] = restarts
        parts.append(share(spread))
    assert sum(parts) == pytest.approx(1.0)
    assert parts[0] == 0.5


def test_the_bound_can_be_learnt() -> None:
    test = ChampionTest(alpha=0.05)
    for d in np.random.default_rng(1).normal(0.5, 1.0, 2000):
        test.update_difference(float(d))
    assert test.better
    assert not test.worse
    assert test.updates == 2000
