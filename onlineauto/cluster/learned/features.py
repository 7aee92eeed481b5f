"""``NetworkInputs``: a situation as the input of a network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from onlineauto.cluster.policies.situation import Bools, Floats, Situation

OF_JOB: Final = 15
"""Number of features of a job, in addition to one for each kind."""
OF_CLUSTER: Final = 6
"""Number of features of a cluster."""


class NetworkInputs(NamedTuple):
    """The input of a network."""

    jobs: Floats  # float64[B, J, kinds + OF_JOB]:
    cluster: Floats  # float64[B, OF_CLUSTER]:
    valid: Bools  # bool[B, J]:


def features(situation: Situation, kinds: tuple[str, ...], scales: Floats) -> NetworkInputs:
    """Return the features of a situation.

    Parameters
    ----------
    situation : Situation
        Clusters, whose jobs may have unknown kinds.
    kinds : tuple of str
        The known kinds.
    scales : float64[kinds + 1]
        Number of slots of a unit of work with one bundle, for each kind; the last entry is for other kinds.
    """
    numbers = {name: number for number, name in enumerate(kinds)}
    kind_number = np.array([numbers.get(name, len(kinds)) for name in situation.kinds])[situation.kind]
    known = (kind_number[..., None] == np.arange(len(kinds))).astype(np.float64)
    workers, servers = situation.workers.astype(np.float64), situation.servers.astype(np.float64)
    share, worker, server = situation.shares(), situation.parts(1, 0), situation.parts(0, 1)
    remaining = situation.remaining * scales[kind_number]
    total = situation.done + situation.remaining
    free = situation.free_parts
    jobs = np.stack(
        [
            np.log1p(np.maximum(situation.age, 0)) / 3,
            np.log1p(remaining) / 3,
            np.log1p(total * scales[kind_number]) / 3,
            situation.remaining / np.maximum(total, 1e-12),
            1 / (1 + remaining),
            share,
            workers / 8,
            servers / 8,
            np.log1p(workers),
            np.log1p(servers),
            workers / np.maximum(workers + servers, 1),
            1 / np.maximum(workers, 1),
            situation.takes_servers.astype(np.float64),
            8 * worker,
            8 * server,
        ],
        -1,
    )
    valid = situation.valid
    many = valid.sum(1)
    cluster = np.stack(
        [
            free.min(1),
            free.max(1),
            np.log1p(situation.backlog) / 3,
            many / 8,
            1 / np.maximum(many, 1),
            (np.where(valid, np.log1p(remaining), 0).sum(1)) / np.maximum(many, 1) / 3,
        ],
        -1,
    )
    jobs = np.concatenate([known, jobs], -1) * valid[..., None]
    return NetworkInputs(jobs, cluster, valid)
