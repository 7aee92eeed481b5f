"""The origin of a bandit's costs: where all predictions begin, if costs are far from 0 and close together.

Without an origin, costs from 1,000 to 1,001 are learnt from 0 on. Until then an action that was seldom tried
looks far better, or far worse, than the others, and the difference of 1 is lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.engine.records.loop import Outlier
from onlineauto.estimators.scale_kernels import HIGH, LOW
from onlineauto.estimators.typical_size_kernels import FIRST_EVENTS
from onlineauto.jit import kernel
from onlineauto.learners.gradient_kernels import ORIGIN

if TYPE_CHECKING:
    from onlineauto.engine.records.loop import LoopRun

FAR = 16.0
"""Costs are far from 0 if all exceed this many times their range."""


@kernel
def finds_origin(run: LoopRun) -> bool:
    """Return whether all costs so far are far from 0; if so, set the origin to their middle.

    Costs are looked at after `FIRST_EVENTS` learnt events, and whenever that number has doubled, because
    costs that are all equal tell nothing. Learning must restart when the origin is found.
    """
    learnt = run.model.outliers[Outlier.NONE]
    if not run.task.finds_origin or learnt < FIRST_EVENTS or learnt & (learnt - 1) != 0:
        return False
    low, high = run.live.statistics.scale[LOW], run.live.statistics.scale[HIGH]
    if run.model.shared[ORIGIN] != 0.0 or not low < high or max(low, -high) <= FAR * (high - low):
        return False
    sign = -1.0 if not run.live.tests.cost_is_reward else 1.0
    run.model.shared[ORIGIN] = np.float32(sign * 0.5 * (low + high))
    return True
