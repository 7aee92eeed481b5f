"""Whether the records of a block point to what there is, which every kernel takes for granted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onlineauto.jit import entry_kernel, short_loop

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from onlineauto.features.records import Records


@entry_kernel
def is_within(
    events: NDArray[np.int64],
    lines: Records,
    spans: Records,
    n_costs: int,
    n_tag: int,
    n_features: int,
    n_names: int,
) -> bool:
    """Whether all offsets ascend, and none is beyond the end of what it points to; nor any name's number."""
    before = 0
    for i in range(len(events)):
        short_loop()
        if events[i] < before:
            return False
        before = events[i]
    good = len(events) > 0 and before <= len(lines) - 1
    start = cost = tag = 0
    for i in range(len(lines)):
        short_loop()
        good = good and lines[i].start >= start and lines[i].cost >= cost and lines[i].tag >= tag
        start, cost, tag = lines[i].start, lines[i].cost, lines[i].tag
    good = good and start <= len(spans) - 1 and cost <= n_costs and tag <= n_tag
    start = 0
    for i in range(len(spans)):
        short_loop()
        good = good and spans[i].start >= start
        good = good and (i == len(spans) - 1 or 0 <= spans[i].namespace < n_names)
        start = spans[i].start
    return bool(good and start <= n_features)
