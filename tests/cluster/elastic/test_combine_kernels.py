"""What parts have made of cells is put together as the slow twin does it, bit for bit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onlineauto.cluster.elastic.learning.combine_kernels import FIELDS, BlockCells
from onlineauto.cluster.elastic.learning.rows import Cells, RowShard
from tests.cluster.elastic.naive import combined_lane

if TYPE_CHECKING:
    from numpy.typing import NDArray

CELLS = 8


def drawn_rows(seed: int, n: int, lanes: int) -> NDArray[np.float32]:
    random = np.random.default_rng(seed)
    value = random.normal(size=(n, FIELDS, lanes)).astype(np.float32)
    value[:, 1:] = np.abs(value[:, 1:]) * random.integers(0, 3, size=(n, 2, lanes))
    return value.reshape(n, FIELDS * lanes)


@given(
    seed=st.integers(0, 2**20),
    lanes=st.integers(1, 3),
    parts=st.lists(st.lists(st.integers(0, CELLS - 1), unique=True, max_size=CELLS), max_size=5),
    cut=st.integers(0, 5),
    rescales=st.booleans(),
)
@settings(max_examples=200)
def test_the_kernel_does_what_the_twin_does(
    seed: int, lanes: int, parts: list[list[int]], cut: int, rescales: bool
) -> None:
    before = drawn_rows(seed, CELLS, lanes)
    made = [
        Cells(np.array(sorted(part), np.uint32), drawn_rows(seed + i, len(part), lanes))
        for i, part in enumerate(parts, 1)
    ]
    for each in made:  # evidence and scales only grow
        base = before[each.cell].reshape(-1, FIELDS, lanes)
        grown = each.value.reshape(-1, FIELDS, lanes)
        grown[:, 1] += base[:, 1]
        grown[:, 2] = np.maximum(grown[:, 2], base[:, 2])
    shard = RowShard(BlockCells(before.copy(), np.zeros(CELLS, bool)), lanes=lanes, rescales=rescales)
    of_workers = [each for each in (made[:cut], made[cut:]) if each]
    shard.apply([joined(each) for each in of_workers])
    for cell in range(CELLS):
        found = [each.value[list(each.cell).index(cell)] for each in made if cell in each.cell]
        expected = before[cell].copy()
        if len(found) == 1:
            expected = found[0]
        elif found:
            for lane in range(lanes):
                expected[lane::lanes] = combined_lane(
                    tuple(before[cell][lane::lanes]),
                    [tuple(each[lane::lanes]) for each in found],
                    rescales=rescales,
                )
        assert shard.rows.value[cell].tobytes() == expected.tobytes()
        assert shard.rows.touched[cell] == bool(found)
    keys = np.arange(CELLS, dtype=np.uint32)
    assert shard.read_before(keys).tobytes() == before.tobytes()
    shard.apply([])
    assert shard.read_before(keys).tobytes() == shard.read(keys).tobytes()


def joined(parts: list[Cells]) -> Cells:
    return Cells(
        np.concatenate([each.cell for each in parts]), np.concatenate([each.value for each in parts])
    )


def test_what_several_parts_agree_on_is_what_they_say() -> None:
    """The mean of equal models is that model, and its evidence is that of all."""
    row = np.array([[0.5, 2.0, 1.0]], np.float32)
    shard = RowShard(
        BlockCells(np.array([[0.25, 1.0, 1.0]], np.float32), np.zeros(1, bool)), lanes=1, rescales=True
    )
    shard.apply([Cells(np.zeros(3, np.uint32), np.repeat(row, 3, axis=0))])
    weight, evidence, scale = shard.rows.value[0]
    assert weight == pytest.approx(0.5)
    assert (evidence, scale) == (4.0, 1.0)
