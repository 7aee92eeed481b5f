"""Cells that are not marked as touched are equal in all lanes, so lanes need no copy of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from onlineauto.exact.semantics import interleaved_lanes
from onlineauto.features.records import RUN
from onlineauto.features.records import Example as Listed
from onlineauto.learners.gradient_kernels import LearnedLabel, Model, ModelLane, Rule, clip, dot, update
from onlineauto.learners.gradient_kernels import see_label as see
from onlineauto.learners.model import initial_table, make_model, read_cells
from onlineauto.learners.rule import make_rule
from onlineauto.workspace.options import REGISTRY
from tests.learners.test_update_kernels import (
    ANY_LABEL,
    LOSSES,
    OTHERS,
    SUBSETS,
    F,
    examples_of,
    learn_four,
    named,
    taught,
)

pytestmark = pytest.mark.lane("sampled")

CELLS, LANES = 32, 4
HUGE = st.sampled_from([1.0, -1.0, 0.5, 1e-20, 1e19, -3e38, 3e38, np.inf, -np.inf]).map(F)
"""Values; an infinite one is a product of finite values that overflowed."""
FEATURES = st.lists(st.tuples(st.integers(0, CELLS - 1), HUGE), max_size=5)
WEIGHTS = st.lists(st.sampled_from([0.0, 1.0, 2.0, 1e30]).map(F), min_size=LANES, max_size=LANES)
EVENTS = st.lists(st.tuples(FEATURES, ANY_LABEL, WEIGHTS), max_size=8)
Events = list[tuple[list[tuple[int, np.float32]], np.float32, list[np.float32]]]


def lanes_agree(cells: NDArray[np.float32], touched: NDArray[np.bool_]) -> bool:
    """Return whether all lanes are equal, except the sign of zeros, in every untouched cell."""
    untouched = cells[~touched]
    return bool((untouched == untouched[..., :1]).all())


@pytest.mark.parametrize("subset", SUBSETS, ids=named)
@settings(max_examples=40)
@given(st.data())
def test_one_lane_at_a_time(subset: dict[str, object], data: st.DataObject) -> None:
    other = data.draw(st.sampled_from(LOSSES + OTHERS))
    examples = data.draw(examples_of(str(other.get("loss_function", "squared"))))
    model = taught(subset | other, examples).model
    assert lanes_agree(read_cells(model), model.touched)


@pytest.mark.parametrize(
    ("options", "x"), [({"learning_rate": 0.0}, 1), ({"invariant": True}, 1e20)], ids=["no rate", "no reach"]
)
def test_cells_that_change_without_a_step_are_marked(options: dict[str, object], x: float) -> None:
    rule, model = made({"adaptive": True, **options}, guarded=False)
    learn(rule, model, [(3, F(x))], F(1), [F(1), F(0), F(0), F(0)])
    assert lanes_agree(read_cells(model), model.touched)


def made(options: dict[str, object], *, guarded: bool) -> tuple[Rule, Model]:
    configuration = REGISTRY.from_keywords(**options)
    table = initial_table(configuration, cells=CELLS, lanes=LANES)
    shape = interleaved_lanes(7, configs=LANES, parts=1, policies=0)
    model = make_model(configuration, table, shape, training=True)
    return make_rule(configuration, guarded=guarded), model


def listed_of(features: list[tuple[int, np.float32]]) -> Listed:
    """Return the features in two runs; lanes 0 and 2 use the second."""
    runs = np.zeros(2, RUN)
    runs["start"], runs["end"], runs["product"] = (
        [0, len(features) // 2],
        [len(features) // 2, len(features)],
        [0, 1],
    )
    holders = np.zeros((2, LANES + 3), bool)
    holders[0, :LANES], holders[1, [0, 2]] = True, True
    cells = np.array([cell for cell, _ in features], np.uint32)
    return Listed(cells, np.array([x for _, x in features], np.float32), runs, 2, holders)


def learn(
    rule: Rule,
    model: Model,
    features: list[tuple[int, np.float32]],
    label: np.float32,
    weight: list[np.float32],
    *,
    fours: bool = False,
) -> None:
    """Learn an example in all lanes whose weight is not 0."""
    listed = listed_of(features)
    see(rule, model.shared, label)
    raw = [F(dot(rule, model, ModelLane(lane, lane), listed, F(0))) for lane in range(LANES)]
    if fours and learn_four(rule, model, listed, np.array(raw), label, np.array(weight)):
        return
    for lane in range(LANES):
        if weight[lane] > 0:
            p = F(clip(model.shared, raw[lane]))
            update(rule, model, ModelLane(lane, lane), listed, p, LearnedLabel(label, weight[lane]), F(1))


RULES: list[dict[str, object]] = [
    {},
    {"initial_t": 2.0, "initial_weight": 0.5},
    {"sgd": True},
    {"normalized": True},
]


@pytest.mark.parametrize("guarded", [True, False], ids=["guarded", "exact"])
@pytest.mark.parametrize("options", RULES, ids=named)
@given(events=EVENTS)
def test_numbers_of_any_size(options: dict[str, object], guarded: bool, events: Events) -> None:
    """Infinite values are kept out by the guarded rule."""
    rule, model = made(options, guarded=guarded)
    for features, label, weight in events:
        learn(rule, model, features, label, weight)
    assert lanes_agree(read_cells(model), model.touched)
    assert not guarded or np.isfinite(model.table).all()
    met = {cell for features, _, weight in events if max(weight) > 0 for cell, _ in features}
    assert set(np.flatnonzero(model.touched).tolist()) <= met


@pytest.mark.parametrize("guarded", [True, False], ids=["guarded", "exact"])
@given(events=EVENTS)
def test_four_lanes_at_a_time(guarded: bool, events: Events) -> None:
    rule, model = made({"initial_weight": 0.5}, guarded=guarded)
    for features, label, weight in events:
        learn(rule, model, features, label, weight, fours=True)
    assert lanes_agree(read_cells(model), model.touched)
    assert not guarded or np.isfinite(model.table).all()
    met = {cell for features, _, weight in events if max(weight) > 0 for cell, _ in features}
    assert set(np.flatnonzero(model.touched).tolist()) <= met
