"""Whether the lines of an event that has slots make one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.formats.lines.problem_code_kernels import Code
from onlineauto.jit import kernel

if TYPE_CHECKING:
    from onlineauto.features.records import Records

__all__ = ["CONFINED", "slot_problem"]

CONFINED = np.float32(-np.inf)
"""Probability of a cost that is none: an action that the slot is confined to."""


@kernel
def _is_free(lines: Records, costs: Records, first: int, slot: int, end: int, action: np.uint32) -> bool:
    """Whether a slot can have an action: it is confined to it or to none, and no logged slot before has it.

    Its costs, of which the first one is its outcome, end at `end`.
    """
    begin = lines[slot].cost + 1
    allowed = begin == end
    for i in range(begin, end):
        allowed = allowed or costs[i].action == action
    for before in range(first, slot):
        i = lines[before].cost
        if i < lines[before + 1].cost and costs[i].probability > CONFINED and costs[i].action == action:
            return False
    return bool(allowed)


@kernel
def slot_problem(
    lines: Records, costs: Records, first: int, end: int, n_costs: int, anything: bool
) -> tuple[Code, int]:
    """What is wrong with the lines [first, end) of an event, whose costs end at `n_costs`; with which one.

    There have to be a shared line, actions, and no more slots than actions, in this order; and
    what was logged of a slot, and what it is confined to, has to be an action that it can have, unless it
    may be `anything`.
    """
    slots = end
    for line in range(first, end):
        if lines[line].shared != (line == first) or (not lines[line].slot and slots < end):
            return Code.SLOT_ORDER, line
        if lines[line].slot and slots == end:
            slots = line
    n_actions = slots - first - 1
    if end - slots > n_actions:
        return Code.TOO_MANY_SLOTS, slots
    if anything:
        return Code.FINE, first
    for slot in range(slots, end):
        stop = lines[slot + 1].cost if slot + 1 < end else n_costs
        for i in range(lines[slot].cost, stop):
            if costs[i].action >= n_actions:
                return Code.SLOT_ACTION, slot
        i = lines[slot].cost
        logged = i < stop and costs[i].probability > CONFINED
        if logged and not _is_free(lines, costs, slots, slot, stop, costs[i].action):
            return Code.SLOT_ACTION, slot
    return Code.FINE, first
