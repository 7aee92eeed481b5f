"""``quantile``: a quantile of sorted numbers, by NumPy's definition."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def quantile(ascending: Sequence[float], share: float) -> float:
    """Return the same number as `numpy.quantile`, to the bit, without an array.

    >>> quantile([1.0, 2.0, 4.0], 0.75)
    3.0
    """
    at = (len(ascending) - 1) * share
    before = int(at)
    low, high = ascending[before], ascending[min(before + 1, len(ascending) - 1)]
    if low == high:  # avoids inf - inf if both are infinite
        return low
    over = at - before
    return high - (high - low) * (1 - over) if over >= 0.5 else low + (high - low) * over
