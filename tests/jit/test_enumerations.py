"""Numba sees plain ints where a kernel names an enumeration: in globals, in closures, and as arguments."""

from __future__ import annotations

from enum import Enum, IntEnum
from typing import TYPE_CHECKING

import numpy as np

from onlineauto.jit import entry_kernel, kernel
from onlineauto.jit.compiler.compile import without_enumerations

if TYPE_CHECKING:
    from numpy.typing import NDArray


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
