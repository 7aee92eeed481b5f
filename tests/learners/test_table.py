"""The shape of the weight table, of both modes."""

from __future__ import annotations

import multiprocessing
import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlineauto.engine.loop.semantics import MakesTable
from onlineauto.exact.semantics import interleaved_lanes
from onlineauto.learners.model import TableShape, _zeros, lanes_side_by_side

pytestmark = pytest.mark.lane("quick")

MAKERS = pytest.mark.parametrize("make", [lanes_side_by_side, interleaved_lanes], ids=["native", "exact"])


def lanes_of(shape: TableShape) -> list[int]:
    """Return the lanes of all parts of all live configs."""
    return [
        config * shape.config_step + part * shape.part_step
        for config in range(shape.configs)
        for part in range(shape.parts)
    ]


@MAKERS
@given(bits=st.integers(5, 18), configs=st.integers(1, 9), parts=st.integers(1, 8))
def test_every_part_has_a_separate_lane(make: MakesTable, bits: int, configs: int, parts: int) -> None:
    shape = make(bits, configs=configs, parts=parts, policies=0)
    lanes = lanes_of(shape)
    assert len(set(lanes)) == configs * parts
    assert max(lanes) < shape.lanes == len(shape.penalised)
    assert max(shape.penalised) < shape.lanes
    cell, lane = shape.constant
    assert cell < shape.cells
    assert lane < shape.lanes
    assert shape.cells & (shape.cells - 1) == 0


@given(configs=st.integers(1, 9), policies=st.integers(1, 4), parts=st.integers(1, 2))
def test_every_policy_of_every_live_config_has_separate_penalties(
    configs: int, policies: int, parts: int
) -> None:
    shape = lanes_side_by_side(10, configs=configs, parts=policies * parts, policies=policies)
    rows = {
        (config, policy): {
            int(shape.penalised[config + (policy * parts + part) * shape.part_step]) for part in range(parts)
        }
        for config in range(configs)
        for policy in range(policies)
    }
    assert all(len(each) == 1 for each in rows.values())
    assert len(set.union(*rows.values())) == configs * policies


def test_lanes_of_exact_mode_share_cells_and_penalties() -> None:
    shape = interleaved_lanes(10, configs=3, parts=2, policies=0)
    assert (shape.cells, shape.lanes) == (128, 8)
    assert not shape.penalised.any()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows cannot fork a process")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
@pytest.mark.parametrize("n", [1 << 10, (1 << 24) + 16])
def test_a_forked_process_has_weights_of_its_own(n: int) -> None:
    weights = _zeros(n)
    child = multiprocessing.get_context("fork").Process(target=weights[:64].fill, args=(np.float32(1.0),))
    child.start()
    child.join()
    assert child.exitcode == 0
    assert not weights[:64].any()
