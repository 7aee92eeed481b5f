"""The typical size of numbers of one kind, and the numbers that are orders of magnitude beyond it.

The *size* of a number is its binary exponent: sizes that differ by one differ by a factor of two. The typical
size is about the largest one so far. It grows by at most 1 with each number, so that no single number moves
it far. A number is *beyond* if its size exceeds the typical size by more than a gap, which is `GAP` or
`NARROW_GAP`, and greater by 2 while fewer than `FEW` numbers support the typical size.

Numbers beyond are counted. The count shrinks by 1 for every 256 numbers that are not beyond. Once it exceeds
the number of supporting numbers, which is at most `MANY`, the new size becomes typical. So a change of scale
is followed, and rare absurd numbers are not.

If one of the first numbers turns out to be beyond most of the numbers after it, the model that learnt from it
is *ruined*.

The state of a kind is a uint8 array of `STATE`; a new one is all zeros. Numbers of 0 have no size and are
ignored. Sizes below `SMALLEST` count as `SMALLEST`, so that numbers up to 2 are never beyond.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from onlineauto.jit import inline_kernel, kernel, short_loop

if TYPE_CHECKING:
    from numpy.typing import NDArray

TYPICAL, KNOWN, ABOVE, BELOW = range(4)
"""Entries of a state:

- TYPICAL: the typical size, 0 before the first number;
- KNOWN: how many numbers support it, at most `MANY`;
- ABOVE: how many numbers were beyond;
- BELOW: how many numbers were far below it; once KNOWN is `MANY`, a count modulo 256 that
  reduces ABOVE by 1 whenever it reaches 0.
"""

STATE = 4

FIRST_EVENTS = 64
"""Number of learnt events after which a number is no longer typical just because it came first."""

ORDINARY, BEYOND, RUINED = range(3)
"""Verdicts on a number."""

MANY, FEW, GAP, NARROW_GAP, SMALLEST = 16, 4, 15, 7, -9

_MORE = 2  # fewer than `FEW` numbers support the typical size

_UNIT = 1 - SMALLEST  # the least size is 1, as 0 stands for none
_POWERS = np.array([2.0**power for power in range(SMALLEST, 128)])
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
"""Size of numbers up to 1, and the assumed typical size of a kind that is new after many events."""


@kernel
def judge(sizes: NDArray[np.uint8], at: int, size: int, before: int, first: bool, gap: int) -> int:
    """Return the verdict on a number of a size, and add it to the state at ``sizes[at]``.

    `before` is the typical size to assume before the first number, unless 0. Only among the `first` events
    can the model be ruined. A number whose size exceeds the typical size by more than `gap` is beyond.
    """
    state = sizes[at]
    if state[TYPICAL] == 0:
        state[TYPICAL], state[KNOWN] = (before, MANY) if before > 0 else (size, 0)
    typical, known = int(state[TYPICAL]), int(state[KNOWN])
    gap = gap if known >= FEW else gap + _MORE
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
def judge_number(sizes: NDArray[np.uint8], at: int, number: float, before: int, first: bool, gap: int) -> int:
    """Return the verdict on a number, as `judge` does, mostly without computing its size."""
    if number == 0.0 or not math.isfinite(number):
        return ORDINARY
    typical, known = int(sizes[at, TYPICAL]), sizes[at, KNOWN]
    is_typical = bool(known == MANY and abs(number) < _POWERS[min(typical, len(_POWERS)) - 1])
    return int(judge(sizes, at, typical if is_typical else size_of(number), before, first, gap))
