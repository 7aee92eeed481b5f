"""``RobustConfidenceSequence``: bounds on the reward of a policy that hold at all times at once."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from onlineauto.errors import InputError, OptionError
from onlineauto.estimators.robust_kernels import (
    LARGEST_WEIGHT,
    SIZE,
    T,
    Test,
    lower_bound,
    observe,
    upper_bound,
)
from onlineauto.features.stored import MOST

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.features.stored import Stored

__all__ = ["RobustConfidenceSequence", "stored_evidence"]

_LARGEST_SUM = 2.0**640
"""No sum of a sequence is as large: errors are below 2^257, their squares below 2^514, events below 2^62."""


class RobustConfidenceSequence:
    """Bounds on the mean reward of a policy, from events that another policy logged.

    With probability 1 - `alpha` the mean lies between the bounds after every event, so one may look at any
    time. Importance weights have to average 1, but need no upper bound.

    Parameters
    ----------
    alpha : float, default 0.05
        Probability that a bound is ever wrong, in (0, 1). VW's default is 0.05 as a float32, which is 7e-10
        more.
    tol_x : float, default 1e-6
        Precision of the bounds, above 0.

    Raises
    ------
    OptionError
        If `alpha` or `tol_x` is out of range.

    Examples
    --------
    The two policies agree in every other of 900 events, and two in three of all events pay.

    >>> bounds = RobustConfidenceSequence(alpha=0.05)
    >>> for event in range(900):
    ...     bounds.update(2.0 if event % 2 else 0.0, float(event % 3 != 0))
    >>> round(bounds.lower_bound, 4), round(bounds.upper_bound, 4)
    (0.5637, 0.743)
    >>> bounds.updates, bounds.last_w, bounds.last_r
    (900, 2.0, 1.0)

    Source: Mineiro, *A lower confidence sequence for the changing mean of non-negative right heavy-tailed
    observations with bounded mean*, 2022; VW ``confidence_sequence_robust``.
    """

    def __init__(self, alpha: float = 0.05, *, tol_x: float = 1e-6) -> None:
        if not 0 < alpha < 1:
            raise OptionError(f"alpha is a probability above 0 and below 1, not {alpha!r}")
        if not tol_x > 0:
            raise OptionError(f"tol_x is a number above 0, not {tol_x!r}")
        self._test = Test(np.float64(alpha), np.float64(tol_x))
        self._estimator = np.zeros((2, SIZE))
        self.reset()

    def reset(self) -> None:
        """Forget all events."""
        self._estimator[:] = 0.0
        self._updates = 0
        self._last_w = self._last_r = 0.0

    def update(self, w: float, r: float) -> None:
        """Add one event.

        Parameters
        ----------
        w : float
            Importance weight, at least 0: the probability of the logged action under this policy over its
            propensity. It is 1/p if this policy always takes the action, 0 if never. More than 2⁴⁰ counts as
            2⁴⁰, which leaves the bounds valid.
        r : float
            Reward, in [0, 1].

        Raises
        ------
        InputError
            If `w` or `r` is out of range; the event is not added then.
        """
        if not 0 <= w < math.inf:
            raise InputError(f"an importance weight is a finite number of at least 0, not {w!r}")
        if not 0 <= r <= 1:
            raise InputError(f"a reward is between 0 and 1, not {r!r}")
        observe(self._estimator, min(float(w), LARGEST_WEIGHT), float(r))
        self._updates += 1
        self._last_w, self._last_r = float(w), float(r)

    @property
    def lower_bound(self) -> float:
        """Lower bound on the mean reward, in [0, 1]; 0 before the first event."""
        return float(lower_bound(self._estimator, self._test))

    @property
    def upper_bound(self) -> float:
        """Upper bound on the mean reward, in [0, 1]; 1 before the first event."""
        return float(upper_bound(self._estimator, self._test))

    @property
    def updates(self) -> int:
        """Number of events added."""
        return self._updates

    @property
    def last_w(self) -> float:
        """Importance weight of the last event; 0 before the first."""
        return self._last_w

    @property
    def last_r(self) -> float:
        """Reward of the last event; 0 before the first."""
        return self._last_r


def stored_evidence(stored: Stored, array: NDArray[Any]) -> NDArray[Any]:
    """Return the states of robust confidence sequences that are to be in place of an array of them.

    Raises
    ------
    ValueError
        They are none: their counts are not from 0 to what can be counted, or a sum is larger than any.
    """
    found = stored.within(array, -_LARGEST_SUM, _LARGEST_SUM)
    if (found[..., T] < 0).any() or (found[..., T] > MOST).any():
        raise stored.fail("the states of confidence sequences")
    return found
