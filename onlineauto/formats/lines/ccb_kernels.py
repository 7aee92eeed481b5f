"""Read and check the labels of CCB events in native mode: ``ccb shared``, ``ccb action``, ``ccb slot``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.features.hash_kernels import hash_name
from onlineauto.formats.lines.label_kernels import (
    UNLABELLED,
    add_cost,
    is_unused,
    is_whole_number,
    is_word,
    label_number,
    next_word,
    probability_problem,
)
from onlineauto.formats.records.problem_code_kernels import ProblemCode
from onlineauto.formats.records.reader_state_kernels import report
from onlineauto.jit import F32, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.features.records import Records
    from onlineauto.formats.records.reader_state_kernels import Text


CONFINED = np.float32(-np.inf)
"""Value instead of a probability that marks a record as an allowed action of a slot, not a cost."""


@kernel
def _is_free(lines: Records, costs: Records, first: int, slot: int, end: int, action: np.uint32) -> bool:
    """Return whether `action` is allowed in a slot and is not the logged action of an earlier slot.

    A slot without a list of allowed actions allows all. The costs of the slot end at `end`; the first one is
    the slot's outcome.
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
) -> tuple[ProblemCode, int]:
    """Return the problem of the lines [first, end) of an event, and the line that has it.

    The costs of the event end at `n_costs`. The lines must be a shared line, then actions, then at most as
    many slots as actions. The logged and the allowed actions of a slot must exist, and the logged action must
    be free for the slot. `anything` accepts all actions.
    """
    slots = end
    for line in range(first, end):
        if lines[line].shared != (line == first) or (not lines[line].slot and slots < end):
            return ProblemCode.SLOT_ORDER, line
        if lines[line].slot and slots == end:
            slots = line
    n_actions = slots - first - 1
    if end - slots > n_actions:
        return ProblemCode.TOO_MANY_SLOTS, slots
    if anything:
        return ProblemCode.FINE, first
    for slot in range(slots, end):
        stop = lines[slot + 1].cost if slot + 1 < end else n_costs
        for i in range(lines[slot].cost, stop):
            if costs[i].action >= n_actions:
                return ProblemCode.SLOT_ACTION, slot
        i = lines[slot].cost
        logged = i < stop and costs[i].probability > CONFINED
        if logged and not _is_free(lines, costs, slots, slot, stop, costs[i].action):
            return ProblemCode.SLOT_ACTION, slot
    return ProblemCode.FINE, first


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
def _read_action(text: Text, start: int, end: int) -> np.uint32:
    """Return the number of an action; for any other text, report it and return the largest uint32."""
    if not is_whole_number(text.data, start, end) or end - start > _DIGITS:
        report(text.state, ProblemCode.ACTION_NOT_A_NUMBER, start, end, text.rules.strict)
        return _LARGEST
    return hash_name(text.data, start, end, np.uint32(0), False)


@kernel
def _read_probability(text: Text, start: int, end: int) -> tuple[F32, ProblemCode]:
    """Return a probability and its problem, after reporting the problem."""
    value, code = label_number(
        text.data, start, end, ProblemCode.PROBABILITY_NOT_A_NUMBER, ProblemCode.PROBABILITY_NOT_FINITE
    )
    if code == ProblemCode.FINE:
        code = probability_problem(value)
    if code != ProblemCode.FINE:
        report(text.state, code, start, end, text.rules.strict)
    return value, code


@kernel
def _read_others(text: Text, p: int, end: int) -> tuple[float, bool]:
    """Return the sum of the probabilities of ``action:probability,...`` and whether they are valid.

    The sum is NaN if a probability is not finite. Problems are reported.
    """
    data = text.data
    total = 0.0
    while p < end:
        stop = next_part(data, p, end, COMMA)
        colon = next_part(data, p, stop, COLON)
        if colon == stop:
            report(text.state, ProblemCode.SLOT_OUTCOME, p, stop, text.rules.strict)
            return np.nan, False
        if _read_action(text, p, colon) == _LARGEST:
            return np.nan, False
        value, code = label_number(
            data, colon + 1, stop, ProblemCode.PROBABILITY_NOT_A_NUMBER, ProblemCode.PROBABILITY_NOT_FINITE
        )
        if code != ProblemCode.FINE or value < _ZERO:
            report(
                text.state,
                ProblemCode.PROBABILITY_NEGATIVE if value < _ZERO else code,
                colon + 1,
                stop,
                text.rules.strict,
            )
            if not is_unused(code):
                return np.nan, False
            total = np.nan
        total += np.float64(value)
        p = stop + 1
    return total, True


@kernel
def _read_outcome(text: Text, start: int, end: int, costs: Records) -> bool:
    """Read ``action:cost:probability[,action:probability...]``; return if it is valid, finite or not."""
    data, rules, state = text.data, text.rules, text.state
    stop = next_part(data, start, end, COMMA)
    first = next_part(data, start, stop, COLON)
    second = next_part(data, min(first + 1, stop), stop, COLON)
    if first == stop or next_part(data, min(second + 1, stop), stop, COLON) < stop:
        report(state, ProblemCode.SLOT_OUTCOME, start, stop, rules.strict)
        return False
    action = _read_action(text, start, first)
    if action == _LARGEST:
        return False
    cost, code = label_number(
        data, first + 1, second, ProblemCode.COST_NOT_A_NUMBER, ProblemCode.COST_NOT_FINITE
    )
    if code != ProblemCode.FINE:
        report(state, code, first + 1, second, rules.strict)
        return is_unused(code)
    probability = _ZERO
    if second < stop:
        probability, code = _read_probability(text, second + 1, stop)
        if code != ProblemCode.FINE:
            return is_unused(code)
    elif rules.uniform:
        report(state, ProblemCode.TAKEN_AS_UNIFORM, start, stop, False)
    else:
        report(state, ProblemCode.NO_PROBABILITY, start, stop, rules.strict)
        return False
    if stop < end:
        others, good = _read_others(text, stop + 1, end)
        if not good or np.isnan(others):
            return good
        if abs(np.float64(probability) + others - 1.0) >= _TOLERANCE:
            report(state, ProblemCode.SLOT_SUM, start, end, rules.strict)
            return False
    add_cost(state, costs, action, cost, probability)
    return True


@kernel
def _read_list(text: Text, p: int, end: int, costs: Records) -> bool:
    """Read ``action,action,...``, the allowed actions of a slot, and return whether the list is valid."""
    while p < end:
        stop = next_part(text.data, p, end, COMMA)
        action = _read_action(text, p, stop)
        if action == _LARGEST:
            return False
        add_cost(text.state, costs, action, UNLABELLED, CONFINED)
        p = stop + 1
    return True


@kernel
def read_slot_label(text: Text, p: int, end: int, line: Records, costs: Records) -> bool:
    """Read ``ccb shared``, ``ccb action`` or ``ccb slot [outcome] [list]``; return if it is valid."""
    data = text.data
    start, p = next_word(text, p, end)
    kind, after = next_word(text, p, end)
    line.shared, line.slot = is_word(data, kind, after, SHARED), is_word(data, kind, after, SLOT)
    known = line.shared or line.slot or is_word(data, kind, after, ACTION)
    if not (known and is_word(data, start, p, CCB)):
        report(text.state, ProblemCode.SLOT_LABEL, start, max(after, p), text.rules.strict)
        return False
    word, last = next_word(text, after, end)
    if word < last and line.slot and next_part(data, word, last, COLON) < last:
        if not _read_outcome(text, word, last, costs):
            return False
        word, last = next_word(text, last, end)
    if word < last and line.slot:
        if not _read_list(text, word, last, costs):
            return False
        word, last = next_word(text, last, end)
    if word < last:
        report(text.state, ProblemCode.SLOT_LABEL, word, last, text.rules.strict)
        return False
    return True
