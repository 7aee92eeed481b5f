"""Scores of all actions of an event, for all live configs; terms that actions share are added up once.

The features and products of the shared line are the same for every action, so they are summed once per event.
An action that has features of its own in a shared namespace is summed term by term, in the order of its
features. With the quirk `adds_in_order` every action is summed that way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from onlineauto.engine.event.example_kernels import open_action, shown_features
from onlineauto.engine.records.loop import Counted
from onlineauto.engine.records.task import Shape
from onlineauto.features.group_kernels import forget, group_in_vw_order
from onlineauto.features.hash_constants import FNV_32_PRIME
from onlineauto.features.product_kernels import cross_any, is_linear, look_up
from onlineauto.features.records import Listing
from onlineauto.jit import F32, Four, inline_kernel, short_loop
from onlineauto.jit.four import four, load, load_flags, pick, some, splat, store
from onlineauto.learners.gradient_kernels import CONTRACTION
from onlineauto.learners.score_kernels import (
    WeightLanes,
    add_listed,
    add_pair,
    add_pairs,
    add_run,
    add_term,
    add_triple,
    add_triples,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from onlineauto.engine.records.loop import Actions, Buffers, LoopRun


_FNV_32_PRIME = np.uint64(FNV_32_PRIME)
EVENT, ACTION = 0, 1
"""Rows of the totals: the part that all actions of an event share; the sum of one action."""


@inline_kernel
def scores_directly(run: LoopRun) -> bool:
    """Return whether scores need no list of features, because no live config has an L1 penalty."""
    if run.task.shape == Shape.SIMPLE and not run.live.searching:
        return False
    for slot in range(run.live.n):
        short_loop()
        if run.model.settings[slot].l1 > 0.0:
            return False
    return True


@inline_kernel
def _contraction(run: LoopRun, slot: int) -> Four:
    """Return the factors by which L2 penalties shrink the scores of the four live configs from `slot` on."""
    lanes, whose, last = run.model.lanes, run.model.penalised, run.live.n - 1
    return four(
        np.float32(lanes[whose[slot], CONTRACTION]),
        np.float32(lanes[whose[min(slot + 1, last)], CONTRACTION]),
        np.float32(lanes[whose[min(slot + 2, last)], CONTRACTION]),
        np.float32(lanes[whose[min(slot + 3, last)], CONTRACTION]),
    )


@inline_kernel
def _add_group(run: LoopRun, group: int, slots: int, row: int, buffers: Buffers) -> None:
    """Add the features of a group to row `row` of the totals of the first `slots` live configs."""
    start, end, mask = run.scratch.groups[group].start, run.scratch.groups[group].end, run.task.mask
    for slot in range(0, slots, 4):
        short_loop()
        total = load(buffers.total, row, slot)
        total = add_run(run.model.weights, run.stream.features, start, end, mask, slot, total)
        store(buffers.total, row, slot, total)


@inline_kernel
def _add_single(run: LoopRun, product: int, slots: int, row: int, buffers: Buffers) -> int:
    """Add a product of one factor to a row of the totals; return 0, because it counts as own features."""
    interactions, weights, mask = run.interactions, run.model.weights, run.task.mask
    group = run.scratch.places[interactions.factor[interactions.start[product]]]
    for slot in range(0, slots, 4):
        short_loop()
        flags = load_flags(interactions.holders, product + 1, slot)
        if group.end > group.start and some(flags):
            before = load(buffers.total, row, slot)
            total = add_run(weights, run.stream.features, group.start, group.end, mask, slot, before)
            store(buffers.total, row, slot, pick(flags, total, before))
    return 0


def _make_add(add_four: Callable[..., Any], add_eight: Callable[..., Any]) -> Callable[..., Any]:
    """Return a kernel that adds a product of runs to a row of the totals, for all live configs."""

    @inline_kernel
    def add(run: LoopRun, product: int, slots: int, row: int, buffers: Buffers, runs: Any, same: Any) -> None:
        holders, weights, total = run.interactions.holders, run.model.weights, buffers.total
        features, mask, slot = run.stream.features, run.task.mask, 0
        while slot < slots:
            short_loop()
            flags = load_flags(holders, product + 1, slot)
            if some(flags):
                lanes, before = WeightLanes(weights, slot), load(total, row, slot)
                if slot + 4 < slots:
                    next_flags = load_flags(holders, product + 1, slot + 4)
                    if some(next_flags):
                        later = load(total, row, slot + 4)
                        added, next_added = add_eight(lanes, features, mask, runs, same, (before, later))
                        store(total, row, slot, pick(flags, added, before))
                        store(total, row, slot + 4, pick(next_flags, next_added, later))
                        slot += 8
                        continue
                added = add_four(lanes, features, mask, runs, same, before)
                store(total, row, slot, pick(flags, added, before))
            slot += 4

    return add


_add_runs_of_pair, _add_runs_of_triple = _make_add(add_pair, add_pairs), _make_add(add_triple, add_triples)


@inline_kernel
def _add_pair(run: LoopRun, product: int, slots: int, row: int, buffers: Buffers) -> int:
    """Add a product of two groups to a row of the totals; return its number of features."""
    interactions, places = run.interactions, run.scratch.places
    factor = interactions.start[product]
    one, other = interactions.factor[factor], interactions.factor[factor + 1]
    first, second = (places[one].start, places[one].end), (places[other].start, places[other].end)
    m, n = first[1] - first[0], second[1] - second[0]
    if m == 0 or n == 0:
        return 0
    same = bool(one == other and not interactions.permutations)
    _add_runs_of_pair(run, product, slots, row, buffers, (first, second), same)
    return int(m * (m + 1) // 2 if same else m * n)


@inline_kernel
def _add_triple(run: LoopRun, product: int, slots: int, row: int, buffers: Buffers) -> int:
    """Add a product of three groups to a row of the totals; return its number of features."""
    interactions, places = run.interactions, run.scratch.places
    factor = interactions.start[product]
    a, b, c = interactions.factor[factor], interactions.factor[factor + 1], interactions.factor[factor + 2]
    first, second = (places[a].start, places[a].end), (places[b].start, places[b].end)
    third = (places[c].start, places[c].end)
    m, n, o = first[1] - first[0], second[1] - second[0], third[1] - third[0]
    if m == 0 or n == 0 or o == 0:
        return 0
    same = (bool(a == b and not interactions.permutations), bool(b == c and not interactions.permutations))
    _add_runs_of_triple(run, product, slots, row, buffers, (first, second, third), same)
    pairs = m * (m + 1) // 2 if same[0] else m * n
    if not same[1]:
        return int(pairs * o)
    return int(pairs * (o + 2) // 3 if same[0] else m * (n * (n + 1) // 2))


@inline_kernel
def _list_product(run: LoopRun, product: int, order: int, start: int, buffers: Buffers) -> int:
    """List the features of a product of any order from index `start` on; return their number."""
    if not look_up(run.interactions, run.scratch, product):
        return 0
    listing = Listing(buffers.cell, buffers.value, run.task.mask)
    return cross_any(run.scratch, run.stream.features, order, listing, start) - start


@inline_kernel
def _add_product(run: LoopRun, product: int, slots: int, row: int, n_listed: int, buffers: Buffers) -> int:
    """Add a product to a row of the totals; return its number of features, 0 if no live config uses it."""
    interactions = run.interactions
    order = interactions.start[product + 1] - interactions.start[product]
    if order == 1:
        return _add_single(run, product, slots, row, buffers)
    if order == 2:
        return _add_pair(run, product, slots, row, buffers)
    if order == 3:
        return _add_triple(run, product, slots, row, buffers)
    n = _list_product(run, product, order, n_listed, buffers)
    cells, values = buffers.cell[n_listed:], buffers.value[n_listed:]
    for slot in range(0, slots, 4):
        short_loop()
        flags = load_flags(interactions.holders, product + 1, slot)
        if n > 0 and some(flags):
            before = load(buffers.total, row, slot)
            total = add_listed(run.model.weights, cells, values, n, slot, before)
            store(buffers.total, row, slot, pick(flags, total, before))
    return n


@inline_kernel
def _list_one_feature(run: LoopRun, product: int, n: int, buffers: Buffers) -> bool:
    """List a product of two or three groups at `n` if each has one feature; return whether it was listed."""
    interactions, places, features = run.interactions, run.scratch.places, run.stream.features
    first, end = interactions.start[product], interactions.start[product + 1]
    if end - first < 2 or end - first > 3:
        return False
    cell, x = np.uint64(0), np.float32(1)
    for k in range(first, end):
        short_loop()
        group = places[interactions.factor[k]]
        if group.end - group.start != 1:
            return False
        feature = features[group.start]
        cell, x = (_FNV_32_PRIME * cell) ^ np.uint64(feature.hash), x * feature.value
    buffers.cell[n], buffers.value[n] = cell & run.task.mask, x
    buffers.runs[n].product = product + 1
    return True


@inline_kernel
def _has_single_feature(run: LoopRun, begin: int, end: int) -> bool:
    """Return whether any of the groups [begin, end), apart from the constant, has one feature."""
    single, groups = False, run.scratch.groups
    for group in range(begin, end):
        short_loop()
        one = groups[group].end - groups[group].start == 1
        single = single or (one and groups[group].key != run.layout.constant_key)
    return single and not run.task.quirks.adds_in_order


@inline_kernel
def _add_products(
    run: LoopRun, begin: int, end: int, in_parts: bool, lists: bool, slots: int, row: int, buffers: Buffers
) -> int:
    """Add products to a row of the totals; return the number of the champion's features among them.

    `begin` and `end` are positions in `buffers.parted` if the products are `in_parts`, else products. With
    `lists`, products of one feature in each group are only listed, and added up last: a loop over them lets
    the processor fetch several cells at once. That changes the order of adding, which VW's quirks forbid.
    """
    holders, counted, listed, skipped = run.interactions.holders, 0, 0, 0
    for i in range(begin, end if lists else begin):
        short_loop()
        product = buffers.parted[i] if in_parts else i
        if (slots > 1 or holders[product + 1, 0]) and _list_one_feature(run, product, listed, buffers):
            listed += 1
            counted += 1 if holders[product + 1, 0] else 0
    for i in range(begin, end):
        short_loop()
        product = buffers.parted[i] if in_parts else i
        if skipped < listed and buffers.runs[skipped].product == product + 1:
            skipped += 1
        elif slots > 1 or holders[product + 1, 0]:
            size = _add_product(run, product, slots, row, listed, buffers)
            counted += size if holders[product + 1, 0] else 0
    for slot in range(0, slots if listed > 0 else 0, 4):
        short_loop()
        total = load(buffers.total, row, slot)
        for i in range(listed):
            short_loop()
            added = add_term(run.model.weights, buffers.cell[i], slot, buffers.value[i], total)
            total = pick(load_flags(holders, buffers.runs[i].product, slot), added, total)
        store(buffers.total, row, slot, total)
    return counted


@inline_kernel
def _part(run: LoopRun, buffers: Buffers) -> int:
    """Move products of only shared namespaces to the front of `buffers.parted`; return their number."""
    interactions, places = run.interactions, run.scratch.places
    n = len(interactions.start) - 1
    front, back = 0, n
    for product in range(n - 1, -1, -1):
        short_loop()
        alike = True
        for k in range(interactions.start[product], interactions.start[product + 1]):
            short_loop()
            alike = alike and places[interactions.factor[k]].group >= 0
        if alike:
            buffers.parted[front] = product
            front += 1
        else:
            back -= 1
            buffers.parted[back] = product
    return front


@inline_kernel
def score_actions(
    run: LoopRun, actions: Actions, slots: int, only: int, initial: F32, buffers: Buffers
) -> tuple[int, int]:
    """Fill `buffers.score` for the first `slots` live configs, with sums that begin with `initial`.

    Actions other than `only`, unless it is -1, are scored for the champion only. Returns two numbers of the
    champion's features: VW's count, and the number in VW's progress table.
    """
    scratch, total, score, layout = run.scratch, buffers.total, buffers.score, run.layout
    n, n_shared = len(run.interactions.start) - 1, actions.n_shared
    parts = bool(not run.task.quirks.adds_in_order and run.task.shape == Shape.CB_ADF and n_shared > 0)
    front = _part(run, buffers) if parts else 0
    n_shared_features = counted = champion_features = 0
    if parts:
        for slot in range(0, slots, 4):
            short_loop()
            store(total, EVENT, slot, splat(initial))
        for group in range(n_shared):
            short_loop()
            if not layout.ignore_linear[scratch.groups[group].key]:
                _add_group(run, group, slots, EVENT, buffers)
        lists = _has_single_feature(run, 0, n_shared)
        n_shared_features = _add_products(run, 0, front, True, lists, slots, EVENT, buffers)
    for action in range(actions.n):
        short_loop()
        groups, n_linear, merged = open_action(run, actions, action)
        apart = bool(parts and not merged)
        crossed = n_shared_features if apart else 0
        scored = slots if only < 0 or action == only else 1
        for slot in range(0, scored, 4):
            short_loop()
            store(total, ACTION, slot, load(total, EVENT, slot) if apart else splat(initial))
        for i in range(groups - n_shared if apart else groups):
            short_loop()
            group = group_in_vw_order(i, n_shared, groups)
            if is_linear(layout, scratch, group, n_shared):
                _add_group(run, group, scored, ACTION, buffers)
        lists = _has_single_feature(run, n_shared if apart else 0, groups)
        crossed += _add_products(run, front if apart else 0, n, apart, lists, scored, ACTION, buffers)
        for slot in range(0, scored, 4):
            short_loop()
            store(score, action, slot, load(total, ACTION, slot) * _contraction(run, slot))
        forget(scratch, n_shared, groups)
        counted += n_linear + crossed
        champion_features += shown_features(run, actions, action, Counted(n_linear, crossed))
    return counted, champion_features
