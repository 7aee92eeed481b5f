"""Drift: whether the champion predicts worse than it did."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["Drift"]

_DELTA = 0.002
_LEAST = 64
"""Observations before the first alarm, in which a model still learns the most."""
_ROOM = 2.0
"""Largest loss that is told from smaller ones, in terms of the largest among those observations."""


class _Window:
    """River's ADWIN: its compiled part alone where it can be had, since all of river takes 70 MB."""

    def __init__(self) -> None:
        try:
            from river._river_rust.drift import AdaptiveWindowing
        except ImportError:
            from river.drift import ADWIN

            self._all = ADWIN(delta=_DELTA, clock=1)  # type: ignore[no-untyped-call]
            self._core = self._all._helper  # noqa: SLF001
        else:
            self._core = AdaptiveWindowing(
                _DELTA, clock=1, max_buckets=5, min_window_length=5, grace_period=10
            )

    def mean(self) -> float:
        """Mean of what is taken to be of one kind."""
        return float(self._core.get_total() / max(self._core.get_width(), 1))

    def update(self, x: float) -> bool:
        """Take in a number in [0, 1]; whether it is of another kind than those before."""
        return bool(self._core.update(x))

    def state(self) -> bytes:
        """What river's part knows, in its own layout."""
        return bytes(self._core.__getstate__())

    def restore(self, state: bytes) -> None:
        """Take up what `state` gave."""
        self._core.__setstate__(state)


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
        self._window: _Window | None = None
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
            self._window = self._window or _Window()
            before = self._window.mean()
            if self._window.update(min(loss / self._most, 1.0)):
                alarm = alarm or self._window.mean() > before
                self._window = None
        return alarm

    def restart(self) -> None:
        """Forget what the losses were."""
        self._window = None
        self._n, self._most = 0, 0.0

    def state(self) -> dict[str, Any]:
        """What `restore` takes."""
        window = None if self._window is None else self._window.state()
        return {"observations": self._n, "most": self._most, "window": window, "river": version("river")}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on where another left off; with another river, whose window is its own, anew."""
        self.restart()
        if state["river"] != version("river"):
            return
        self._n, self._most = state["observations"], state["most"]
        if state["window"] is not None:
            self._window = _Window()
            self._window.restore(state["window"])
