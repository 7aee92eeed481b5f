"""Check the content of a file's blocks, since kernels trust every block and checksums can be forged."""

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
"""Shapes of events, by the kind of events in a file's header."""

_TEXTS: Final = {
    POINTERS: "has an offset out of range",
    EVENTS: "has lines that do not form an event",
    NUMBERS: "has an invalid number",
}


def problem_of(block: Block, *, shape: int, as_vw: bool) -> str:
    """Return the problem of a block of events of one of the `SHAPES`; empty if there is none.

    In native mode all numbers must be finite, and weights and probabilities must be in range.
    """
    sections = Sections(
        events=block.event_start,
        lines=block.lines,
        line_bytes=block.lines.view(np.uint8).reshape(-1, block.lines.itemsize),
        spans=block.spans,
        costs=block.costs,
        features=block.features.view(np.uint64),
    )
    problem = find_problem(sections, len(block.tag), len(block.namespaces), shape, as_vw)
    return _TEXTS.get(problem, "")
