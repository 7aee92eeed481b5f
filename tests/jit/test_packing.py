"""Packing: numbers, arrays and records arrive in kernels as they are, and results come back."""

from __future__ import annotations

import copy
import ctypes
import gc
import math
import pickle
import struct
import sys
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

from onlineauto.jit import Sealed, entry_kernel
from onlineauto.jit.packing import pack

pytestmark = pytest.mark.lane("quick")

RECORD = np.dtype([("start", np.int64), ("value", np.float32), ("known", np.bool_)], align=True)


@entry_kernel
def same(x: Any) -> Any:
    return x


@entry_kernel
def kinds(n: int, x: float, true: bool, nothing: None, word: np.uint64) -> tuple[Any, ...]:
    return n, (x, true), nothing, word


@entry_kernel
def weighed(table: Any) -> tuple[int, int, int, float]:
    """Return the shape of a table, and the sum of its items, each times its place in order of indices."""
    total, place = 0.0, 0
    for i in range(table.shape[0]):
        for j in range(table.shape[1]):
            place += 1
            total += place * table[i, j]
    return table.shape[0], table.shape[1], table.size, total


@entry_kernel
def filled(out: Any, value: float) -> None:
    for i in range(len(out)):
        out[i] = value


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
    pair: tuple[int, float]
    second: Columns
    sealed: Columns


@entry_kernel
def scalars_in(whole: Whole) -> Scalars:
    each = whole.scalars
    return Scalars(each.n, each.x, each.small, each.true, each.word)


@entry_kernel
def given_back(scalars: Scalars) -> Scalars:
    return scalars


@entry_kernel
def columns_in(whole: Whole, out: NDArray[np.float64]) -> float:
    out[:] = 0.0
    for i in range(len(whole.first.flat)):
        out[0] += whole.first.flat[i]
        out[1] += whole.second.flat[i]
        out[2] += whole.sealed.flat[i]
    for i in range(whole.first.table.shape[0]):
        out[3] = 2 * out[3] + whole.first.table[i, 1]
        out[4] = 2 * out[4] + whole.sealed.table[i, 0]
    for i in range(len(whole.first.records)):
        out[5] += whole.first.records[i].start
        out[6] += whole.second.records[i].value if whole.second.records[i].known else 0.0
    return whole.pair[0] + whole.pair[1]


SCALARS = st.builds(
    Scalars,
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.floats(width=32, allow_nan=False).map(np.float32),
    st.booleans(),
    st.integers(0, 2**64 - 1).map(np.uint64),
)
NUMBERS = [
    *(np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64),
    *(np.float32, np.float64, np.bool_),
]


@pytest.mark.parametrize("kind", NUMBERS)
@given(data=st.data())
def test_every_kind_of_number_comes_back(kind: type[np.generic], data: st.DataObject) -> None:
    value = data.draw(arrays.from_dtype(np.dtype(kind)))
    back = same(value)
    assert back == value.item() or (math.isnan(back) and math.isnan(value.item()))
    assert type(back) is type(value.item())


@given(st.integers(-(2**63), 2**64 - 1))
def test_pythons_integers_come_back(value: int) -> None:
    assert same(value) == value


@pytest.mark.parametrize("value", [2**64, -(2**63) - 1])
def test_larger_integers_are_refused(value: int) -> None:
    with pytest.raises(struct.error):
        same(value)


@pytest.mark.parametrize("value", ["text", [1], {}, 1j, np.complex64(1), object()])
def test_values_that_are_not_numbers_are_rejected(value: object) -> None:
    with pytest.raises(TypeError, match="a kernel takes numbers, arrays and tuples of these"):
        same(value)


def test_none_and_nested_tuples() -> None:
    assert kinds(-1, 0.5, True, None, np.uint64(2**64 - 1)) == (-1, (0.5, True), None, 2**64 - 1)
    assert same(None) is None
    assert same(((), (1, (True, -2.5)), 3)) == ((), (1, (True, -2.5)), 3)


BASE = np.arange(60.0).reshape(5, 12)
LAYOUTS = {
    "C": BASE,
    "Fortran": np.asfortranarray(BASE),
    "transposed": BASE.T,
    "backwards": BASE[::-1, ::-1],
    "steps": BASE[::2, 1::3],
    "repeated": np.broadcast_to(BASE[0], (4, 12)),
    "empty": BASE[:0],
    "float32": BASE.astype(np.float32),
    "bytes": BASE.astype(np.uint8),
    "a field of records": np.zeros((3, 4), np.dtype([("a", "u1"), ("b", "f8")], align=True))["b"],
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("writeable", [True, False])
def test_arrays_of_all_layouts(layout: str, writeable: bool) -> None:
    table = LAYOUTS[layout]
    if not writeable:
        table = table[:]
        table.flags.writeable = False
    places = np.arange(1, table.size + 1).reshape(table.shape)
    assert weighed(table) == (*table.shape, table.size, float((table * places).sum()))


@given(arrays.arrays(np.float32, st.integers(0, 9), elements=st.floats(-9, 9, width=32)), st.floats(-9, 9))
def test_kernels_write_into_the_array(out: NDArray[np.float32], value: float) -> None:
    filled(out[::-1], value)
    assert out.tolist() == [np.float32(value)] * len(out)


def test_read_only_arrays_are_not_written() -> None:
    out = np.zeros(3)
    out.flags.writeable = False
    with pytest.raises(Exception, match=r"[Rr]ead-?only|immutable"):
        filled(out, 1.0)
    assert not out.any()


def columns(start: float) -> Columns:
    records = np.zeros(2, RECORD)
    records["start"], records["value"], records["known"] = [3, 4], [start, 8.0], [True, False]
    return Columns(np.arange(start, start + 3), np.arange(6, dtype=np.float32).reshape(3, 2) + 1, records)


def whole(scalars: Scalars = Scalars(1, 2.0, np.float32(3), True, np.uint64(4))) -> Whole:  # noqa: B008
    return Whole(columns(1.0), scalars, (2, 0.5), columns(10.0), Sealed(columns(5.0)).record)


def test_a_record_like_another_one_is_packed_as_any_other() -> None:
    one = Sealed(whole())
    for other in (whole(), one.value._replace(second=columns(7.0)), one.value):
        again = Sealed(Sealed(other, like=one).value, like=Sealed(other, like=one))
        known, words = pack((other,))
        assert again.kind.items == Sealed(other).kind.items
        assert pack((again.record,))[0] is pack((Sealed(other).record,))[0]
        assert ctypes.string_at(again.address, known.struct.size) == known.struct.pack(*words)
        out = np.zeros(7)
        columns_in(again.record, out)
        assert out[1] == other.second.flat.sum()


def shown(record: Any) -> list[float]:
    out = np.zeros(7)
    assert columns_in(record, out) == 2.5
    return out.tolist()


@given(scalars=SCALARS)
def test_records_arrive_and_come_back_as_records(scalars: Scalars) -> None:
    by_value, at_once, sealed = given_back(scalars), scalars_in(whole(scalars)), Sealed(whole(scalars))
    assert by_value == at_once == scalars_in(sealed.record) == scalars
    assert isinstance(by_value, Scalars)
    assert isinstance(at_once, Scalars)


def test_arrays_of_nested_records_arrive_in_their_order() -> None:
    expected = [6.0, 33.0, 18.0, 22.0, 15.0 - 4, 7.0, 10.0]
    expected[4] = 2 * (2 * 1 + 3) + 5
    assert shown(whole()) == expected
    assert shown(Sealed(whole())) == expected


def test_the_content_of_arrays_may_change() -> None:
    value = whole()
    sealed = Sealed(value)
    before = shown(sealed)
    value.first.flat[0] += 5
    value.second.records["value"][0] = 20
    assert shown(sealed) == [before[0] + 5, *before[1:6], 20.0]


def test_sealed_memory_is_never_rewritten() -> None:
    """A kernel keeps in registers what it has read there, and other threads may read it."""
    sealed = Sealed(whole())
    assert type(sealed._words) is bytes
    words = pack((sealed.value,))
    assert sealed._words == words[0].struct.pack(*words[1])
    assert ctypes.string_at(sealed.address, len(sealed._words)) == sealed._words
    shown(sealed)
    filled(sealed.value.first.flat, 7.0)
    assert sealed._words == words[0].struct.pack(*words[1])


def test_a_copy_is_sealed_separately() -> None:
    sealed = Sealed(columns(1.0))
    for other in (copy.copy(sealed), copy.deepcopy(sealed), pickle.loads(pickle.dumps(sealed))):  # noqa: S301
        assert other.address != sealed.address
        assert other.kind is sealed.kind
        assert other.value.flat.tolist() == sealed.value.flat.tolist()
    assert copy.deepcopy(sealed).value.flat is not sealed.value.flat


def test_only_records_are_sealed() -> None:
    with pytest.raises(TypeError, match="only a NamedTuple can be sealed"):
        Sealed((1, 2.0))


def test_a_record_lives_as_long_as_it_is_sealed_and_no_longer() -> None:
    array = np.ones(1 << 16)
    held = weakref.ref(array)
    sealed = Sealed(whole()._replace(first=columns(1.0)._replace(flat=array[:3])))
    count = sys.getrefcount(array)
    for _ in range(100):
        shown(sealed)
    assert sys.getrefcount(array) == count
    del array
    gc.collect()
    assert held() is not None
    assert shown(sealed)[0] == 3.0
    del sealed
    gc.collect()
    assert held() is None


def test_kinds_have_one_name_in_every_order() -> None:
    values: list[Any] = [1, 2**63, 1.0, True, None, np.int8(1), np.uint8(1), (1,), (1.0,), ((1,),), (1, 1)]
    values += [np.zeros(1), np.zeros((1, 1)), np.zeros(1, np.float32), np.zeros(4)[::2], np.zeros(1, RECORD)]
    values += [columns(1.0), Sealed(columns(1.0)), whole(), Sealed(whole()), whole().scalars]
    names = [pack((value,))[0].name for value in values]
    assert len(set(names)) == len(names)
    assert [pack((value,))[0].name for value in reversed(values)] == names[::-1]
    assert pack((1, 2.0))[0] is pack((3, -1.0))[0]


def test_threads_agree_on_the_layout_of_a_new_kind() -> None:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for n in range(60):
            value = (np.zeros(1, np.dtype([(f"only {n}", np.int64)])), 1)
            together = threading.Barrier(6)

            def meet(value: Any, together: threading.Barrier = together) -> int:
                together.wait()
                return id(pack(value)[0])

            with ThreadPoolExecutor(6) as pool:
                assert len(set(pool.map(meet, [value] * 6))) == 1
    finally:
        sys.setswitchinterval(before)
