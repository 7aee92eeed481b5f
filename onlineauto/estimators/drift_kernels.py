"""Drift: a rise of the mean of losses, found by an adaptive window over losses that are clipped."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from onlineauto.estimators.adaptive_window_kernels import rises
from onlineauto.jit import entry_kernel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from onlineauto.estimators.adaptive_window_kernels import Window

_FIRST, _LEAST = 32, 64
"""Number of observations whose losses are large, and before the first alarm: models improve most at first."""
_CLIP_FACTOR, _CLIP_FACTOR_OF_FIRST = 3.5, 0.1
"""Losses are clipped to this multiple of the mean of the observations from `_FIRST` to `_LEAST`, and of those
before. The smaller the first factor is, the sooner a small rise is found, and the later a large one."""


class DriftState(NamedTuple):
    """The drift detector of a search, see `onlineauto.engine.search.drift`."""

    window: Window
    observed: NDArray[np.int64]  # [1]: number of losses
    most: NDArray[np.float64]  # [1]: losses are clipped to this number
    found: NDArray[np.bool_]  # [1]: the loop has found a drift that the search does not know yet
    losses: NDArray[np.float64]  # the losses that the loop adds


@entry_kernel
def add_losses(drift: DriftState, losses: NDArray[np.float64], n: int) -> bool:
    """Add the first `n` losses, which are overwritten; return whether the mean has risen."""
    first = 0
    while first < n and not (drift.observed[0] >= _LEAST and drift.most[0] > 0.0):
        drift.observed[0] += 1
        factor = _CLIP_FACTOR if drift.observed[0] > _FIRST else _CLIP_FACTOR_OF_FIRST
        drift.most[0] += factor * losses[first] / _FIRST
        first += 1
    for i in range(first, n):
        drift.observed[0] += 1
        clipped = losses[i] / drift.most[0]
        losses[i] = min(clipped, 1.0)
    return rises(drift.window, losses[first:n])
