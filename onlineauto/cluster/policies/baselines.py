"""Simple policies to compare with: fair shares, first come, shortest first, and packing.

Except for `Fair`, each policy gives a job the bundles of a worker and a server that it asks for, and no more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from onlineauto.cluster.policies.actions import NEVER, bundles
from onlineauto.cluster.policies.policy import ClusterPolicy
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


class Fifo(ClusterPolicy):
    """Serve jobs in the order of their arrival; each gets `asked` bundles.

    Parameters
    ----------
    asked : int
        Bundles, of a worker and a server, that each job asks for.
    """

    name: ClassVar[str] = "fifo"

    def __init__(self, asked: int = 4) -> None:
        self.asked = _check_bundles(asked)

    def score(self, situation: Situation) -> Floats:
        """Return a higher score for an earlier row."""
        order = -np.broadcast_to(np.arange(situation.places, dtype=np.float64), situation.valid.shape)
        return _score_until(situation, order, self.asked)


class _ModelledBundles(Modelled):
    """A policy that knows speeds, and gives each job `asked` bundles."""

    def __init__(self, speeds: Speeds | None = None, *, asked: int = 4) -> None:
        super().__init__(speeds)
        self.asked = _check_bundles(asked)


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
        return _score_until(situation, -_remaining_time(situation, self.speeds, self.asked), self.asked)


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
        time = _remaining_time(situation, self.speeds, self.asked)
        score = _relative(fits, situation) - _relative(time, situation)
        return _score_until(situation, score, self.asked)


def _relative(numbers: Floats, situation: Situation) -> Floats:
    """Return numbers divided by their mean over the jobs of each cluster."""
    valid = situation.valid
    total = np.where(valid, numbers, 0.0).sum(1, keepdims=True)
    mean = total / np.maximum(valid.sum(1, keepdims=True), 1)
    return np.asarray(np.where(valid, numbers, 0.0) / np.maximum(mean, 1e-12))


def _check_bundles(asked: int) -> int:
    """Return the number of bundles that a job asks for."""
    if asked < 1:
        raise OptionError(f"asked = {asked}: a job needs at least one bundle")
    return asked


def _score_until(situation: Situation, score: Floats, asked: int) -> Floats:
    """Return the scores of all actions: the score of each job, until the job has `asked` bundles."""
    return bundles(situation, np.where(situation.workers < asked, score, NEVER))


def _remaining_time(situation: Situation, speeds: Speeds, asked: int) -> Floats:
    """Return the remaining time of each job with `asked` bundles."""
    workers = np.full_like(situation.workers, asked)
    servers = np.where(situation.takes_servers, workers, 0)
    return situation.remaining * speeds.times_per_unit(situation, workers, servers)
