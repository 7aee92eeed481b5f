"""``make_evidence``: the evidence about a policy before its first event."""

from __future__ import annotations

import numpy as np

from onlineauto.estimators.evaluation_kernels import AWAITED, TOTALS, Evidence
from onlineauto.estimators.interval_kernels import POLICY_SIZE, SUMS
from onlineauto.estimators.scale import make_scale

_AWAITED = 100


def make_evidence(low: float, high: float, *, floor: float | None) -> Evidence:
    """Return new evidence, see `onlineauto.estimators.evaluation_kernels`."""
    totals = np.zeros(TOTALS)
    if low > high or floor is None:
        totals[AWAITED] = _AWAITED
    return Evidence(
        open=make_scale(low, high, floor=0.0),
        floored=make_scale(low, high, floor=floor),
        ips=np.zeros(POLICY_SIZE),
        snips=np.zeros(POLICY_SIZE),
        dr=np.zeros(SUMS),
        totals=totals,
    )
