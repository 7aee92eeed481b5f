"""Check that a block is one that a reader of text could have made; every kernel relies on that."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from onlineauto.formats.lines.ccb_event_kernels import CONFINED, slot_problem
from onlineauto.formats.lines.problem_code_kernels import Code
from onlineauto.jit import entry_kernel, kernel, short_loop

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.features.records import Records

__all__ = ["EVENTS", "FINE", "LINE", "LINES", "NUMBERS", "POINTERS", "SLOTS", "Sections", "find_problem"]

LINE, LINES, SLOTS = range(3)
"""Shapes of an event: one line; an optional shared line, then a line for each action; these, then slots."""

FINE, POINTERS, EVENTS, NUMBERS = range(4)
"""Parts of a block that can be wrong: offsets and numbers of namespaces, events, numbers; or none."""

_ZERO = np.float32(0)
_ONE = np.float32(1)
_INFINITE = np.uint32(0x7F800000)
"""Exponent bits of a float32 that is infinite or NaN."""


class Sections(NamedTuple):
    """The arrays of a block."""

    events: NDArray[np.int64]
    lines: Records
    spans: Records
    costs: Records
    features: NDArray[np.uint32]  # [n, 2]: hash, bits of the value


@kernel
def _points_within(block: Sections, n_tag: int, n_names: int) -> bool:
    """Return whether all offsets are valid and every namespace has a name.

    Offsets must ascend, and end at the end of the array that they point to.
    """
    events, lines, spans = block.events, block.lines, block.spans
    good = events[0] >= 0 and events[len(events) - 1] == len(lines) - 1
    for i in range(1, len(events)):
        short_loop()
        good = good and events[i] > events[i - 1]
    good = good and lines[0].start == 0 and lines[0].cost == 0 and lines[0].tag == 0
    start = cost = tag = 0
    for i in range(len(lines)):
        short_loop()
        good = good and lines[i].start >= start and lines[i].cost >= cost and lines[i].tag >= tag
        start, cost, tag = lines[i].start, lines[i].cost, lines[i].tag
    good = good and start == len(spans) - 1 and cost == len(block.costs) and tag == n_tag
    good = good and spans[0].start == 0
    for i in range(1, len(spans)):
        short_loop()
        good = good and spans[i].start >= spans[i - 1].start and 0 <= spans[i - 1].namespace < n_names
    return bool(good and spans[len(spans) - 1].start == len(block.features))


@kernel
def _has_events(block: Sections, shape: int, as_vw: bool) -> bool:
    """Return whether the lines of every event form an event of this shape."""
    events, lines, good = block.events, block.lines, True
    for i in range(len(events) - 1):
        short_loop()
        first, end = events[i], events[i + 1]
        if shape == SLOTS:
            code, _ = slot_problem(lines, block.costs, first, end, lines[end].cost, as_vw)
            good = good and code == Code.FINE
        else:
            alone = end == first + 1
            empty = alone and lines[first].shared and not as_vw
            good = good and not lines[first].slot and (alone if shape == LINE else not empty)
    return bool(good)


@kernel
def _has_values(features: NDArray[np.uint32], as_vw: bool) -> bool:
    """Return whether no value is 0 and, unless `as_vw`, each is finite."""
    zeros = infinite = 0
    for i in range(len(features)):
        size = features[i, 1] & np.uint32(0x7FFFFFFF)
        zeros += size == 0
        infinite += size >= _INFINITE
    return bool(zeros == 0 and (as_vw or infinite == 0))


@kernel
def _has_numbers(block: Sections, shape: int) -> bool:
    """Return whether labels, weights, costs and probabilities are such as native mode reads."""
    lines, costs = block.lines, block.costs
    good = True
    for i in range(len(lines) - 1):
        short_loop()
        line = lines[i]
        good = good and np.isfinite(line.label) and np.isfinite(line.initial)
        good = good and np.isfinite(line.weight) and line.weight >= _ZERO
    for i in range(len(costs)):
        short_loop()
        probability = costs[i].probability
        known = _ZERO <= probability <= _ONE or (shape == SLOTS and probability == CONFINED)
        good = good and np.isfinite(costs[i].cost) and known
    return bool(good)


@entry_kernel
def find_problem(block: Sections, n_tag: int, n_names: int, shape: int, as_vw: bool) -> int:
    """Return the first problem of a block: `POINTERS`, `EVENTS` or `NUMBERS`, or `FINE` if there is none."""
    if not _points_within(block, n_tag, n_names):
        return POINTERS
    if not _has_events(block, shape, as_vw):
        return EVENTS
    if not _has_values(block.features, as_vw) or not (as_vw or _has_numbers(block, shape)):
        return NUMBERS
    return FINE
