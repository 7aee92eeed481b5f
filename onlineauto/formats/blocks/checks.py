"""What is wrong with a block that a file has, whatever its checksum says: kernels trust every block."""

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
"""What the lines of an event are, by what the header of a file says of its events."""

_TEXTS: Final = {
    POINTERS: "points beyond its own records",
    EVENTS: "has lines that make no event of its kind",
    NUMBERS: "has a number that no text has",
}


def problem_of(block: Block, *, shape: int, as_vw: bool) -> str:
    """Say what is wrong with a block of events of one of the `SHAPES`; nothing, if it is as readers make it.

    In native mode all numbers have to be finite, and weights and probabilities in their range.
    """
    if not (_has_truth_values(block.lines, "shared") and _has_truth_values(block.lines, "slot")):
        return _TEXTS[NUMBERS]
    features: NDArray[np.uint32] = block.features.view(np.uint32).reshape(-1, 2)
    sections = Sections(block.event_start, block.lines, block.spans, block.costs, features)
    found = find_problem(sections, len(block.tag), len(block.namespaces), shape, as_vw)
    return _TEXTS.get(found, "")


def _has_truth_values(records: NDArray[np.void], field: str) -> bool:
    """Whether the bytes of a truth value are 0 or 1: with others, two that are true need not be equal."""
    assert records.dtype.fields is not None
    (offset,) = records.dtype.fields[field][1:2]
    column = records.view(np.uint8).reshape(-1, records.itemsize)[:, offset]
    return int(column.max(initial=0)) <= 1
