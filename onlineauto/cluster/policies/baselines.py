"""Simple policies to compare with: fair shares, first come, shortest first, and packing.

Except for `Fair`, each policy gives a job the bundles of a worker and a server that it asks for, and no more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from onlineauto.cluster.policies.policy import NEVER, ClusterPolicy, bundles
from onlineauto.cluster.policies.speeds import Modelled
from onlineauto.errors import OptionError

if TYPE_CHECKING:
    from onlineauto.cluster.policies.situation import Floats, Situation
    from onlineauto.cluster.policies.speeds import Speeds


class Fair(ClusterPolicy):
    """Give every job an equal dominant share: dominant resource fairness (DRF).

    The dominant share of a job is the largest part that it has of any resource. `Fair` needs no knowledge of
    the jobs. It allocates everything, even if more workers make a job slower.

    Source: Ghodsi et al., *Dominant resource fairness*, NSDI 2011.
    """

    name: ClassVar[str] = "fair"

    def score(self, situation: Situation) -> Floats:
        """Return a higher score for a smaller share."""
        return bundles(situation, -situation.shares())


class AskedBundles(ClusterPolicy):
    """Base class of policies that give each job the bundles that it asks for, and no more."""

    asks = True

    def __init__(self, asked: int = 4) -> None:
        if asked < 1:
            raise OptionError(f"asked = {asked}: a job needs at least one bundle")
        self.asked = asked

    def score_until_asked(self, situation: Situation, score: Floats) -> Floats:
        """Return the scores of all actions: the score of each job, until the job has `asked` bundles."""
        return bundles(situation, np.where(situation.workers < self.asked, score, NEVER))


class Fifo(AskedBundles):
    """Serve jobs in the order of their arrival; each gets `asked` bundles.

    Parameters
    ----------
    asked : int
        Bundles, of a worker and a server, that each job asks for.
    """

    name: ClassVar[str] = "fifo"

    def score(self, situation: Situation) -> Floats:
        """Return a higher score for an earlier row."""
        order = -np.broadcast_to(np.arange(situation.places, dtype=np.float64), situation.valid.shape)
        return self.score_until_asked(situation, order)


class _ModelledBundles(Modelled, AskedBundles):
    """A policy that knows speeds, and gives each job `asked` bundles."""

    def __init__(self, speeds: Speeds | None = None, *, asked: int = 4) -> None:
        Modelled.__init__(self, speeds)
        AskedBundles.__init__(self, asked)

    def remaining_time(self, situation: Situation) -> Floats:
        """Return the remaining time of each job with `asked` bundles."""
        workers = np.full_like(situation.workers, self.asked)
        servers = np.where(situation.takes_servers, workers, 0)
        return situation.remaining * self.speeds.times_per_unit(situation, workers, servers)


class Srtf(_ModelledBundles):
    """Serve the shortest remaining time first; each job gets `asked` bundles.

    Parameters
    ----------
    speeds : Speeds, optional
        The speeds of jobs; by default they are learned from the history.
    asked : int
        Bundles, of a worker and a server, that each job asks for.
    """

    name: ClassVar[str] = "srtf"

    def score(self, situation: Situation) -> Floats:
        """Return a higher score for less remaining time, with `asked` bundles for each job."""
        return self.score_until_asked(situation, -self.remaining_time(situation))


class Tetris(_ModelledBundles):
    """Pack jobs: a high score for demands that align with the free resources, and for little remaining time.

    Source: Grandl et al., *Multi-resource packing for cluster schedulers*, SIGCOMM 2014.

    Parameters
    ----------
    speeds : Speeds, optional
        The speeds of jobs; by default they are learned from the history.
    asked : int
        Bundles, of a worker and a server, that each job asks for.
    """

    name: ClassVar[str] = "tetris"

    def score(self, situation: Situation) -> Floats:
        """Return alignment minus remaining time, each relative to the mean of all jobs."""
        capacity = np.maximum(situation.capacity, 1e-12)[:, None, :]
        demand = (situation.worker_demand + situation.server_demand) / capacity
        fits = (demand * situation.free[:, None, :] / capacity).sum(2)
        time = self.remaining_time(situation)
        score = _relative(fits, situation) - _relative(time, situation)
        return self.score_until_asked(situation, score)


def _relative(numbers: Floats, situation: Situation) -> Floats:
    """Return numbers divided by their mean over the jobs of each cluster."""
    valid = situation.valid
    total = np.where(valid, numbers, 0.0).sum(1, keepdims=True)
    mean = total / np.maximum(valid.sum(1, keepdims=True), 1)
    return np.asarray(np.where(valid, numbers, 0.0) / np.maximum(mean, 1e-12))
