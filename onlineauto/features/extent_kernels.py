"""Products of namespaces by full name where groups are known by first byte: VW's *extents*.

An extent is a run of features of one full name within the group of its first byte. Only exact mode needs
them (``--experimental_full_name_interactions``); elsewhere a group has one name. Extents are walked in VW's
order, last one first except in the last factor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.features._kernels import cross_ranges
from onlineauto.jit import F32, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.features._kernels import Columns, Interactions, Layout, Scratch

_ZERO = np.float32(0)
_ONE = np.float32(1)


@kernel
def _append(
    layout: Layout,
    scratch: Scratch,
    columns: Columns,
    first: int,
    last: int,
    key: int,
    at: int,
    begin: int,
    count: int,
) -> tuple[int, int]:
    """Append the extents of group `key` among spans [first, last); neighbours of one name become one."""
    for span in range(first, last):
        name = columns.span_namespace[span]
        if layout.key[name] != key:
            continue
        size = columns.span_start[span + 1] - columns.span_start[span]
        if count > begin and scratch.extent_name[count - 1] == name:
            scratch.extent_end[count - 1] = at + size
        else:
            scratch.extent_name[count] = name
            scratch.extent_start[count] = at
            scratch.extent_end[count] = at + size
            count += 1
        at += size
    return at, count


@kernel
def _join(scratch: Scratch, begin: int, middle: int, count: int) -> int:
    """Join own extents [begin, middle) and shared ones [middle, count), as VW's `features::concat` does.

    If the last own name is the first shared one they become one extent, and the last shared one is lost.
    """
    if begin == middle or middle == count or scratch.extent_name[middle - 1] != scratch.extent_name[middle]:
        return count
    scratch.extent_end[middle - 1] = scratch.extent_end[middle]
    kept = middle
    for i in range(middle + 1, count - 1):
        scratch.extent_name[kept] = scratch.extent_name[i]
        scratch.extent_start[kept] = scratch.extent_start[i]
        scratch.extent_end[kept] = scratch.extent_end[i]
        kept += 1
    return kept


@kernel
def list_extents(
    layout: Layout, scratch: Scratch, columns: Columns, line: int, shared_line: int, begin: int, groups: int
) -> None:
    """List the extents of groups [begin, groups) of an example: `line` and, if not -1, `shared_line`."""
    count = 0
    for group in range(begin, groups):
        key = scratch.group_key[group]
        if layout.ignore[key] or key == layout.constant_key:
            continue
        at, first = scratch.group_start[group], count
        own, end = columns.line_start[line], columns.line_start[line + 1]
        at, count = _append(layout, scratch, columns, own, end, key, at, first, count)
        if shared_line >= 0:
            middle = count
            own, end = columns.line_start[shared_line], columns.line_start[shared_line + 1]
            at, count = _append(layout, scratch, columns, own, end, key, at, middle, count)
            count = _join(scratch, first, middle, count)
    scratch.extent_count[0] = count


@kernel
def _count_named(scratch: Scratch, name: int) -> int:
    count = 0
    for i in range(scratch.extent_count[0]):
        if scratch.extent_name[i] == name:
            count += 1
    return count


@kernel
def _choose(scratch: Scratch, k: int, name: int, choice: int) -> None:
    """Let factor k range over the `choice`-th extent called `name`."""
    for i in range(scratch.extent_count[0]):
        if scratch.extent_name[i] == name:
            if choice == 0:
                scratch.range_start[k] = scratch.extent_start[i]
                scratch.range_end[k] = scratch.extent_end[i]
                return
            choice -= 1


@kernel
def _lowest(interactions: Interactions, scratch: Scratch, at: int, k: int) -> int:
    """First extent that factor k may take: not before the one of the same factor before it."""
    if k > 0 and interactions.extent_name[at + k] == interactions.extent_name[at + k - 1]:
        return int(scratch.choice[k - 1])
    return 0


@kernel
def _cross_choices(
    interactions: Interactions,
    scratch: Scratch,
    at: int,
    order: int,
    mask: np.uint64,
    cell: NDArray[np.uint32],
    value: NDArray[np.float32],
    n: int,
    write: bool,
) -> int:
    """Cross every combination of extents of one product, in VW's order."""
    last = order - 1
    depth = 0
    scratch.choice[0] = _count_named(scratch, interactions.extent_name[at]) - 1
    while depth >= 0:
        if scratch.choice[depth] < _lowest(interactions, scratch, at, depth):
            depth -= 1
            if depth >= 0:
                scratch.choice[depth] -= 1
            continue
        _choose(scratch, depth, interactions.extent_name[at + depth], scratch.choice[depth])
        depth += 1
        scratch.choice[depth] = _count_named(scratch, interactions.extent_name[at + depth]) - 1
        if depth < last:
            continue
        for choice in range(_lowest(interactions, scratch, at, last), scratch.choice[last] + 1):
            _choose(scratch, last, interactions.extent_name[at + last], choice)
            for k in range(1, order):
                scratch.repeats[k] = (
                    not interactions.permutations and scratch.range_start[k] == scratch.range_start[k - 1]
                )
            n = cross_ranges(scratch, order, mask, cell, value, n, write)
        depth -= 1
        scratch.choice[depth] -= 1
    return n


@kernel
def cross_extents(
    interactions: Interactions,
    scratch: Scratch,
    mask: np.uint64,
    cell: NDArray[np.uint32],
    value: NDArray[np.float32],
    n: int,
    write: bool,
) -> int:
    """Append all products of extents to the listed features; only count them unless `write`."""
    for product in range(len(interactions.extent_start) - 1):
        at, end = interactions.extent_start[product], interactions.extent_start[product + 1]
        empty = False
        for k in range(at, end):
            empty = empty or _count_named(scratch, interactions.extent_name[k]) == 0
        if not empty:
            n = _cross_choices(interactions, scratch, at, end - at, mask, cell, value, n, write)
    return n


@kernel
def _squares_of_run(scratch: Scratch, name: int, order: int) -> F32:
    sums = scratch.product
    for j in range(order):
        sums[j] = _ZERO
    for i in range(scratch.extent_count[0]):
        if scratch.extent_name[i] != name:
            continue
        for feature in range(scratch.extent_start[i], scratch.extent_end[i]):
            square = scratch.value[feature] * scratch.value[feature]
            sums[0] += square
            for j in range(1, order):
                sums[j] += sums[j - 1] * square
    return sums[order - 1]


@kernel
def extent_squares(interactions: Interactions, scratch: Scratch) -> F32:
    """Σ x² (float32) over all products of extents, as VW sums it."""
    total = _ZERO
    for product in range(len(interactions.extent_start) - 1):
        k, end = interactions.extent_start[product], interactions.extent_start[product + 1]
        term = _ONE
        while k < end and term != _ZERO:
            run = 1
            while (
                not interactions.permutations
                and k + run < end
                and interactions.extent_name[k + run] == interactions.extent_name[k]
            ):
                run += 1
            term *= _squares_of_run(scratch, interactions.extent_name[k], run)
            k += run
        total += term
    return total
