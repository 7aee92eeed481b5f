"""Drift: whether the champion predicts worse than it did."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from onlineauto.estimators.adaptive_window import make_window, window_of
from onlineauto.estimators.adaptive_window_kernels import WIDTH, clear, rises

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from onlineauto.features.stored import Stored

__all__ = ["Drift"]

_LEAST = 64
"""Observations before the first alarm, in which a model still learns the most."""
_ROOM = 2.0
"""Largest loss that is told from smaller ones, in terms of the largest among those observations."""


class Drift:
    """An adaptive window over the progressive loss of whoever is the champion; an improvement is no drift.

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

    def alarms(self, losses: ArrayLike) -> bool:
        """Take in mean losses, in order; return whether they became larger."""
        means = np.asarray(losses, np.float64)
        n_first = 0
        for loss in means:
            if self._n >= _LEAST and self._most > 0.0:
                break
            self._n += 1
            n_first += 1
            self._most = max(self._most, _ROOM * float(loss))
        rest = means[n_first:]
        self._n += len(rest)
        return len(rest) > 0 and bool(rises(self._window, np.minimum(rest / self._most, 1.0)))

    def restart(self) -> None:
        """Forget what the losses were."""
        clear(self._window)
        self._n, self._most = 0, 0.0

    def state(self) -> dict[str, Any]:
        """What `restore` takes."""
        window = self._window._asdict() if self._window.whole[WIDTH] else None
        return {"observations": self._n, "most": self._most, "window": window}

    def restore(self, stored: Stored) -> None:
        """Go on where another left off.

        Older models have the window in bytes of river's own, which nothing else can read: it begins anew.

        Raises
        ------
        ValueError
            The state is none of drift.
        """
        self._n, self._most = stored["observations"].count(), stored["most"].number()
        if self._most < 0:
            raise stored["most"].fail("a loss, which is not negative")
        window = stored["window"]
        begins = window.is_none() or isinstance(window.of(object), bytes)
        self._window = make_window() if begins else window_of(window.of(dict[str, Any]))
