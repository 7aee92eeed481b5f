"""Read an event that `marshal` has encoded into records, if all of its values are ordinary.

Any other event is left to `onlineauto.formats.mappings.named_event`, which reads every valid event and
reports the position of invalid values.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from onlineauto.features.hash_kernels import hash_name
from onlineauto.formats.lines.feature_kernels import close_span
from onlineauto.formats.lines.line_kernels import begin_records, close_records, open_line
from onlineauto.formats.mappings.token_kernels import (
    DICT,
    END,
    LIST,
    MISSING,
    NONE,
    TUPLE,
    count_at,
    number_at,
    text_at,
    truth_at,
    whole_at,
)
from onlineauto.formats.records.namespace_table_kernels import name_slot
from onlineauto.formats.records.reader_state_kernels import FINE, NAMES, Text, measure
from onlineauto.jit import F32, entry_kernel, inline_kernel, kernel
from onlineauto.jit.words import load1

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.features.records import Records
    from onlineauto.formats.records.reader_state_kernels import Reader

_EQUALS, _BLANK = 61, 32
_ZERO, _ONE = np.float32(0), np.float32(1)
_FIRST = 5
"""Position of the first value of the tuple."""


@kernel
def _join(text: Text, key: tuple[int, int], value: tuple[int, int]) -> tuple[int, int]:
    """Write ``key=value`` into the free space after the event; return the bounds of this text."""
    data, p = text.data, text.end
    for i in range(key[0], key[1]):
        data[p] = data[i]
        p += 1
    data[p] = _EQUALS
    p += 1
    for i in range(value[0], value[1]):
        data[p] = data[i]
        p += 1
    return text.end, p


@kernel
def _read_value(text: Text, key: tuple[int, int], p: int) -> tuple[tuple[int, int], F32, int]:
    """Read a value at `p` that is not a list or a dictionary.

    Returns the bounds of the feature's name, its value (0 for no feature), and the position after it, or -1
    if the value is unusual.
    """
    data = text.data
    string = text_at(data, p)
    if string[0] >= 0:
        return _join(text, key, string), _ONE, string[1]
    truth = truth_at(data, p)
    if truth >= 0:
        return key, np.float32(truth), p + 1
    if load1(data, p) == NONE:
        return key, _ZERO, p + 1
    number, after = number_at(data, p)
    return key, _ZERO if math.isnan(number) else np.float32(number), after


@kernel
def _read_features(
    text: Text, p: int, names: Records, features: Records, namespace: tuple[int, int]
) -> tuple[int, int, int]:
    """Read the features at `p` of the namespace whose name has these bounds.

    Returns the number of the namespace, the new number of all features, and the position after them, or -1 if
    `named_event` has to read them.
    """
    data = text.data
    kind, left, n = load1(data, p), 1, text.state.features
    number, seed = -1, np.uint32(0)
    listed = kind in (LIST, TUPLE)
    if listed:
        left = count_at(data, p)
        p += 5
    elif kind == DICT:
        p += 1
    while left > 0:
        name, value = namespace, _ONE
        if kind == DICT:
            if load1(data, p) == END:
                p += 1
                break
            name = text_at(data, p)
            if name[0] < 0:
                return -1, n, -1
            name, value, p = _read_value(text, name, name[1])
        elif listed:
            name = text_at(data, p)
            p = name[1]
            left -= 1
        else:
            name, value, p = _read_value(text, name, p)
            left -= 1
        if p < 0:
            return -1, n, -1
        if value != _ZERO:
            if number < 0:
                row = names[name_slot(text, namespace[0], namespace[1], names)]
                number, seed = row.number, row.hash
            feature = features[np.uint64(n)]
            feature.hash = hash_name(data, name[0], name[1], seed, text.rules.hash_all)
            feature.value = value
            n += 1
    return number, n, p


@kernel
def _read_line(text: Text, p: int, reader: Reader) -> int:
    """Read the namespaces of the dictionary at `p` as a line; return the position after it, or -1."""
    data, state, names = text.data, text.state, reader.names
    open_line(state, reader.lines, 0)
    if load1(data, p) != DICT:
        return -1
    p += 1
    while load1(data, p) != END:
        name = text_at(data, p)
        nameless = name[1] - name[0] == 1 and data[name[0]] == _BLANK
        if name[0] >= name[1] or nameless or 2 * state.names + 2 > len(names):
            return -1
        namespace, n, p = _read_features(text, name[1], names, reader.features, name)
        if p < 0:
            return -1
        close_span(state, reader.spans, namespace, n)
    state.lines += 1
    return p + 1


@kernel
def _read_lines(text: Text, p: int, reader: Reader) -> tuple[int, int]:
    """Read context and actions at `p`.

    Returns the number of actions, -1 for an event of a single line, and the position after them, or -1.
    """
    data, state = text.data, text.state
    kind = load1(data, p)
    nothing = kind == NONE or (kind == DICT and load1(data, p + 1) == END)
    if kind == MISSING or nothing:
        p += 2 if kind == DICT else 1
    else:
        p = _read_line(text, p, reader)
        if p < 0:
            return 0, -1
    actions = load1(data, p)
    if actions == MISSING:
        if kind == NONE:
            return 0, -1
        if state.lines == 0:
            open_line(state, reader.lines, 0)
            state.lines = 1
        return -1, p + 1
    n = count_at(data, p) if actions in (LIST, TUPLE) else 0
    if n == 0:
        return 0, -1
    reader.lines[0].shared = state.lines == 1
    p += 5
    for _ in range(n):
        p = _read_line(text, p, reader)
        if p < 0:
            return 0, -1
    return n, p


@inline_kernel
def _read_optional_number(text: Text, p: int, none_too: bool) -> tuple[float, int, bool]:
    """Return the number at `p`, as a float32, the position after it or -1, and whether there is a number.

    With `none_too`, None is accepted and means no number.
    """
    byte = load1(text.data, p)
    if byte == MISSING or (none_too and byte == NONE):
        return 0.0, p + 1, False
    number, after = number_at(text.data, p)
    return float(np.float32(number)), -1 if math.isnan(number) else after, True


@kernel
def _read_outcome(text: Text, p: int, n_actions: int, reader: Reader) -> int:
    """Read the chosen action, its cost and its probability; return the position after them, or -1."""
    state, costs = text.state, reader.costs
    chosen, p = whole_at(text.data, p)
    if p < 0:
        return -1
    action, p = whole_at(text.data, p)
    if p < 0:
        return -1
    cost, p, has_cost = _read_optional_number(text, p, True)
    if p < 0:
        return -1
    probability, p, has_probability = _read_optional_number(text, p, True)
    multiline = n_actions > 0
    which, other = (chosen, action) if multiline else (action, chosen)
    if p < 0 or has_cost != has_probability or other >= 0 or (multiline and which >= n_actions):
        return -1
    if has_cost:
        if which < 0 or not 0 < probability <= 1:
            return -1
        costs[0].action = 0 if multiline else which
        costs[0].cost = cost
        costs[0].probability = probability
        state.costs = 1
        if multiline:
            for line in range(state.lines - n_actions + which + 1, state.lines):
                reader.lines[line].cost = 1
    return p


@kernel
def _read_label(text: Text, p: int, multiline: bool, lines: Records) -> int:
    """Read label, weight and initial prediction; return the position after them, or -1."""
    label, p, labelled = _read_optional_number(text, p, False)
    if p < 0:
        return -1
    weight, p, weighed = _read_optional_number(text, p, False)
    if p < 0:
        return -1
    initial, p, begun = _read_optional_number(text, p, False)
    if p < 0 or weight < 0 or (multiline and (labelled or begun)):
        return -1
    if not multiline and not labelled and (weighed or begun):
        return -1
    if labelled:
        lines[0].label = label
        lines[0].initial = initial
    if weighed:
        for line in range(text.state.lines):
            lines[line].weight = weight
    return p


@entry_kernel
def read_event(data: NDArray[np.uint8], end: int, reader: Reader, sizes: NDArray[np.int64]) -> None:
    """Read the event ``data[:end]`` into records.

    Parameters
    ----------
    data : uint8[]
        The event as encoded by `onlineauto.formats.mappings.mapping_reader`, and as much free space after it.
    end : int
        End of the event.
    reader : Reader
        The rules of reading, and the records to fill, large enough for the event.
    sizes : int64[SIZES]
        Receives the sizes of the event, with `FINE` 0 if any value is unusual.
    """
    sizes[FINE] = 0
    state, lines, spans = reader.state[0], reader.lines, reader.spans
    begin_records(state)
    state.line_number = 1
    text = Text(data, reader.marks, end, reader.rules[0], state)
    n_actions, p = _read_lines(text, _FIRST, reader)
    if p >= 0:
        p = _read_outcome(text, p, n_actions, reader)
    if p >= 0:
        p = _read_label(text, p, n_actions > 0, lines)
    sizes[NAMES] = state.names
    if p < 0:
        return
    reader.events[0] = 0
    state.events = 1
    close_records(state, lines, spans, reader.events)
    measure(reader, sizes)
