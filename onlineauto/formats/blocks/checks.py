"""Check the blocks of a file beyond their checksums, which a forger can fit: kernels trust every block."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from onlineauto.formats.blocks.block_kernels import (
    EVENTS,
    LINE,
    LINES,
    NUMBERS,
    POINTERS,
    SLOTS,
    Sections,
    find_problem,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.features.block import Block

__all__ = ["SHAPES", "problem_of"]

SHAPES: Final = {"simple": LINE, "cb": LINE, "cb_adf": LINES, "ccb_adf": SLOTS}
"""Shapes of an event, by the kind of events in the header of a file."""

_TEXTS: Final = {
    POINTERS: "points beyond its own records",
    EVENTS: "has lines that make no event of its kind",
    NUMBERS: "has a number that no text has",
}


def problem_of(block: Block, *, shape: int, as_vw: bool) -> str:
    """Return what is wrong with a block of events of one of the `SHAPES`; empty if nothing is.

    In native mode all numbers must be finite, and weights and probabilities in their range.
    """
    if not (_has_truth_values(block.lines, "shared") and _has_truth_values(block.lines, "slot")):
        return _TEXTS[NUMBERS]
    features: NDArray[np.uint32] = block.features.view(np.uint32).reshape(-1, 2)
    sections = Sections(block.event_start, block.lines, block.spans, block.costs, features)
    found = find_problem(sections, len(block.tag), len(block.namespaces), shape, as_vw)
    return _TEXTS.get(found, "")


def _has_truth_values(records: NDArray[np.void], field: str) -> bool:
    """Return whether all bytes of a boolean field are 0 or 1.

    With other bytes, two values that are both true need not be equal.
    """
    assert records.dtype.fields is not None
    (offset,) = records.dtype.fields[field][1:2]
    column = records.view(np.uint8).reshape(-1, records.itemsize)[:, offset]
    return int(column.max(initial=0)) <= 1
