"""Kernels that copy, swap, take and put lanes, compared with reference implementations over all cells."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from onlineauto.engine.search.lanes import learnt_cells
from onlineauto.exact.semantics import interleaved_lanes
from onlineauto.learners.gradient_kernels import Model
from onlineauto.learners.lane_kernels import copy_lane, put_lane, swap_lanes
from onlineauto.learners.model import FIELDS, initial_table, make_model, read_cells, write_cells
from onlineauto.workspace.options import REGISTRY

pytestmark = pytest.mark.lane("sampled")

CELLS, LANES = 8, 4
UNLEARNT = np.array([0.0, 0.5, 0.0, 0.0], np.float32)
NUMBERS = st.sampled_from([0.0, -0.0, 0.5, 1.0, -3e38])
LEARNT = st.dictionaries(
    st.integers(0, CELLS - 1), st.lists(NUMBERS, min_size=FIELDS * LANES, max_size=FIELDS * LANES)
)
Learnt = dict[int, list[float]]


def model_of(learnt: Learnt) -> Model:
    """Return a model that has learnt these numbers in these cells."""
    configuration = REGISTRY.from_keywords()
    table = initial_table(configuration, cells=CELLS, lanes=LANES)
    shape = interleaved_lanes(5, configs=LANES, parts=1, policies=0)
    model = make_model(configuration, table, shape, training=True)
    write_cells(model, slice(None), np.tile(UNLEARNT[None, :, None], (CELLS, 1, LANES)))
    for cell, numbers in learnt.items():
        model.touched[cell] = True
        write_cells(model, np.array([cell]), np.array(numbers, np.float32).reshape(1, FIELDS, LANES))
    return model


def copied(cells: NDArray[np.float32], source: int, target: int) -> NDArray[np.float32]:
    """Copy a lane like `copy_lane`."""
    found = cells.copy()
    differs = found[..., target] != found[..., source]
    found[differs, target] = found[differs, source]
    return found


def same(one: NDArray[np.float32], other: NDArray[np.float32]) -> bool:
    """Return whether numbers have the same bits."""
    return one.tobytes() == other.tobytes()


@given(LEARNT)
def test_a_lane_is_copied(learnt: Learnt) -> None:
    model = model_of(learnt)
    expected = copied(read_cells(model), 2, 0)
    copy_lane(model, np.flatnonzero(model.touched), 2, 0)
    assert same(read_cells(model), expected)


@given(LEARNT)
def test_lanes_are_swapped(learnt: Learnt) -> None:
    model = model_of(learnt)
    before = read_cells(model)
    swap_lanes(model, np.flatnonzero(model.touched), 1, 3)
    after = read_cells(model)
    assert same(after[..., 1], copied(before, 3, 1)[..., 1])
    assert same(after[..., 3], copied(before, 1, 3)[..., 3])
    assert same(after[..., [0, 2]], before[..., [0, 2]])


@pytest.mark.parametrize("lanes", [[1], [0, 3]])
@given(LEARNT)
def test_cells_of_lanes_are_restored_into_other_lanes(lanes: list[int], learnt: Learnt) -> None:
    model = model_of(learnt)
    before = read_cells(model)
    cells, numbers = learnt_cells(model, lanes, UNLEARNT)
    differs = (before[..., lanes] != UNLEARNT[None, :, None]).any(axis=(1, 2))
    assert cells.tolist() == np.flatnonzero(differs).tolist()
    assert same(numbers, before[differs][..., lanes])
    for part in range(len(lanes)):
        put_lane(model, np.flatnonzero(model.touched), 2, UNLEARNT, cells, numbers, part)
        expected = np.tile(UNLEARNT, (CELLS, 1))
        expected[cells] = numbers[..., part]
        assert (read_cells(model)[..., 2] == expected).all()
        assert same(read_cells(model)[differs, :, 2], expected[differs])
