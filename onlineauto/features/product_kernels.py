"""Cross groups: look up the factors of products, then count and list their features.

Source: VW ``interactions_predict.h``. The hash of a product chains FNV-1 over its factors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from onlineauto.features.group_kernels import group_in_vw_order, is_covered, squares_of_group
from onlineauto.features.hash_constants import FNV_32_PRIME
from onlineauto.jit import F32, inline_kernel, kernel, short_loop

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from onlineauto.features.records import Interactions, Layout, Listing, Records, Scratch

_FNV_32_PRIME = np.uint64(FNV_32_PRIME)
_ZERO = np.float32(0)
_ONE = np.float32(1)


@inline_kernel
def look_up(interactions: Interactions, scratch: Scratch, product: int) -> bool:
    """Look up the features of every factor of a product; return False if a factor has none."""
    first = interactions.start[product]
    for k in range(interactions.start[product + 1] - first):
        short_loop()
        key = interactions.factor[first + k]
        if scratch.places[key].group < 0:
            return False
        scratch.factors[k].start = scratch.places[key].start
        scratch.factors[k].end = scratch.places[key].end
        scratch.factors[k].repeats = (
            k > 0 and not interactions.permutations and key == interactions.factor[first + k - 1]
        )
    return True


@inline_kernel
def count_product(scratch: Scratch, order: int) -> float:
    """Return the number of features of the looked-up product: C(n + r - 1, r) for r equal factors.

    The result is a float, which does not overflow and is exact up to 2^53.
    """
    total = 1.0
    run = 1
    for k in range(order):
        short_loop()
        size = scratch.factors[k].end - scratch.factors[k].start
        if scratch.factors[k].repeats:
            run += 1
            total = total * (size + run - 1) / run
        else:
            run = 1
            total *= size
    return total


def make_pair_loop(take: Callable[..., Any]) -> Callable[..., Any]:
    """Return a kernel that calls ``take(sink, cell, value, result)`` for each product of two runs.

    `take` returns the next result. With `same_run`, each pair counts once.
    """

    @inline_kernel
    def cross_pair(
        sink: Any,
        features: Records,
        mask: np.uint64,
        runs: tuple[tuple[int, int], tuple[int, int]],
        same_run: bool,
        result: Any,
    ) -> Any:
        first, second = runs
        begin = np.uint64(second[0])
        for i in range(np.uint64(first[0]), np.uint64(first[1])):
            short_loop()
            half = _FNV_32_PRIME * np.uint64(features[i].hash)
            x = features[i].value
            for j in range(i if same_run else begin, np.uint64(second[1])):
                short_loop()
                cell = (half ^ np.uint64(features[j].hash)) & mask
                result = take(sink, cell, x * features[j].value, result)
        return result

    return cross_pair


def make_triple_loop(take: Callable[..., Any]) -> Callable[..., Any]:
    """Return a kernel like that of `make_pair_loop`, for the products of three runs.

    `same_run` says whether the second run is the first one, and whether the third run is the second one.
    """

    @inline_kernel
    def cross_triple(
        sink: Any,
        features: Records,
        mask: np.uint64,
        runs: tuple[tuple[int, int], tuple[int, int], tuple[int, int]],
        same_run: tuple[bool, bool],
        result: Any,
    ) -> Any:
        first, second, third = runs
        for i in range(np.uint64(first[0]), np.uint64(first[1])):
            short_loop()
            chain = _FNV_32_PRIME * np.uint64(features[i].hash)
            x = features[i].value
            for j in range(i if same_run[0] else np.uint64(second[0]), np.uint64(second[1])):
                short_loop()
                half = _FNV_32_PRIME * (chain ^ np.uint64(features[j].hash))
                xy = x * features[j].value
                for k in range(j if same_run[1] else np.uint64(third[0]), np.uint64(third[1])):
                    short_loop()
                    cell = (half ^ np.uint64(features[k].hash)) & mask
                    result = take(sink, cell, xy * features[k].value, result)
        return result

    return cross_triple


@inline_kernel
def _append(listing: Listing, cell: np.uint64, value: F32, n: int) -> int:
    """Append a product to the `n` listed features and return the new number."""
    listing.cell[n], listing.value[n] = cell, value
    return n + 1


_list_pair, _list_triple = make_pair_loop(_append), make_triple_loop(_append)


@inline_kernel
def cross_any(
    scratch: Scratch,
    features: Records,
    order: int,
    listing: Listing,
    n: int,
) -> int:
    """Append the features of the looked-up product, depth first; the last factor varies fastest."""
    factors = scratch.factors
    last = order - 1
    depth = 0
    factors[0].position = factors[0].start
    while True:
        if factors[depth].position == factors[depth].end:
            depth -= 1
            if depth < 0:
                return n
            factors[depth].position += 1
            continue
        i = factors[depth].position
        if depth == last:
            half, x = factors[depth - 1].chain, factors[depth - 1].product
            for j in range(i, factors[depth].end):
                listing.cell[n] = (half ^ np.uint64(features[j].hash)) & listing.mask
                listing.value[n] = x * features[j].value
                n += 1
            depth -= 1
            factors[depth].position += 1
            continue
        chained = np.uint64(features[i].hash)
        x = features[i].value
        if depth > 0:
            chained ^= factors[depth - 1].chain
            x = factors[depth - 1].product * x
        factors[depth].chain = _FNV_32_PRIME * chained
        factors[depth].product = x
        depth += 1
        factors[depth].position = i if factors[depth].repeats else factors[depth].start


@inline_kernel
def _list_run(
    features: Records,
    start: int,
    end: int,
    listing: Listing,
    n: int,
) -> int:
    """Append the features [start, end) themselves to the `n` listed ones and return the new number."""
    for i in range(start, end):
        short_loop()
        listing.cell[n] = np.uint64(features[i].hash) & listing.mask
        listing.value[n] = features[i].value
        n += 1
    return n


@inline_kernel
def cross_product(
    scratch: Scratch,
    features: Records,
    order: int,
    listing: Listing,
    n: int,
) -> int:
    """Append the features of the looked-up product to the `n` listed ones and return the new number.

    A product of one factor is a namespace itself.
    """
    if order == 1:
        factor = scratch.factors[0]
        return _list_run(features, factor.start, factor.end, listing, n)
    if order > 3:
        return cross_any(scratch, features, order, listing, n)
    one, two = scratch.factors[0], scratch.factors[1]
    first, second = (one.start, one.end), (two.start, two.end)
    if order == 2:
        return _list_pair(listing, features, listing.mask, (first, second), two.repeats, n)
    three = scratch.factors[2]
    runs, same_run = (first, second, (three.start, three.end)), (two.repeats, three.repeats)
    return _list_triple(listing, features, listing.mask, runs, same_run, n)


@inline_kernel
def cross_all(
    interactions: Interactions,
    scratch: Scratch,
    features: Records,
    listing: Listing,
    runs: Records,
    n: int,
) -> tuple[int, int]:
    """Append the products whose namespaces are present to the `n` listed features.

    Returns the number of features and the number of runs. The first run has the features that were listed
    before the call, and each present product adds a run. With a single live config there is only one run.
    """
    together = interactions.n_slots == 1
    n_runs = 1
    runs[0].start, runs[0].end, runs[0].product = 0, n, 0
    for product in range(len(interactions.start) - 1):
        short_loop()
        order = interactions.start[product + 1] - interactions.start[product]
        start = n
        if look_up(interactions, scratch, product):
            n = cross_product(scratch, features, order, listing, n)
        if not together and n > start:
            runs[n_runs].start, runs[n_runs].end, runs[n_runs].product = start, n, product + 1
            n_runs += 1
    if together:
        runs[0].end = n
    return n, n_runs


@kernel
def count_all(interactions: Interactions, scratch: Scratch, sizes: NDArray[np.float64]) -> float:
    """Return the number of features of all products whose namespaces are present.

    If `sizes` is not empty, the number of features of each product is added to the product's entry.
    """
    n = 0.0
    for product in range(len(interactions.start) - 1):
        if look_up(interactions, scratch, product):
            size = count_product(scratch, interactions.start[product + 1] - interactions.start[product])
            n += size
            if len(sizes) > 0:
                sizes[product] += size
    return n


@inline_kernel
def is_linear(layout: Layout, scratch: Scratch, group: int, n_shared: int) -> bool:
    """Return whether the features of a group are used as linear features, not only in products."""
    if layout.ignore_linear[scratch.groups[group].key]:
        return False
    return not is_covered(scratch, group, n_shared)


@inline_kernel
def list_linear(
    layout: Layout,
    scratch: Scratch,
    features: Records,
    n_shared: int,
    groups: int,
    listing: Listing,
) -> int:
    """List the linear features, as table cells and values; return their number."""
    n = 0
    for i in range(groups):
        short_loop()
        group = group_in_vw_order(i, n_shared, groups)
        if not is_linear(layout, scratch, group, n_shared):
            continue
        start, end = scratch.groups[group].start, scratch.groups[group].end
        n = _list_run(features, start, end, listing, n)
    return n


@kernel
def _squares_of_run(scratch: Scratch, features: Records, key: int, order: int) -> F32:
    """Return Σ of squared products of `order` factors that are one group, each combination once."""
    factors, group = scratch.factors, scratch.places[key].group
    if group < 0:
        return _ZERO
    if order == 1:
        return squares_of_group(scratch, features, group)
    for j in range(order):
        factors[j].product = _ZERO
    for i in range(scratch.groups[group].start, scratch.groups[group].end):
        square = features[i].value * features[i].value
        factors[0].product += square
        for j in range(1, order):
            factors[j].product += factors[j - 1].product * square
    return factors[order - 1].product


@kernel
def linear_squares(layout: Layout, scratch: Scratch, features: Records, n_shared: int, groups: int) -> F32:
    """Return Σ x² (float32) over an example's features without its products, summed in VW's order."""
    linear = _ZERO
    for i in range(groups):
        group = group_in_vw_order(i, n_shared, groups)
        counts = not (layout.singled and layout.ignore_linear[scratch.groups[group].key])
        if counts and not is_covered(scratch, group, n_shared):
            linear += squares_of_group(scratch, features, group)
    return linear


@kernel
def sum_crossed_squares(interactions: Interactions, scratch: Scratch, features: Records, slot: int) -> F32:
    """Return Σ x² (float32) over the products of live config `slot`, summed in VW's order."""
    crossed = _ZERO
    for product in range(len(interactions.start) - 1):
        if not interactions.holders[product + 1, slot]:
            continue
        k, end = interactions.start[product], interactions.start[product + 1]
        term = _ONE
        while k < end and term != _ZERO:
            run = 1
            while (
                not interactions.permutations
                and k + run < end
                and interactions.factor[k + run] == interactions.factor[k]
            ):
                run += 1
            term *= _squares_of_run(scratch, features, interactions.factor[k], run)
            k += run
        crossed += term
    return crossed
