"""Shrinkage of the ensemble's scores, and the member means."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from onlineauto import Workspace
from onlineauto.engine.ensemble.combiner_kernels import fill_disagreement
from onlineauto.engine.ensemble.ensemble import names_of
from onlineauto.engine.ensemble.shrinkage_kernels import learn_shrinkage, shrink_scores
from onlineauto.engine.records.ensemble import Shrinkage
from tests.naive.means import Shrinkage as Twin


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    events=st.integers(0, 40),
    n=st.integers(2, 6),
    signal=st.sampled_from([-1.0, 0.0, 0.3, 1.0, 3.0]),
    usual=st.sampled_from([-1.0, 0.0, 1.0]),
)
def test_factors_are_those_of_least_squares(
    seed: int, events: int, n: int, signal: float, usual: float
) -> None:
    rng, twin = np.random.default_rng(seed), Twin()
    ensemble = Workspace(cb_explore_adf=True, automl=2).searching.live_configs.arrays.ensemble
    ensemble.range[:] = -1.0, 3.0
    means = -1 - len(names_of(ensemble)) + ensemble.means

    def scores() -> np.ndarray:
        return rng.normal(size=(n, len(ensemble.members.rests) + 3)).astype(np.float32)

    for _ in range(events):
        score, action, own, weight = scores(), int(rng.integers(n)), rng.normal(), rng.exponential()
        level, mean_level = score[:, -1].mean(dtype=float), score[:, means].mean(dtype=float)
        mean = score[action, means] - mean_level
        cost = level + signal * (own - level) + usual * mean + rng.normal()
        learn_shrinkage(ensemble, score, action, n, cost, own, weight)
        twin.learn((own - level) / 4, mean / 4, (cost - level) / 4, weight)
    score = scores()
    expected = twin.shrink(score[:, -1].astype(float), score[:, means].astype(float))
    shrink_scores(ensemble, score, n)
    np.testing.assert_allclose(score[:, -1], expected, rtol=1e-4, atol=1e-5)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), n=st.integers(2, 6))
def test_disagreement_is_the_weighted_mean_square_distance_of_the_members(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    ensemble = Workspace(cb_explore_adf=True, automl=2).searching.live_configs.arrays.ensemble
    members = len(ensemble.members.rests)
    live = (len(ensemble.weights) - 1) // 2 - members  # there are weights of levels too
    ensemble.weights[:] = rng.normal(size=len(ensemble.weights))
    score = rng.normal(size=(n, live + members + 1)).astype(np.float32)
    scored, unsure = rng.random(members) < 0.5, np.zeros(n, np.float32)
    fill_disagreement(ensemble, score, scored, n, unsure)
    works = np.append(np.full(live, True), scored)
    weights = np.maximum(ensemble.weights[: live + members], 0) * works
    apart = score - score.mean(axis=0)
    expected = ((apart[:, :-1] - apart[:, -1:]) ** 2 @ weights) / max(weights.sum(), 1)
    np.testing.assert_allclose(unsure, expected, rtol=1e-4, atol=1e-6)


def test_context_without_information_costs_nothing() -> None:
    rng = np.random.default_rng(4)
    rates, earned, workspace = np.linspace(0.2, 0.5, 8), [], Workspace(cb_explore_adf=True, automl=4)
    for _ in range(3000):
        context = " ".join(f"x{i}:{value:.3f}" for i, value in enumerate(rng.normal(size=20)))
        action, lines = int(rng.integers(8)), [f"shared |c {context}"]
        for other in range(8):
            label = f"0:{-float(rng.random() < rates[other])}:0.125 " if other == action else ""
            lines.append(f"{label}|a a{other}")
        scores = workspace.learn("\n".join(lines) + "\n\n")
        earned.append(rates[int(np.argmax(scores))])
    assert np.mean(earned[1000:]) > 0.47
    assert workspace.searching.live_configs.arrays.ensemble.shrinkage[Shrinkage.EVENTS] > 500
