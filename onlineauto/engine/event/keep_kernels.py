"""``--keep_unrewarded``: learn only a random share of the events whose cost is 0.

An event that is learnt with probability q, and then counts 1/q, adds to every sum what it adds on average if
all events are learnt. Whether an event is learnt depends on its cost, its position and the seed, and on
neither its features nor the exploration. So learning, tests and estimates stay unbiased, and a run that is
repeated or continued keeps the same events.

Source: inverse probability weighting, Horvitz & Thompson, *A generalization of sampling without replacement
from a finite universe*, 1952.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.engine.records.loop import Label
from onlineauto.explorers.sample_kernels import mix_state
from onlineauto.jit import F32, inline_kernel
from onlineauto.learners.gradient_kernels import T

if TYPE_CHECKING:
    from onlineauto.engine.records.loop import LoopRun

_ZERO = np.float32(0)
_ONE = np.float32(1)
_UNIT = 2.0**-53


@inline_kernel
def keep_weight(run: LoopRun, label: Label) -> F32:
    """Return by how much the next event counts: 1; or for a cost of 0, 1/share if it is kept, else 0."""
    task = run.task
    if task.thinning.share == 1.0 or label.cost != _ZERO:
        return _ONE
    position = run.model.shared[T : T + 1].view(np.uint64)[0]
    draw = np.float64(mix_state(task.thinning.seed, position) >> np.uint64(11)) * _UNIT
    return np.float32(1.0 / task.thinning.share) if draw < task.thinning.share else _ZERO


@inline_kernel
def weigh(run: LoopRun, label: Label, weight: F32) -> Label:
    """Return the label of an event with this `keep_weight`: kept costs of 0 weigh 1, and others the share."""
    weight *= np.float32(run.task.thinning.share)
    return Label(label.action, label.cost, label.probability, label.weight * weight, label.initial)
