"""Validity: refuse events that are of another kind, or read by other rules, or have contradictory costs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from onlineauto.errors import InputError
from onlineauto.features.block import UNLABELLED

if TYPE_CHECKING:
    from onlineauto.features.block import Block, Rules

__all__ = ["check_mapping", "check_rules", "first_invalid_event"]


_OF_ACTIONS = frozenset(("cb_adf", "cb_explore_adf", "ccb_explore_adf"))


def check_mapping(event: object, kind: str) -> None:
    """Refuse what is no mapping, and an event with or without actions where the other is asked for.

    Raises
    ------
    TypeError
        It is no mapping.
    InputError
        It is an event of another kind.
    """
    if type(event) is not dict and not isinstance(event, Mapping):
        raise TypeError(f"an event is a text (str or bytes) or a mapping, not {type(event).__name__}")
    if ("actions" in event) != (kind in _OF_ACTIONS):
        has, wants = ("actions", "none") if "actions" in event else ("no actions", "actions")
        raise InputError(f"event: it has {has}, and events of this workspace ({kind}) have {wants}")


def check_rules(block: Block, rules: Rules) -> None:
    """Compare the rules by which a block was read, as far as it has them, with those of a workspace.

    Raises
    ------
    InputError
        They differ.
    """
    if block.rules == rules:
        return
    for option, theirs in block.rules.items():
        if theirs != (ours := rules.get(option)):
            raise InputError(
                f"this block was read with {option} = {theirs}, and this workspace has {option} = {ours}: "
                "read the events with the same options"
            )


def first_invalid_event(block: Block) -> tuple[int, str]:
    """Return the first event of several lines whose costs contradict each other, and a message.

    Returns
    -------
    event : int
        Index of the event, or the number of events if all are valid.
    message : str
        The problem in VW's words; empty if all events are valid.
    """
    if len(block.costs) <= 1:
        return len(block), ""
    counts = np.diff(block.cost_start)
    known = np.zeros(block.n_lines, np.int64)
    single = np.flatnonzero(counts == 1)
    known[single] = block.cost[block.cost_start[single]] != UNLABELLED
    several = np.concatenate([[0], np.cumsum(counts > 1)])
    labelled = np.concatenate([[0], np.cumsum(known)])
    first, last = block.event_start[:-1], block.event_start[1:]
    invalid = (several[last] > several[first]) | (labelled[last] - labelled[first] > 1)
    if not invalid.any():
        return len(block), ""
    event = int(np.argmax(invalid))
    lines = np.arange(first[event], last[event])
    where = f"the event of lines {block.line_number[lines[0]]} to {block.line_number[lines[-1]]}"
    if (counts[lines] > 1).any():
        bad = int(lines[np.argmax(counts[lines] > 1)])
        found = int(counts[bad])
        return event, (
            f"cb_adf: badly formatted example, only one cost can be known but found {found}, in {where}"
        )
    return event, f"cb_adf: badly formatted example, only one line can have a cost, in {where}"
