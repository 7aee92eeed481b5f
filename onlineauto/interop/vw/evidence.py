"""Convert between estimators of Vowpal Wabbit's model files and onlineauto's evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.estimators.robust_kernels import HISTOGRAM, LOW, LOWER, MID, SIZE, SUM, UPPER, USED, T
from onlineauto.interop.vw.search import VwBound, VwEstimator

if TYPE_CHECKING:
    from numpy.typing import NDArray


def evidence_of(estimator: VwEstimator) -> NDArray[np.float64]:
    """Return an estimator as evidence, float64[LOWER | UPPER, SIZE]."""
    evidence = np.zeros((2, SIZE))
    evidence[LOWER], evidence[UPPER] = _state_of(estimator.lower), _state_of(estimator.upper)
    return evidence


def _state_of(bound: VwBound) -> NDArray[np.float64]:
    state = np.zeros(SIZE)
    state[[T, SUM, LOW, MID]] = bound.observations, bound.total, bound.low, bound.mid
    for bucket, between, weight in bound.buckets:
        at = HISTOGRAM + 2 * bucket + between
        if at >= SIZE:
            raise ValueError(f"{bucket} is not a bucket of errors")
        state[at] = weight
        state[USED] = max(state[USED], bucket + 1)
    return state


def estimator_of(evidence: NDArray[np.float64]) -> VwEstimator:
    """Return evidence as an estimator, the inverse of `evidence_of`, without the last event."""
    lower, upper = (_bound_of(evidence[row]) for row in (LOWER, UPPER))
    return VwEstimator(updates=lower.observations, lower=lower, upper=upper)


def _bound_of(state: NDArray[np.float64]) -> VwBound:
    return VwBound(
        observations=int(state[T]),
        total=float(state[SUM]),
        low=float(state[LOW]),
        mid=float(state[MID]),
        buckets=tuple(
            (int(entry) // 2, bool(entry % 2), float(state[HISTOGRAM + entry]))
            for entry in np.flatnonzero(state[HISTOGRAM:])
        ),
    )
