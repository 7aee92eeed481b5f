"""Work that the search skips changes nothing: settled comparisons, and cells that no config has learnt."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onlineauto import Workspace
from onlineauto.engine.search.lanes import learnt_cells
from onlineauto.learners.model import write_cells
from tests.engine.test_searching import QUICK, journal_of, state, stream
from tests.naive.native_search.streams import choices
from tests.property.snapshot import named

Options = dict[str, Any]

RULES: list[Options] = [
    {},
    {"sgd": True},
    {"adaptive": True},
    {"normalized": True, "power_t": 0.25},
    {"initial_weight": 0.125, "l1": 1e-4},
    {"cb_type": "ips", "constant": 0.5},
    {"cb_type": "dr"},
    {"cb_type": "dm", "sgd": True, "l2": 1e-3},
]
ORACLES = st.sampled_from(["one_diff", "one_diff_inclusion", "rand", "champdupe", "qbase_cubic"])


def test_cells_learnt_only_by_other_configs_are_left_out() -> None:
    workspace = Workspace(cb_explore_adf=True, automl=2, bit_precision=10, default_lease=60).fit(choices(300))
    model = workspace.learner.model
    unlearnt = workspace.learner.unlearnt
    touched = np.flatnonzero(model.touched)
    write_cells(model, touched[3:], unlearnt[None, :, None], lanes=[1])
    write_cells(model, touched[:3], np.full((3, 4, 1), 2.0, np.float32), lanes=[1])
    cells, weights = learnt_cells(model, [1], unlearnt)
    assert cells.tolist() == touched[:3].tolist()
    assert weights.shape == (3, 4, 1)
    assert (weights == 2.0).all()
    both, _ = learnt_cells(model, [0, 1], unlearnt)
    assert set(cells) < set(both)


def searching(exact: bool, **options: Any) -> Workspace:
    return Workspace(**{**QUICK, "cb_explore_adf": True, "vw_exact": exact, "bit_precision": 10, **options})


@pytest.mark.parametrize("exact", [True, False], ids=["exact", "native"])
@pytest.mark.parametrize("level", [0.05, 0.9])
@pytest.mark.parametrize("oracle", ["one_diff", "one_diff_inclusion"])
def test_repeating_settled_comparisons_changes_no_decision(oracle: str, level: float, exact: bool) -> None:
    options = {"oracle_type": oracle, "automl_significance_level": level, "default_lease": 60}
    options |= {"estimator": "robust"}
    asked, plain = (searching(exact, **options) for _ in range(2))
    again, decisions = journal_of(asked), journal_of(plain)
    settled = 0
    for event in stream(400, seed=3):
        plain.learn(event)
        settled += int(asked.searching.live_configs.arrays.tests.decided.sum())
        asked.searching.live_configs.arrays.tests.decided[:] = False
        asked.learn(event)
    assert again == decisions
    assert state(asked) == state(plain)
    assert settled > 400


@pytest.mark.parametrize("exact", [True, False], ids=["exact", "native"])
@pytest.mark.parametrize("rule", RULES, ids=named)
@settings(max_examples=5)
@given(oracle=ORACLES, seed=st.integers(0, 99), late=st.integers(0, 100))
def test_untouched_cells_are_equal_in_all_lanes(
    rule: Options, exact: bool, oracle: str, seed: int, late: int
) -> None:
    """Moving all cells, as if all were touched, gives the same model."""
    text = "".join(stream(120, seed=seed, late=late)).encode()
    plain, careful = (searching(exact, oracle_type=oracle, **rule) for _ in range(2))
    careful.learner.model.touched[:] = True
    plain.fit(text)
    careful.fit(text)
    assert state(plain) == state(careful)
    untouched = plain.weights[~plain.learner.model.touched]
    assert (untouched == untouched[..., :1]).all()
    bent = not exact and "l1" in rule  # a slot's own penalties are on all that it has not learnt too
    assert len(untouched) > 0 or bent
    assert len(untouched) < len(plain.weights)


@pytest.mark.parametrize("exact", [True, False], ids=["exact", "native"])
def test_untouched_cells_are_equal_after_a_change_of_champion(exact: bool) -> None:
    text = "".join(stream(600)).encode()
    plain, careful = (searching(exact, oracle_type="one_diff_inclusion") for _ in range(2))
    careful.learner.model.touched[:] = True
    assert state(plain.fit(text)) == state(careful.fit(text))
    assert plain.searching.n_switches >= 1
    untouched = plain.weights[~plain.learner.model.touched]
    assert (untouched == untouched[..., :1]).all()


def test_negative_zeros_are_not_replaced() -> None:
    """VW, too, moves only cells that differ."""
    text = "".join(stream(40)).encode()
    one, other = (searching(False) for _ in range(2))
    model = one.learner.model
    model.weights[:, 1:] = model.statistics[:, :, 1:] = -0.0
    assert np.array_equal(one.fit(text).weights, other.fit(text).weights)
    assert np.signbit(one.weights[~one.learner.model.touched][..., 1:]).all()
