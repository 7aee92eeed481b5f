"""Read labels of CCB events in native mode: ``ccb shared``, ``ccb action``, ``ccb slot``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.features.hash_kernels import hash_name
from onlineauto.formats.lines.ccb_event_kernels import CONFINED
from onlineauto.formats.lines.label_kernels import (
    UNLABELLED,
    add_cost,
    is_whole_number,
    is_word,
    label_number,
    next_word,
    probability_problem,
)
from onlineauto.formats.lines.problem_code_kernels import Code
from onlineauto.formats.lines.reader_state_kernels import report
from onlineauto.jit import F32, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.features.records import Records
    from onlineauto.formats.lines.reader_state_kernels import Rules

__all__ = ["ACTION", "CCB", "COLON", "COMMA", "SHARED", "SLOT", "next_part", "read_slot_label"]

COLON, COMMA = 58, 44
"""Bytes that separate the parts of an outcome."""

CCB, SHARED, ACTION, SLOT = (
    np.frombuffer(word, np.uint8) for word in (b"ccb", b"shared", b"action", b"slot")
)
"""Words of a label."""

_ZERO = np.float32(0)
_LARGEST = np.uint32(2**32 - 1)
_DIGITS = 9
_TOLERANCE = 1e-4


@kernel
def next_part(data: NDArray[np.uint8], p: int, end: int, separator: int) -> int:
    """Return the end of the part that begins at `p`: the next separator, or `end`."""
    while p < end and data[p] != separator:
        p += 1
    return p


@kernel
def _read_action(data: NDArray[np.uint8], start: int, end: int, strict: bool, state: Records) -> np.uint32:
    """Return the number of an action, or the largest uint32 after reporting that it is none."""
    if not is_whole_number(data, start, end) or end - start > _DIGITS:
        report(state, Code.ACTION_NOT_A_NUMBER, start, end, strict)
        return _LARGEST
    return hash_name(data, start, end, np.uint32(0), False)


@kernel
def _read_probability(data: NDArray[np.uint8], start: int, end: int, strict: bool, state: Records) -> F32:
    """Return a probability (float32), or `CONFINED`, which is negative, after reporting a problem."""
    value, code = label_number(data, start, end, Code.PROBABILITY_NOT_A_NUMBER, Code.PROBABILITY_NOT_FINITE)
    if code == Code.FINE:
        code = probability_problem(value)
    if code != Code.FINE:
        report(state, code, start, end, strict)
        return CONFINED
    return value


@kernel
def _read_others(data: NDArray[np.uint8], p: int, end: int, strict: bool, state: Records) -> float:
    """Return the sum of the probabilities of ``action:probability,...``, or NaN after reporting a problem."""
    total = 0.0
    while p < end:
        stop = next_part(data, p, end, COMMA)
        colon = next_part(data, p, stop, COLON)
        if colon == stop:
            report(state, Code.SLOT_OUTCOME, p, stop, strict)
            return np.nan
        if _read_action(data, p, colon, strict, state) == _LARGEST:
            return np.nan
        value, code = label_number(
            data, colon + 1, stop, Code.PROBABILITY_NOT_A_NUMBER, Code.PROBABILITY_NOT_FINITE
        )
        if code != Code.FINE or value < _ZERO:
            report(state, Code.PROBABILITY_NEGATIVE if value < _ZERO else code, colon + 1, stop, strict)
            return np.nan
        total += np.float64(value)
        p = stop + 1
    return total


@kernel
def _read_outcome(
    data: NDArray[np.uint8], start: int, end: int, rules: Rules, state: Records, costs: Records
) -> bool:
    """Read ``action:cost:probability[,action:probability...]`` and return whether it is good."""
    stop = next_part(data, start, end, COMMA)
    first = next_part(data, start, stop, COLON)
    second = next_part(data, min(first + 1, stop), stop, COLON)
    if first == stop or next_part(data, min(second + 1, stop), stop, COLON) < stop:
        report(state, Code.SLOT_OUTCOME, start, stop, rules.strict)
        return False
    action = _read_action(data, start, first, rules.strict, state)
    if action == _LARGEST:
        return False
    cost, code = label_number(data, first + 1, second, Code.COST_NOT_A_NUMBER, Code.COST_NOT_FINITE)
    if code != Code.FINE:
        report(state, code, first + 1, second, rules.strict)
        return False
    probability = _ZERO
    if second < stop:
        probability = _read_probability(data, second + 1, stop, rules.strict, state)
        if probability < _ZERO:
            return False
    elif rules.uniform:
        report(state, Code.TAKEN_AS_UNIFORM, start, stop, False)
    else:
        report(state, Code.NO_PROBABILITY, start, stop, rules.strict)
        return False
    add_cost(state, costs, action, cost, probability)
    if stop == end:
        return True
    others = _read_others(data, stop + 1, end, rules.strict, state)
    if np.isnan(others):
        return False
    if abs(np.float64(probability) + others - 1.0) >= _TOLERANCE:
        report(state, Code.SLOT_SUM, start, end, rules.strict)
        return False
    return True


@kernel
def _read_list(
    data: NDArray[np.uint8], p: int, end: int, strict: bool, state: Records, costs: Records
) -> bool:
    """Read ``action,action,...``, to which the slot is confined, and return whether it is good."""
    while p < end:
        stop = next_part(data, p, end, COMMA)
        action = _read_action(data, p, stop, strict, state)
        if action == _LARGEST:
            return False
        add_cost(state, costs, action, UNLABELLED, CONFINED)
        p = stop + 1
    return True


@kernel
def read_slot_label(
    data: NDArray[np.uint8],
    marks: NDArray[np.uint8],
    p: int,
    end: int,
    rules: Rules,
    state: Records,
    line: Records,
    costs: Records,
) -> bool:
    """Read ``ccb shared``, ``ccb action`` or ``ccb slot [outcome] [list]``.

    Returns whether the label is one of them and good; a problem is reported.
    """
    start, p = next_word(data, marks, p, end)
    kind, after = next_word(data, marks, p, end)
    line.shared, line.slot = is_word(data, kind, after, SHARED), is_word(data, kind, after, SLOT)
    known = line.shared or line.slot or is_word(data, kind, after, ACTION)
    if not (known and is_word(data, start, p, CCB)):
        report(state, Code.SLOT_LABEL, start, max(after, p), rules.strict)
        return False
    word, last = next_word(data, marks, after, end)
    if word < last and line.slot and next_part(data, word, last, COLON) < last:
        if not _read_outcome(data, word, last, rules, state, costs):
            return False
        word, last = next_word(data, marks, last, end)
    if word < last and line.slot:
        if not _read_list(data, word, last, rules.strict, state, costs):
            return False
        word, last = next_word(data, marks, last, end)
    if word < last:
        report(state, Code.SLOT_LABEL, word, last, rules.strict)
        return False
    return True
