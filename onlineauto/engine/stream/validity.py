"""Validity: reject blocks with other rules, and find contradictory costs and labels without an action."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from onlineauto.errors import EventTypeError, InputError, kind_of
from onlineauto.features.block import NAMES, UNLABELLED, Block
from onlineauto.formats.lines.diagnostics import Diagnostics, ProblemCode

if TYPE_CHECKING:
    from onlineauto.features.block import Rules


_MADE_BY: Final = {
    "vw": "the names of Vowpal Wabbit's JSON (usertom)",
    "columns": "the names of dicts, frames and Parquet (user=tom)",
}


def other_names(of_model: str, of_events: str) -> InputError:
    """Return the error for events whose names were made by another rule than those of the model."""
    return InputError(
        f"the model has {_MADE_BY[of_model]}, and these events have {_MADE_BY[of_events]}, which it does not "
        "know: give the events as the model knows them, or begin with another model (--names columns reads "
        "JSON as dicts)"
    )


def check_rules(block: Block, rules: Rules) -> None:
    """Compare the rules by which a block was read, as far as it records them, with those of a workspace."""
    if not isinstance(block, Block):
        raise EventTypeError(
            f"one block is needed, and this is {kind_of(block)}: from_dicts and from_frame yield "
            "several blocks, which fit and stream take, and next(…) takes one of them"
        )
    if block.rules == rules:
        return
    if "events" not in block.rules:
        _check_kind(block, simple=rules.get("events") == "simple")
    for option, of_block in block.rules.items():
        if option not in NAMES and of_block != (of_workspace := rules.get(option)):
            raise InputError(
                f"this block was read with {option} = {of_block}, but this workspace has "
                f"{option} = {of_workspace}: read the events with the same options"
            )


def _check_kind(block: Block, *, simple: bool) -> None:
    """Compare the kind of a block's events, which the block does not record, with the expected kind."""
    begin, end = int(block.event_start[0]), int(block.event_start[-1])
    if simple and (len(block.costs) or end - begin > len(block)):
        raise InputError(
            "these are events of a contextual bandit, with actions, but this workspace learns single lines: "
            "make it with cb_explore_adf=True, or use AutoML"
        )
    if not simple and (block.label[begin:end] != UNLABELLED).any():
        raise InputError(
            "these are single lines with labels, but this workspace is a contextual bandit: make it without "
            "cb_explore_adf, or use AutoMLRegressor"
        )


def first_invalid_event(block: Block, kind: str) -> tuple[int, str]:
    """Return the first event of several lines whose costs contradict each other, and a message."""
    if len(block.costs) <= 1 or kind not in ("cb_adf", "cb_explore_adf"):
        return len(block), ""
    if (np.diff(block.cost_start[block.event_start]) <= 1).all():  # the usual case: at most one cost each
        return len(block), ""
    counts = np.diff(block.cost_start)
    labels = np.zeros(block.n_lines, np.int64)
    single = np.flatnonzero(counts == 1)
    labels[single] = block.cost[block.cost_start[single]] != UNLABELLED
    several = np.concatenate([[0], np.cumsum(counts > 1)])
    labelled = np.concatenate([[0], np.cumsum(labels)])
    first, last = block.event_start[:-1], block.event_start[1:]
    invalid = (several[last] > several[first]) | (labelled[last] - labelled[first] > 1)
    if not invalid.any():
        return len(block), ""
    event = int(np.argmax(invalid))
    lines = np.arange(first[event], last[event])
    where = f"the event of lines {block.line_number[lines[0]]} to {block.line_number[lines[-1]]}"
    if (counts[lines] > 1).any():
        bad = int(lines[np.argmax(counts[lines] > 1)])
        n_costs = int(counts[bad])
        return event, (
            f"cb_adf: badly formatted example, only one cost can be known but found {n_costs}, in {where}"
        )
    return event, f"cb_adf: badly formatted example, only one line can have a cost, in {where}"


def find_odd_labels(block: Block, actions: int, problems: Diagnostics) -> None:
    """Add labels that name none of the `actions` to the problems; the block may view larger records."""
    begin, end = block.cost_start[block.event_start[[0, -1]]].tolist()
    action, labelled = block.cost_action[begin:end], block.cost[begin:end] != UNLABELLED
    for cost in np.flatnonzero(labelled & ((action < 1) | (action > actions))).tolist():
        line = int(np.searchsorted(block.cost_start, begin + cost, "right")) - 1
        number, text = int(block.line_number[line]), str(int(action[cost]))
        problems.locate(ProblemCode.ACTION_OUT_OF_RANGE, number, text, reading=block.objects)
