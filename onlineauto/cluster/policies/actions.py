"""The actions of a policy: a worker, a server or both for one job, or nothing more. 3J + 1 of them.

With J rows, action ``i`` gives row i a worker, ``J + i`` a server, ``2J + i`` both, and ``3J`` ends the slot:
nothing more is given away.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from onlineauto.cluster.policies.situation import Floats, Situation

NEVER = -np.inf
"""The score of an action that is never chosen."""


def scores(worker: Floats, server: Floats, both: Floats, nothing: float = 0.0) -> Floats:
    """Put the scores of three actions for each row, and of none, into one array: [B, J] to [B, 3J + 1]."""
    last = np.full((len(worker), 1), nothing)
    return np.concatenate([worker, server, both, last], 1)


def bundles(situation: Situation, score: Floats, nothing: float = -1e18) -> Floats:
    """Return scores of a policy that gives whole bundles: a worker, and a server if the job takes any.

    Parameters
    ----------
    situation : Situation
        The clusters.
    score : float64[B, J]
        Of one more bundle for each job.
    nothing : float
        Score of nothing more.
    """
    takes = situation.takes_servers
    never = np.full_like(score, NEVER)
    return scores(np.where(takes, NEVER, score), never, np.where(takes, score, NEVER), nothing)
