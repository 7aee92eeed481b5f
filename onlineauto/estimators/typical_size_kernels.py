"""The typical size of numbers of one kind, and which numbers are orders of magnitude beyond it.

A size is the exponent of a number: sizes that differ by one differ by a factor of two. The typical size is
about the largest one so far. It grows by at most 1 with each number, so that no single number moves it far. A
number is *beyond* if its size exceeds the typical size by more than `GAP`, or by more than `FIRST_GAP` while
fewer than `FEW` numbers support the typical size.

Numbers beyond are counted. The count shrinks by 1 for every 256 numbers that are not beyond. Once it exceeds
the number of supporting numbers, which is at most `MANY`, the new size is typical. So a change of scale is
followed, and a rare absurd number never is.

If one of the first numbers turns out to be beyond most of those after it, what it has taught is *ruined*.

The state of a kind is a uint8 array of `STATE`; a fresh one is all zeros. Numbers of 0 have no size and are
not observed. Sizes below `SMALLEST` count as that, so that numbers up to 2 are never beyond.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from onlineauto.jit import inline_kernel, kernel, short_loop

if TYPE_CHECKING:
    from numpy.typing import NDArray

TYPICAL, KNOWN, ABOVE, BELOW = range(4)
"""Entries of a state: the typical size, 0 before the first number; how many numbers support it, at most
`MANY`; how many were beyond; and, below it, how many there were or, once it has `MANY`, the number of numbers
since the last one was taken off those beyond, modulo 256."""

STATE = 4

FIRST_EVENTS = 64
"""Learnt events after which no number is taken as typical because it came first."""

ORDINARY, BEYOND, RUINED = range(3)
"""Verdicts on a number."""

MANY, FEW, GAP, FIRST_GAP, SMALLEST = 16, 4, 15, 17, -9

_UNIT = 1 - SMALLEST  # the least size is 1, as 0 stands for none
_POWERS = 2.0 ** np.arange(float(SMALLEST), 128.0)
LARGEST_SIZE = len(_POWERS) + 1
_STEPS = 8  # 2⁸ is more than the number of powers


@inline_kernel
def size_of(number: float) -> int:
    """Return the size of a number: one more than the number of powers of two from 2^-9 on up to it."""
    low, high, magnitude = 0, len(_POWERS), abs(number)
    for _ in range(_STEPS):
        short_loop()
        middle = (low + high) // 2
        if low < high and _POWERS[middle] <= magnitude:
            low = middle + 1
        else:
            high = middle
    return low + 1


ONE, USUAL = 1 + _UNIT, 7 + _UNIT
"""Size of numbers up to 1, and the typical size of numbers of which nothing is known after many events."""


@kernel
def judge(sizes: NDArray[np.uint8], at: int, size: int, before: int, first: bool) -> int:
    """Return the verdict on a number of a size, and add it to the state at ``sizes[at]``.

    `before` is the typical size to assume if there was no number yet; if it is 0, that of the number itself.
    Only among the `first` events the numbers before can prove to be ruined.
    """
    state = sizes[at]
    if state[TYPICAL] == 0:
        state[TYPICAL], state[KNOWN] = (before, MANY) if before > 0 else (size, 0)
    typical, known = int(state[TYPICAL]), int(state[KNOWN])
    gap = GAP if known >= FEW else FIRST_GAP
    if size > typical + gap:
        state[ABOVE] += 1
        if state[ABOVE] <= known:
            return BEYOND
        state[TYPICAL], state[KNOWN], state[ABOVE], state[BELOW] = size, min(known + 1, MANY), 0, 0
        return ORDINARY
    if first and known < MANY and size < typical - gap:
        state[BELOW] += 1
        if state[BELOW] <= known:
            return ORDINARY
        state[TYPICAL], state[KNOWN], state[ABOVE], state[BELOW] = size, known + 1, 0, 0
        return RUINED
    if size > typical:
        state[TYPICAL] = typical + 1
    if known < MANY:
        state[KNOWN] = known + 1
        if known + 1 == MANY:
            state[BELOW] = 0
    else:
        state[BELOW] = (int(state[BELOW]) + 1) % 256
        if state[BELOW] == 0 and state[ABOVE] > 0:
            state[ABOVE] -= 1
    return ORDINARY


@inline_kernel
def judge_number(sizes: NDArray[np.uint8], at: int, number: float, before: int, first: bool) -> int:
    """Return the verdict on a number, and add it to the state at ``sizes[at]``; see `judge`.

    Most numbers are of at most the typical size, and count as of that: their own needs no search.
    """
    if number == 0.0 or not math.isfinite(number):
        return ORDINARY
    typical, known = int(sizes[at, TYPICAL]), sizes[at, KNOWN]
    usual = bool(known == MANY and abs(number) < _POWERS[min(typical, len(_POWERS)) - 1])
    return int(judge(sizes, at, typical if usual else size_of(number), before, first))
