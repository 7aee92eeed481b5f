"""``MarginalGain``: whoever gains the most time by one more worker or server is next."""

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
"""Scores of first bundles are above those of all others."""


class MarginalGain(Modelled):
    """Give the next worker or server to the job whose remaining time it shortens most for what it takes.

    Time is that of a fitted model of speeds (`onlineauto.cluster.policies.speeds.terms`); what it takes is
    the dominant share. Nothing is given away that makes a job faster by less than `least`: it would stand
    past the hump, or nearly so, and the next job to arrive has better use for it.

    Source: Peng et al., *Optimus*, EuroSys 2018; the limit is ours.

    Parameters
    ----------
    speeds : Speeds, optional
        How fast jobs are; by default it is learnt from what they do.
    least : float
        The least relative gain of speed; 0 gives away whatever helps at all.
    """

    name: ClassVar[str] = "marginal-gain"

    def __init__(self, speeds: Speeds | None = None, *, least: float = 0.12) -> None:
        super().__init__(speeds)
        if not 0 <= least < 10:
            raise OptionError(f"least = {least:g}: a relative gain is at least 0, as 0.12")
        self.least = least

    def score(self, situation: Situation) -> Floats:
        """Return time gained for each dominant share, and minus infinity where it is too little."""
        before = self.speeds.times(situation, situation.workers, situation.servers)
        takes = situation.takes_servers
        worker = self._gain(situation, before, 1, 0)
        server = np.where(takes, self._gain(situation, before, 0, 1), NEVER)
        both = np.where(takes, self._gain(situation, before, 1, 1), NEVER)
        return scores(worker, server, both)

    def _gain(self, situation: Situation, before: Floats, workers: int, servers: int) -> Floats:
        """Return the score of so many more workers and servers for each job."""
        more: tuple[Ints, Ints] = (situation.workers + workers, situation.servers + servers)
        after = self.speeds.times(situation, *more)
        part = np.maximum(situation.parts(workers, servers), 1e-12)
        first = np.isinf(before) & np.isfinite(after)
        with np.errstate(invalid="ignore"):
            gain = situation.remaining * (before - after) / part
            enough = before > after * (1 + self.least)
        gain = np.where(enough & ~first, gain, NEVER)
        soonest = _FIRST * (1 + 1 / (1 + situation.remaining * np.where(first, after, 0.0)))
        return np.where(first, soonest, gain)
