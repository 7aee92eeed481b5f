"""Drift: whether the champion predicts worse than it did."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from river.drift import ADWIN

__all__ = ["GROUP", "Drift"]

GROUP = 32
"""Events whose mean loss is one observation."""

_DELTA = 0.002
_LEAST = 64
"""Observations before the first alarm, in which a model still learns the most."""
_ROOM = 2.0
"""Largest loss that is told from smaller ones, in terms of the largest among those observations."""


class Drift:
    """River's ADWIN over the progressive loss of whoever is the champion; an improvement is no drift.

    Examples
    --------
    >>> drift = Drift()
    >>> drift.alarms([0.1] * 300), drift.alarms([0.4] * 30)
    (False, True)

    Source: Bifet & Gavaldà, *Learning from Time-Changing Data with Adaptive Windowing*, 2007.
    """

    def __init__(self) -> None:
        self._detector: ADWIN | None = None
        self._n = 0
        self._most = 0.0

    def alarms(self, losses: Iterable[float]) -> bool:
        """Take in mean losses, in order; return whether they became larger."""
        alarm = False
        for loss in losses:
            self._n += 1
            if self._n <= _LEAST or self._most == 0.0:
                self._most = max(self._most, _ROOM * loss)
                continue
            if self._detector is None:
                from river.drift import ADWIN

                self._detector = ADWIN(delta=_DELTA, clock=1)  # type: ignore[no-untyped-call]
            before = self._detector.estimation
            self._detector.update(min(loss / self._most, 1.0))  # type: ignore[no-untyped-call]
            if self._detector.drift_detected:
                alarm = alarm or self._detector.estimation > before
        return alarm

    def restart(self) -> None:
        """Forget what the losses were."""
        self._detector = None
        self._n, self._most = 0, 0.0
