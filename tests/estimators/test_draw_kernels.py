"""Events that share random draws: their number is estimated, and proofs need more evidence."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onlineauto.estimators.draw_kernels import (
    BY_CHANCE,
    CHANGED,
    DRAWS_SIZE,
    events_per_draw,
    level_per_draw,
    note_draw,
    tell_of_actions,
)
from tests.naive.draws import Draws
from tests.naive.native_search.comparing import is_one_in_eight


def drawn(seed: int, *, events: int, epsilon: float, actions: int, stays: int) -> tuple[np.ndarray, Draws]:
    """Return the states of kernels and reference after a log whose draws are each for `stays` events."""
    rng = np.random.default_rng(seed)
    explores, other = rng.random(events) < epsilon, rng.integers(0, actions, events)
    logged = np.where(explores, other, 0).repeat(stays)[:events]
    state, naive, seen = np.zeros(DRAWS_SIZE), Draws(), np.zeros(actions)
    for action in map(int, logged):
        p = epsilon / actions + (1 - epsilon) * (action == 0)
        note_draw(state, action, seen[action] / max(seen.sum(), 1.0), p)
        naive.note(action, p)
        seen[action] += 1
    return state, naive


@pytest.mark.parametrize(("actions", "epsilon"), [(2, 1.0), (10, 1.0), (10, 0.2), (3, 0.045), (40, 0.1)])
def test_independent_draws_change_nothing(actions: int, epsilon: float) -> None:
    for seed in range(10):
        state, _ = drawn(seed, events=3000, epsilon=epsilon, actions=actions, stays=1)
        assert events_per_draw(state) == 1.0


@pytest.mark.parametrize(("actions", "epsilon"), [(2, 1.0), (10, 1.0), (10, 0.2)])
@pytest.mark.parametrize("stays", [5, 50])
def test_the_number_of_events_per_draw_is_estimated(actions: int, epsilon: float, stays: int) -> None:
    state, _ = drawn(3, events=400 * stays, epsilon=epsilon, actions=actions, stays=stays)
    assert 0.7 * stays < events_per_draw(state) < 1.4 * stays


@pytest.mark.parametrize("rhythm", [1, 2, 3, 8, 50])
def test_one_event_in_eight_is_compared_at_every_phase_of_a_period(rhythm: int) -> None:
    for beat in range(rhythm):
        events = range(beat, 800 * rhythm, rhythm)
        assert sum(map(is_one_in_eight, events)) == pytest.approx(100, abs=8)


@pytest.mark.parametrize("stays", [1, 5, 40, 200])
def test_the_estimate_counts_compared_events_only(stays: int) -> None:
    """Eight times fewer events share a draw if one in eight is compared; none do if sessions are short."""
    rng, state, seen, latest = np.random.default_rng(3), np.zeros(DRAWS_SIZE), np.zeros(10), 0
    for event in range(400 * stays):
        latest = int(rng.integers(10)) if event % stays == 0 else latest
        if is_one_in_eight(event):
            note_draw(state, latest, seen[latest] / max(seen.sum(), 1.0), 0.1)
        seen[latest] += 1
    expected = max(stays / 8, 1.0)
    assert 0.7 * expected < events_per_draw(state) < 1.4 * expected


@given(
    st.integers(0, 99), st.integers(1, 200), st.floats(0.01, 1.0), st.integers(1, 12), st.sampled_from((1, 9))
)
@settings(max_examples=25, deadline=None)
def test_kernels_equal_the_reference(
    seed: int, events: int, epsilon: float, actions: int, stays: int
) -> None:
    state, naive = drawn(seed, events=events, epsilon=epsilon, actions=actions, stays=stays)
    assert events_per_draw(state) == pytest.approx(naive.events)
    assert bool(tell_of_actions(state)) == naive.tell_of_actions
    assert state[CHANGED] == pytest.approx(naive.changed)
    assert state[BY_CHANCE] == pytest.approx(naive.by_chance)


def test_an_action_that_is_always_listed_first_shares_no_draw() -> None:
    state = np.zeros(DRAWS_SIZE)
    for event in range(300):
        note_draw(state, 0, float(event > 0), 0.1)
    assert events_per_draw(state) == 1.0
    assert not tell_of_actions(state)


@pytest.mark.parametrize("events", [20, 100, 101, 250])
def test_the_first_draws_of_a_session_count_as_shared(events: int) -> None:
    state, naive = drawn(3, events=events, epsilon=1.0, actions=4, stays=100)
    assert events_per_draw(state) == naive.events
    assert events_per_draw(state) > 0.3 * min(events, 100)


def test_without_draws_events_count_as_independent() -> None:
    assert tell_of_actions(np.zeros(DRAWS_SIZE))
    assert events_per_draw(np.zeros(DRAWS_SIZE)) == 1.0


def test_false_alarms_of_bets_on_blocks_stay_below_the_level() -> None:
    """Fair coins, 20 events each: the correction keeps proofs below the level; without it they exceed it."""
    rng, level, stays, wrong, naive = np.random.default_rng(0), 0.05, 20, 0, 0
    for _ in range(300):
        gains = np.repeat(rng.choice([-1.0, 1.0], 100), stays)
        wealth = np.cumsum(np.log1p(0.1 * gains)).max()
        wrong += wealth >= -np.log(level_per_draw(level, float(stays)))
        naive += wealth >= -np.log(level)
    assert wrong <= 0.05 * 300 + 4 * np.sqrt(300 * 0.05 * 0.95)
    assert naive > 100
