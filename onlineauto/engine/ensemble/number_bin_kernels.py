"""Bins of the members' numbers, each with about the same number of recent events; bins multiply over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.engine.ensemble.input_kernels import add_input, bin_of
from onlineauto.engine.ensemble.renewal_kernels import renew_inputs
from onlineauto.engine.records.ensemble import (
    BINS,
    FIRST_BINS,
    GROUPS,
    MEMORY,
    MOST_ACTIONS,
    MOST_FEATURES,
    RING,
    InputKind,
    Known,
)
from onlineauto.jit import inline_kernel, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.engine.records.ensemble import Inputs

_LEFT, _MOST_TOGETHER = 64, 3


@inline_kernel
def _can_add_bins(inputs: Inputs, bins: int) -> bool:
    """Return whether `bins` more inputs may be used for bins; some are reserved for future words."""
    return bool(inputs.tally[Known.FEATURES] + bins <= MOST_FEATURES - _LEFT)


@kernel
def _sort(values: NDArray[np.float64], n: int) -> None:
    """Sort the first `n` values in place."""
    for i in range(1, n):
        value, j = values[i], i
        while j > 0 and values[j - 1] > value:
            values[j] = values[j - 1]
            j -= 1
        values[j] = value


@kernel
def _divide_bin(inputs: Inputs, number: int, fullest: int) -> None:
    """Split a bin at the median of its latest values, and note the bin of which the new one is a part.

    The new bin shares the input of the old one if the capacity is exhausted.
    """
    values, n = inputs.numbers.sorted, 0
    for i in range(RING):
        if bin_of(inputs, number, inputs.numbers.latest[number, i]) == fullest:
            values[n] = inputs.numbers.latest[number, i]
            n += 1
    _sort(values, n)
    middle = n // 2
    while middle < n and values[middle] == values[middle - 1]:
        middle += 1
    if middle == n:
        return
    old, bins = inputs.numbers.of_bin[number, fullest], inputs.numbers.bins[number]
    at = old
    if old > 0 and _can_add_bins(inputs, 1):
        at = add_input(inputs, InputKind.BIN)
        inputs.divided[at] = old
    for i in range(bins, fullest, -1):
        inputs.numbers.of_bin[number, i] = inputs.numbers.of_bin[number, i - 1]
        inputs.numbers.part[number, i] = inputs.numbers.part[number, i - 1]
        inputs.numbers.group[number, i] = inputs.numbers.group[number, i - 1]
        inputs.numbers.cut[number, i] = inputs.numbers.cut[number, i - 1]
    inputs.numbers.cut[number, fullest] = 0.5 * (values[middle] + values[middle - 1])
    inputs.numbers.of_bin[number, fullest + 1], inputs.numbers.part[number, fullest + 1] = at, bins
    inputs.numbers.bins[number] += 1
    _divide_group(inputs, number, fullest)


@kernel
def _divide_group(inputs: Inputs, number: int, at: int) -> None:
    """Move the bins of a large group that lie after bin `at` into a new group."""
    group, last, together, highest = inputs.numbers.group[number], inputs.numbers.bins[number] - 1, 0, 0
    for i in range(last + 1):
        together += group[i] == group[at]
        highest = max(highest, group[i])
    if together > _MOST_TOGETHER:
        old = group[at]
        for i in range(at + 1, last + 1):
            if group[i] == old:
                group[i] = highest + 1


@kernel
def _make_bins(inputs: Inputs, number: int) -> None:
    """Make the first bins of a number: one for each value if there are few, else bins of equal counts."""
    values, different = inputs.numbers.sorted, 1
    for i in range(RING):
        values[i] = inputs.numbers.latest[number, i]
    _sort(values, RING)
    for i in range(1, RING):
        different += values[i] > values[i - 1]
    if different < 2:
        return
    each, last = RING / FIRST_BINS, 0
    for i in range(1, RING):
        is_due = different <= BINS or i >= each * (last + 1)
        if is_due and values[i] > values[i - 1]:
            inputs.numbers.cut[number, last] = 0.5 * (values[i] + values[i - 1])
            last += 1
    can_grow = _can_add_bins(inputs, last + 1) and not inputs.numbers.named[number]
    for i in range(last + 1):
        inputs.numbers.of_bin[number, i] = add_input(inputs, InputKind.BIN) if can_grow else 0
        inputs.numbers.part[number, i] = i
        inputs.numbers.group[number, i] = i * min(last + 1, GROUPS) // (last + 1)
    inputs.numbers.bins[number] = last + 1


@kernel
def _renew_bins(inputs: Inputs, number: int) -> None:
    """Make the first bins of a number, or split the bin with the most of the latest values.

    A bin is split if it has more than twice its share of the values.
    """
    if inputs.numbers.bins[number] == 0:
        _make_bins(inputs, number)
        return
    fullest, most, many = 0, 0, inputs.numbers.sorted[:BINS]
    many[:] = 0.0
    for i in range(RING):
        many[bin_of(inputs, number, inputs.numbers.latest[number, i])] += 1.0
    for at in range(inputs.numbers.bins[number]):
        if many[at] > most:
            fullest, most = at, int(many[at])
    if most * FIRST_BINS > 2 * RING and inputs.numbers.bins[number] < BINS:
        _divide_bin(inputs, number, fullest)


@inline_kernel
def add_value(
    mean: NDArray[np.float64], variance: NDArray[np.float64], at: int, value: float, n_seen: float
) -> None:
    """Update the mean and the variance at index `at` with a value, the last of `n_seen` values."""
    difference = value - mean[at]
    mean[at] += difference / n_seen
    variance[at] += (difference * (value - mean[at]) - variance[at]) / n_seen


@kernel
def see_numbers(inputs: Inputs, raw: NDArray[np.float64]) -> bool:
    """Update means and variances with the numbers of an event; the latest `MEMORY` events count most.

    Returns whether an input is new: a bin, or a feature that replaces another one.
    """
    features = inputs.tally[Known.FEATURES]
    inputs.seen[MOST_ACTIONS] += 1
    n_seen = min(np.float64(inputs.seen[MOST_ACTIONS]), MEMORY)
    for k in range(inputs.tally[Known.NUMBERS]):
        add_value(inputs.numbers.mean, inputs.numbers.variance, k, raw[k], n_seen)
        inputs.numbers.latest[k, inputs.seen[MOST_ACTIONS] % RING] = raw[k]
    if inputs.seen[MOST_ACTIONS] % RING == 0:
        for k in range(inputs.tally[Known.NUMBERS]):
            _renew_bins(inputs, k)
    renewed = renew_inputs(inputs)
    return bool(renewed or features != inputs.tally[Known.FEATURES])
