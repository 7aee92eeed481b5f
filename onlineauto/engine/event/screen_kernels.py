"""Screening: estimate the gain of each of many interactions, for about the time that one action takes.

An interaction that the champion lacks has a small model of the champion's residuals: for each feature the
mean of its residuals, shrunk as if they had been 0 on ten more events. Its prediction is the average over the
features of the interaction. Its gain is the reduction of the squared residuals, each predicted before it was
known.

For an interaction that the champion has, the gain is that of leaving it out: the loss that its terms have
caused, if the other weights stay as they are.

Gains prove nothing. They only order what the search tries.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from onlineauto.features.product_kernels import cross_product, look_up
from onlineauto.features.records import Listing
from onlineauto.jit import F32, inline_kernel, short_loop
from onlineauto.jit.four import prefetch
from onlineauto.learners._kernels import CONTRACTION, MAX_LABEL, MIN_LABEL, clip
from onlineauto.learners.loss_kernels import loss_slope, loss_value

if TYPE_CHECKING:
    from onlineauto.engine.records.loop import Buffers, Run
    from onlineauto.engine.records.search import Screen

SUM, COUNT, LARGEST = 0, 1, 2
"""Entries of a feature: Σ x·residual and Σ x², with |x| as a part of the largest seen; and that largest."""

_CLOSELY, _STRIDE, _MANY = 1024, 4, 256
"""The first `_CLOSELY` events are all measured, after them one in `_STRIDE`; and with more than `_MANY`
interactions one in `_STRIDE` from the first event on."""
_AHEAD = 24
"""So many features before it learns one, screening asks for its entry: most of the work is to wait for it."""
_SHRINKAGE = np.float32(10)
_ZERO = np.float32(0)
_FLOAT_MAX = np.float32(np.finfo(np.float32).max)


@inline_kernel
def _list_products(run: Run, buffers: Buffers) -> None:
    """List the features of all screened interactions, and note where those of each end."""
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
    """Predict a residual by the listed features [begin, end) of an interaction; learn it.

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
def _part_of(run: Run, buffers: Buffers, begin: int, end: int) -> F32:
    """Return what the listed features [begin, end) add to the champion's prediction."""
    total = _ZERO
    for i in range(begin, end):
        short_loop()
        total += run.model.weights[buffers.cell[i], 0] * buffers.value[i]
    return total * np.float32(run.model.lanes[0, CONTRACTION])


@inline_kernel
def screen_action(run: Run, score: F32, label: F32, buffers: Buffers) -> None:
    """Add the gains of all screened interactions on an action that is about to be learnt.

    The groups of the action must be open. `score` is the champion's prediction of it.
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
