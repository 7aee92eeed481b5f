"""Read labels in VW's syntax with VW's rules: in JSON strings (both modes) and in VW text (exact mode)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from onlineauto.features.hash_kernels import hash_name
from onlineauto.formats.lines.label_kernels import UNLABELLED, add_cost, is_word
from onlineauto.formats.numbers.float_kernels import parse_vw_float
from onlineauto.formats.records.problem_code_kernels import ProblemCode
from onlineauto.formats.records.reader_state_kernels import report
from onlineauto.jit import F32, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.features.records import Records
    from onlineauto.formats.records.reader_state_kernels import Text

_COLON, _SPACE = 58, 32
_ZERO = np.float32(0)
_ONE = np.float32(1)
_SHARED_MARK = np.float32(-1)
_SHARED = np.frombuffer(b"shared", np.uint8)
_GRAPH = np.frombuffer(b"graph", np.uint8)


@kernel
def next_vw_part(data: NDArray[np.uint8], p: int, end: int, separator: int) -> tuple[int, int]:
    """Return the bounds of the next non-empty part; the bounds are equal if there is none."""
    while p < end and data[p] == separator:
        p += 1
    start = p
    while p < end and data[p] != separator:
        p += 1
    return start, p


@kernel
def count_vw_parts(data: NDArray[np.uint8], p: int, end: int, separator: int) -> int:
    """Return the number of non-empty parts."""
    n = 0
    while True:
        start, p = next_vw_part(data, p, end, separator)
        if start == p:
            return n
        n += 1


@kernel
def vw_number(text: Text, start: int, end: int) -> F32:
    """Return a number like VW's ``float_of_string``: 0 with a warning if the text is not a number.

    If a part begins with a form feed or similar blank, C's ``strtof`` continues into the next part. VW even
    reads past the end of the line, into unrelated bytes of the buffer; here reading stops at `line_end`.
    """
    limit = text.end if 11 <= text.data[start] <= 13 else end
    value, after = parse_vw_float(text.data, start, limit)
    if after == start or math.isnan(value):
        report(text.state, ProblemCode.VW_FLOAT, start, end, False)
        return _ZERO
    return np.float32(value)


@kernel
def _read_simple(text: Text, p: int, end: int, line: Records) -> None:
    """Read ``[label [weight [initial]]]`` into `line`; a text of more words is not a label."""
    n = count_vw_parts(text.data, p, end, _SPACE)
    if n > 3:
        report(text.state, ProblemCode.VW_TOO_MANY_TOKENS, p, end, False)
        return
    for i in range(n):
        start, p = next_vw_part(text.data, p, end, _SPACE)
        value = vw_number(text, start, p)
        if i == 0:
            line.label = value
        elif i == 1:
            line.weight = value
        else:
            line.initial = value


@kernel
def vw_probability(text: Text, start: int, end: int) -> F32:
    """Return the probability in ``data[start:end]``, clipped to [0, 1] with a warning."""
    value = vw_number(text, start, end)
    if value > _ONE:
        report(text.state, ProblemCode.VW_PROBABILITY_ABOVE_ONE, start, end, False)
        return _ONE
    if value < _ZERO:
        report(text.state, ProblemCode.VW_PROBABILITY_NEGATIVE, start, end, False)
        return _ZERO
    return value


@kernel
def _read_cost(text: Text, start: int, end: int, costs: Records) -> None:
    """Read ``action[:cost[:probability]]`` and append it to the costs; empty parts are skipped."""
    data, state = text.data, text.state
    n = count_vw_parts(data, start, end, _COLON)
    if n == 0 or n > 3:
        report(state, ProblemCode.VW_MALFORMED_COST, start, end, True)
        return
    action, p = next_vw_part(data, start, end, _COLON)
    action_end = p
    cost, probability = UNLABELLED, _ZERO
    if n > 1:
        part, p = next_vw_part(data, p, end, _COLON)
        cost = vw_number(text, part, p)
    if n > 2:
        part, p = next_vw_part(data, p, end, _COLON)
        probability = vw_probability(text, part, p)
    if is_word(data, action, action_end, _SHARED):
        if n == 1:
            probability = _SHARED_MARK
        else:
            report(state, ProblemCode.VW_SHARED_WITH_COST, start, end, False)
    if is_word(data, action, action_end, _GRAPH):
        report(state, ProblemCode.VW_GRAPH, start, end, True)
        return
    add_cost(state, costs, hash_name(data, action, action_end, np.uint32(0), False), cost, probability)


@kernel
def _read_costs(text: Text, p: int, end: int, line: Records, costs: Records) -> None:
    """Read the words of a contextual-bandit label; ``shared`` alone marks the line and adds no cost."""
    state = text.state
    first = state.costs
    while not state.fatal:
        start, p = next_vw_part(text.data, p, end, _SPACE)
        if start == p:
            break
        _read_cost(text, start, p, costs)
    if state.costs == first + 1 and costs[first].probability == _SHARED_MARK:
        line.shared = True
        state.costs = first


@kernel
def read_vw_label(text: Text, start: int, end: int, line: Records, costs: Records) -> None:
    """Read the label in ``data[start:end]``, of an event without slots."""
    if text.rules.simple:
        _read_simple(text, start, end, line)
    else:
        _read_costs(text, start, end, line, costs)
