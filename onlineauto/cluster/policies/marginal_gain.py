"""``MarginalGain``: the next worker or server is for the job that saves the most time by it."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from onlineauto.cluster.policies.actions import NEVER, scores
from onlineauto.cluster.policies.speeds import Modelled
from onlineauto.errors import OptionError

if TYPE_CHECKING:
    from onlineauto.cluster.policies.situation import Floats, Ints, Situation
    from onlineauto.cluster.policies.speeds import Speeds

_FIRST = 1e12
"""Lower limit of the scores of first bundles, above the scores of all other actions."""


class MarginalGain(Modelled):
    """Give the next worker or server to the job that saves the most remaining time per dominant share.

    The time is predicted by a fitted model of speeds (`onlineauto.cluster.policies.speeds.terms`). Resources
    that would make a job faster by less than `least` remain free for jobs that arrive later: such a job is
    near the maximum of its speed, or past it.

    Source: Peng et al., *Optimus*, EuroSys 2018; the limit `least` is our addition.

    Parameters
    ----------
    speeds : Speeds, optional
        The speeds of jobs; by default they are learned from the history.
    least : float
        Minimum relative gain of speed; 0 allocates a resource for any gain.
    """

    name: ClassVar[str] = "marginal-gain"

    def __init__(self, speeds: Speeds | None = None, *, least: float = 0.12) -> None:
        super().__init__(speeds)
        if not 0 <= least < 10:
            raise OptionError(f"least = {least:g}: give a relative gain of 0 or more, such as 0.12")
        self.least = least

    def score(self, situation: Situation) -> Floats:
        """Return the time gained per dominant share, or minus infinity if the gain is too small."""
        before = self.speeds.times_per_unit(situation, situation.workers, situation.servers)
        takes = situation.takes_servers
        worker = self._gain(situation, before, 1, 0)
        server = np.where(takes, self._gain(situation, before, 0, 1), NEVER)
        both = np.where(takes, self._gain(situation, before, 1, 1), NEVER)
        return scores(worker, server, both)

    def _gain(self, situation: Situation, before: Floats, workers: int, servers: int) -> Floats:
        """Return the score of `workers` more workers and `servers` more servers for each job."""
        more: tuple[Ints, Ints] = (situation.workers + workers, situation.servers + servers)
        after = self.speeds.times_per_unit(situation, *more)
        part = np.maximum(situation.parts(workers, servers), 1e-12)
        first = np.isinf(before) & np.isfinite(after)
        with np.errstate(invalid="ignore"):
            gain = situation.remaining * (before - after) / part
            enough = before > after * (1 + self.least)
        gain = np.where(enough & ~first, gain, NEVER)
        soonest = _FIRST * (1 + 1 / (1 + situation.remaining * np.where(first, after, 0.0)))
        return np.where(first, soonest, gain)
