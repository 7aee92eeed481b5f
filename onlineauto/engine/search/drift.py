"""Drift: detect that the champion predicts worse than before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from onlineauto.estimators.adaptive_window import make_window, window_of
from onlineauto.estimators.adaptive_window_kernels import WIDTH, clear, rises
from onlineauto.jit import prepare

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from onlineauto.state.stored import Stored

LOOK = 256
"""Number of the champion's losses between two checks."""

_LEAST = 64
"""Number of observations before the first alarm: a model improves most at the start."""
_CLIP_FACTOR = 2.0
"""Losses are clipped to this multiple of the largest one among the first `_LEAST` observations."""


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
            self._most = max(self._most, _CLIP_FACTOR * float(loss))
        rest = means[n_first:]
        self._n += len(rest)
        return len(rest) > 0 and bool(rises(self._window, np.minimum(rest / self._most, 1.0)))

    def restart(self) -> None:
        """Forget all losses so far."""
        clear(self._window)
        self._n, self._most = 0, 0.0

    def state(self) -> dict[str, Any]:
        """Return the state, for `restore`."""
        window = self._window._asdict() if self._window.whole[WIDTH] else None
        return {"observations": self._n, "most": self._most, "window": window}

    def restore(self, stored: Stored) -> None:
        """Restore a stored state.

        Older models have the window in river's own format, which is not read. The window is then empty.
        """
        self._n, self._most = stored["observations"].count(), stored["most"].number()
        if self._most < 0:
            raise stored["most"].fail("a loss, which is not negative")
        window = stored["window"]
        begins = window.is_none() or isinstance(window.convert(object), bytes)
        self._window = make_window() if begins else window_of(window.convert(dict[str, Any]))
