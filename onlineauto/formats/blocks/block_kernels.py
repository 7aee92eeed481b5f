"""Check that a reader of text could have made a block; every kernel relies on this property."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from onlineauto.features.records import LINE
from onlineauto.formats.lines.label_kernels import CONFINED, slot_problem
from onlineauto.formats.lines.problem_code_kernels import ProblemCode
from onlineauto.jit import entry_kernel, kernel, short_loop

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.features.records import Records

ONE_LINE, ACTIONS, SLOTS = range(3)
"""Shapes of an event: one line; an optional shared line, then a line for each action; these, then slots."""

FINE, POINTERS, EVENTS, NUMBERS = range(4)
"""Kinds of problems: offsets or numbers of namespaces, events, numbers; `FINE` is none."""

_ZERO = np.float32(0)
_ONE = np.float32(1)
_LARGEST = np.float32(np.finfo(np.float32).max)
_VALUE = np.uint64(32 if sys.byteorder == "little" else 0)
"""Number of bits of a feature before the bits of its value."""
_SIZE, _INFINITE = np.uint64(0x7FFFFFFF), np.uint64(0x7F800000)
"""Mask of a float32 without the sign bit; the masked bits of an infinite number (those of NaN are larger)."""
_SHARED, _SLOT = LINE.fields["shared"][1], LINE.fields["slot"][1]  # type: ignore[index]
"""Offsets of the truth values in the record of a line."""


class Sections(NamedTuple):
    """The arrays of a block."""

    events: NDArray[np.int64]
    lines: Records
    line_bytes: NDArray[np.uint8]  # [n + 1, size of a line]: the same memory
    spans: Records
    costs: Records
    features: NDArray[np.uint64]  # hash and bits of the value


@kernel
def _points_within(block: Sections, n_tag: int, n_names: int) -> bool:
    """Return whether all offsets are valid and every namespace has a name.

    Offsets must ascend, and end at the end of the array that they point to.
    """
    events, lines, spans = block.events, block.lines, block.spans
    n_lines, n_spans = len(lines) - 1, len(spans) - 1
    good = events[0] >= 0 and events[len(events) - 1] == n_lines
    for i in range(1, len(events)):
        short_loop()
        good = good and events[i] > events[i - 1]
    good = good and lines[0].start == 0 and lines[0].cost == 0 and lines[0].tag == 0
    start = cost = tag = 0
    for i in range(n_lines + 1):
        short_loop()
        good &= lines[i].start >= start and lines[i].cost >= cost and lines[i].tag >= tag
        start, cost, tag = lines[i].start, lines[i].cost, lines[i].tag
    good = good and start == n_spans and cost == len(block.costs) and tag == n_tag
    start = 0
    for i in range(n_spans):
        short_loop()
        good &= spans[i].start >= start and 0 <= spans[i].namespace < n_names
        start = spans[i].start
    good = good and spans[0].start == 0 and spans[n_spans].start >= start
    return bool(good and spans[n_spans].start == len(block.features))


@kernel
def _has_events(block: Sections, shape: int, as_vw: bool) -> bool:
    """Return whether the lines of every event form an event of this shape."""
    events, lines, good = block.events, block.lines, True
    for i in range(len(events) - 1):
        short_loop()
        first, end = events[i], events[i + 1]
        if shape == SLOTS:
            code, _ = slot_problem(lines, block.costs, first, end, lines[end].cost, as_vw)
            good = good and code == ProblemCode.FINE
        else:
            alone = end == first + 1
            empty = alone and lines[first].shared and not as_vw
            good = good and not lines[first].slot and (alone if shape == ONE_LINE else not empty)
    return bool(good)


@kernel
def _has_values(features: NDArray[np.uint64], as_vw: bool) -> bool:
    """Return whether, unless `as_vw`, all values are finite."""
    infinite = np.uint64(0)
    for i in range(len(features)):  # without a branch, so that the loop is vectorised
        size = features[i] >> _VALUE & _SIZE
        infinite |= np.uint64(size >= _INFINITE)
    return bool(as_vw or infinite == 0)


@kernel
def _has_numbers(block: Sections, shape: int, as_vw: bool) -> bool:
    """Return whether truth values are 0 or 1 and, unless `as_vw`, numbers are valid in native mode."""
    lines, line_bytes, costs = block.lines, block.line_bytes, block.costs
    good = True
    for i in range(len(lines)):
        short_loop()
        line = lines[i]
        good &= line_bytes[i, _SHARED] | line_bytes[i, _SLOT] <= 1
        finite = abs(line.label) <= _LARGEST and abs(line.initial) <= _LARGEST
        good &= as_vw or (finite and _ZERO <= line.weight <= _LARGEST)
    for i in range(len(costs)):
        short_loop()
        probability = costs[i].probability
        known = _ZERO <= probability <= _ONE or (shape == SLOTS and probability == CONFINED)
        good &= as_vw or (known and abs(costs[i].cost) <= _LARGEST)
    return bool(good)


@entry_kernel
def find_problem(block: Sections, n_tag: int, n_names: int, shape: int, as_vw: bool) -> int:
    """Return the first problem of a block: `POINTERS`, `EVENTS` or `NUMBERS`, or `FINE` if there is none."""
    if not _points_within(block, n_tag, n_names):
        return POINTERS
    if not _has_numbers(block, shape, as_vw) or not _has_values(block.features, as_vw):
        return NUMBERS
    return FINE if _has_events(block, shape, as_vw) else EVENTS
