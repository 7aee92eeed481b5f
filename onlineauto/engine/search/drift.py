"""Drift: detect that the champion predicts worse than before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from onlineauto.estimators.adaptive_window_kernels import (
    LARGEST_ROW,
    ROWS,
    SPREAD,
    WIDTH,
    Window,
    clear,
    rises,
)
from onlineauto.jit import prepare
from onlineauto.state.schema import counts, declare, field, make, read, save

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from onlineauto.state.stored import Stored

LOOK = 256
"""Number of the champion's losses between two checks."""

_FIRST, _LEAST = 32, 64
"""Number of observations whose losses are large, and before the first alarm: models improve most at first."""
_CLIP_FACTOR, _CLIP_FACTOR_OF_FIRST = 3.5, 0.1
"""Losses are clipped to this multiple of the mean of the observations from `_FIRST` to `_LEAST`, and of those
before. The smaller the first factor is, the sooner a small rise is found, and the later a large one."""

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


class Drift:
    """An adaptive window over the champion's progressive loss. Only a rise counts as drift.

    Examples
    --------
    >>> drift = Drift()
    >>> drift.alarms([0.1] * 300), drift.alarms([0.4] * 30)
    (False, True)
    """

    def __init__(self) -> None:
        self._window = make_window()
        self._n = 0
        self._most = 0.0

    def prepare(self) -> None:
        """Compile or load the machine code of the window."""
        prepare(rises, self._window, np.zeros(0))
        prepare(clear, self._window)

    def alarms(self, losses: ArrayLike) -> bool:
        """Add mean losses, in order; return whether the loss has risen."""
        means = np.asarray(losses, np.float64)
        n_first = 0
        for loss in means:
            if self._n >= _LEAST and self._most > 0.0:
                break
            self._n += 1
            n_first += 1
            factor = _CLIP_FACTOR if self._n > _FIRST else _CLIP_FACTOR_OF_FIRST
            self._most += factor * float(loss) / _FIRST
        rest = means[n_first:]
        self._n += len(rest)
        return len(rest) > 0 and bool(rises(self._window, np.minimum(rest / self._most, 1.0)))

    def restart(self) -> None:
        """Forget all losses so far."""
        clear(self._window)
        self._n, self._most = 0, 0.0

    def state(self) -> dict[str, Any]:
        """Return the state, for `restore`."""
        window = save(self._window) if self._window.whole[WIDTH] else None
        return {"observations": self._n, "most": self._most, "window": window}

    def restore(self, stored: Stored) -> None:
        """Restore a stored state."""
        self._n, self._most = stored["observations"].count(), stored["most"].number()
        if self._most < 0:
            raise stored["most"].fail("a loss, which is not negative")
        window = stored["window"]
        self._window = make_window() if window.is_none() else stored_window(window)
