"""Read labels and tags in native mode, for `onlineauto.formats.text.line_kernels`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.features.hash_kernels import hash_name
from onlineauto.formats.lines.mark_kernels import after_word, next_one
from onlineauto.formats.numbers.float_kernels import DECIMAL, NOT_FINITE, read_number, short_decimal
from onlineauto.formats.records.problem_code_kernels import ProblemCode
from onlineauto.formats.records.reader_state_kernels import is_blank, report
from onlineauto.jit import F32, inline_kernel, kernel
from onlineauto.jit.words import load1

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.features.records import Records
    from onlineauto.formats.records.reader_state_kernels import Text

_QUOTE = 39
_ZERO = np.float32(0)
_ONE = np.float32(1)
_SMALLEST = np.float32(1e-38)

UNLABELLED = np.float32(np.finfo(np.float32).max)
"""The label or cost of a line without one."""

_SHARED = np.frombuffer(b"shared", np.uint8)


@kernel
def is_word(data: NDArray[np.uint8], start: int, end: int, word: NDArray[np.uint8]) -> bool:
    """Return whether ``data[start:end]`` is `word`."""
    if end - start != len(word):
        return False
    for i in range(len(word)):  # noqa: SIM110 (Numba has no generator expressions)
        if data[start + i] != word[i]:
            return False
    return True


@kernel
def add_cost(state: Records, costs: Records, action: np.uint32, cost: F32, probability: F32) -> None:
    """Append a cost to the line."""
    record = costs[state.costs]
    record.action = action
    record.cost = cost
    record.probability = probability
    state.costs += 1


@inline_kernel
def add_tag(text: Text, start: int, end: int, tag: NDArray[np.uint8]) -> None:
    """Store ``data[start:end]``, without a leading ``'``, as the line's tag."""
    if text.data[start] == _QUOTE:
        start += 1
    n = text.state.tag_bytes
    for i in range(start, end):
        tag[n] = text.data[i]
        n += 1
    text.state.tag_bytes = n


@inline_kernel
def next_word(text: Text, p: int, end: int) -> tuple[int, int]:
    """Return the bounds of the next word between blanks and tabs; they are equal at the end."""
    while p < end and is_blank(load1(text.data, p)):
        p += 1
    return p, (after_word(text.data, text.marks, p, end) if p < end else p)


@kernel
def label_number(
    data: NDArray[np.uint8], start: int, end: int, not_a_number: ProblemCode, not_finite: ProblemCode
) -> tuple[F32, ProblemCode]:
    """Return the number in ``data[start:end]`` and its problem.

    `UNLABELLED` and larger numbers count as not finite, since `UNLABELLED` marks lines without a label.
    """
    value, is_short = short_decimal(data, start, end)
    if is_short:
        return value, ProblemCode.FINE
    value, kind = read_number(data, start, end)
    if kind == DECIMAL and abs(value) < UNLABELLED:
        return value, ProblemCode.FINE
    if kind in (DECIMAL, NOT_FINITE):
        return _ZERO, not_finite
    return _ZERO, not_a_number


@inline_kernel
def is_unused(code: ProblemCode) -> bool:
    """Return whether a problem only makes the label unusable, which a prediction does not need."""
    of_label = code in (ProblemCode.LABEL_NOT_FINITE, ProblemCode.WEIGHT_NOT_FINITE)
    return of_label or code in (ProblemCode.COST_NOT_FINITE, ProblemCode.PROBABILITY_NOT_FINITE)


@kernel
def read_simple(text: Text, p: int, end: int, line: Records) -> bool:
    """Read ``[label [weight [initial]]]`` into `line` and return whether it is valid."""
    data = text.data
    position = 0
    unused = False
    while True:
        start, p = next_word(text, p, end)
        if start == p:
            if unused:
                line.label, line.weight = UNLABELLED, _ONE
            return True
        code = ProblemCode.TOO_MANY_NUMBERS
        if position == 0:
            line.label, code = label_number(
                data, start, p, ProblemCode.LABEL_NOT_A_NUMBER, ProblemCode.LABEL_NOT_FINITE
            )
        elif position == 1:
            line.weight, code = label_number(
                data, start, p, ProblemCode.WEIGHT_NOT_A_NUMBER, ProblemCode.WEIGHT_NOT_FINITE
            )
            if line.weight < _ZERO:
                code = ProblemCode.WEIGHT_NEGATIVE
        elif position == 2:
            line.initial, code = label_number(
                data, start, p, ProblemCode.INITIAL_NOT_A_NUMBER, ProblemCode.INITIAL_NOT_FINITE
            )
        if code != ProblemCode.FINE:
            report(text.state, code, start, p, text.rules.strict)
            unused = is_unused(code)
            if not unused:
                return False
        position += 1


@inline_kernel
def _colons(marks: NDArray[np.uint8], start: int, end: int) -> tuple[int, int, int]:
    """Return the positions of the first three colons of a word, or the word's end for a missing colon."""
    first = next_one(marks, start)
    second = next_one(marks, min(first + 1, end))
    return first, second, next_one(marks, min(second + 1, end))


@kernel
def is_whole_number(data: NDArray[np.uint8], start: int, end: int) -> bool:
    """Return whether ``data[start:end]`` consists of digits, at least one."""
    for i in range(start, end):
        if data[i] < 48 or data[i] > 57:
            return False
    return start < end


@inline_kernel
def _shape_problem(text: Text, start: int, colons: tuple[int, int, int], end: int) -> ProblemCode:
    """Return the problem of the parts of ``action:cost:probability``."""
    rules = text.rules
    first, second, third = colons
    if third < end:
        return ProblemCode.TOO_MANY_PARTS
    if first == start:
        return ProblemCode.NO_ACTION_NAME
    if first < end and rules.multiline and is_word(text.data, start, first, _SHARED):
        return ProblemCode.SHARED_WITH_MORE
    if not rules.multiline and not is_whole_number(text.data, start, first):
        return ProblemCode.ACTION_NOT_A_NUMBER
    if first == end and rules.multiline:
        return ProblemCode.NO_COST
    if first < end and second == end and not rules.uniform:
        return ProblemCode.NO_PROBABILITY
    return ProblemCode.FINE


@inline_kernel
def probability_problem(value: F32) -> ProblemCode:
    """Return the problem of a logged probability."""
    if value < _ZERO:
        return ProblemCode.PROBABILITY_NEGATIVE
    if value < _SMALLEST:  # its inverse is infinite
        return ProblemCode.PROBABILITY_ZERO
    if value > _ONE:
        return ProblemCode.PROBABILITY_ABOVE_ONE
    return ProblemCode.FINE


@inline_kernel
def _read_cost(text: Text, start: int, end: int, costs: Records) -> bool:
    """Read ``action:cost:probability``, or a bare action of ``--cb N``; return whether it is valid."""
    data, state = text.data, text.state
    colons = _colons(text.marks, start, end)
    first, second, _ = colons
    code = _shape_problem(text, start, colons, end)
    cost, probability = UNLABELLED, _ZERO
    wrong_start, wrong_end = start, end
    if code == ProblemCode.FINE and first < end:
        wrong_start, wrong_end = first + 1, second
        cost, code = label_number(
            data, first + 1, second, ProblemCode.COST_NOT_A_NUMBER, ProblemCode.COST_NOT_FINITE
        )
        if code == ProblemCode.FINE and second == end:
            report(state, ProblemCode.TAKEN_AS_UNIFORM, start, end, False)
        elif code == ProblemCode.FINE:
            wrong_start, wrong_end = second + 1, end
            probability, code = label_number(
                data,
                second + 1,
                end,
                ProblemCode.PROBABILITY_NOT_A_NUMBER,
                ProblemCode.PROBABILITY_NOT_FINITE,
            )
            if code == ProblemCode.FINE:
                code = probability_problem(probability)
    if code != ProblemCode.FINE:
        report(state, code, wrong_start, wrong_end, text.rules.strict)
        return is_unused(code)
    if first == end:
        report(state, ProblemCode.BARE_ACTION, start, end, False)
    add_cost(state, costs, hash_name(data, start, first, np.uint32(0), False), cost, probability)
    return True


@inline_kernel
def _event_problem(text: Text, line: Records, shared: bool, n_words: int) -> ProblemCode:
    """Return the problem of a label's word, given the earlier words of the line and the event."""
    state = text.state
    if not text.rules.multiline:
        return ProblemCode.FINE
    if n_words > 0:
        if shared or line.shared:
            return ProblemCode.SHARED_WITH_MORE
        return ProblemCode.SECOND_COST
    if shared and state.lines != state.first_line:
        return ProblemCode.LATE_SHARED
    if not shared and state.labelled:
        return ProblemCode.SECOND_LABEL
    return ProblemCode.FINE


@kernel
def read_costs(text: Text, p: int, end: int, line: Records, costs: Records) -> bool:
    """Read the words of a contextual-bandit label and return whether they are valid."""
    n_words = 0
    while True:
        start, p = next_word(text, p, end)
        if start == p:
            return True
        shared = text.rules.multiline and is_word(text.data, start, p, _SHARED)
        code = _event_problem(text, line, shared, n_words)
        if code != ProblemCode.FINE:
            report(text.state, code, start, p, text.rules.strict)
            return False
        if shared:
            line.shared = True
        elif not _read_cost(text, start, p, costs):
            return False
        else:
            text.state.labelled = True
        n_words += 1
