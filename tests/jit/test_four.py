"""Four numbers in one register: each element is what it is alone."""

from __future__ import annotations

import operator
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

from onlineauto.jit import kernel
from onlineauto.jit.four import (
    at_most,
    below,
    both,
    element,
    flag,
    flags,
    four,
    load,
    load_flags,
    pick,
    prefetch,
    root,
    some,
    splat,
    store,
)

pytestmark = pytest.mark.lane("quick")

ANY = arrays.arrays(np.float32, (2, 4), elements=st.floats(width=32))
TRUTHS = arrays.arrays(np.bool_, (2, 9))


@kernel
def elementwise(code: int, x: NDArray[np.float32], out: NDArray[np.float32]) -> None:
    prefetch(x, 1, 0)
    one, other = load(x, 0, 0), load(x, 1, 0)
    made = one + other
    if code == 1:
        made = one * other
    elif code == 2:
        made = one / other
    elif code == 3:
        made = root(one)
    elif code == 4:
        made = pick(at_most(one, other), one, other)
    elif code == 5:
        made = pick(below(one, other), one, other)
    store(out, 0, 0, made)


def bits(x: NDArray[np.float32]) -> list[int]:
    """Bits of the numbers, one NaN like another."""
    return [int(each) for each in np.where(np.isnan(x), np.float32(np.nan), x).view(np.uint32)]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (0, operator.add),
        (1, operator.mul),
        (2, operator.truediv),
        (3, lambda one, _: np.sqrt(one)),
        (4, lambda one, other: np.where(one <= other, one, other)),
        (5, lambda one, other: np.where(one < other, one, other)),
    ],
)
@given(x=ANY)
def test_each_element_equals_the_scalar_result(
    code: int, expected: Callable[..., NDArray[np.float32]], x: NDArray[np.float32]
) -> None:
    out = np.zeros((1, 4), np.float32)
    elementwise(code, x, out)
    with np.errstate(all="ignore"):
        assert bits(out[0]) == bits(expected(x[0], x[1]).astype(np.float32))


@kernel
def made_of_parts(table: NDArray[np.float32], column: int) -> float:
    chosen = pick(flags(True, False, True, False), four(1.0, 2.0, 3.0, 4.0), splat(9.0))
    store(table, 1, column, chosen)
    return float(element(chosen, 3) + element(chosen, 2))


def test_rows_are_read_and_written_where_they_are() -> None:
    table = np.zeros((3, 7), np.float32)
    assert made_of_parts(table, 2) == 12
    assert table[1].tolist() == [0, 0, 1, 9, 3, 9, 0]
    assert not table[[0, 2]].any()


@kernel
def compared(x: NDArray[np.float32], out: NDArray[np.bool_]) -> None:
    one, other = load(x, 0, 0), load(x, 1, 0)
    at, under = at_most(one, other), below(one, other)
    for i in range(4):
        out[0, i], out[1, i] = flag(at, i), flag(under, i)


@given(x=ANY)
def test_equal_and_unordered_numbers_are_told_apart(x: NDArray[np.float32]) -> None:
    x[1, 0] = x[0, 0]
    out = np.zeros((2, 4), bool)
    compared(x, out)
    assert out.tolist() == [(x[0] <= x[1]).tolist(), (x[0] < x[1]).tolist()]


@kernel
def asked(table: NDArray[np.bool_], column: int, out: NDArray[np.bool_]) -> tuple[bool, bool, bool]:
    one, other = load_flags(table, 0, column), load_flags(table, 1, column)
    together = both(one, other)
    for i in range(4):
        out[0, i], out[1, i], out[2, i] = flag(one, i), flag(other, i), flag(together, i)
    return some(one), some(other), some(together)


@given(table=TRUTHS, column=st.integers(0, 5))
def test_flags_are_read_from_their_column(table: NDArray[np.bool_], column: int) -> None:
    out = np.zeros((3, 4), bool)
    found = asked(table, column, out)
    one, other = table[:, column : column + 4]
    assert out.tolist() == [one.tolist(), other.tolist(), (one & other).tolist()]
    assert found == (one.any(), other.any(), (one & other).any())
