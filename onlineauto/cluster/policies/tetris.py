"""``Tetris``: the job that fits best into what is left, and is soon done, is next."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from onlineauto.cluster.policies.asked import check_asked, score_asked, time_asked
from onlineauto.cluster.policies.modelled import Modelled

if TYPE_CHECKING:
    from onlineauto.cluster.policies.situation import Floats, Situation
    from onlineauto.cluster.policies.speeds import Speeds


class Tetris(Modelled):
    """Pack: a high score for demands that go along with what is left, and for little time that remains.

    Source: Grandl et al., *Multi-resource packing for cluster schedulers*, SIGCOMM 2014.

    Parameters
    ----------
    speeds : Speeds, optional
        How fast jobs are; by default it is learnt from what they do.
    asked : int
        Bundles, of a worker and a server, that each job asks for.
    """

    name: ClassVar[str] = "tetris"

    def __init__(self, speeds: Speeds | None = None, *, asked: int = 4) -> None:
        super().__init__(speeds)
        self.asked = check_asked(asked)

    def score(self, situation: Situation) -> Floats:
        """Return alignment less remaining time, each relative to the mean of all jobs."""
        has = np.maximum(situation.capacity, 1e-12)[:, None, :]
        demand = (situation.worker_demand + situation.server_demand) / has
        fits = (demand * situation.free[:, None, :] / has).sum(2)
        time = time_asked(situation, self.speeds, self.asked)
        score = _relative(fits, situation) - _relative(time, situation)
        return score_asked(situation, score, self.asked)


def _relative(numbers: Floats, situation: Situation) -> Floats:
    """Return numbers divided by their mean over the jobs of each cluster."""
    valid = situation.valid
    total = np.where(valid, numbers, 0.0).sum(1, keepdims=True)
    mean = total / np.maximum(valid.sum(1, keepdims=True), 1)
    return np.asarray(np.where(valid, numbers, 0.0) / np.maximum(mean, 1e-12))
