"""``Critic``: the value of an allocation for each job, learned from the progress of jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from onlineauto.cluster.learned.net import draw_weights
from onlineauto.cluster.learned.torch_net import as_tensors, forward, require_torch

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.cluster.learned.settings import Improving
    from onlineauto.cluster.policies.situation import Bools, Floats

_SCALE: Final = 10.0
"""Scale of values; the reward of a job in a slot is about 0.1."""
_WIDTH: Final = 64


class Critic:
    """Estimates the value of partial allocations: the expected progress of each job in this slot.

    The reward of a slot is a sum over jobs, and so is the value; each job trains its own part of the value.
    """

    def __init__(self, kinds: int, settings: Improving, draw: np.random.Generator) -> None:
        torch = require_torch()
        self._weights = as_tensors(draw_weights(draw, kinds, 1, _WIDTH))
        used = [each for name, each in self._weights.items() if name not in _OF_POLICY]
        self._steps = torch.optim.Adam(used, lr=settings.critic_rate)

    def scale_rewards(self, reward: Floats) -> Floats:
        """Return rewards on the scale of values."""
        return np.asarray(_SCALE * reward)

    def values(self, jobs: NDArray[np.float32], cluster: NDArray[np.float32], valid: Bools) -> Floats:
        """Return the value of each job, 0 in empty rows: float64[K, B, J] for K decisions in B clusters."""
        torch = require_torch()
        shape = valid.shape
        flat = (each.reshape(-1, *each.shape[2:]) for each in (jobs, cluster, valid))
        with torch.no_grad():
            of_jobs, _ = forward(self._weights, *(torch.from_numpy(each) for each in flat))
        return np.asarray(of_jobs[..., 0].numpy().reshape(shape) * valid, np.float64)

    def update(self, jobs: Any, cluster: Any, valid: Any, targets: Any) -> None:
        """Take a gradient step towards the target values of jobs."""
        of_jobs, _ = forward(self._weights, jobs, cluster, valid)
        loss = (((of_jobs[..., 0] - targets) ** 2) * valid).sum() / valid.sum().clamp(min=1)
        self._steps.zero_grad()
        loss.backward()
        self._steps.step()


_OF_POLICY: Final = ("mean_out", "cluster_out", "nothing_out")
"""Outputs of the cluster, which a critic does not use."""
