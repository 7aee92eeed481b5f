"""Find labels that name an action which a model does not have."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.features.block import UNLABELLED
from onlineauto.formats.lines.diagnostics import Code, Diagnostics

if TYPE_CHECKING:
    from onlineauto.features.block import Block

__all__ = ["find_odd_labels"]


def find_odd_labels(block: Block, actions: int, found: Diagnostics) -> None:
    """Add the labels of a block, which may be part of larger records, that name none of the `actions`."""
    begin, end = block.cost_start[block.event_start[[0, -1]]].tolist()
    action, known = block.cost_action[begin:end], block.cost[begin:end] != UNLABELLED
    for at in np.flatnonzero(known & ((action < 1) | (action > actions))).tolist():
        line = int(np.searchsorted(block.cost_start, begin + at, "right")) - 1
        number, text = int(block.line_number[line]), str(int(action[at]))
        found.locate(Code.ACTION_OUT_OF_RANGE, number, text, reading=block.objects)
