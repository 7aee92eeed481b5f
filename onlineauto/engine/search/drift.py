"""Drift: detect that the champion predicts worse than before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from onlineauto.automl.search import REVIEW
from onlineauto.engine.records.search import GROUP
from onlineauto.estimators.adaptive_window_kernels import (
    LARGEST_ROW,
    ROWS,
    SPREAD,
    WIDTH,
    Window,
    clear,
)
from onlineauto.estimators.drift_kernels import DriftState, add_losses
from onlineauto.jit import prepare
from onlineauto.state.schema import copy, counts, declare, field, make, read, save

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from onlineauto.state.stored import Stored

LOOK = 256
"""Number of the champion's losses between two checks."""

_SIZES = 2 ** np.arange(ROWS)


declare(
    Window,
    counts=field(ROWS, read=counts(LARGEST_ROW)),
    sums=field(ROWS, LARGEST_ROW + 1),
    spreads=field(ROWS, LARGEST_ROW + 1),
    whole=field(SPREAD + 1),
)


def make_window() -> Window:
    """Make an empty window, see `onlineauto.estimators.adaptive_window_kernels`."""
    return make(Window)


def stored_window(stored: Stored) -> Window:
    """Return a stored window."""
    window = make(Window)
    read(stored, window)
    _check(window)
    return window


def _check(window: Window) -> None:
    """Reject contents that would make kernels exceed the arrays or compute invalid numbers."""
    width = int((window.counts * _SIZES).sum())
    if window.whole[WIDTH] != width:
        raise ValueError(f"the buckets of a window have {width} numbers, not {window.whole[WIDTH]:g}")
    if window.counts[-1]:
        raise ValueError(f"no stream fills a window of {width} numbers")
    if not all((np.abs(array) <= 2 * width + 1).all() for array in window[1:]):
        raise ValueError("a sum of a window is larger than its number of numbers allows")


def make_drift() -> DriftState:
    """Make the detector of a search that has learnt nothing."""
    numbers, losses = np.zeros(1), np.zeros(REVIEW // GROUP + 2)
    return DriftState(make_window(), np.zeros(1, np.int64), numbers, np.zeros(1, bool), losses)


class Drift:
    """An adaptive window over the champion's progressive loss. Only a rise counts as drift.

    The loop adds losses to the same `arrays`.

    Examples
    --------
    >>> drift = Drift(make_drift())
    >>> drift.alarms([0.1] * 300), drift.alarms([0.4] * 30)
    (False, True)
    """

    def __init__(self, arrays: DriftState) -> None:
        self._arrays = arrays

    def prepare(self) -> None:
        """Compile or load the machine code of the window."""
        prepare(add_losses, self._arrays, np.zeros(0), 0)
        prepare(clear, self._arrays.window)

    def alarms(self, losses: ArrayLike) -> bool:
        """Add mean losses, in order; return whether the loss has risen."""
        means = np.array(losses, np.float64)
        return bool(add_losses(self._arrays, means, len(means)))

    def take_found(self) -> bool:
        """Return whether the loop has found a rise since the last call."""
        found, self._arrays.found[0] = bool(self._arrays.found[0]), False
        return found

    def restart(self) -> None:
        """Forget all losses so far."""
        clear(self._arrays.window)
        self._arrays.observed[0], self._arrays.most[0], self._arrays.found[0] = 0, 0.0, False

    def state(self) -> dict[str, Any]:
        """Return the state, for `restore`."""
        window, observed, most, _, _ = self._arrays
        stored = save(window) if window.whole[WIDTH] else None
        return {"observations": int(observed[0]), "most": float(most[0]), "window": stored}

    def restore(self, stored: Stored) -> None:
        """Restore a stored state."""
        most, window = stored["most"].number(), stored["window"]
        if most < 0:
            raise stored["most"].fail("a loss, which is not negative")
        self._arrays.observed[0], self._arrays.most[0] = stored["observations"].count(), most
        copy(make_window() if window.is_none() else stored_window(window), self._arrays.window)
