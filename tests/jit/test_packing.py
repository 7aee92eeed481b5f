"""Sealed tuples: what a kernel finds in them is what is in them, and nobody else holds it."""

from __future__ import annotations

import gc
import sys
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from onlineauto.jit import Sealed, entry, entry_kernel, opened, seal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

RECORD = np.dtype([("start", np.int64), ("value", np.float32), ("known", np.bool_)], align=True)


@pytest.fixture(autouse=True, scope="module")
def _sealed_elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Types of this file have no place among the kernels of the package: who loads those would need it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(entry, "_DIRECTORY", tmp_path_factory.mktemp("cache"))
        patch.setattr(seal, "_seal", entry_kernel(cast("Any", seal._seal).py_func))
        yield


class Scalars(NamedTuple):
    n: int
    x: float
    small: np.float32
    true: bool
    word: np.uint64


class Columns(NamedTuple):
    flat: NDArray[np.float64]
    table: NDArray[np.float32]
    records: Any


class Whole(NamedTuple):
    first: Columns
    scalars: Scalars
    second: Columns


Shown = tuple[int, float, float, bool, int]


@entry_kernel
def scalars_in(sealed: Sealed[Whole]) -> Shown:
    each = opened(sealed).scalars
    return each.n, each.x, each.small, each.true, each.word


@entry_kernel
def columns_in(sealed: Sealed[Whole], out: NDArray[np.float64]) -> None:
    whole = opened(sealed)
    out[:] = 0.0
    for i in range(len(whole.first.flat)):
        out[0] += whole.first.flat[i]
        out[1] += whole.second.flat[i]
    for i in range(whole.first.table.shape[0]):
        out[2] = 2 * out[2] + whole.first.table[i, 1]
        out[3] = 2 * out[3] + whole.second.table[i, 0]
    for i in range(len(whole.first.records)):
        out[4] += whole.first.records[i].start
        out[5] += whole.second.records[i].value if whole.second.records[i].known else 0.0


@entry_kernel
def total_of(sealed: Sealed[Any]) -> float:
    one, other = opened(sealed)
    return one[0] + other[0]  # type: ignore[no-any-return]


@entry_kernel
def filled(sealed: Sealed[Any], value: float) -> None:
    opened(sealed)[0][:] = value


def columns(start: float) -> Columns:
    records = np.zeros(2, RECORD)
    records["start"], records["value"], records["known"] = [3, 4], [start, 8.0], [True, False]
    return Columns(np.arange(start, start + 3), np.arange(6, dtype=np.float32).reshape(3, 2) + 1, records)


def whole(scalars: Scalars = Scalars(1, 2.0, np.float32(3), True, np.uint64(4))) -> Whole:  # noqa: B008
    return Whole(columns(1.0), scalars, columns(10.0))


SCALARS = st.builds(
    Scalars,
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.floats(width=32, allow_nan=False).map(np.float32),
    st.booleans(),
    st.integers(0, 2**64 - 1).map(np.uint64),
)


@given(scalars=SCALARS)
def test_scalars_arrive(scalars: Scalars) -> None:
    assert scalars_in(Sealed(whole(scalars))) == tuple(scalars)


def shown(sealed: Sealed[Whole]) -> list[float]:
    out = np.zeros(6)
    columns_in(sealed, out)
    return out.tolist()


@pytest.mark.parametrize("size", [8, 1 << 14], ids=["no room at first", "room enough"])
def test_arrays_arrive_in_their_order(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seal, "_FIRST_SIZE", size)
    sealed = Sealed(whole())
    assert shown(sealed) == [6.0, 33.0, 22.0, 15.0, 7.0, 10.0]
    assert len(sealed._memory) >= size + (size == 8)


def test_what_arrays_hold_may_change() -> None:
    value = whole()
    sealed = Sealed(value)
    before = shown(sealed)
    value.first.flat[0] += 5
    value.second.records["value"][0] = 20
    assert shown(sealed) == [before[0] + 5, *before[1:5], 20.0]


@given(arrays.arrays(np.float32, st.integers(0, 9), elements=st.floats(-9, 9, width=32)), st.floats(-9, 9))
def test_kernels_write_where_the_array_is(given_: NDArray[np.float32], value: float) -> None:
    filled(Sealed((given_,)), value)
    assert given_.tolist() == [np.float32(value)] * len(given_)


def test_two_types_are_told_apart() -> None:
    one = Sealed((np.array([1.5]), np.array([2], np.int32)))
    other = Sealed((np.array([7], np.int32), np.array([0.25])))
    assert [total_of(each) for each in (one, other, one, other)] == [3.5, 7.25, 3.5, 7.25]


def test_the_tuple_lives_as_long_as_it_is_sealed_and_no_longer() -> None:
    array = np.ones(1 << 16)
    held = weakref.ref(array)
    sealed = Sealed((array, np.zeros(1)))
    count = sys.getrefcount(array)
    for _ in range(100):
        assert total_of(sealed) == 1
    assert sys.getrefcount(array) == count
    del array
    gc.collect()
    assert held() is not None
    assert total_of(sealed) == 1
    del sealed
    gc.collect()
    assert held() is None
