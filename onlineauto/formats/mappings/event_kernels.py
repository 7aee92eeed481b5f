"""Read an event that Python's `marshal` has encoded into records, if all of its values are ordinary.

``marshal.dumps(value, 2)`` accepts only built-in types, so that no date or array becomes a name unnoticed.
Each value begins with a byte for its type. Numbers are little-endian. Texts, lists and tuples begin with
their size; a dictionary ends with a terminating byte. `named_event` reads every other valid event, and
reports the position of invalid values.

Source: ``w_object`` of ``Python/marshal.c``; version 2 of the format has been the same since Python 2.5.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from onlineauto.features.hash_kernels import hash_name
from onlineauto.features.vector_kernels import settle_zeros
from onlineauto.formats.lines.feature_kernels import close_span
from onlineauto.formats.lines.line_kernels import begin_records, close_records, open_line
from onlineauto.formats.lines.reader_state_kernels import FINE, NAMES, Text, measure, name_slot
from onlineauto.jit import F32, entry_kernel, inline_kernel, kernel
from onlineauto.jit.words import load1, load4, load8

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.features.records import Records
    from onlineauto.formats.lines.reader_state_kernels import Reader

_EQUALS, _BLANK = 61, 32
_ZERO, _ONE = np.float32(0), np.float32(1)
_FIRST = 5
"""Position of the first value of the tuple."""

DICT, END, LIST, TUPLE, NONE, MISSING = b"{0[(N."
"""First bytes of values; `MISSING` is that of Ellipsis, which encodes a missing key."""
_TRUE, _FALSE, _INT, _LONG, _FLOAT, _TEXT, _INTERNED = b"TFilgut"
_SURROGATE = 0xED, 0xA0
_MOST_DIGITS = 4
LARGE = (2 - 2.0**-24) * 2.0**127
"""Numbers from this one on are rounded to infinity in float32."""


@inline_kernel
def count_at(data: NDArray[np.uint8], p: int) -> int:
    """Return the size of the value at `p`: its number of bytes, values or digits."""
    return np.int64(np.int32(load4(data, p + 1)))  # type: ignore[return-value]


@kernel
def text_at(data: NDArray[np.uint8], p: int) -> tuple[int, int]:
    """Return the bounds of the text at `p`; -1 and -1 if there is no text or it is not UTF-8."""
    if load1(data, p) != _TEXT and load1(data, p) != _INTERNED:
        return -1, -1
    start = p + 5
    stop = start + count_at(data, p)
    for i in range(start, stop):
        if data[i] == _SURROGATE[0] and data[i + 1] >= _SURROGATE[1]:
            return -1, -1
    return start, stop


@inline_kernel
def truth_at(data: NDArray[np.uint8], p: int) -> int:
    """Return 1 for True at `p`, 0 for False, and -1 for any other value."""
    byte = load1(data, p)
    return 1 if byte == _TRUE else 0 if byte == _FALSE else -1


@kernel
def number_at(data: NDArray[np.uint8], p: int) -> tuple[float, int]:
    """Return the float32 or NaN at `p` and the position after it, or -1 for any other value."""
    byte, number, after = load1(data, p), 0.0, -1
    if byte == _INT:
        number, after = float(np.int32(load4(data, p + 1))), p + 5
    elif byte == _FLOAT:
        number, after = np.int64(load8(data, p + 1)).view(np.float64), p + 9
    elif byte == _LONG:
        count = count_at(data, p)
        n = abs(count)
        whole: Any = 0
        if n <= _MOST_DIGITS:
            for i in range(n):
                position = p + 5 + 2 * i
                whole |= (np.int64(data[position]) | np.int64(data[position + 1]) << 8) << (15 * i)
            number, after = float(whole if count > 0 else -whole), p + 5 + 2 * n
    if math.isnan(number) or abs(number) < LARGE:
        return number, after
    return number, -1


@kernel
def whole_at(data: NDArray[np.uint8], p: int) -> tuple[int, int]:
    """Return the whole number at `p`, -1 if missing, and the position after it, -1 for any other value."""
    byte = load1(data, p)
    if byte in (MISSING, NONE):
        return -1, p + 1
    number = count_at(data, p)
    return number, p + 5 if byte == _INT and number >= 0 else -1


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
def _read_list(
    text: Text, p: int, names: Records, features: Records, namespace: tuple[int, int]
) -> tuple[int, int, int]:
    """Read the list of names and numbers at `p`, like `_read_features`; a number's name is its index."""
    data, n = text.data, text.state.features
    left = count_at(data, p)
    p += 5
    if left == 0:
        return -1, n, p
    row = names[name_slot(data, text.rules, text.state, namespace[0], namespace[1], names)]
    seed, has_zeros = row.hash, False
    for index in range(left):
        hash_ = np.uint32(seed + np.uint32(index))
        number, after = number_at(data, p)
        value = np.float32(0.0 if math.isnan(number) else number)
        if after < 0:
            name = text_at(data, p)
            if name[0] >= 0:
                hash_ = hash_name(data, name[0], name[1], seed, text.rules.hash_all)
                value, after = _ONE, name[1]
            else:
                _, value, after = _read_value(text, namespace, p)
        if after < 0:
            return -1, n, -1
        has_zeros |= value == _ZERO
        p = after
        feature = features[np.uint64(n)]
        feature.hash = hash_
        feature.value = value
        n += 1
    return row.number, settle_zeros(features, text.state.features, n) if has_zeros else n, p


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
    if kind in (LIST, TUPLE):
        return _read_list(text, p, names, features, namespace)
    if kind == DICT:
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
        else:
            name, value, p = _read_value(text, name, p)
            left -= 1
        if p < 0:
            return -1, n, -1
        if value != _ZERO:
            if number < 0:
                row = names[name_slot(text.data, text.rules, text.state, namespace[0], namespace[1], names)]
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
    """Return the float32 at `p`, the position after it or -1, and if there is one; None if `none_too`."""
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
def read_outcome(data: NDArray[np.uint8], end: int, reader: Reader, sizes: NDArray[np.int64]) -> None:
    """Read the encoded outcome ``data[:end]`` of the event with actions that was read last, without one."""
    state, lines = reader.state[0], reader.lines
    text = Text(data, reader.marks, end, reader.rules[0], state)
    n_actions = state.lines - 1 if lines[0].shared else state.lines
    sizes[FINE] = _read_outcome(text, 0, n_actions, reader) >= 0
    lines[state.lines].cost = state.costs


@entry_kernel
def read_event(data: NDArray[np.uint8], end: int, reader: Reader, sizes: NDArray[np.int64]) -> None:
    """Read the encoded event ``data[:end]`` into records that are large enough for it.

    As much free space follows the event in `data`. `sizes` receives its sizes, with `FINE` 0 if any value is
    unusual.
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
