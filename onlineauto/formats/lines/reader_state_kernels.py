"""State for reading any format: rules, records, problems, sizes, and a hash table of namespaces."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from onlineauto.features.hash_constants import GOLDEN
from onlineauto.features.hash_kernels import few_bytes, hash_name
from onlineauto.formats.lines.problem_code_kernels import ProblemCode
from onlineauto.formats.quirks import NO_QUIRKS, ReadingQuirks
from onlineauto.jit import entry_kernel, inline_kernel, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.features.records import Records


KEPT_PROBLEMS = 128

STATE = np.dtype(
    [
        # Numbers of records.
        ("events", np.int64),
        ("lines", np.int64),
        ("spans", np.int64),
        ("features", np.int64),
        ("costs", np.int64),
        ("tag_bytes", np.int64),
        ("names", np.int64),
        ("problems", np.int64),
        # The current line.
        ("line_number", np.int64),
        ("line_begin", np.int64),  # its first byte in the buffer
        # The current event: the numbers of records before it.
        ("first_line", np.int64),
        ("first_span", np.int64),
        ("first_feature", np.int64),
        ("first_cost", np.int64),
        ("first_tag_byte", np.int64),
        ("skipped", np.bool_),  # whether one of its lines is malformed
        ("labelled", np.bool_),  # whether one of its lines has a label
        ("fatal", np.bool_),  # whether reading must stop
        ("default_name", np.int32),  # number of the namespace without a name, -1 if unseen
        # Problems: counts by code; and for the first problems code, line, column, and the bounds of the
        # offending text in the buffer.
        ("problem_count", np.int64, (len(ProblemCode),)),
        ("problem", np.int64, (KEPT_PROBLEMS, 5)),
    ],
    align=True,
)
"""Counters of a reader.

They are one record because passing a record is free, while each array of a tuple costs two atomic operations.
"""
NAME = np.dtype(
    [
        ("key", np.uint64),  # 64-bit hash of the name, 0 if the row is free
        ("start", np.int64),  # bounds of the name in the buffer in which it was first seen
        ("end", np.int64),
        ("number", np.int32),  # -1 if the row is free
        ("hash", np.uint32),  # seed of the hashes of its features
    ],
    align=True,
)
"""Row of the hash table of names."""


class ReaderRules(NamedTuple):
    """The rules of reading text or JSON."""

    # Whether an event has actions: in text, empty lines separate events, else every line is an event.
    multiline: bool = False
    simple: bool = True  # Whether labels are numbers, not costs of actions.
    slots: bool = False  # Whether events have CCB slots.
    quirks: ReadingQuirks = NO_QUIRKS  # Oddities of VW to reproduce.
    hash_all: bool = False  # ``--hash all``: names of digits are hashed like other names.
    strict: bool = False  # ``--strict_parse``: the first malformed line is an error.
    # ``--missing_probability uniform``: a label without a probability is read as one with probability 0.
    uniform: bool = False
    hash_seed: np.uint32 = np.uint32(0)
    # Seed of the hashes in the namespace without a name; a reader computes it.
    default_hash: np.uint32 = np.uint32(0)
    # Whether JSON is a decision-service log, with the context in ``c``; else each line is a context.
    log: bool = False
    # ``--chain_hash``: JSON strings are hashed with their key's hash as the seed, not joined to the key.
    chain_hash: bool = False


RULES = np.dtype(
    [
        *((name, np.bool_) for name in ("multiline", "simple", "slots")),
        ("quirks", [(name, np.bool_) for name in ReadingQuirks._fields]),
        *((name, np.bool_) for name in ("hash_all", "strict", "uniform")),
        *((name, np.uint32) for name in ("hash_seed", "default_hash")),
        *((name, np.bool_) for name in ("log", "chain_hash")),
    ],
    align=True,
)
"""`ReaderRules` as a record, the form for kernels: passing a record is free."""


class Reader(NamedTuple):
    """The arrays to fill, large enough for the text, and the text's bitmaps."""

    rules: Records  # [1]
    state: Records  # [1]
    events: NDArray[np.int64]  # first line of each event
    lines: Records
    spans: Records
    features: Records
    costs: Records
    tag: NDArray[np.uint8]
    names: Records  # at most half full
    marks: NDArray[np.uint8]  # bitmaps, see `mark_kernels`
    breaks: NDArray[np.uint8]


class Text(NamedTuple):
    """A line of text and the rules for reading it. Most kernels only pass this record on."""

    data: NDArray[np.uint8]
    marks: NDArray[np.uint8]
    end: int  # of the line
    rules: ReaderRules  # a record with these fields
    state: Records


@inline_kernel
def is_blank(byte: int) -> bool:
    """Return whether a byte is a blank or a tab."""
    return byte == 32 or byte == 9


@kernel
def report(state: Records, code: ProblemCode, start: int, end: int, fatal: bool) -> None:
    """Record a problem of ``start <= i < end`` of the buffer, unless an earlier problem was fatal."""
    if state.fatal:
        return
    state.fatal = fatal
    state.problem_count[code] += 1
    n = state.problems
    if n == KEPT_PROBLEMS and fatal:
        n -= 1
    if n < KEPT_PROBLEMS:
        problem = state.problem
        problem[n, 0] = code
        problem[n, 1] = state.line_number
        problem[n, 2] = start - state.line_begin + 1
        problem[n, 3] = start
        problem[n, 4] = end
        state.problems = n + 1


FINE, NAMES, LINES, SPANS, FEATURES, WIDEST, SIZES = range(7)
"""Indices of the sizes of an event: whether it is ordinary, the number of names so far, and counts.

`WIDEST` is the number of features of the largest action, including the shared line's.
"""


@entry_kernel
@inline_kernel
def measure(reader: Reader, sizes: NDArray[np.int64]) -> None:
    """Fill in the sizes (int64[SIZES]) of the last event.

    The event is ordinary if it is a single event with at most one cost, and had no problems.
    """
    state, lines, spans = reader.state[0], reader.lines, reader.spans
    widest = shared = 0
    for line in range(state.lines):
        n = spans[lines[line + 1].start].start - spans[lines[line].start].start
        if line == 0 and lines[line].shared:
            shared = n
        else:
            widest = max(widest, n)
    widest += shared
    sizes[FINE] = state.events == 1 and state.costs <= 1 and state.problems == 0
    sizes[NAMES], sizes[LINES], sizes[SPANS] = state.names, state.lines, state.spans
    sizes[FEATURES], sizes[WIDEST] = state.features, widest


_GOLDEN = np.uint64(GOLDEN)
_SHIFT = np.uint64(32)
_ONE = np.uint64(1)


@inline_kernel
def _key(data: NDArray[np.uint8], start: int, end: int) -> np.uint64:
    """Return a 64-bit hash of a name's length and words of eight bytes; it is never 0."""
    key = np.uint64(end - start) * _GOLDEN
    while start < end:
        stop = min(start + 8, end)
        key = (key ^ few_bytes(data, start, stop)) * _GOLDEN
        key ^= key >> _SHIFT
        start = stop
    return key | _ONE


@inline_kernel
def _slot(names: Records, key: np.uint64) -> int:
    """Return the row of `key` in the table, or the free row for it."""
    mask = np.uint64(len(names) - 1)
    slot = (key >> _SHIFT) & mask
    while names[slot].key != 0 and names[slot].key != key:
        slot = (slot + _ONE) & mask
    return slot  # type: ignore[return-value]


@entry_kernel
def insert(old: Records, new: Records) -> None:
    """Copy a table into a larger, empty one."""
    for i in range(len(old)):
        if old[i].key != 0:
            new[_slot(new, old[i].key)] = old[i]


@inline_kernel
def name_slot(
    data: NDArray[np.uint8], rules: ReaderRules, state: Records, start: int, end: int, names: Records
) -> int:
    """Return the row of the namespace called ``data[start:end]``; a new name gets the next number."""
    key = _key(data, start, end)
    slot = _slot(names, key)
    name = names[slot]
    if name.key == 0:
        name.key = key
        name.start = start
        name.end = end
        name.hash = hash_name(data, start, end, rules.hash_seed, rules.hash_all)
        name.number = state.names
        state.names += 1
    return slot


@inline_kernel
def default_number(state: Records) -> int:
    """Return the number of the namespace that has no name."""
    if state.default_name < 0:
        state.default_name = state.names
        state.names += 1
    return np.int64(state.default_name)  # type: ignore[return-value]
