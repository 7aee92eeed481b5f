"""The member baseline, and streams on which the context moves the cost by more than the action does."""

from __future__ import annotations

from bench.context_effect import WITHOUT, earned, stream
from onlineauto import Workspace
from onlineauto.engine.ensemble.ensemble import names_of


def test_the_default_earns_what_a_context_hides() -> None:
    text, rewards = stream(0, n=4000)
    by_products = earned({"quadratic": ["::"]}, text, rewards)
    without = earned({"automl": 4, "members": WITHOUT}, text, rewards)
    default = earned({"automl": 4}, text, rewards)
    assert without < by_products - 0.02
    assert default > by_products - 0.005


def test_single_lines_have_no_members_that_need_several_actions() -> None:
    lines = Workspace(automl=2).searching.live_configs.arrays.ensemble
    bandit = Workspace(automl=2, cb_adf=True).searching.live_configs.arrays.ensemble
    assert set(names_of(bandit)) - set(names_of(lines)) == {"layer", "baseline", "ridge"}
    assert (lines.n_levels, bandit.n_levels) == (0, 2 + len(names_of(bandit)))
