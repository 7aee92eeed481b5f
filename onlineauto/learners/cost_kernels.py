"""Cost-sensitive targets of a contextual-bandit event: ``--cb_type mtr|ips|dr|dm``.

Source: Bietti, Agarwal & Langford, *A Contextual Bandit Bake-off*, 2021, section 3; VW ``gen_cs_example``.
"""

from __future__ import annotations

import numpy as np

from onlineauto.jit import F32, inline_kernel

MTR, IPS, DR = range(3)

_ONE = np.float32(1)
_ZERO = np.float32(0)
_SAFE = np.float32(1e-3)


@inline_kernel
def mtr_weight(probability: F32, clip_p: F32, events: int, actions: int) -> F32:
    """Return the importance weight (float32) of the logged action; `events` events had `actions` actions."""
    return _ONE / max(probability, clip_p) * (np.float32(events) / np.float32(actions))


@inline_kernel
def ips_cost(cost: F32, probability: F32, clip_p: F32) -> F32:
    """Return the inverse propensity score (float32) of the logged action's cost."""
    propensity = max(probability, clip_p)
    return cost / (_SAFE if propensity <= _ZERO else propensity)


@inline_kernel
def dr_cost(cost: F32, probability: F32, clip_p: F32, estimate: F32) -> F32:
    """Return the doubly robust cost (float32) of the logged action; `estimate` is its predicted cost."""
    return estimate + (cost - estimate) / max(probability, clip_p)
