"""What the reading kernels write: columns, names, problems and counters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from onlineauto.jit import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.formats.code_kernels import Code

__all__ = [
    "Columns",
    "Names",
    "Problems",
    "Reader",
    "Rules",
    "is_blank",
    "report",
]

EVENTS, LINES, SPANS, FEATURES, COSTS, TAG_BYTES = range(6)
"""Counters of what the columns hold."""

N_NAMES, N_FRESH, DEFAULT_NUMBER = range(6, 9)
"""Namespaces known; those new since they were last collected; number of the default one, -1 before it."""

N_PROBLEMS, FATAL = range(9, 11)
"""Problems recorded; 1 once reading has to stop."""

LINE_NUMBER, LINE_BEGIN = range(11, 13)
"""1-based number of the line being read, and where it begins in the buffer."""

EVENT_LINE, EVENT_SPANS, EVENT_FEATURES, EVENT_COSTS, EVENT_TAG_BYTES = range(13, 18)
"""What the columns held when the event began."""

EVENT_SKIPPED, EVENT_LABELLED, N_COUNTERS = range(18, 21)
"""Whether the event has a bad line; whether a line of it has a label."""

_BLANK = np.zeros(256, np.bool_)
_BLANK[[9, 32]] = True


class Columns(NamedTuple):
    """Columns of a Block, as long as the text might need."""

    event_start: NDArray[np.int64]
    line_number: NDArray[np.int64]
    line_start: NDArray[np.int64]
    shared: NDArray[np.bool_]
    label: NDArray[np.float32]
    weight: NDArray[np.float32]
    initial: NDArray[np.float32]
    cost_start: NDArray[np.int64]
    cost_action: NDArray[np.uint32]
    cost: NDArray[np.float32]
    probability: NDArray[np.float32]
    tag_start: NDArray[np.int64]
    tag: NDArray[np.uint8]
    span_namespace: NDArray[np.int32]
    span_start: NDArray[np.int64]
    hash: NDArray[np.uint32]
    value: NDArray[np.float32]


class Names(NamedTuple):
    """Hash table of the namespaces met: open addressing, at most half full."""

    key: NDArray[np.uint64]  # 64-bit hash of the name, 0 where free
    number: NDArray[np.int32]
    hash: NDArray[np.uint32]  # by number: seed of the features' hashes
    fresh_start: NDArray[np.int64]  # where new names lie in the buffer; -1 is the default namespace
    fresh_end: NDArray[np.int64]


class Problems(NamedTuple):
    """What is wrong: how often, and where for the first of them."""

    count: NDArray[np.int64]  # by code
    code: NDArray[np.int64]
    line: NDArray[np.int64]
    column: NDArray[np.int64]
    start: NDArray[np.int64]  # the offending text in the buffer
    end: NDArray[np.int64]


class Rules(NamedTuple):
    """How to read."""

    simple: bool
    multiline: bool
    exact: bool
    hash_all: bool
    strict: bool
    hash_seed: np.uint32
    default_hash: np.uint32


class Reader(NamedTuple):
    """All that reading changes."""

    columns: Columns
    names: Names
    problems: Problems
    at: NDArray[np.int64]


@kernel
def is_blank(byte: int) -> Any:
    """Whether a byte is a blank or a tab."""
    return _BLANK[byte]


@kernel
def report(reader: Reader, code: Code, start: int, end: int, fatal: bool) -> None:
    """Record a problem with ``start <= i < end`` of the buffer; nothing more after a fatal one."""
    problems, at = reader.problems, reader.at
    if at[FATAL] != 0:
        return
    problems.count[code] += 1
    i = at[N_PROBLEMS]
    if i == len(problems.code) and fatal:
        i -= 1
    if i < len(problems.code):
        problems.code[i] = code
        problems.line[i] = at[LINE_NUMBER]
        problems.column[i] = start - at[LINE_BEGIN] + 1
        problems.start[i] = start
        problems.end[i] = end
        at[N_PROBLEMS] = i + 1
    if fatal:
        at[FATAL] = 1
