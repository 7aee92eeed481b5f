"""Labels and tags: what stands before the first ``|`` of a line."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from onlineauto.features.hash_kernels import hash_name
from onlineauto.formats.code_kernels import Code
from onlineauto.formats.column_kernels import (
    COSTS,
    EVENT_LABELLED,
    EVENT_LINE,
    LINES,
    TAG_BYTES,
    is_blank,
    report,
)
from onlineauto.formats.number_kernels import DECIMAL, NOT_FINITE, read_number
from onlineauto.jit import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.formats.column_kernels import Reader, Rules

__all__ = ["add_cost", "is_shared", "read_head", "split_tag"]

_COLON, _SPACE, _QUOTE = 58, 32, 39
_ZERO = np.float32(0)
_ONE = np.float32(1)
_UNLABELLED = np.float32(np.finfo(np.float32).max)
_SHARED = np.frombuffer(b"shared", np.uint8)


@kernel
def is_shared(data: NDArray[np.uint8], start: int, end: int) -> bool:
    """Whether a word is ``shared``."""
    if end - start != len(_SHARED):
        return False
    for i in range(len(_SHARED)):
        if data[start + i] != _SHARED[i]:
            return False
    return True


@kernel
def split_tag(data: NDArray[np.uint8], start: int, bar: int, exact: bool, reader: Reader) -> tuple[int, int]:
    """Take the tag off the head ``data[start:bar]``: the last word, if it touches the bar or begins with ``'``.

    Returns the end of what is left, and the beginning of the tag if it touches the bar without ``'``, else -1.
    """
    stop = bar
    while stop > start and (data[stop - 1] == _SPACE or (not exact and is_blank(data[stop - 1]))):
        stop -= 1
    first = stop
    while first > start and data[first - 1] != _SPACE and (exact or not is_blank(data[first - 1])):
        first -= 1
    if first == stop or (stop < bar and data[first] != _QUOTE):
        return bar, -1
    quoted = data[first] == _QUOTE
    n = reader.at[TAG_BYTES]
    for i in range(first + 1 if quoted else first, stop):
        reader.columns.tag[n] = data[i]
        n += 1
    reader.at[TAG_BYTES] = n
    return first, -1 if quoted else first


@kernel
def add_cost(reader: Reader, action: np.uint32, cost: np.float32, probability: np.float32) -> None:
    """Append a cost to the line."""
    n = reader.at[COSTS]
    reader.columns.cost_action[n] = action
    reader.columns.cost[n] = cost
    reader.columns.probability[n] = probability
    reader.at[COSTS] = n + 1


# -- native ----------------------------------------------------------------------------------------------------


@kernel
def _next_word(data: NDArray[np.uint8], p: int, end: int) -> tuple[int, int]:
    """Bounds of the next word between blanks and tabs; empty at the end."""
    while p < end and is_blank(data[p]):
        p += 1
    start = p
    while p < end and not is_blank(data[p]):
        p += 1
    return start, p


@kernel
def _number(
    data: NDArray[np.uint8],
    start: int,
    end: int,
    codes: tuple[Code, Code],
    rules: Rules,
    reader: Reader,
) -> tuple[np.float32, bool]:
    """Number in a label: not a word, not infinite, and not the mark of unlabelled lines."""
    value, kind = read_number(data, start, end)
    if kind == DECIMAL and abs(value) < _UNLABELLED:
        return value, True
    report(reader, codes[1] if kind in (DECIMAL, NOT_FINITE) else codes[0], start, end, rules.strict)
    return _ZERO, False


@kernel
def _read_simple(data: NDArray[np.uint8], p: int, end: int, rules: Rules, reader: Reader) -> bool:
    """Read ``[label [weight [initial]]]``."""
    columns, line, good = reader.columns, reader.at[LINES], True
    start, p = _next_word(data, p, end)
    if start < p:
        codes = (Code.LABEL_NOT_A_NUMBER, Code.LABEL_NOT_FINITE)
        columns.label[line], good = _number(data, start, p, codes, rules, reader)
    start, p = _next_word(data, p, end)
    if start < p and good:
        codes = (Code.WEIGHT_NOT_A_NUMBER, Code.WEIGHT_NOT_FINITE)
        columns.weight[line], good = _number(data, start, p, codes, rules, reader)
        if good and columns.weight[line] < _ZERO:
            report(reader, Code.WEIGHT_NEGATIVE, start, p, rules.strict)
            good = False
    start, p = _next_word(data, p, end)
    if start < p and good:
        codes = (Code.INITIAL_NOT_A_NUMBER, Code.INITIAL_NOT_FINITE)
        columns.initial[line], good = _number(data, start, p, codes, rules, reader)
    start, p = _next_word(data, p, end)
    if start < p and good:
        report(reader, Code.TOO_MANY_NUMBERS, start, p, rules.strict)
        good = False
    return good


@kernel
def _colons(data: NDArray[np.uint8], start: int, end: int) -> tuple[int, int, int]:
    """Number of colons in a word, and where the first two are (its end if there are none)."""
    n, first, second = 0, end, end
    for i in range(start, end):
        if data[i] == _COLON:
            if n == 0:
                first = i
            elif n == 1:
                second = i
            n += 1
    return n, first, second


@kernel
def _is_whole_number(data: NDArray[np.uint8], start: int, end: int) -> bool:
    for i in range(start, end):
        if data[i] < 48 or data[i] > 57:
            return False
    return start < end


@kernel
def _shape_problem(data: NDArray[np.uint8], start: int, end: int, multiline: bool) -> Code:
    """What is wrong with the parts of ``action:cost:probability``."""
    n, first, _ = _colons(data, start, end)
    if n > 2:
        return Code.TOO_MANY_PARTS
    if first == start:
        return Code.NO_ACTION_NAME
    if n > 0 and is_shared(data, start, first):
        return Code.SHARED_WITH_MORE
    if not multiline and not _is_whole_number(data, start, first):
        return Code.ACTION_NOT_A_NUMBER
    if n == 0 and multiline:
        return Code.NO_COST
    if n == 1:
        return Code.NO_PROBABILITY
    return Code.FINE


@kernel
def _probability_problem(probability: np.float32) -> Code:
    if probability < _ZERO:
        return Code.PROBABILITY_NEGATIVE
    if probability == _ZERO:
        return Code.PROBABILITY_ZERO
    if probability > _ONE:
        return Code.PROBABILITY_ABOVE_ONE
    return Code.FINE


@kernel
def _read_cost(data: NDArray[np.uint8], start: int, end: int, rules: Rules, reader: Reader) -> bool:
    """Read ``action:cost:probability``, or the bare action of a ``--cb N`` line."""
    code = _shape_problem(data, start, end, rules.multiline)
    if code != Code.FINE:
        report(reader, code, start, end, rules.strict)
        return False
    n, first, second = _colons(data, start, end)
    action = hash_name(data, start, first, np.uint32(0), False)
    if n == 0:
        add_cost(reader, action, _UNLABELLED, _ZERO)
        return True
    codes = (Code.COST_NOT_A_NUMBER, Code.COST_NOT_FINITE)
    cost, good = _number(data, first + 1, second, codes, rules, reader)
    if not good:
        return False
    codes = (Code.PROBABILITY_NOT_A_NUMBER, Code.PROBABILITY_NOT_FINITE)
    probability, good = _number(data, second + 1, end, codes, rules, reader)
    if not good:
        return False
    code = _probability_problem(probability)
    if code != Code.FINE:
        report(reader, code, second + 1, end, rules.strict)
        return False
    add_cost(reader, action, cost, probability)
    return True


@kernel
def _event_problem(rules: Rules, reader: Reader, shared: bool, n_words: int) -> Code:
    """What is wrong with a word of a label in the line and event where it stands."""
    at = reader.at
    if not rules.multiline:
        return Code.FINE
    if shared:
        if n_words > 0:
            return Code.SHARED_WITH_MORE
        return Code.FINE if at[LINES] == at[EVENT_LINE] else Code.LATE_SHARED
    if n_words > 0:
        return Code.SHARED_WITH_MORE if reader.columns.shared[at[LINES]] else Code.SECOND_COST
    return Code.SECOND_LABEL if at[EVENT_LABELLED] != 0 else Code.FINE


@kernel
def _read_costs(data: NDArray[np.uint8], p: int, end: int, rules: Rules, reader: Reader) -> bool:
    """Read the words of a contextual-bandit label."""
    at, n_words = reader.at, 0
    while True:
        start, p = _next_word(data, p, end)
        if start == p:
            return True
        shared = rules.multiline and is_shared(data, start, p)
        code = _event_problem(rules, reader, shared, n_words)
        if code != Code.FINE:
            report(reader, code, start, p, rules.strict)
            return False
        if shared:
            reader.columns.shared[at[LINES]] = True
        elif not _read_cost(data, start, p, rules, reader):
            return False
        else:
            at[EVENT_LABELLED] = 1
        n_words += 1


@kernel
def _looks_like_label(data: NDArray[np.uint8], start: int, end: int, simple: bool) -> bool:
    """Whether a tag may have been meant as a label."""
    if simple:
        _, kind = read_number(data, start, end)
        return kind == DECIMAL
    n, _, _ = _colons(data, start, end)
    return n > 0 or is_shared(data, start, end)


@kernel
def read_head(data: NDArray[np.uint8], start: int, bar: int, rules: Rules, reader: Reader) -> bool:
    """Read label and tag of a line; False, with the problem reported, if something is wrong with them."""
    end, touching = split_tag(data, start, bar, False, reader)
    if touching >= 0 and _next_word(data, start, end)[0] == end:
        if _looks_like_label(data, touching, bar, rules.simple):
            report(reader, Code.TAG_LIKE_LABEL, touching, bar, False)
    if rules.simple:
        return _read_simple(data, start, end, rules, reader)
    return _read_costs(data, start, end, rules, reader)
