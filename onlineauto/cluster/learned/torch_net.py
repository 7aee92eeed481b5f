"""The network of `onlineauto.cluster.learned.net` in PyTorch, with gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from onlineauto.errors import OptionError, install_hint

if TYPE_CHECKING:
    from collections.abc import Mapping

    from onlineauto.cluster.learned.net import Weights

Tensor = Any


def require_torch() -> Any:
    """Return the module ``torch``."""
    try:
        import torch
    except ImportError:
        raise OptionError(f"training a policy needs PyTorch: {install_hint('learned')}") from None
    return torch


def as_tensors(weights: Weights) -> dict[str, Tensor]:
    """Return copies of weights that have gradients."""
    torch = require_torch()
    return {
        name: torch.tensor(each, dtype=torch.float32, requires_grad=True) for name, each in weights.items()
    }


def as_weights(tensors: Mapping[str, Tensor]) -> Weights:
    """Return weights as arrays of NumPy."""
    return {name: each.detach().numpy().astype(np.float64) for name, each in tensors.items()}


def forward(
    weights: Mapping[str, Tensor], jobs: Tensor, cluster: Tensor, valid: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the outputs of each job, [B, J, outputs], and of the cluster, [B, 1]."""
    mask = valid[..., None].to(jobs.dtype)
    many = mask.sum(1).clamp(min=1)
    first = (
        jobs @ weights["job_in"] + (cluster @ weights["cluster_in"] + weights["bias_in"])[:, None]
    ).relu()
    mean = (first * mask).sum(1) / many
    context = mean @ weights["mean"] + cluster @ weights["cluster"] + weights["bias"]
    second = (first @ weights["job"] + context[:, None]).relu()
    average = (second * mask).sum(1) / many
    of_cluster = average @ weights["mean_out"] + cluster @ weights["cluster_out"] + weights["nothing_out"]
    return second @ weights["job_out"] + weights["bias_out"], of_cluster


def log_probabilities(
    weights: Mapping[str, Tensor], jobs: Tensor, cluster: Tensor, valid: Tensor, choices: Tensor
) -> Tensor:
    """Return the logarithm of the probability of each action, [B, 3J + 1]; impossible actions have -1e9."""
    of_jobs, of_cluster = forward(weights, jobs, cluster, valid)
    scores = of_jobs.transpose(1, 2).flatten(1)
    torch = require_torch()
    scores = torch.cat([scores, of_cluster], 1).masked_fill(~choices, -1e9)
    return scores.log_softmax(1)
