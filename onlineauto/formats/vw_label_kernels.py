"""Labels and tags as VW reads them, for exact mode."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from onlineauto.features.hash_kernels import hash_name
from onlineauto.formats.code_kernels import Code
from onlineauto.formats.column_kernels import COSTS, LINES, report
from onlineauto.formats.float_kernels import parse_vw_float
from onlineauto.formats.label_kernels import add_cost, is_shared, split_tag
from onlineauto.jit import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.formats.column_kernels import Reader, Rules

__all__ = ["read_vw_head"]

_COLON, _SPACE, _TAB = 58, 32, 9
_ZERO = np.float32(0)
_ONE = np.float32(1)
_SHARED_MARK = np.float32(-1)
_UNLABELLED = np.float32(np.finfo(np.float32).max)
_GRAPH = np.frombuffer(b"graph", np.uint8)


@kernel
def _next_part(data: NDArray[np.uint8], p: int, end: int, separator: int) -> tuple[int, int]:
    """Bounds of the next part that is not empty; empty at the end."""
    while p < end and data[p] == separator:
        p += 1
    start = p
    while p < end and data[p] != separator:
        p += 1
    return start, p


@kernel
def _count_parts(data: NDArray[np.uint8], p: int, end: int, separator: int) -> int:
    n = 0
    while True:
        start, p = _next_part(data, p, end, separator)
        if start == p:
            return n
        n += 1


@kernel
def _vw_number(
    data: NDArray[np.uint8], start: int, end: int, line_end: int, rules: Rules, reader: Reader
) -> np.float32:
    """VW's ``float_of_string``: 0, with a warning, for what is no number.

    After a part that is only form feeds and the like, C's ``strtof`` runs on into what follows.
    """
    limit = line_end if 11 <= data[start] <= 13 else end
    value, after = parse_vw_float(data, start, limit)
    if after == start or math.isnan(value):
        report(reader, Code.VW_FLOAT, start, end, False)
        return _ZERO
    return np.float32(value)


@kernel
def _read_vw_simple(
    data: NDArray[np.uint8], p: int, end: int, line_end: int, rules: Rules, reader: Reader
) -> None:
    n = _count_parts(data, p, end, _SPACE)
    if n > 3:
        report(reader, Code.VW_TOO_MANY_TOKENS, p, end, False)
        return
    columns, line = reader.columns, reader.at[LINES]
    for i in range(n):
        start, p = _next_part(data, p, end, _SPACE)
        value = _vw_number(data, start, p, line_end, rules, reader)
        if i == 0:
            columns.label[line] = value
        elif i == 1:
            columns.weight[line] = value
            if value < _ZERO:
                report(reader, Code.VW_WEIGHT, start, p, rules.strict)
        else:
            columns.initial[line] = value


@kernel
def _vw_probability(value: np.float32, start: int, end: int, reader: Reader) -> np.float32:
    if value > _ONE:
        report(reader, Code.VW_PROBABILITY_ABOVE_ONE, start, end, False)
        return _ONE
    if value < _ZERO:
        report(reader, Code.VW_PROBABILITY_NEGATIVE, start, end, False)
        return _ZERO
    return value


@kernel
def _read_vw_cost(
    data: NDArray[np.uint8], start: int, end: int, line_end: int, rules: Rules, reader: Reader
) -> None:
    """Read ``action[:cost[:probability]]``; empty parts do not count."""
    n = _count_parts(data, start, end, _COLON)
    if n == 0 or n > 3:
        report(reader, Code.VW_MALFORMED_COST, start, end, True)
        return
    action_start, p = _next_part(data, start, end, _COLON)
    action_end = p
    cost, probability = _UNLABELLED, _ZERO
    if n > 1:
        part, p = _next_part(data, p, end, _COLON)
        cost = _vw_number(data, part, p, line_end, rules, reader)
    if n > 2:
        part, p = _next_part(data, p, end, _COLON)
        probability = _vw_probability(_vw_number(data, part, p, line_end, rules, reader), part, p, reader)
    if is_shared(data, action_start, action_end):
        if n == 1:
            probability = _SHARED_MARK
        else:
            report(reader, Code.VW_SHARED_WITH_COST, start, end, False)
    if _is_graph(data, action_start, action_end):
        report(reader, Code.VW_GRAPH, start, end, True)
        return
    add_cost(reader, hash_name(data, action_start, action_end, np.uint32(0), False), cost, probability)


@kernel
def _is_graph(data: NDArray[np.uint8], start: int, end: int) -> bool:
    if end - start != len(_GRAPH):
        return False
    for i in range(len(_GRAPH)):
        if data[start + i] != _GRAPH[i]:
            return False
    return True


@kernel
def _read_vw_costs(
    data: NDArray[np.uint8], p: int, end: int, line_end: int, rules: Rules, reader: Reader
) -> None:
    at, columns, first = reader.at, reader.columns, reader.at[COSTS]
    while True:
        start, p = _next_part(data, p, end, _SPACE)
        if start == p:
            break
        _read_vw_cost(data, start, p, line_end, rules, reader)
    if at[COSTS] == first + 1 and columns.probability[first] == _SHARED_MARK:
        columns.shared[at[LINES]] = True
        at[COSTS] = first


@kernel
def read_vw_head(
    data: NDArray[np.uint8], start: int, bar: int, line_end: int, rules: Rules, reader: Reader
) -> None:
    """Read label and tag of a line as VW does: a tab discards everything before it.

    Source
    ------
    VW 9.11.9, ``substring_to_example`` in ``parse_example_text.cc`` and the label parsers.
    """
    for i in range(start, bar):
        if data[i] == _TAB:
            start = i + 1
            break
    end, _ = split_tag(data, start, bar, True, reader)
    if rules.simple:
        _read_vw_simple(data, start, end, line_end, rules, reader)
    else:
        _read_vw_costs(data, start, end, line_end, rules, reader)
