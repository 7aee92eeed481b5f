"""Rung systems: the number of trials and the resource of each rung of the brackets of Hyperband.

A bracket is a list of rungs, each a pair of a size and a level. Sizes decrease and levels increase, strictly.
Both formulas use whole numbers, because a logarithm with a small rounding error could lose a rung.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import pairwise
from math import ceil
from typing import TYPE_CHECKING, Final

from onlineauto.errors import OptionError, short_repr
from onlineauto.tune.plain import as_int

if TYPE_CHECKING:
    from collections.abc import Sequence


_MOST: Final = 2**24
"""Maximum number of trials of a rung, because each takes space in memory and in each snapshot of a study."""

_PAIRS: Final = 8
"""Minimum number of trials at two levels from which their agreement is judged."""
_CORRELATION: Final = 0.25
"""Minimum rank correlation of two levels."""

Rungs = list[tuple[int, int]]
"""One bracket: pairs of a size and a level."""


def geometric(min_resource: int, max_resource: int, eta: int, brackets: int | None = None) -> list[Rungs]:
    """Return brackets whose levels are computed from the minimum resource.

    The smallest `s` with ``min_resource * eta**s >= max_resource`` is the number of the last rung. Bracket
    `b` begins at level ``min_resource * eta**b``; the last level is exactly `max_resource`.

    >>> geometric(1, 9, 3)
    [[(9, 1), (3, 3), (1, 9)], [(5, 3), (2, 9)], [(3, 9)]]

    Source: Li and others: Hyperband, 2018, with the sizes of Syne Tune (rounded up).
    """
    last = _rungs_above(min_resource, max_resource, eta)
    _check_size(eta**last, min_resource, max_resource, eta)
    system = []
    for bracket in range(_count(last + 1, brackets)):
        rungs = last - bracket
        sizes = [-(-(last + 1) * eta ** (rungs - rung) // (rungs + 1)) for rung in range(rungs)]
        levels = [min_resource * eta ** (rung + bracket) for rung in range(rungs)]
        system.append([*zip(sizes, levels, strict=True), (ceil((last + 1) / (rungs + 1)), max_resource)])
    return system


def hpbandster(min_resource: int, max_resource: int, eta: int, brackets: int | None = None) -> list[Rungs]:
    """Return brackets whose levels are computed from the maximum; the lowest may exceed the minimum.

    >>> [[size for size, level in bracket] for bracket in hpbandster(1, 27, 3)]
    [[27, 9, 3, 1], [9, 3, 1], [6, 2], [4]]

    Source: Falkner and others: BOHB, 2018, and its implementation hpbandster.
    """
    rungs = 1
    while min_resource * eta**rungs <= max_resource:
        rungs += 1
    if rungs == 1:
        raise _one_rung(min_resource, max_resource, eta)
    _check_size(eta ** (rungs - 1), min_resource, max_resource, eta)
    system = []
    for bracket in range(_count(rungs, brackets)):
        last = rungs - 1 - bracket
        size = rungs // (last + 1) * eta**last
        system.append(
            [(max(size // eta**rung, 1), max_resource // eta ** (last - rung)) for rung in range(last + 1)]
        )
    return system


def levels(min_resource: int, max_resource: int, eta: int) -> list[int]:
    """Return the levels of the first bracket of `geometric`.

    >>> levels(1, 10, 3)
    [1, 3, 9, 10]
    """
    last = _rungs_above(min_resource, max_resource, eta)
    return [*(min_resource * eta**rung for rung in range(last)), max_resource]


def is_strict(rungs: Rungs) -> bool:
    """Return whether the numbers of trials fall and the resources rise, strictly, from rung to rung."""
    return all(
        size > next_size and level < next_level for (size, level), (next_size, next_level) in pairwise(rungs)
    )


def own_system(rungs: object) -> list[Rungs]:
    """Return the rungs of brackets that a user has given, after a check.

    >>> own_system([[[9, 1], (4, 3), (1, 9)], [(3, 9)]])
    [[(9, 1), (4, 3), (1, 9)], [(3, 9)]]
    """
    if not isinstance(rungs, list | tuple) or not rungs:
        raise OptionError(f"rungs = {short_repr(rungs)}: give brackets, such as [[(9, 1), (4, 3), (1, 9)]]")
    system = []
    for number, bracket in enumerate(rungs):
        pairs = [_pair(pair) for pair in bracket] if isinstance(bracket, list | tuple) and bracket else []
        sizes, levels = [pair[0] for pair in pairs if pair], [pair[1] for pair in pairs if pair]
        if not pairs or None in pairs or sizes[0] > _MOST:
            raise OptionError(
                f"rungs = {short_repr(rungs)}: bracket {number} is {short_repr(bracket)}; give pairs of a "
                "number of trials and a resource, both whole numbers of at least 1"
            )
        if not is_strict(list(zip(sizes, levels, strict=True))):
            raise OptionError(
                f"rungs = {short_repr(rungs)}: in bracket {number}, numbers of trials have to fall, and "
                "resources to rise"
            )
        system.append(list(zip(sizes, levels, strict=True)))
    return system


def _pair(pair: object) -> tuple[int, int] | None:
    """Return a number of trials and a resource; None if they are not two whole numbers of at least 1."""
    if not isinstance(pair, list | tuple) or len(pair) != 2:
        return None
    size, level = map(as_int, pair)
    return None if size is None or level is None or min(size, level) < 1 else (size, level)


def _check_size(size: int, min_resource: int, max_resource: int, eta: int) -> None:
    """Raise `OptionError` if the first rung of a bracket would have too many trials."""
    if size > _MOST:
        raise OptionError(
            f"max_resource = {max_resource}, min_resource = {min_resource}, eta = {eta}: the first rung "
            f"would have {size:,} trials, but {_MOST:,} is the maximum: increase min_resource"
        )


def _rungs_above(min_resource: int, max_resource: int, eta: int) -> int:
    """Return the smallest `s` with ``min_resource * eta**s >= max_resource``."""
    last = 0
    while min_resource * eta**last < max_resource:
        last += 1
    if last == 0:
        raise _one_rung(min_resource, max_resource, eta)
    return last


def _one_rung(min_resource: int, max_resource: int, eta: int) -> OptionError:
    return OptionError(
        f"min_resource = {min_resource}, max_resource = {max_resource}, eta = {eta}: the ladder has one "
        f"rung, and trials are compared on two at least; let max_resource be {min_resource * eta} or more, "
        "or take scheduler='fifo'"
    )


def _count(most: int, brackets: int | None) -> int:
    if brackets is None:
        return most
    if brackets < 1:
        raise OptionError(f"brackets = {brackets}: valid is 1 to {most}")
    return min(brackets, most)


def mislead(pairs: Sequence[tuple[float, float]]) -> bool:
    """Return whether losses at one level rank trials differently from losses at the next level.

    The pairs are losses of promoted trials, the best of the lower level. Among these, the rank correlation of
    levels that agree is lower than among all trials, but well above 0.

    >>> mislead([(1, 5), (2, 3), (3, 7), (4, 1), (5, 2), (6, 6), (7, 8), (8, 4)])
    True
    """
    if len(pairs) < _PAIRS:
        return False
    columns = [(column, sorted(column)) for column in zip(*pairs, strict=True)]
    ranks = [[bisect_left(ascending, value) for value in column] for column, ascending in columns]
    n, distance = len(pairs), sum((one - other) ** 2 for one, other in zip(*ranks, strict=True))
    return bool(1 - 6 * distance / (n * (n * n - 1)) < _CORRELATION)


def quantile(ascending: Sequence[float], share: float) -> float:
    """Return the same number as `numpy.quantile`, to the bit, without an array.

    >>> quantile([1.0, 2.0, 4.0], 0.75)
    3.0
    """
    place = (len(ascending) - 1) * share
    before = int(place)
    low, high = ascending[before], ascending[min(before + 1, len(ascending) - 1)]
    if low == high:  # avoids inf - inf if both are infinite
        return low
    over = place - before
    return high - (high - low) * (1 - over) if over >= 0.5 else low + (high - low) * over
