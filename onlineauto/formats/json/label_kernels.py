"""Read JSON labels (``_label``, ``_label_...``, ``_labelIndex``) and assign them to lines.

Labels in VW's syntax are read by VW's rules, in JSON strings (both modes) and in VW text (exact mode).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from onlineauto.features.hash_kernels import hash_name
from onlineauto.formats.json.ccb_kernels import forget_label, settle_single_slot
from onlineauto.formats.json.stage_kernels import LABEL, add_staged_cost, drop_label, fail, open_frame
from onlineauto.formats.json.token_kernels import (
    INTEGER,
    MALFORMED,
    is_name,
    name_of,
    read_entry,
    read_number_or_null,
)
from onlineauto.formats.lines.label_kernels import (
    SHARED,
    UNLABELLED,
    add_cost,
    is_unused,
    is_word,
    probability_problem,
)
from onlineauto.formats.lines.problem_code_kernels import ProblemCode
from onlineauto.formats.lines.reader_state_kernels import Text, report
from onlineauto.formats.numbers.float_kernels import parse_vw_float
from onlineauto.jit import F32, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.features.records import Records
    from onlineauto.formats.json.stage_kernels import JsonText, Stage
    from onlineauto.formats.json.token_kernels import String
    from onlineauto.formats.lines.reader_state_kernels import Reader

_OPEN_OBJECT = 123
_ZERO = np.float32(0)
_LABEL, _WEIGHT, _INITIAL, _ACTION, _COST, _PROBABILITY = (
    name_of(b"", name) for name in (b"label", b"weight", b"initial", b"action", b"cost", b"probability")
)

_COLON, _SPACE = 58, 32
_ONE = np.float32(1)
_SHARED_MARK = np.float32(-1)
_GRAPH = np.frombuffer(b"graph", np.uint8)


# -- labels in VW's syntax -------------------------------------------------------------------------------


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
    if is_word(data, action, action_end, SHARED):
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


# -- labels of JSON --------------------------------------------------------------------------------------


@kernel
def _claim(text: JsonText) -> None:
    """Assign the label to the action that contains it, in native mode; refuse a label for another action."""
    event = text.event
    if text.rules.quirks.early_labels or text.rules.slots or event.line == 0:
        return
    if event.index >= 0 and event.index != event.line - 1:
        fail(text, ProblemCode.SECOND_LABEL, event.label_start, event.label_end)
    event.index = event.line - 1


@kernel
def _set_simple(text: JsonText, name: tuple[int, int], value: F32, line: Records) -> None:
    """Set the property `name` of a simple label to `value`."""
    data, event = text.data, text.event
    code, limit = (
        ProblemCode.FINE,
        text.rules.quirks.any_number or (math.isfinite(value) and abs(value) < UNLABELLED),
    )
    if is_name(data, name[0], name[1], _LABEL):
        line.label = value
        code = ProblemCode.FINE if limit else ProblemCode.LABEL_NOT_FINITE
    elif is_name(data, name[0], name[1], _WEIGHT):
        line.weight = value
        code = ProblemCode.FINE if limit else ProblemCode.WEIGHT_NOT_FINITE
        if value < _ZERO:
            code = ProblemCode.VW_WEIGHT if text.rules.quirks.any_number else ProblemCode.WEIGHT_NEGATIVE
    elif is_name(data, name[0], name[1], _INITIAL):
        line.initial = value
        code = ProblemCode.FINE if limit else ProblemCode.INITIAL_NOT_FINITE
    else:
        code = ProblemCode.JSON_KEY
    if code == ProblemCode.VW_WEIGHT:
        report(text.state, code, event.label_start, event.label_end, False)
    elif is_unused(code):
        drop_label(text, code, event.label_start, event.label_end)
    elif code == ProblemCode.JSON_KEY:
        fail(text, code, event.key[0], event.key[1])
    elif code != ProblemCode.FINE:
        fail(text, code, event.label_start, event.label_end)


@kernel
def _note(event: Records, bounds: NDArray[np.int64]) -> None:
    """Copy the text bounds of the last part of the label to `bounds`."""
    bounds[0], bounds[1] = event.label_start, event.label_end


@kernel
def _set_cost(text: JsonText, name: tuple[int, int], value: F32) -> None:
    """Set the property `name` of a contextual bandit's label to `value`."""
    data, event = text.data, text.event
    unknown = math.isnan(value) and not text.rules.quirks.any_number
    if is_name(data, name[0], name[1], _COST):
        event.cost = value
        _note(event, event.cost_at)
    elif is_name(data, name[0], name[1], _PROBABILITY):
        event.probability = value
        event.has_probability = True
        _note(event, event.probability_at)
    elif is_name(data, name[0], name[1], _ACTION) and (_ZERO <= value < 2.0**32 or unknown):
        event.action = np.uint32(0 if unknown else np.int64(value))
        if event.index < 0:
            _note(event, event.index_at)
    else:
        fail(text, ProblemCode.JSON_KEY, event.key[0], event.key[1])
    event.found = True
    _claim(text)


@kernel
def read_label_property(
    text: JsonText, name: tuple[int, int], p: int, lines: Records, frames: Records
) -> int:
    """Read the value at `p` of the label's property `name` and return the position after it.

    The value is a number, ``"NaN"``, null or, for ``_label_...``, an object.
    """
    event = text.event
    if p < text.end and text.data[p] == _OPEN_OBJECT:  # `_label_...` takes an object, as `_label` does
        return read_label(text, p, lines, frames)
    value, after, known = read_entry(text, p, ProblemCode.JSON_UNEXPECTED)
    if not known:
        return after
    event.label_start, event.label_end = p, after
    if text.rules.simple:
        _set_simple(text, name, value, lines[event.line])
    else:
        _set_cost(text, name, value)
    return after


@kernel
def read_label(text: JsonText, p: int, lines: Records, frames: Records) -> int:
    """Open the label object at `p`, or read a label that is a number, and return the position after it."""
    rules, event = text.rules, text.event
    if p < text.end and text.data[p] == _OPEN_OBJECT:
        if rules.slots or frames[event.depth - 1].kind == LABEL:  # VW no longer treats such a line as a slot
            fail(text, ProblemCode.JSON_UNEXPECTED, p, p + 1)
        line = lines[event.line]
        line.label = UNLABELLED
        line.first_cost = line.last_cost = -1
        line.shared &= not rules.quirks.early_labels
        open_frame(text, LABEL, p, frames)
        event.label_start, event.label_end = p, p + 1
        return p + 1
    value, after, kind = read_number_or_null(text, p, ProblemCode.JSON_UNEXPECTED)
    if kind == MALFORMED:
        return after
    event.label_start, event.label_end = p, after
    if not rules.simple:
        fail(text, ProblemCode.JSON_UNEXPECTED, p, text.end)
        return text.end
    lines[event.line].label = value
    if not rules.quirks.any_number and not abs(value) < UNLABELLED:
        drop_label(text, ProblemCode.LABEL_NOT_FINITE, p, after)
    return after


@kernel
def _is_weighted(line: Records) -> bool:
    """Return whether native mode accepts the weight and the initial prediction of a line."""
    return bool(_ZERO <= line.weight < UNLABELLED and abs(line.initial) < UNLABELLED)


@kernel
def _is_missing(text: JsonText, line: Records, quiet: Records) -> bool:
    """Return whether a label in the syntax of VW text contains NaN, or an infinite label."""
    if text.rules.quirks.any_number:
        return False
    if quiet.problems == 0:
        return not abs(line.label) <= UNLABELLED
    for i in range(quiet.problems):
        value, _ = parse_vw_float(text.data, quiet.problem[i, 3], quiet.problem[i, 4])
        if quiet.problem[i, 0] != ProblemCode.VW_FLOAT or not math.isnan(value):
            return False
    return not quiet.fatal


@kernel
def take_label(text: JsonText, string: String, stage: Stage, reader: Reader) -> None:
    """Read `string` as the label of the current line, in the syntax of VW text."""
    event, quiet = text.event, stage.quiet[0]
    start, after = string.at, string.after
    line, known = stage.lines[event.line], text.state.costs
    shared = bool(line.shared)
    line.shared = False
    event.label_start, event.label_end = start, after
    quiet.costs, quiet.problems, quiet.fatal = known, 0, False
    text_of_label = Text(text.data, text.marks, string.end, text.rules, quiet)
    read_vw_label(text_of_label, string.start, string.end, line, reader.costs)
    if _is_missing(text, line, quiet):
        line.shared |= shared
        code = ProblemCode.LABEL_NOT_FINITE if text.rules.simple else ProblemCode.COST_NOT_FINITE
        drop_label(text, code, start, after)
        return
    good = quiet.problems == 0 and not line.shared
    good &= text.rules.quirks.any_number or (abs(line.label) <= UNLABELLED and _is_weighted(line))
    line.shared |= shared
    if not good:
        fail(text, ProblemCode.JSON_LABEL, start, after)
        return
    for i in range(known, quiet.costs):
        cost = reader.costs[i]
        if text.rules.quirks.early_labels:
            add_staged_cost(
                event, stage.lines, stage.costs, event.line, cost.action, cost.cost, cost.probability
            )
            continue
        if event.found:
            fail(text, ProblemCode.SECOND_COST, start, after)
        event.found, event.has_probability = True, cost.probability != _ZERO
        event.action, event.cost, event.probability = cost.action, cost.cost, cost.probability
        _note(event, event.cost_at)
        _note(event, event.probability_at)
        if event.index < 0:
            _note(event, event.index_at)
        _claim(text)


@kernel
def read_label_index(text: JsonText, p: int) -> int:
    """Read the index of the labelled action, counted from 0, and return the position after it."""
    event = text.event
    value, after, kind = read_number_or_null(text, p, ProblemCode.JSON_UNEXPECTED)
    if kind == MALFORMED:
        return after
    if kind != INTEGER:
        fail(text, ProblemCode.JSON_LABEL_INDEX, p, after)
        return text.end
    # VW reads an int; larger values become negative, which means no index
    if value < 2.0**31 or not text.rules.quirks.early_labels:
        event.index = np.int64(value)
    event.index_at[0], event.index_at[1] = p, after
    return after


@kernel
def finish_label(event: Records, lines: Records, costs: Records) -> None:
    """Assign the label to the current line, like VW at the end of a label object."""
    if event.found:
        add_staged_cost(event, lines, costs, event.line, event.action, event.cost, event.probability)
    forget_label(event)


@kernel
def finish_context(text: JsonText, stage: Stage) -> None:
    """Assign the label to its line, by its index if it has one, at the end of the context, like VW."""
    event = text.event
    if event.index + 1 >= event.lines:
        fail(text, ProblemCode.JSON_LABEL_INDEX, event.index_at[0], event.index_at[1])
        return
    if text.rules.slots:
        settle_single_slot(stage, True)
        return
    if event.index >= 0:
        event.line = event.index + 1
        event.index = -1
    finish_label(event, stage.lines, stage.costs)


@kernel
def _label_problem(text: JsonText) -> ProblemCode:
    """Return the code of the label's problem in native mode, or `FINE`."""
    event = text.event
    if not (math.isfinite(event.cost)):
        return ProblemCode.COST_NOT_FINITE
    if event.has_probability:
        if not math.isfinite(event.probability):
            return ProblemCode.PROBABILITY_NOT_FINITE
        return probability_problem(event.probability)
    return ProblemCode.TAKEN_AS_UNIFORM if text.rules.uniform else ProblemCode.NO_PROBABILITY


@kernel
def give_label(text: JsonText, stage: Stage) -> None:
    """Assign the label to its line in native mode, for a label anywhere in the event.

    An event without slots becomes a single slot if slots are expected. A label that is not finite is not
    used.
    """
    event = text.event
    start, end = event.label_start, event.label_end
    if event.unused:
        stage.lines[0].label, stage.lines[0].weight = UNLABELLED, np.float32(1)
        return
    if not event.found or event.cost == UNLABELLED:
        return
    code = _label_problem(text)
    of_cost = code in (ProblemCode.COST_NOT_FINITE, ProblemCode.NO_PROBABILITY, ProblemCode.TAKEN_AS_UNIFORM)
    position = event.cost_at if of_cost else event.probability_at
    if code == ProblemCode.TAKEN_AS_UNIFORM:
        report(text.state, code, position[0], position[1], False)
    elif is_unused(code):
        drop_label(text, code, position[0], position[1])
        if text.rules.slots:
            settle_single_slot(stage, False)
        return
    elif code != ProblemCode.FINE:
        fail(text, code, position[0], position[1])
    at = event.index + 1
    if not text.rules.multiline:
        at = 0
        if event.action == 0:
            fail(text, ProblemCode.NO_ACTION_NAME, start, end)
    elif event.index < 0:
        at = np.int64(event.action)
        if at == 0:
            fail(text, ProblemCode.JSON_NO_LABEL_INDEX, start, end)
    if at >= event.lines:
        fail(text, ProblemCode.JSON_LABEL_INDEX, event.index_at[0], event.index_at[1])
    if event.bad:
        return
    if text.rules.slots:
        event.action, event.has_probability = np.uint32(at), True
        settle_single_slot(stage, True)
        return
    add_staged_cost(event, stage.lines, stage.costs, at, event.action, event.cost, event.probability)
