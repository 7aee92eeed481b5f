"""From a line of a Block to the features of an example: group by namespace, merge, cross.

A *group* is the features of one namespace of one example, contiguous in the scratch columns. VW's order of
groups: those of the action in order of first appearance, the constant, those of the shared line that the
action does not have. A namespace in both has the action's features first.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from onlineauto.jit import kernel

_FNV = np.uint64(16777619)
_ONE = np.float32(1)
_ZERO = np.float32(0)
CONSTANT_HASH = np.uint32(11650396)


class Layout(NamedTuple):
    """How namespaces become groups, the same for all events of a block."""

    key: np.ndarray  # int32[n_namespaces]: group key of each namespace
    ignore: np.ndarray  # bool[n_keys]: dropped altogether
    ignore_linear: np.ndarray  # bool[n_keys]: kept for interactions only
    constant_key: int  # group key of the constant; -1: no constant


class Interactions(NamedTuple):
    """Products of namespaces, in the order they are summed."""

    start: np.ndarray  # int64[n + 1]
    key: np.ndarray  # int32[]: group keys of each product
    extent_start: np.ndarray  # int64[m + 1]: products by full name, exact mode only
    extent_name: np.ndarray  # int32[]: namespaces of each
    permutations: bool


class Scratch(NamedTuple):
    """Working columns of one example: reused for every one."""

    hash: np.ndarray  # uint32[]
    value: np.ndarray  # float32[]
    group_key: np.ndarray  # int32[]
    group_start: np.ndarray  # int64[]
    group_end: np.ndarray  # int64[]
    group_squares: np.ndarray  # float32[]: Σ x² of each group
    where: np.ndarray  # int32[n_keys]: group of each key, -1 if absent
    range_start: np.ndarray  # int64[longest product]
    range_end: np.ndarray  # int64[longest product]
    repeats: np.ndarray  # bool[longest product]: the factor ranges over the same features as the one before
    position: np.ndarray  # int64[longest product]
    chain: np.ndarray  # uint64[longest product]
    product: np.ndarray  # float32[longest product]
    choice: np.ndarray  # int64[longest product]
    extent_count: np.ndarray  # int64[1]
    extent_name: np.ndarray  # int32[]
    extent_start: np.ndarray  # int64[]
    extent_end: np.ndarray  # int64[]


@kernel
def _open_groups(layout, scratch, span_namespace, span_start, first, last, groups):
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
def gather(layout, scratch, span_namespace, span_start, hash_, value, first, last, groups, used):
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
def forget(scratch, first, last):
    """Clear `where` for groups [first, last)."""
    for group in range(first, last):
        scratch.where[scratch.group_key[group]] = -1


@kernel
def add_constant(layout, scratch, constant_at, groups):
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
def merge_shared(scratch, n_shared, begin, groups, used):
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
def _ranges(interactions, scratch, product):
    """Look up the features of every factor; False if one has none."""
    start = interactions.start[product]
    for k in range(interactions.start[product + 1] - start):
        group = scratch.where[interactions.key[start + k]]
        if group < 0:
            return False
        scratch.range_start[k] = scratch.group_start[group]
        scratch.range_end[k] = scratch.group_end[group]
        scratch.repeats[k] = (
            k > 0 and not interactions.permutations and interactions.key[start + k] == interactions.key[start + k - 1]
        )
    return True


@kernel
def _count_product(scratch, order):
    """Number of features of a product whose ranges are looked up: C(n + r - 1, r) for a run of r equal ones."""
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
def _cross_pair(scratch, mask, cell, value, n):
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
def _cross(scratch, order, mask, cell, value, n):
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
def cross_ranges(scratch, order, mask, cell, value, n, write):
    """Append the product of the looked-up ranges to the listed features; only count it unless `write`."""
    if not write:
        return n + _count_product(scratch, order)
    if order == 2:
        return _cross_pair(scratch, mask, cell, value, n)
    return _cross(scratch, order, mask, cell, value, n)


@kernel
def count_linear(layout, scratch, begin, groups):
    """Number of features of groups [begin, groups) that are used as they are."""
    total = 0
    for group in range(begin, groups):
        if not layout.ignore_linear[scratch.group_key[group]]:
            total += scratch.group_end[group] - scratch.group_start[group]
    return total


@kernel
def list_linear(layout, scratch, begin, groups, mask, cell, value):
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
def cross_groups(interactions, scratch, mask, cell, value, n, write):
    """Append all products of the present groups to the listed features; only count them unless `write`."""
    for product in range(len(interactions.start) - 1):
        if _ranges(interactions, scratch, product):
            order = interactions.start[product + 1] - interactions.start[product]
            n = cross_ranges(scratch, order, mask, cell, value, n, write)
    return n


@kernel
def _run_of_squares(scratch, group, order):
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
def sum_of_squares(interactions, scratch, begin, groups):
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
