"""Check that the lines of an event make a valid CCB event."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.formats.records.problem_code_kernels import Code
from onlineauto.jit import kernel

if TYPE_CHECKING:
    from onlineauto.features.records import Records

CONFINED = np.float32(-np.inf)
"""Marks, in place of a probability, a record that is no cost but an action that the slot is confined to."""


@kernel
def _is_free(lines: Records, costs: Records, first: int, slot: int, end: int, action: np.uint32) -> bool:
    """Return whether a slot can have been given `action`.

    It can if the slot is confined to it, or to nothing, and no earlier slot was logged with it. The costs of
    the slot end at `end`; the first of them is its outcome.
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
    """Return what is wrong with the lines [first, end) of an event, and the line that is wrong.

    The costs of the event end at `n_costs`. There must be a shared line, then actions, then slots, no more
    slots than actions. Each action that was logged for a slot or that it is confined to must exist, and a
    logged action must be free for its slot. `anything` accepts all actions.
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
