"""Screening: estimate the gain of many interactions in about the time that one action takes.

A missing interaction has a small model of the champion's residuals. For each of its features, the model has
the mean of the residuals, shrunk as if they had been 0 on ten more events. Its prediction is the average over
the features of the interaction. Its gain is the reduction of the squared residuals, each predicted before it
was known.

For an interaction that the champion has, the gain is that of leaving it out: the loss that its terms have
caused, if the other weights stay the same.

Gains prove nothing. They only order the interactions for the search.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from onlineauto.features.product_kernels import cross_product, look_up
from onlineauto.features.records import Listing
from onlineauto.jit import F32, inline_kernel, short_loop
from onlineauto.jit.four import prefetch
from onlineauto.learners.gradient_kernels import CONTRACTION, MAX_LABEL, MIN_LABEL, clip
from onlineauto.learners.loss_kernels import loss_slope, loss_value

if TYPE_CHECKING:
    from onlineauto.engine.records.loop import Buffers, LoopRun
    from onlineauto.engine.records.search import Screen

SUM, COUNT, LARGEST = 0, 1, 2
"""Entries of a feature: Σ x·residual and Σ x², with |x| divided by its maximum so far; and that maximum."""

_CLOSELY, _STRIDE, _MANY = 1024, 4, 256
"""The first `_CLOSELY` events are all measured, later ones one in `_STRIDE`. With more than `_MANY`
interactions, one in `_STRIDE` is measured from the first event on."""
_AHEAD = 24
"""Entries of features are prefetched this number of features ahead, because memory latency dominates."""
_SHRINKAGE = np.float32(10)
_ZERO = np.float32(0)
_FLOAT_MAX = np.float32(np.finfo(np.float32).max)


@inline_kernel
def _list_products(run: LoopRun, buffers: Buffers) -> None:
    """List the features of all screened interactions, and note the end of each interaction."""
    screen, n = run.screen, 0
    listing = Listing(buffers.cell, buffers.value, run.task.mask)
    for product in range(len(screen.interactions.start) - 1):
        short_loop()
        if look_up(screen.interactions, run.scratch, product):
            order = screen.interactions.start[product + 1] - screen.interactions.start[product]
            n = cross_product(run.scratch, run.stream.features, order, listing, n)
        screen.ends[product] = n


@inline_kernel
def _explain(screen: Screen, buffers: Buffers, begin: int, end: int, residual: F32) -> F32:
    """Predict a residual by the listed features [begin, end) of an interaction, and learn the residual.

    Returns the prediction.
    """
    table, mask = screen.table, np.uint32(len(screen.table) - 1)
    total, last = _ZERO, screen.ends[len(screen.ends) - 1] - 1
    for i in range(begin, end):
        short_loop()
        prefetch(table, buffers.cell[min(i + _AHEAD, last)] & mask, SUM)
        entry, size = table[buffers.cell[i] & mask], abs(buffers.value[i])
        if size > _FLOAT_MAX:  # a product of finite values that overflowed
            continue
        if size > entry[LARGEST]:
            ratio = entry[LARGEST] / size
            entry[SUM] *= ratio
            entry[COUNT] *= ratio * ratio
            entry[LARGEST] = size
        if size > _ZERO:
            x = buffers.value[i] / entry[LARGEST]
            total += x * entry[SUM] / (entry[COUNT] + _SHRINKAGE)
            moved = entry[SUM] + x * residual
            if math.isfinite(moved):
                entry[SUM] = moved
            entry[COUNT] += x * x
    return total / np.float32(end - begin)


@inline_kernel
def _part_of(run: LoopRun, buffers: Buffers, begin: int, end: int) -> F32:
    """Return the terms of the listed features [begin, end) in the champion's prediction."""
    total = _ZERO
    for i in range(begin, end):
        short_loop()
        total += run.model.weights[buffers.cell[i], 0] * buffers.value[i]
    return total * np.float32(run.model.lanes[0, CONTRACTION])


@inline_kernel
def screen_action(run: LoopRun, score: F32, label: F32, buffers: Buffers) -> None:
    """Update the gains of all screened interactions with an action that is about to be learnt.

    The groups of the action must be open. `score` is the champion's prediction for the action.
    """
    screen, rule, shared = run.screen, run.rule, run.model.shared
    screen.seen[0] += 1
    stride = _STRIDE if screen.many > _MANY or screen.seen[0] > _CLOSELY else 1
    if screen.seen[0] % stride != 0:
        return
    if not (math.isfinite(label) and math.isfinite(score)):
        return
    low, high = np.float32(shared[MIN_LABEL]), np.float32(shared[MAX_LABEL])
    known = clip(shared, score)
    loss = loss_value(rule.loss, rule.low, rule.high, known, label, low, high)
    residual = np.float32(-0.5) * loss_slope(rule.loss, rule.low, rule.high, known, label, low, high)
    _list_products(run, buffers)
    end = 0
    for product in range(len(screen.interactions.start) - 1):
        short_loop()
        begin, end = end, screen.ends[product]
        if begin == end:
            continue
        if screen.inside[product]:
            without = clip(shared, score - _part_of(run, buffers, begin, end))
            gain = loss - loss_value(rule.loss, rule.low, rule.high, without, label, low, high)
        else:
            left = residual - _explain(screen, buffers, begin, end, residual)
            gain = residual * residual - left * left
        if math.isfinite(gain):
            screen.gains[product] += stride * gain
