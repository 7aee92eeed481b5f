"""``--keep_unrewarded``: the events that are left out, and unbiased weights, tests and averages."""

from __future__ import annotations

import io
import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bench.clicks import stream
from onlineauto import AutoML, AutoMLRegressor, Workspace
from onlineauto.engine.event.outcomes import Outcomes
from onlineauto.errors import OptionError
from onlineauto.estimators.paired_kernels import BETTER, LANES, SIZE, EventTerms, observe_counted
from onlineauto.evaluation.evaluation import Evaluation
from onlineauto.jit import kernel
from onlineauto.service.learning.values import Values
from onlineauto.workspace.run import Run

SHARE = 0.1


def log(rewards: NDArray[Any], *, names: str = "ab", seed: int = 0) -> bytes:
    """Events of these rewards, whose features are called differently by `names`."""
    draw, text = np.random.default_rng(seed), []
    for each in rewards:
        logged = int(draw.integers(2))
        lines = [
            f"{f'0:{-int(each)}:0.5 ' if a == logged else ''}|a {name}\n" for a, name in enumerate(names)
        ]
        text.append(f"shared |u {names}{draw.integers(3)}\n{''.join(lines)}\n")
    return "".join(text).encode()


def all_outcomes(data: bytes, **options: Any) -> tuple[Workspace, list[Outcomes]]:
    workspace = Workspace(cb_explore_adf=True, **options)
    return workspace, [outcomes for _, outcomes in workspace.stream(data)]


def kept_events(data: bytes, **options: Any) -> NDArray[np.bool_]:
    _, found = all_outcomes(data, keep_unrewarded=SHARE, **options)
    return np.concatenate([np.diff(outcomes.action_start) > 0 for outcomes in found])


def test_all_rewarded_events_are_kept_and_the_share_of_the_others() -> None:
    clicked = np.random.default_rng(1).random(4000) < 0.05
    kept = kept_events(log(clicked), automl=2)
    assert kept[clicked].all()
    assert abs(kept[~clicked].mean() - SHARE) < 4 * math.sqrt(SHARE * (1 - SHARE) / (~clicked).sum())


def test_choice_depends_on_position_and_seed_and_not_on_features() -> None:
    clicked = np.random.default_rng(1).random(2000) < 0.05
    kept = kept_events(log(clicked))
    assert (kept == kept_events(log(clicked, names="xy", seed=5), automl=3)).all()
    other = kept_events(log(clicked), random_seed=1)
    both = (kept & other)[~clicked].mean()
    assert both < 2.5 * SHARE * SHARE


def test_resumed_run_equals_an_uninterrupted_one() -> None:
    clicked = np.random.default_rng(2).random(3000) < 0.05
    data = log(clicked)
    options: dict[str, Any] = {"cb_explore_adf": True, "automl": 3, "keep_unrewarded": SHARE}
    whole, file = Run(Workspace(**options), data), io.BytesIO()
    whole.step()
    first = Run(Workspace(**options), data)
    first.step(1234)
    first.checkpoint(file)
    again = Run.resume(file.getvalue(), data)
    again.step(100)
    again.step()
    ends = [io.BytesIO(), io.BytesIO()]
    whole.checkpoint(ends[0])
    again.checkpoint(ends[1])
    assert ends[0].getvalue() == ends[1].getvalue()


def test_single_events_and_blocks_learn_the_same() -> None:
    clicked = np.random.default_rng(3).random(600) < 0.1
    data, one = log(clicked), Workspace(cb_explore_adf=True, automl=2, keep_unrewarded=SHARE)
    block, _ = all_outcomes(data, automl=2, keep_unrewarded=SHARE)
    lengths = [len(one.learn(text + "\n")) for text in data.decode().split("\n\n") if text]
    assert set(lengths) == {0, 2}
    assert (one.weights == block.weights).all()


def test_average_loss_is_that_of_all_events() -> None:
    clicked = np.random.default_rng(4).random(1000) < 0.1
    _, found = all_outcomes(log(clicked), keep_unrewarded=SHARE)
    assert sum(outcomes.labelled.sum() for outcomes in found) == 1000
    assert sum(len(outcomes.loss) for outcomes in found) == 1000
    loss = np.concatenate([outcomes.loss for outcomes in found])
    assert ((loss < 0) == clicked).all()


def increments(w1: float, w0: float, r: float, times: float) -> float:
    state, scale = np.zeros(SIZE), np.array([0.0, 1.0, 0.25, 0.0, 0.0, 0.0])
    observe_counted(state, scale, (w1, w0), r, (0.3, 0.2), EventTerms(0.0, times, 1 / SHARE))
    return float(state[0])


@pytest.mark.ci
def test_increments_of_kept_events_sum_to_those_of_all_on_average() -> None:
    """The mean of the sums over seeds is the sum over all events, within four standard errors."""
    draw, n = np.random.default_rng(5), 300
    logged, clicked = draw.integers(4, size=n), draw.random(n) < 0.1
    events = [(4.0 * (a == 1), 4.0 * (a == 0), float(r)) for a, r in zip(logged, clicked, strict=True)]
    single = np.array([increments(*event, 1.0) for event in events])
    scaled = np.array([increments(*event, 1 / SHARE) for event in events])
    assert scaled == pytest.approx(single / SHARE)
    rewarded = clicked.astype(bool)
    sums = [
        single[rewarded].sum() + scaled[~rewarded & (np.random.default_rng(seed).random(n) < SHARE)].sum()
        for seed in range(4000)
    ]
    assert abs(np.mean(sums) - single.sum()) < 4 * np.std(sums) / math.sqrt(len(sums))
    assert np.std(sums) > 0


@kernel
def most_evidence(
    draws: NDArray[np.float64],
    lift: float,
    share: float,
    scale: NDArray[np.float64],
    state: NDArray[np.float64],
    before: NDArray[np.float64],
) -> tuple[float, float]:
    """Return the most evidence for a challenger ever, and the least factor of a wealth of its bets.

    Action 0 has a click rate of 0.02, action 1 `lift` times that; each is logged in half of the events.
    """
    most, least = 0.0, 1.0
    for t in range(len(draws)):
        first = draws[t, 0] < 0.5
        r = 1.0 if draws[t, 1] < (0.02 * lift if first else 0.02) else 0.0
        if r == 0.0 and draws[t, 2] >= share:
            continue
        times = 1.0 if r > 0.0 else 1.0 / share
        for i in range(len(state)):
            before[i] = state[i]
        w1, w0 = (2.0, 0.0) if first else (0.0, 2.0)
        observe_counted(state, scale, (w1, w0), r, (0.02, 0.02), EventTerms(0.0, times, 1.0 / share))
        for i in range(LANES, len(state)):
            if before[i] > 1e-100:
                least = min(least, state[i] / before[i])
        most = max(most, state[BETTER])
    return most, least


def evidence_of(seed: int, lift: float, *, floor: float = 0.5, learnt: float = 1.0) -> tuple[float, float]:
    scale = np.array([0.0, 1.0, floor, 0.0, 0.0, learnt])
    draws = np.random.default_rng(seed).random((3000, 3))
    return most_evidence(draws, lift, SHARE, scale, np.zeros(SIZE), np.zeros(SIZE))


@pytest.mark.parametrize(("floor", "learnt"), [(0.5, 1.0), (0.5, 0.0), (0.0, 0.0)])
def test_error_under_the_null_is_at_most_the_level(floor: float, learnt: float) -> None:
    found = np.array([evidence_of(seed, 1.0, floor=floor, learnt=learnt) for seed in range(400)])
    for level in (0.05, 0.2):
        assert (found[:, 0] >= 1 / level).mean() <= level + 4 * math.sqrt(level * (1 - level) / 400)
    assert (found[:, 0] > 1).any()
    assert (found[:, 1] >= 0.25 - 1e-9).all()  # no event takes more than ¾ of a bet


def test_better_challenger_is_found() -> None:
    found = np.array([evidence_of(seed, 4.0)[0] for seed in range(40)])
    assert (found >= 20).mean() > 0.9


def test_estimates_contain_what_policies_earn() -> None:
    """The mean of kept costs alone would be nine times too large."""
    text, clicks = stream(0, rate=0.01, n=12_000)
    workspace = Workspace(cb_adf=True, automl=3, keep_unrewarded=SHARE)
    for _ in workspace.stream(text):
        pass
    low, high = workspace.estimates.lower(0), workspace.estimates.upper(0)
    assert low < 2 * clicks.mean() < high < 0.15


@pytest.mark.parametrize("options", [{"automl": 3}, {"quadratic": ["::"]}])
def test_learnt_level_is_that_of_all_events(options: dict[str, Any]) -> None:
    """Rewards have both signs, because scores of clicks have no level to learn.

    If costs are only -1 and 0, a score above 0 counts as 0 when it is learnt, so an event without a click
    does not lower it. Scores then rank actions, but their mean is far from that of the costs: with a click
    rate of 0.01, the champion's mean is between +0.2 and +0.27, although it learns all events.
    """
    rewards = np.random.default_rng(9).choice([0, 2, -1], size=8000, p=[0.8, 0.15, 0.05])
    workspace = Workspace(cb_adf=True, keep_unrewarded=SHARE, **options)
    scores = np.concatenate([outcomes.score for _, outcomes in workspace.stream(log(rewards))])
    assert -scores[len(scores) // 2 :].mean() == pytest.approx(rewards.mean(), rel=0.2)
    assert rewards[rewards != 0].mean() > 4 * rewards.mean()  # of the events that are kept, most are these


def test_values_of_policies_in_a_service_are_unbiased() -> None:
    clicked = np.random.default_rng(7).random(20_000) < 0.05
    kept, whole = Values(), Values()
    for outcomes in all_outcomes(log(clicked), keep_unrewarded=SHARE, epsilon=0.2)[1]:
        kept.take(outcomes, explored=True, kept=SHARE)
    for outcomes in all_outcomes(log(clicked), epsilon=0.2)[1]:
        whole.take(outcomes, explored=True)
    for one, other in zip(kept.values(), whole.values(), strict=True):
        assert one.events == other.events == 20_000
        assert one.reward == pytest.approx(other.reward, rel=0.1), one.policy


def test_share_of_one_changes_nothing() -> None:
    data = log(np.random.default_rng(8).random(500) < 0.3)
    assert (
        all_outcomes(data, automl=2)[0].weights
        == all_outcomes(data, automl=2, keep_unrewarded=1.0)[0].weights
    ).all()


def test_bandits_of_python_accept_it() -> None:
    bandit = AutoML(keep_unrewarded=0.5, seed=1)
    for step in range(100):
        bandit.learn(
            {"u": "a"}, [{"x": 1}, {"y": 1}], action=step % 2, probability=0.5, reward=step % 10 == 0
        )
    assert bandit.events == 100
    assert bandit.average_reward == pytest.approx(0.1, abs=0.08)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"automl": 2}, "keep_unrewarded"),
        ({"ccb_explore_adf": True}, "keep_unrewarded"),
        ({"cb_explore_adf": True, "automl": 2, "estimator": "robust"}, "--estimator robust"),
        ({"cb_explore_adf": True, "epsilon_decay": True}, "--epsilon_decay"),
        ({"cb_explore_adf": True, "automl": 2, "cost_range": "1,2"}, "contains 0"),
        ({"cb_explore_adf": True, "vw_exact": True}, "keep_unrewarded"),
    ],
)
def test_options_that_contradict_it_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        Workspace(keep_unrewarded=SHARE, **options)


def test_regression_and_evaluation_reject_it() -> None:
    with pytest.raises(OptionError, match="keep_unrewarded"):
        AutoMLRegressor(keep_unrewarded=SHARE)
    with pytest.raises(OptionError, match="keep_unrewarded"):
        Evaluation({"a": Workspace(cb_explore_adf=True, keep_unrewarded=SHARE)})
