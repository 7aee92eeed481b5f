"""``make_scale``: the range of rewards and the smallest propensity, as known before the first event."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.estimators.scale_kernels import FLOOR, HIGH, LEARNT, LOW, SCALE_SIZE

if TYPE_CHECKING:
    from numpy.typing import NDArray


def make_scale(low: float, high: float, *, floor: float | None) -> NDArray[np.float64]:
    """Return a new scale, float64[6], see `onlineauto.estimators.scale_kernels`."""
    scale = np.zeros(SCALE_SIZE)
    scale[[LOW, HIGH]] = low, high
    scale[[FLOOR, LEARNT]] = (1.0, 1.0) if floor is None else (floor, 0.0)
    return scale
