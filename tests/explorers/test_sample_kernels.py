"""Drawing an action: by seed and event, and as ``--cb_sample`` does."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlineauto import Workspace
from onlineauto.explorers.exploration import make_exploration
from onlineauto.explorers.ranking_kernels import DRAWN
from onlineauto.explorers.sample_kernels import fnv1a, mix_number, pick_place, put_first
from onlineauto.explorers.sampling import sample, uniform
from onlineauto.workspace.options import REGISTRY

F = np.float32


@given(st.integers(0, 2**64 - 1), st.binary(max_size=20))
def test_kernels_draw_what_python_draws(seed: int, name: bytes) -> None:
    data = np.frombuffer(b"__" + name, np.uint8)
    hashed = fnv1a(data, 2, len(data))
    assert mix_number(np.uint64(seed), np.uint64(hashed)) == F(uniform(seed, name))


def test_numbers_are_even() -> None:
    drawn = np.array([uniform(7, str(event)) for event in range(20_000)])
    assert drawn.min() >= 0
    assert drawn.max() < 1
    counts, _ = np.histogram(drawn, bins=20, range=(0, 1))
    assert ((counts - 1000) ** 2 / 1000).sum() < 45  # chi-square of 19 degrees: 43.8 once in a thousand
    assert abs(np.corrcoef(drawn[1:], drawn[:-1])[0, 1]) < 0.03


def test_actions_are_drawn_by_their_probabilities() -> None:
    pmf = [0.2, 0.0, 0.7, 0.1]
    actions = [sample(pmf, seed=1, event_id=f"e{event}")[0] for event in range(20_000)]
    shares = np.bincount(actions, minlength=4) / len(actions)
    assert np.abs(shares - pmf).max() < 0.012
    assert shares[1] == 0


def test_a_draw_is_that_of_seed_and_event() -> None:
    assert sample([1, 1], seed=3, event_id="a") == sample([0.5, 0.5], seed=3, event_id=b"a")
    drawn = {sample([1] * 100, seed=seed, event_id="a")[0] for seed in range(50)}
    assert len(drawn) > 30


@pytest.mark.parametrize("pmf", [[0.0, 0.0], [-0.1, 1.1], [], [float("nan"), 1.0]])
def test_invalid_distributions_are_rejected(pmf: list[float]) -> None:
    with pytest.raises(ValueError, match="probabilities must be"):
        sample(pmf, seed=0, event_id="a")


def test_places() -> None:
    pmf = np.array([2, 1, 1], np.float32)
    assert [pick_place(pmf.copy(), 3, F(u)) for u in (0, 0.49, 0.5, 0.74, 0.75, 0.99)] == [0, 0, 1, 1, 2, 2]
    pick_place(pmf, 3, F(0))
    assert pmf.tolist() == [0.5, 0.25, 0.25]
    nothing = np.zeros(2, np.float32)
    assert pick_place(nothing, 2, F(0.9)) == 0
    assert nothing.tolist() == [1, 0]


def test_the_logged_action_comes_first() -> None:
    at = make_exploration(REGISTRY.parse("--cb_explore_adf --cb_sample"))
    order, pmf = np.array([2, 0, 1], np.int32), np.array([0.5, 0.3, 0.2], np.float32)
    put_first(at, order, pmf, 1, np.uint64(0), False, True)
    assert order.tolist() == [1, 0, 2]
    assert pmf.tolist() == np.array([0.2, 0.3, 0.5], np.float32).tolist()
    assert at.counts[DRAWN] == 0


EVENTS = "shared seed=tom|u a\n|a x\n|a y\n|a z\n\n"


def test_a_tag_sets_the_seed_of_the_draw() -> None:
    workspace = Workspace(cb_explore_adf=True, cb_sample=True, epsilon=1.0, testonly=True, random_seed=5)
    blocks = list(workspace.stream((EVENTS * 3 + EVENTS.replace("tom", "anna")).encode()))
    actions = np.concatenate([outcomes.action[outcomes.action_start[:-1]] for _, outcomes in blocks])
    assert actions[:3].tolist() == 3 * [sample([1 / 3] * 3, seed=5, event_id="tom")[0]]
    assert actions[3] == sample([1 / 3] * 3, seed=5, event_id="anna")[0]


def test_separate_predictions_do_not_advance_the_draws() -> None:
    text = "shared |u a\n|a x\n|a y\n|a z\n\n"
    one, other = (
        Workspace(cb_explore_adf=True, cb_sample=True, epsilon=1.0, testonly=True) for _ in range(2)
    )
    for _ in range(5):
        other.predict(text)
    first, second = (
        [o.action.tolist() for _, o in each.stream((text * 20).encode())] for each in (one, other)
    )
    assert first == second
    drawn = np.array(first[0])[::3]
    assert set(drawn.tolist()) == {0, 1, 2}
