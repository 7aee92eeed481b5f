"""The adaptive window: the latest numbers of a stream that seem to have the same mean.

Every number is appended to the window. Then the window is divided at each possible cut. While the means
before and after some cut differ by more than chance explains, the oldest numbers are dropped.

The numbers themselves are not stored. Row i of the window has up to `LARGEST_ROW` buckets. A bucket has the
sum and the spread (the sum of squared distances from the mean) of 2**i consecutive numbers. The oldest
numbers are in the last row in use, and within a row the oldest bucket is first. When a row has one bucket too
many, its two oldest buckets are merged into one of the next row. Cuts lie between buckets, so a window of n
numbers needs memory and time of order log n.

The decisions, widths and means are those of ``ADWIN(delta=0.002, clock=1)`` of river, bit for bit, and the
tests compare the two. So the order of all sums and products here must not change.

Source: Bifet and Gavaldà, *Learning from time-changing data with adaptive windowing*, 2007; Babcock and
others, *Maintaining variance and k-medians over data stream windows*, 2003.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from onlineauto.jit import entry_kernel, inline_kernel, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

ROWS = 48
"""Number of rows of a window. The last row would be used after more numbers than any stream has."""

LARGEST_ROW = 5
"""Maximum number of buckets of a row between two calls; the array has one more column."""

_DELTA = 0.002  # probability of dropping numbers although the mean has not changed
_LEAST_PART = 5.0  # minimum number of numbers on either side of a cut
_LEAST_WIDTH = 10.0  # a window is cut only if it has more numbers
_SIZES = np.array([2.0**row for row in range(ROWS)])  # number of numbers in a bucket of each row

WIDTH, SUM, SPREAD = range(3)
"""Entries of `Window.whole`: number of numbers, their sum and their spread."""


class Window(NamedTuple):
    """An adaptive window; all zeros are an empty window."""

    counts: NDArray[np.int64]  # [ROWS]: number of buckets of each row
    sums: NDArray[np.float64]  # [ROWS, LARGEST_ROW + 1]: sum of each bucket, 0 for unused ones
    spreads: NDArray[np.float64]  # [ROWS, LARGEST_ROW + 1]: spread of each bucket, 0 for unused ones
    whole: NDArray[np.float64]  # [WIDTH, SUM, SPREAD]


@kernel
def _put(window: Window, row: int, sum_: float, spread: float) -> None:
    """Append a bucket to a row, as its latest."""
    count = window.counts[row]
    window.sums[row, count], window.spreads[row, count] = sum_, spread
    window.counts[row] = count + 1


@kernel
def _drop(window: Window, row: int, n: int) -> None:
    """Drop the `n` oldest buckets of a row."""
    count = window.counts[row]
    for k in range(n, count):
        window.sums[row, k - n], window.spreads[row, k - n] = window.sums[row, k], window.spreads[row, k]
    for k in range(count - n, count):
        window.sums[row, k] = window.spreads[row, k] = 0.0
    window.counts[row] = count - n


@kernel
def _append(window: Window, x: float) -> None:
    """Add a number to the window."""
    whole = window.whole
    whole[WIDTH] += 1.0
    width = whole[WIDTH]
    if width > 1.0:
        distance = x - whole[SUM] / (width - 1.0)
        whole[SPREAD] += (width - 1.0) * distance * distance / width
    whole[SUM] += x
    _put(window, 0, x, 0.0)
    row = 0
    while window.counts[row] > LARGEST_ROW:
        size = _SIZES[row]
        one, other = window.sums[row, 0], window.sums[row, 1]
        apart = one / size - other / size
        spread = window.spreads[row, 0] + window.spreads[row, 1] + size * 0.5 * apart * apart
        _put(window, row + 1, one + other, spread)
        _drop(window, row, 2)
        row += 1


@kernel
def _drop_oldest(window: Window) -> None:
    """Drop the oldest bucket of a window that has several."""
    row = ROWS - 1
    while window.counts[row] == 0:
        row -= 1
    size, whole = _SIZES[row], window.whole
    whole[WIDTH] -= size
    whole[SUM] -= window.sums[row, 0]
    width = whole[WIDTH]
    apart = window.sums[row, 0] / size - whole[SUM] / width
    whole[SPREAD] -= window.spreads[row, 0] + size * width * apart * apart / (size + width)
    _drop(window, row, 1)


@kernel
def _is_of_two_kinds(window: Window) -> bool:
    """Return whether the means before and after some cut differ by more than chance explains."""
    width, sum_, spread = window.whole[WIDTH], window.whole[SUM], window.whole[SPREAD]
    doubt = np.log(2.0 * np.log(width) / _DELTA)
    variance = spread / width
    before, after = 0.0, width
    sum_before, sum_after = 0.0, sum_
    for row in range(ROWS - 1, -1, -1):
        size = _SIZES[row]
        for k in range(window.counts[row]):
            before += size
            after -= size
            sum_before += window.sums[row, k]
            sum_after -= window.sums[row, k]
            if before >= _LEAST_PART and after >= _LEAST_PART:
                inverse = 1.0 / (before - _LEAST_PART + 1.0) + 1.0 / (after - _LEAST_PART + 1.0)
                # Rounding may make a spread negative: the square root is NaN, which no distance exceeds.
                chance = np.sqrt(2.0 * inverse * variance * doubt) + 2.0 / 3.0 * doubt * inverse
                if abs(sum_before / before - sum_after / after) > chance:
                    return True
    return False


@kernel
def take_in(window: Window, x: float) -> bool:
    """Append a number in [0, 1] to the window; return whether older numbers were dropped."""
    _append(window, x)
    if window.whole[WIDTH] <= _LEAST_WIDTH:
        return False
    changed = False
    while _is_of_two_kinds(window):
        _drop_oldest(window)
        changed = True
    return changed


@inline_kernel
def mean(window: Window) -> float:
    """Return the mean of the numbers in the window, 0 if there are none."""
    average: float = window.whole[SUM] / max(window.whole[WIDTH], 1.0)
    return average


@entry_kernel
def clear(window: Window) -> None:
    """Empty the window."""
    window.counts[:] = 0
    window.sums[:] = 0.0
    window.spreads[:] = 0.0
    window.whole[:] = 0.0


@entry_kernel
def rises(window: Window, numbers: NDArray[np.float64]) -> bool:
    """Append numbers in [0, 1]; return whether the mean has risen. Any change restarts the window."""
    has_risen = False
    for x in numbers:
        before = mean(window)
        if take_in(window, x):
            has_risen = has_risen or mean(window) > before
            clear(window)
    return has_risen
