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
    from onlineauto.features.block import Block

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
    sections = Sections(
        events=block.event_start,
        lines=block.lines,
        line_bytes=block.lines.view(np.uint8).reshape(-1, block.lines.itemsize),
        spans=block.spans,
        costs=block.costs,
        features=block.features.view(np.uint64),
    )
    found = find_problem(sections, len(block.tag), len(block.namespaces), shape, as_vw)
    return _TEXTS.get(found, "")
