"""The members baseline and ridge: contexts that move the cost more than the action, and rare rewards."""

from __future__ import annotations

import numpy as np

from bench import clicks
from bench.context_effect import WITHOUT, earned, stream
from onlineauto import Workspace
from onlineauto.engine.ensemble.ensemble import names_of


def test_clicks_are_learnt_although_they_are_rare() -> None:
    more = []
    for seed in range(3):
        text, rates = clicks.stream(seed, rate=0.02, n=8000)
        variants = (clicks.VARIANTS[name] for name in ("default", "without ridge"))
        default, without = (earned(options, text, rates) for options in variants)
        more.append((default - without) / rates.mean())
    assert np.mean(more) > 0.05


def test_default_ensemble_learns_despite_large_effects_of_the_context() -> None:
    text, rewards = stream(0, n=4000)
    by_products = earned({"quadratic": ["::"]}, text, rewards)
    without = earned({"automl": 4, "members": WITHOUT}, text, rewards)
    default = earned({"automl": 4}, text, rewards)
    assert without < by_products - 0.02
    assert default > by_products - 0.005


def test_single_lines_have_no_members_that_need_several_actions() -> None:
    lines = Workspace(automl=2).searching.live_configs.arrays.ensemble
    bandit = Workspace(automl=2, cb_adf=True).searching.live_configs.arrays.ensemble
    assert set(names_of(bandit)) - set(names_of(lines)) == {"layer", "baseline", "ridge", "means"}
    assert (lines.n_levels, bandit.n_levels) == (0, 2 + len(names_of(bandit)))
