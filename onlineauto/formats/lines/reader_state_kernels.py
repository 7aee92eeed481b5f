"""What the reading kernels write: the records of the events, names, problems."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from onlineauto.formats.lines.problem_code_kernels import Code
from onlineauto.jit import inline_kernel, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.features.records import Records
    from onlineauto.formats.quirks import ReadingQuirks

__all__ = ["NAME", "STATE", "Reader", "Rules", "is_blank", "report"]

KEPT_PROBLEMS = 128

STATE = np.dtype(
    [
        # How many records there are.
        ("events", np.int64),
        ("lines", np.int64),
        ("spans", np.int64),
        ("features", np.int64),
        ("costs", np.int64),
        ("tag_bytes", np.int64),
        ("names", np.int64),
        ("problems", np.int64),
        # The line being read.
        ("line_number", np.int64),
        ("line_begin", np.int64),  # its first byte in the buffer
        # The event being read: how many records there were before it.
        ("first_line", np.int64),
        ("first_span", np.int64),
        ("first_feature", np.int64),
        ("first_cost", np.int64),
        ("first_tag_byte", np.int64),
        ("skipped", np.bool_),  # one of its lines is bad
        ("labelled", np.bool_),  # one of its lines has a label
        ("fatal", np.bool_),  # reading has to stop
        ("default_name", np.int32),  # number of the namespace without a name, -1 before it is met
        # What is wrong: how often, by code; and of the first ones code, line, column, and the bounds of the
        # offending text in the buffer.
        ("problem_count", np.int64, (len(Code),)),
        ("problem", np.int64, (KEPT_PROBLEMS, 5)),
    ],
    align=True,
)
"""Counters. A record, as to pass one costs nothing, but two atomic operations for every array of a tuple."""
NAME = np.dtype(
    [
        ("key", np.uint64),  # 64-bit hash of the name, 0 where free
        ("start", np.int64),  # where the name is in the buffer in which it was met first
        ("end", np.int64),
        ("number", np.int32),  # -1 where free
        ("hash", np.uint32),  # seed of the features' hashes
    ],
    align=True,
)
"""Entry of the hash table of names."""


class Rules(NamedTuple):
    """How to read."""

    simple: bool
    slots: bool  # events have slots
    multiline: bool
    quirks: ReadingQuirks
    hash_all: bool
    strict: bool
    uniform: bool  # a label without a probability was logged uniformly
    hash_seed: np.uint32
    default_hash: np.uint32


class Reader(NamedTuple):
    """All that reading changes, and the text's bitmaps; there is room for all that the text can need."""

    state: Records  # [1]
    events: NDArray[np.int64]  # first line
    lines: Records
    spans: Records
    features: Records
    costs: Records
    tag: NDArray[np.uint8]
    names: Records  # at most half full
    marks: NDArray[np.uint8]  # bitmaps, see `mark_kernels`
    breaks: NDArray[np.uint8]


@inline_kernel
def is_blank(byte: int) -> bool:
    """Whether a byte is a blank or a tab."""
    return byte == 32 or byte == 9


@kernel
def report(state: Records, code: Code, start: int, end: int, fatal: bool) -> None:
    """Record a problem with ``start <= i < end`` of the buffer; nothing more after a fatal one."""
    if state.fatal:
        return
    state.fatal = fatal
    state.problem_count[code.value] += 1
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
