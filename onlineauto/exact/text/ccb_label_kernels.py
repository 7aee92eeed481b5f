"""Read labels of CCB events as VW does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.formats.json.text_label_kernels import (
    count_vw_parts,
    next_vw_part,
    vw_number,
    vw_probability,
)
from onlineauto.formats.lines.ccb_kernels import (
    ACTION,
    CCB,
    COLON,
    COMMA,
    CONFINED,
    SHARED,
    SLOT,
    next_part,
)
from onlineauto.formats.lines.label_kernels import UNLABELLED, add_cost, is_word
from onlineauto.formats.records.problem_code_kernels import ProblemCode
from onlineauto.formats.records.reader_state_kernels import report
from onlineauto.jit import kernel

if TYPE_CHECKING:
    from onlineauto.features.records import Records
    from onlineauto.formats.records.reader_state_kernels import Text

_SPACE, _MINUS, _PLUS, _ZERO_DIGIT, _NINE = 32, 45, 43, 48, 57
_ONE = np.float32(1)
_TOLERANCE = np.float32(1e-4)
_MOST_WORDS = 4


@kernel
def _read_action(text: Text, start: int, end: int) -> np.uint32:
    """Return the number at the start of a text, like VW's ``int_of_string``: 0 with a warning if none."""
    data = text.data
    p, value = start, np.int64(0)
    if p < end and (data[p] == _MINUS or data[p] == _PLUS):
        p += 1
    first = p
    while p < end and _ZERO_DIGIT <= data[p] <= _NINE:
        value = np.int64(value * 10 + data[p] - _ZERO_DIGIT) & np.int64(0xFFFFFFFF)
        p += 1
    if p == first:
        report(text.state, ProblemCode.VW_INT, start, end, False)
        return np.uint32(0)
    return np.uint32(-value if data[start] == _MINUS else value)


@kernel
def _read_outcome(text: Text, start: int, end: int, costs: Records) -> None:
    """Read ``action:cost:probability[,action:probability...]``; empty parts do not count."""
    data, state = text.data, text.state
    part, p = next_vw_part(data, start, end, COMMA)
    if count_vw_parts(data, part, p, COLON) != 3:
        report(state, ProblemCode.SLOT_OUTCOME, start, end, True)
        return
    first, q = next_vw_part(data, part, p, COLON)
    second, r = next_vw_part(data, q, p, COLON)
    third, s = next_vw_part(data, r, p, COLON)
    action = _read_action(text, first, q)
    total = probability = vw_probability(text, third, s)
    add_cost(state, costs, action, vw_number(text, second, r), probability)
    n = 1
    while not state.fatal:
        part, p = next_vw_part(data, p, end, COMMA)
        if part == p:
            break
        if count_vw_parts(data, part, p, COLON) != 2:
            report(state, ProblemCode.SLOT_OUTCOME, part, p, True)
            return
        first, q = next_vw_part(data, part, p, COLON)
        second, r = next_vw_part(data, q, p, COLON)
        _read_action(text, first, q)
        total += vw_probability(text, second, r)
        n += 1
    if n > 1 and not abs(total - _ONE) < _TOLERANCE:
        report(state, ProblemCode.SLOT_SUM, start, end, True)


@kernel
def _read_lists_or_outcome(text: Text, p: int, end: int, costs: Records, outcome: bool) -> None:
    """Read the outcome of a slot's label if `outcome` is true, else the lists; a second outcome is fatal."""
    data, state = text.data, text.state
    begin, found = p, False
    while not state.fatal:
        start, p = next_vw_part(data, p, end, _SPACE)
        if start == p:
            return
        if (next_part(data, start, p, COLON) < p) != outcome:
            continue
        if outcome:
            if found:
                report(state, ProblemCode.SLOT_LABEL, begin, end, True)
                return
            _read_outcome(text, start, p, costs)
            found = True
            continue
        after = start
        while True:
            part, after = next_vw_part(data, after, p, COMMA)
            if part == after:
                break
            add_cost(state, costs, _read_action(text, part, after), UNLABELLED, CONFINED)


@kernel
def read_vw_slot_label(text: Text, p: int, end: int, line: Records, costs: Records) -> None:
    """Read ``ccb shared``, ``ccb action`` or ``ccb slot [outcome] [list]``; anything else is fatal.

    Source
    ------
    VW 9.11.9, ``parse_ccb_label``.
    """
    data = text.data
    n, begin = count_vw_parts(data, p, end, _SPACE), p
    start, p = next_vw_part(data, p, end, _SPACE)
    kind, after = next_vw_part(data, p, end, _SPACE)
    line.shared, line.slot = is_word(data, kind, after, SHARED), is_word(data, kind, after, SLOT)
    known = line.shared or line.slot or is_word(data, kind, after, ACTION)
    if not (known and is_word(data, start, p, CCB)) or n > (_MOST_WORDS if line.slot else 2):
        report(text.state, ProblemCode.SLOT_LABEL, begin, end, True)
        return
    _read_lists_or_outcome(text, after, end, costs, True)
    _read_lists_or_outcome(text, after, end, costs, False)
