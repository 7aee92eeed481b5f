"""Kernels in kernels: called from Python or from one another, they are the functions they were written as."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from onlineauto.jit import entry_kernel, inline_kernel, kernel, short_loop

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[Any]

DTYPES = [np.int64, np.float64, np.float32, np.uint8]
COLUMNS = st.sampled_from(DTYPES).flatmap(
    lambda kind: arrays.arrays(kind, st.integers(0, 20), elements=st.integers(0, 100))
)


@kernel
def stepped(total: float, x: float) -> float:
    return 3.0 * total - x if x > 10 else total + 0.5 * x


@inline_kernel
def folded(column: Numbers, start: float) -> float:
    total = start
    for x in column:
        total = stepped(total, x) % 1000.0
    return total


@kernel
def both_ways(column: Numbers, start: float) -> tuple[float, float]:
    return folded(column, start), folded(column[::-1], start)


@entry_kernel
def from_python(column: Numbers, start: float) -> tuple[float, float]:
    return both_ways(column, start)


@kernel
def in_short_loops(column: Numbers, start: float) -> float:
    total = start
    for x in column:
        short_loop()
        i = 0
        while i < x:
            short_loop()
            total = stepped(total, x) % 1000.0
            i += 7
    return total


@kernel
def in_loops(column: Numbers, start: float) -> float:
    total = start
    for x in column:
        i = 0
        while i < x:
            total = stepped(total, x) % 1000.0
            i += 7
    return total


def written(column: Numbers, start: float) -> float:
    """What `folded` computes, in Python alone."""
    total = start
    for x in column.tolist():
        total = (3.0 * total - x if x > 10 else total + 0.5 * x) % 1000.0
    return total


@given(column=COLUMNS, start=st.floats(-100, 100))
def test_a_kernel_is_the_function_it_was_written_as(column: Numbers, start: float) -> None:
    expected = written(column, start), written(column[::-1], start)
    assert folded(column, start) == expected[0]
    assert both_ways(column, start) == expected
    assert from_python(column, start) == expected


@pytest.mark.parametrize("kind", [int, float, np.float32])
def test_numbers_of_several_types(kind: type[Any]) -> None:
    assert [stepped(kind(2), kind(x)) for x in (4, 12)] == [4, -6]


@given(column=COLUMNS, start=st.floats(-100, 100))
def test_a_short_loop_takes_the_turns_of_any_other(column: Numbers, start: float) -> None:
    assert in_short_loops(column, start) == in_loops(column, start)
