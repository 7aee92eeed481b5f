"""Scores of all actions of an event, for all live slots: what they share is added up once.

In native mode the products of shared namespaces, the same for every action, are summed once per event. Exact
mode adds every term in VW's order, action by action.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.engine.example_kernels import open_action, shown_features, with_columns
from onlineauto.engine.state import CB_ADF, SIMPLE, Counted
from onlineauto.features._kernels import forget
from onlineauto.features.product_kernels import count_product, cross_any, look_up
from onlineauto.jit import Four, inline_kernel
from onlineauto.jit.four import element, load, splat, store
from onlineauto.learners._kernels import CONTRACTION
from onlineauto.learners.score_kernels import add_listed, add_pair, add_run, choose

if TYPE_CHECKING:
    from onlineauto.engine.state import Actions, Buffers, Run

_ZERO = np.float32(0)


@inline_kernel
def scores_directly(run: Run) -> bool:
    """Whether scores need no list of features: not with penalties, which bend weights, nor with extents."""
    only_groups = run.interactions.n_group == len(run.interactions.start) - 1
    return run.task.shape != SIMPLE and only_groups and run.rule.l1 == 0.0


@inline_kernel
def _overlaps(run: Run, actions: Actions) -> bool:
    """Whether some action has features of its own in a shared namespace."""
    stream = run.stream
    first, last = stream.lines[actions.first].start, stream.lines[actions.first + actions.n].start
    for span in range(first, last):
        if run.scratch.where[run.layout.key[stream.spans[span].namespace]] >= 0:
            return True
    return False


@inline_kernel
def _add_product(
    run: Run, product: int, slot: int, total: Four, buffers: Buffers
) -> tuple[Four, int, Buffers]:
    """Add a product, if present, to the sums of four slots; return how many features it has."""
    table, scratch, interactions = run.model.table, run.scratch, run.interactions
    n = 0
    if look_up(interactions, scratch, product):
        order = interactions.start[product + 1] - interactions.start[product]
        n = count_product(scratch, order)
        if order == 2:
            after = add_pair(table, scratch, run.task.mask, slot, total)
        else:
            if n > len(buffers.cell):
                buffers = with_columns(buffers, np.empty(2 * n, np.uint32), np.empty(2 * n, np.float32))
            cross_any(scratch, order, run.task.mask, buffers.cell, buffers.value, 0)
            after = add_listed(table, buffers.cell, buffers.value, n, slot, total)
        total = choose(interactions.holders[product + 1], slot, after, total)
    return total, n, buffers


@inline_kernel
def _add_groups(run: Run, begin: int, groups: int, skip: int, slot: int, total: Four) -> Four:
    """Add the features of groups [begin, groups) themselves, but of those that lie in [1, `skip`)."""
    for group in range(begin, groups):
        start, end = run.scratch.groups[group].start, run.scratch.groups[group].end
        if run.layout.ignore_linear[run.scratch.groups[group].key] or 0 < start < skip:
            continue
        total = add_run(run.model.table, run.scratch.features, start, end, run.task.mask, slot, total)
    return total


@inline_kernel
def _part(run: Run, actions: Actions, buffers: Buffers) -> tuple[int, int, int]:
    """Part the products into those of shared namespaces alone, at the front, and the others, behind.

    Returns how many the first are, where the others begin, and the end of the features that are the same for
    every action. In exact mode nothing is.
    """
    n = len(run.interactions.start) - 1
    alike = not run.task.exact and run.task.shape == CB_ADF and not _overlaps(run, actions)
    front, back = 0, n
    for product in range(n - 1, -1, -1):
        if alike and look_up(run.interactions, run.scratch, product):
            buffers.front[front] = product
            front += 1
        else:
            back -= 1
            buffers.back[back] = product
    return front, back, actions.used if alike else 0


@inline_kernel
def score_actions(run: Run, actions: Actions, slots: int, buffers: Buffers) -> tuple[int, int, Buffers]:
    """Fill `buffers.score` for the first `slots` live slots.

    Returns the features of the champion as they are counted and as they are shown, and the buffers.
    """
    scratch, base, score = run.scratch, buffers.base, buffers.score
    holders, n = run.interactions.holders, len(run.interactions.start) - 1
    contraction = np.float32(run.model.shared[CONTRACTION])
    front, back, alike = _part(run, actions, buffers)
    once = counted = shown = 0
    for slot in range(0, slots, 4):
        total = splat(_ZERO)
        if alike > 0:
            total = _add_groups(run, 0, actions.n_shared, 0, slot, total)
        for k in range(front):
            product = buffers.front[k]
            total, size, buffers = _add_product(run, product, slot, total, buffers)
            once += size if slot == 0 and holders[product + 1, 0] else 0
        store(base, 0, slot, total)
    for action in range(actions.n):
        groups, own = open_action(run, actions, action)
        crossed = once
        for slot in range(0, slots, 4):
            total = load(base, 0, slot)
            total = _add_groups(run, actions.n_shared, groups, alike, slot, total)
            for k in range(back, n):
                product = buffers.back[k]
                total, size, buffers = _add_product(run, product, slot, total, buffers)
                crossed += size if slot == 0 and holders[product + 1, 0] else 0
            total = total * splat(contraction)
            for i in range(4):
                score[slot + i, action] = element(total, i)
        forget(scratch, actions.n_shared, groups)
        numbers = Counted(own, crossed)
        counted += own + crossed
        shown += shown_features(run, actions, action, numbers)
    return counted, shown, buffers
