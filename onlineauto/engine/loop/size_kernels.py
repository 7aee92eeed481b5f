"""The number of features of the products of an event, computed before the products."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np

from onlineauto.engine.event.event_kernels import open_event
from onlineauto.engine.event.example_kernels import open_action
from onlineauto.engine.event.pass_kernels import run_on
from onlineauto.features.group_kernels import forget
from onlineauto.features.product_kernels import count_all
from onlineauto.jit import entry_kernel, inline_kernel, short_loop

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.engine.records.loop import Context
    from onlineauto.features.records import Layout, Stream


@inline_kernel
def _count_line(layout: Layout, stream: Stream, line: int, sizes: NDArray[np.int64], most: int) -> None:
    """Raise row `most` of the sizes to at least the number of features of each namespace on a line."""
    for span in range(stream.lines[line].start, stream.lines[line + 1].start):
        short_loop()
        key = layout.key[stream.spans[span].namespace]
        sizes[0, key] += stream.spans[span + 1].start - stream.spans[span].start
        sizes[most, key] = max(sizes[most, key], sizes[0, key])
    for span in range(stream.lines[line].start, stream.lines[line + 1].start):
        short_loop()
        sizes[0, layout.key[stream.spans[span].namespace]] = 0


@entry_kernel
def largest_namespaces(layout: Layout, stream: Stream, sizes: NDArray[np.int64]) -> None:
    """Find the maximum features of each namespace on shared lines, and on others: `sizes`[1] and [2]."""
    for line in range(stream.events[0], stream.events[len(stream.events) - 1]):
        short_loop()
        _count_line(layout, stream, line, sizes, 1 if stream.lines[line].shared else 2)


class EventSize(IntEnum):
    """Columns of the numbers of features of an event."""

    TOGETHER = 0  # of the products of all its actions together
    LARGEST = 1  # of the products of its largest action
    SCREENED = 2  # maximum over its actions of features of screened products
    OWN = 3  # maximum over its actions of own features


@entry_kernel
def count_products(
    context: Context, stream: Stream, counts: NDArray[np.float64], begin: int, sizes: NDArray[np.float64]
) -> None:
    """Count the features of the products of each event, or slot, from `begin` on, before any is computed.

    `counts` has a row of zeros for each. `sizes` is empty, or receives the features of each product.
    """
    run = run_on(context, stream)
    nothing = sizes[:0]
    for i in range(len(counts)):
        short_loop()
        actions, _ = open_event(run, begin + i)
        for action in range(actions.n):
            short_loop()
            groups, _, _ = open_action(run, actions, action)
            n = count_all(run.interactions, run.scratch, sizes)
            counts[i, EventSize.TOGETHER] += n
            again = count_all(run.again, run.scratch, nothing)
            counts[i, EventSize.LARGEST] = max(counts[i, EventSize.LARGEST], n, again)
            screened = count_all(run.screen.interactions, run.scratch, nothing)
            counts[i, EventSize.SCREENED] = max(counts[i, EventSize.SCREENED], screened)
            own = 0
            for group in range(groups):
                short_loop()
                own += run.scratch.groups[group].end - run.scratch.groups[group].start
            counts[i, EventSize.OWN] = max(counts[i, EventSize.OWN], np.float64(own))
            forget(run.scratch, actions.n_shared, groups)
        forget(run.scratch, 0, actions.n_shared)
