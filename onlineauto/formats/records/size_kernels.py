"""Measure an event that lies in the records of its reader."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onlineauto.jit import entry_kernel, inline_kernel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from onlineauto.formats.records.reader_state_kernels import Reader

FINE, NAMES, LINES, SPANS, FEATURES, WIDEST, SIZES = range(7)
"""What is said of an event: whether it is a usual one, the number of names so far, and its own sizes.

`WIDEST` is the number of features of the largest action, the shared line's included.
"""


@entry_kernel
@inline_kernel
def measure(reader: Reader, sizes: NDArray[np.int64]) -> None:
    """Fill in the sizes (int64[SIZES]) of what was read last.

    It is a usual event if it is one event with at most one cost, and there was no problem with it.
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
