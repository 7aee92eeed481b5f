"""The 3J + 1 actions of a policy: a worker, a server or both for one job, or nothing more.

With J rows, action ``i`` gives row i a worker, ``J + i`` a server, and ``2J + i`` both. Action ``3J`` ends
the allocation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from onlineauto.cluster.policies.situation import Floats, Situation

NEVER = -np.inf
"""The score of an action that is never chosen."""


def scores(worker: Floats, server: Floats, both: Floats, nothing: float = 0.0) -> Floats:
    """Join the scores of a worker, a server, both and nothing into one array: [B, J] to [B, 3J + 1]."""
    last = np.full((len(worker), 1), nothing)
    return np.concatenate([worker, server, both, last], 1)


def bundles(situation: Situation, score: Floats, nothing: float = -1e18) -> Floats:
    """Return scores for whole bundles only: a worker, and a server if the job takes any.

    Parameters
    ----------
    situation : Situation
        The clusters.
    score : float64[B, J]
        Score of one more bundle for each job.
    nothing : float
        Score of the action that ends the allocation.
    """
    takes = situation.takes_servers
    never = np.full_like(score, NEVER)
    return scores(np.where(takes, NEVER, score), never, np.where(takes, score, NEVER), nothing)
