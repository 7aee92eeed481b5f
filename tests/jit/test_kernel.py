"""Kernels in kernels: called from Python or from one another, they are the functions they were written as."""

from __future__ import annotations

import copy
import pickle
from enum import Enum, IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from onlineauto.jit import Sealed, SealedRecords, call_at, entry_kernel, inline_kernel, kernel, short_loop
from onlineauto.jit.compiler.compile import without_enumerations

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
    """Return the result of `folded`, computed in Python alone."""
    total = start
    for x in column.tolist():
        total = (3.0 * total - x if x > 10 else total + 0.5 * x) % 1000.0
    return total


@given(column=COLUMNS, start=st.floats(-100, 100))
def test_a_kernel_computes_what_its_function_computes(column: Numbers, start: float) -> None:
    expected = written(column, start), written(column[::-1], start)
    assert folded(column, start) == expected[0]
    assert both_ways(column, start) == expected
    assert from_python(column, start) == expected


@pytest.mark.parametrize("kind", [int, float, np.float32])
def test_numbers_of_several_types(kind: type[Any]) -> None:
    assert [stepped(kind(2), kind(x)) for x in (4, 12)] == [4, -6]


@given(column=COLUMNS, start=st.floats(-100, 100))
def test_a_short_loop_equals_an_ordinary_loop(column: Numbers, start: float) -> None:
    assert in_short_loops(column, start) == in_loops(column, start)


class Row(IntEnum):
    FIRST = 0
    LAST = 3
    MIDDLE = 1


class Word(Enum):
    A = 1


LAST = Row.LAST


@kernel
def increment(table: NDArray[np.uint8], row: int) -> int:
    table[row] += 1
    return Row.MIDDLE if row == Row.LAST else table[row]  # of two types: uint8, and a member


@entry_kernel
def fill(table: NDArray[np.uint8]) -> int:
    table[Row.FIRST] = 5
    return increment(table, Row.LAST) + increment(table, LAST) + increment(table, Row.FIRST)


def test_members_index_arrays_and_unify_with_numbers() -> None:
    table = np.zeros(4, np.uint8)
    assert fill(table) == 1 + 1 + 6
    assert table.tolist() == [6, 0, 0, 2]


def test_a_function_without_enumerations_is_the_same_but_for_them() -> None:
    inner = Row

    def named(x: int, *, y: int = 2) -> tuple[object, ...]:
        """Return all."""
        return x, y, inner.LAST, LAST, Row.MIDDLE, Word.A, np

    made = without_enumerations(named)
    assert made(1) == named(1)
    assert [type(each) for each in made(1, y=3)] == [int, int, int, int, int, Word, type(np)]
    assert (made.__name__, made.__qualname__, made.__doc__) == (
        named.__name__,
        named.__qualname__,
        "Return all.",
    )
    assert type(named(1)[2]) is Row


class Sum(NamedTuple):
    total: NDArray[np.float64]


class Count(NamedTuple):
    step: int
    seen: NDArray[np.int64]
    again: Sum


@entry_kernel
def add(state: Sum, value: float) -> None:
    state.total[0] += value


@entry_kernel
def count(state: Count, value: float) -> None:
    state.seen[0] += state.step
    state.again.total[0] -= value


@entry_kernel
def observe(kernels: NDArray[np.int64], states: NDArray[np.int64], value: float) -> None:
    for i in range(len(states)):
        call_at(kernels[i], (states[i], value))


def make() -> SealedRecords:
    return SealedRecords([Sum(np.zeros(1)), Count(3, np.zeros(1, np.int64), Sum(np.zeros(1)))])


def kernels_of(records: SealedRecords) -> NDArray[np.int64]:
    kinds = zip((add, count), records.records, strict=True)
    return np.array([kernel.address(Sealed(record), 0.0) for kernel, record in kinds])  # type: ignore[attr-defined]


def values(records: SealedRecords) -> tuple[float, int, float]:
    sums, counts = records.records
    return float(sums.total[0]), int(counts.seen[0]), float(counts.again.total[0])


def test_a_kernel_passes_records_on_without_knowing_their_kinds() -> None:
    records = make()
    for value in (1.5, 2.0):
        observe(kernels_of(records), records.array, value)
    assert values(records) == (3.5, 6, -3.5)


def test_a_copy_has_records_of_its_own() -> None:
    records = make()
    observe(kernels_of(records), records.array, 1.0)
    copies = copy.deepcopy(records), pickle.loads(pickle.dumps(records))  # noqa: S301
    for other in copies:
        assert set(other.addresses.tolist()).isdisjoint(records.addresses.tolist())
        observe(kernels_of(other), other.array, 2.0)
        assert values(other) == (3.0, 6, -3.0)
    assert values(records) == (1.0, 3, -1.0)


def test_an_empty_list_of_records_is_valid() -> None:
    nothing = SealedRecords([])
    observe(np.zeros(0, np.int64), nothing.array, 1.0)
    assert len(nothing.addresses) == 0
