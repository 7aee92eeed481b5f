"""From a line of a Block to the features of an example: group by namespace, merge, cross.

A *group* is the features of one namespace of one example, contiguous in the scratch columns. VW's order of
groups: those of the action in order of first appearance, the constant, those of the shared line that the
action does not have. A namespace in both has the action's features first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from onlineauto.jit import F32, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

_FNV = np.uint64(16777619)
_ONE = np.float32(1)
_ZERO = np.float32(0)
CONSTANT_HASH = np.uint32(11650396)


class Layout(NamedTuple):
    """How namespaces become groups, the same for all events of a block."""

    key: NDArray[np.int32]  # [n_namespaces]: group key of each namespace
    ignore: NDArray[np.bool_]  # [n_keys]: dropped altogether
    ignore_linear: NDArray[np.bool_]  # [n_keys]: kept for interactions only
    constant_key: int  # group key of the constant; -1: no constant


class Columns(NamedTuple):
    """Columns of a Block, and which of its events are held out."""

    event_start: NDArray[np.int64]
    line_start: NDArray[np.int64]
    shared: NDArray[np.bool_]
    label: NDArray[np.float32]
    weight: NDArray[np.float32]
    initial: NDArray[np.float32]
    cost_start: NDArray[np.int64]
    cost_action: NDArray[np.uint32]
    cost: NDArray[np.float32]
    probability: NDArray[np.float32]
    span_namespace: NDArray[np.int32]
    span_start: NDArray[np.int64]
    hash: NDArray[np.uint32]
    value: NDArray[np.float32]
    holdout: NDArray[np.bool_]


class Interactions(NamedTuple):
    """Products of namespaces, in the order they are summed."""

    start: NDArray[np.int64]  # [n + 1]
    key: NDArray[np.int32]  # []: group keys of each product
    extent_start: NDArray[np.int64]  # [m + 1]: products by full name, exact mode only
    extent_name: NDArray[np.int32]  # []: namespaces of each
    permutations: bool


class Scratch(NamedTuple):
    """Working columns of one example: reused for every one."""

    hash: NDArray[np.uint32]  # []
    value: NDArray[np.float32]  # []
    group_key: NDArray[np.int32]  # []
    group_start: NDArray[np.int64]  # []
    group_end: NDArray[np.int64]  # []
    group_squares: NDArray[np.float32]  # []: Σ x² of each group
    where: NDArray[np.int32]  # [n_keys]: group of each key, -1 if absent
    range_start: NDArray[np.int64]  # [longest product]
    range_end: NDArray[np.int64]  # [longest product]
    repeats: NDArray[
        np.bool_
    ]  # [longest product]: the factor ranges over the same features as the one before
    position: NDArray[np.int64]  # [longest product]
    chain: NDArray[np.uint64]  # [longest product]
    product: NDArray[np.float32]  # [longest product]
    choice: NDArray[np.int64]  # [longest product]
    extent_count: NDArray[np.int64]  # [1]
    extent_name: NDArray[np.int32]  # []
    extent_start: NDArray[np.int64]  # []
    extent_end: NDArray[np.int64]  # []


@kernel
def _open_groups(
    layout: Layout,
    scratch: Scratch,
    span_namespace: NDArray[np.int32],
    span_start: NDArray[np.int64],
    first: int,
    last: int,
    groups: int,
) -> int:
    """Make a group for each kept namespace of spans [first, last), sized, and return how many there are."""
    begin = groups
    for span in range(first, last):
        key = layout.key[span_namespace[span]]
        if layout.ignore[key]:
            continue
        group = scratch.where[key]
        if group < begin:
            group = groups
            groups += 1
            scratch.where[key] = group
            scratch.group_key[group] = key
            scratch.group_end[group] = 0
            scratch.group_squares[group] = _ZERO
        scratch.group_end[group] += span_start[span + 1] - span_start[span]
    return groups


@kernel
def gather(
    layout: Layout,
    scratch: Scratch,
    span_namespace: NDArray[np.int32],
    span_start: NDArray[np.int64],
    hash_: NDArray[np.uint32],
    value: NDArray[np.float32],
    first: int,
    last: int,
    groups: int,
    used: int,
) -> tuple[int, int]:
    """Copy spans [first, last) into groups from number `groups` on, features from `used` on.

    Returns the numbers of groups and features then in use. `where` points at the new groups.
    """
    begin = groups
    groups = _open_groups(layout, scratch, span_namespace, span_start, first, last, groups)
    for group in range(begin, groups):
        size = scratch.group_end[group]
        scratch.group_start[group] = used
        scratch.group_end[group] = used
        used += size
    for span in range(first, last):
        key = layout.key[span_namespace[span]]
        if layout.ignore[key]:
            continue
        group = scratch.where[key]
        at = scratch.group_end[group]
        squares = scratch.group_squares[group]
        for i in range(span_start[span], span_start[span + 1]):
            scratch.hash[at] = hash_[i]
            scratch.value[at] = value[i]
            squares += value[i] * value[i]
            at += 1
        scratch.group_end[group] = at
        scratch.group_squares[group] = squares
    return groups, used


@kernel
def forget(scratch: Scratch, first: int, last: int) -> None:
    """Clear `where` for groups [first, last)."""
    for group in range(first, last):
        scratch.where[scratch.group_key[group]] = -1


@kernel
def add_constant(layout: Layout, scratch: Scratch, constant_at: int, groups: int) -> int:
    """Append the constant as a group; its feature lies at `constant_at`. Returns the number of groups."""
    if layout.constant_key < 0:
        return groups
    scratch.where[layout.constant_key] = groups
    scratch.group_key[groups] = layout.constant_key
    scratch.group_start[groups] = constant_at
    scratch.group_end[groups] = constant_at + 1
    scratch.group_squares[groups] = _ONE
    return groups + 1


@kernel
def merge_shared(scratch: Scratch, n_shared: int, begin: int, groups: int, used: int) -> tuple[int, int]:
    """Join the shared groups [0, n_shared) to an action's groups [begin, groups); return both ends."""
    for s in range(n_shared):
        key = scratch.group_key[s]
        size = scratch.group_end[s] - scratch.group_start[s]
        own = scratch.where[key]
        if own < begin:
            scratch.where[key] = groups
            scratch.group_key[groups] = key
            scratch.group_start[groups] = scratch.group_start[s]
            scratch.group_end[groups] = scratch.group_end[s]
            scratch.group_squares[groups] = scratch.group_squares[s]
            groups += 1
            continue
        start = used
        for i in range(scratch.group_start[own], scratch.group_end[own]):
            scratch.hash[used] = scratch.hash[i]
            scratch.value[used] = scratch.value[i]
            used += 1
        for i in range(scratch.group_start[s], scratch.group_start[s] + size):
            scratch.hash[used] = scratch.hash[i]
            scratch.value[used] = scratch.value[i]
            used += 1
        scratch.group_start[own] = start
        scratch.group_end[own] = used
        scratch.group_squares[own] += scratch.group_squares[s]
    return groups, used


@kernel
def _ranges(interactions: Interactions, scratch: Scratch, product: int) -> bool:
    """Look up the features of every factor; False if one has none."""
    start = interactions.start[product]
    for k in range(interactions.start[product + 1] - start):
        group = scratch.where[interactions.key[start + k]]
        if group < 0:
            return False
        scratch.range_start[k] = scratch.group_start[group]
        scratch.range_end[k] = scratch.group_end[group]
        scratch.repeats[k] = (
            k > 0
            and not interactions.permutations
            and interactions.key[start + k] == interactions.key[start + k - 1]
        )
    return True


@kernel
def _count_product(scratch: Scratch, order: int) -> int:
    """Number of features of the looked-up product: C(n + r - 1, r) for a run of r equal factors."""
    total = 1
    run = 1
    for k in range(order):
        size = scratch.range_end[k] - scratch.range_start[k]
        if scratch.repeats[k]:
            run += 1
            total = total * (size + run - 1) // run
        else:
            run = 1
            total *= size
    return total


@kernel
def _cross_pair(
    scratch: Scratch, mask: np.uint64, cell: NDArray[np.uint32], value: NDArray[np.float32], n: int
) -> int:
    repeats = scratch.repeats[1]
    first, second = scratch.range_start[0], scratch.range_start[1]
    for i in range(first, scratch.range_end[0]):
        half = _FNV * np.uint64(scratch.hash[i])
        x = scratch.value[i]
        for j in range(second + (i - first) if repeats else second, scratch.range_end[1]):
            cell[n] = (half ^ np.uint64(scratch.hash[j])) & mask
            value[n] = x * scratch.value[j]
            n += 1
    return n


@kernel
def _cross(
    scratch: Scratch,
    order: int,
    mask: np.uint64,
    cell: NDArray[np.uint32],
    value: NDArray[np.float32],
    n: int,
) -> int:
    """Depth first over a product of any order: the last factor runs fastest."""
    position, chain, product = scratch.position, scratch.chain, scratch.product
    last = order - 1
    depth = 0
    position[0] = scratch.range_start[0]
    while True:
        if position[depth] == scratch.range_end[depth]:
            depth -= 1
            if depth < 0:
                return n
            position[depth] += 1
            continue
        i = position[depth]
        if depth == 0:
            chain[0] = _FNV * np.uint64(scratch.hash[i])
            product[0] = scratch.value[i]
        elif depth < last:
            chain[depth] = _FNV * (chain[depth - 1] ^ np.uint64(scratch.hash[i]))
            product[depth] = product[depth - 1] * scratch.value[i]
        else:
            half, x = chain[depth - 1], product[depth - 1]
            for j in range(i, scratch.range_end[depth]):
                cell[n] = (half ^ np.uint64(scratch.hash[j])) & mask
                value[n] = x * scratch.value[j]
                n += 1
            depth -= 1
            position[depth] += 1
            continue
        depth += 1
        position[depth] = scratch.range_start[depth]
        if scratch.repeats[depth]:
            position[depth] = i


@kernel
def cross_ranges(
    scratch: Scratch,
    order: int,
    mask: np.uint64,
    cell: NDArray[np.uint32],
    value: NDArray[np.float32],
    n: int,
    write: bool,
) -> int:
    """Append the product of the looked-up ranges to the listed features; only count it unless `write`."""
    if not write:
        return n + _count_product(scratch, order)
    if order == 2:
        return _cross_pair(scratch, mask, cell, value, n)
    return _cross(scratch, order, mask, cell, value, n)


@kernel
def count_linear(layout: Layout, scratch: Scratch, begin: int, groups: int) -> int:
    """Number of features of groups [begin, groups) that are used as they are."""
    total = 0
    for group in range(begin, groups):
        if not layout.ignore_linear[scratch.group_key[group]]:
            total += scratch.group_end[group] - scratch.group_start[group]
    return total


@kernel
def list_linear(
    layout: Layout,
    scratch: Scratch,
    begin: int,
    groups: int,
    mask: np.uint64,
    cell: NDArray[np.uint32],
    value: NDArray[np.float32],
) -> int:
    """List the features of groups [begin, groups) that are used as they are: table cells and values."""
    n = 0
    for group in range(begin, groups):
        if layout.ignore_linear[scratch.group_key[group]]:
            continue
        for i in range(scratch.group_start[group], scratch.group_end[group]):
            cell[n] = np.uint64(scratch.hash[i]) & mask
            value[n] = scratch.value[i]
            n += 1
    return n


@kernel
def cross_groups(
    interactions: Interactions,
    scratch: Scratch,
    mask: np.uint64,
    cell: NDArray[np.uint32],
    value: NDArray[np.float32],
    n: int,
    write: bool,
) -> int:
    """Append all products of the present groups to the listed features; only count them unless `write`."""
    for product in range(len(interactions.start) - 1):
        if _ranges(interactions, scratch, product):
            order = interactions.start[product + 1] - interactions.start[product]
            n = cross_ranges(scratch, order, mask, cell, value, n, write)
    return n


@kernel
def _run_of_squares(scratch: Scratch, group: int, order: int) -> F32:
    """Σ of squared products of `order` factors of one group, each combination once."""
    sums = scratch.product
    for j in range(order):
        sums[j] = _ZERO
    for i in range(scratch.group_start[group], scratch.group_end[group]):
        square = scratch.value[i] * scratch.value[i]
        sums[0] += square
        for j in range(1, order):
            sums[j] += sums[j - 1] * square
    return sums[order - 1]


@kernel
def sum_of_squares(interactions: Interactions, scratch: Scratch, begin: int, groups: int) -> F32:
    """Σ x² (float32) over all features of an example, products included, summed as VW sums it."""
    linear = _ZERO
    for group in range(begin, groups):
        linear += scratch.group_squares[group]
    crossed = _ZERO
    for product in range(len(interactions.start) - 1):
        start, end = interactions.start[product], interactions.start[product + 1]
        term = _ONE
        k = start
        while k < end:
            run = 1
            if not interactions.permutations:
                while k + run < end and interactions.key[k + run] == interactions.key[k]:
                    run += 1
            group = scratch.where[interactions.key[k]]
            if group < 0:
                term = _ZERO
                break
            term *= scratch.group_squares[group] if run == 1 else _run_of_squares(scratch, group, run)
            if term == _ZERO:
                break
            k += run
        crossed += term
    return linear + crossed
