"""Read labels and tags of lines of text in native mode, the labels of slots included."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.features.hash_kernels import hash_name
from onlineauto.formats.lines.mark_kernels import after_word, next_one
from onlineauto.formats.lines.problem_code_kernels import ProblemCode
from onlineauto.formats.lines.reader_state_kernels import is_blank, report
from onlineauto.formats.numbers.float_kernels import DECIMAL, NOT_FINITE, read_number, short_decimal
from onlineauto.jit import F32, inline_kernel, kernel
from onlineauto.jit.words import load1

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.features.records import Records
    from onlineauto.formats.lines.reader_state_kernels import Text

COLON, COMMA = 58, 44
"""Bytes that separate the parts of an outcome."""
CCB, SHARED, ACTION, SLOT = (
    np.frombuffer(word, np.uint8) for word in (b"ccb", b"shared", b"action", b"slot")
)
"""Words of a label."""
CONFINED = np.float32(-np.inf)
"""Value instead of a probability that marks a record as an allowed action of a slot, not a cost."""

_QUOTE = 39
_ZERO = np.float32(0)
_ONE = np.float32(1)
_SMALLEST = np.float32(1e-38)
_LARGEST = np.uint32(2**32 - 1)
_DIGITS = 9
_TOLERANCE = 1e-4

UNLABELLED = np.float32(np.finfo(np.float32).max)
"""The label or cost of a line without one."""


@kernel
def is_word(data: NDArray[np.uint8], start: int, end: int, word: NDArray[np.uint8]) -> bool:
    """Return whether ``data[start:end]`` is `word`."""
    if end - start != len(word):
        return False
    for i in range(len(word)):
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
def _cost_number(data: NDArray[np.uint8], start: int, end: int) -> tuple[F32, ProblemCode]:
    """Return the cost in ``data[start:end]`` and its problem."""
    return label_number(data, start, end, ProblemCode.COST_NOT_A_NUMBER, ProblemCode.COST_NOT_FINITE)


@inline_kernel
def _probability_number(data: NDArray[np.uint8], start: int, end: int) -> tuple[F32, ProblemCode]:
    """Return the number of a probability in ``data[start:end]`` and its problem as a number."""
    not_a_number, not_finite = ProblemCode.PROBABILITY_NOT_A_NUMBER, ProblemCode.PROBABILITY_NOT_FINITE
    return label_number(data, start, end, not_a_number, not_finite)


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
    if first < end and rules.multiline and is_word(text.data, start, first, SHARED):
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
        cost, code = _cost_number(data, first + 1, second)
        if code == ProblemCode.FINE and second == end:
            report(state, ProblemCode.TAKEN_AS_UNIFORM, start, end, False)
        elif code == ProblemCode.FINE:
            wrong_start, wrong_end = second + 1, end
            probability, code = _probability_number(data, second + 1, end)
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
        shared = text.rules.multiline and is_word(text.data, start, p, SHARED)
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


# -- slots -------------------------------------------------------------------------------------------------


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
        value, code = _probability_number(data, colon + 1, stop)
        if value < _ZERO:
            code = ProblemCode.PROBABILITY_NEGATIVE
        if code != ProblemCode.FINE:
            report(text.state, code, colon + 1, stop, text.rules.strict)
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
    cost, code = _cost_number(data, first + 1, second)
    if code != ProblemCode.FINE:
        report(state, code, first + 1, second, rules.strict)
        return is_unused(code)
    probability = _ZERO
    if second < stop:
        probability, code = _probability_number(data, second + 1, stop)
        if code == ProblemCode.FINE:
            code = probability_problem(probability)
        if code != ProblemCode.FINE:
            report(state, code, second + 1, stop, rules.strict)
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
