"""``MarginalGain``: the next worker or server is for the job that saves the most time by it."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from onlineauto.cluster.policies.baselines import Fair
from onlineauto.cluster.policies.policy import NEVER, ClusterPolicy, scores
from onlineauto.cluster.policies.situation import LEAST_REMAINING
from onlineauto.cluster.policies.speeds import Modelled
from onlineauto.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onlineauto.cluster.history import Record
    from onlineauto.cluster.policies.situation import Floats, Ints, Situation
    from onlineauto.cluster.policies.speeds import Speeds

_FIRST = 1e12
"""Lower limit of the scores of first bundles, above the scores of all other actions."""


class MarginalGain(Modelled):
    """Give the next worker or server to the job that gains the most by it per dominant share.

    The cost of a job is weight * speed ** power, where its speed is relative to its speed with one bundle
    and power < 0; the next resource goes where the cost falls the most. The weight of the job with the i-th
    largest remaining time, with one bundle, is (i ** e - (i - 1) ** e) ** (1 / e), e = 1 / (1 - short_first):
    short jobs end sooner, and the mean completion time falls. Speeds are predicted by a fitted model
    (`onlineauto.cluster.policies.speeds.terms`). A job gets no more resources if x % more of them would make
    it faster by less than `least` times x %: it is near the maximum of its speed, or past it. The resources
    remain free for jobs that arrive later.

    Source: the objective of Jayaram Subramanya et al., *Sia*, SOSP 2023, for one kind of workers, with the
    steps and the model of Peng et al., *Optimus*, EuroSys 2018. The weights are those of Berg et al.,
    *heSRPT*, Performance Evaluation 2020, where they minimize the mean completion time of jobs with
    speed = workers ** p. The limit `least` is our addition.

    Parameters
    ----------
    speeds : Speeds, optional
        The speeds of jobs; by default they are learned from the history.
    least : float
        Minimum relative gain of speed per relative growth of the share of a job; 0 allocates a resource for
        any gain. A job with n workers gets another one if it becomes faster by more than `least` / n.
    power : float, optional
        Fairness: below 0. None minimizes the sum of remaining times instead, as Optimus does.
    short_first : float
        Preference for jobs with little remaining time: the exponent p of heSRPT, from 0 (equal weights) to
        below 1. It has no effect if `power` is None. A stream that has kept up counts as the longest job.
    """

    name: ClassVar[str] = "marginal-gain"

    def __init__(
        self,
        speeds: Speeds | None = None,
        *,
        least: float = 0.12,
        power: float | None = -0.5,
        short_first: float = 0.5,
    ) -> None:
        super().__init__(speeds)
        if not 0 <= least < 10:
            raise OptionError(f"least = {least:g}: give a relative gain of 0 or more, such as 0.12")
        if power is not None and not -10 <= power < 0:
            raise OptionError(f"power = {power:g}: give a number below 0, such as -0.5")
        if not 0 <= short_first < 1:
            raise OptionError(f"short_first = {short_first:g}: give a number from 0 to below 1, such as 0.5")
        self.least, self.power, self.short_first = least, power, short_first

    def score(self, situation: Situation) -> Floats:
        """Return the gain per dominant share, or minus infinity if it is too small."""
        before = self.speeds.times_per_unit(situation, situation.workers, situation.servers)
        takes = situation.takes_servers
        weight = self._weight(situation)
        worker = self._gain(situation, before, weight, 1, 0)
        server = np.where(takes, self._gain(situation, before, weight, 0, 1), NEVER)
        both = np.where(takes, self._gain(situation, before, weight, 1, 1), NEVER)
        return scores(worker, server, both)

    def _weight(self, situation: Situation) -> Floats:
        """Return the factor of (time per unit of work) ** -power in the cost of each job."""
        if self.power is None:
            return situation.remaining
        one = np.ones_like(situation.workers)
        alone = self.speeds.times_per_unit(situation, one, one * situation.takes_servers)
        works = situation.remaining > LEAST_REMAINING
        left = np.where(works, situation.remaining * alone, np.inf)
        rank = _descending_rank(np.where(situation.valid, left, -1.0))
        e = 1 / (1 - self.short_first)
        # (rank**e - (rank - 1)**e) ** (1 / e), without powers that overflow
        return np.asarray(alone**self.power * rank * (1 - (1 - 1 / rank) ** e) ** (1 / e))

    def _gain(
        self, situation: Situation, before: Floats, weight: Floats, workers: int, servers: int
    ) -> Floats:
        """Return the score of `workers` more workers and `servers` more servers for each job."""
        more: tuple[Ints, Ints] = (situation.workers + workers, situation.servers + servers)
        after = self.speeds.times_per_unit(situation, *more)
        share = np.maximum(situation.shares(), 1e-12 * situation.workers)
        part = np.maximum(situation.parts(workers, servers), 1e-12)
        first = np.isinf(before) & np.isfinite(after)
        exponent = 1.0 if self.power is None else -self.power
        with np.errstate(invalid="ignore"):
            gain = weight * (before**exponent - after**exponent) / part
            enough = (before - after) * share > after * self.least * part
        gain = np.where(enough & ~first, gain, NEVER)
        soonest = _FIRST * (1 + 1 / (1 + situation.remaining * np.where(first, after, 0.0)))
        return np.where(first, soonest, gain)


class UntilKnown(ClusterPolicy):
    """Decide like `MarginalGain` if the kinds of all jobs have observations, and otherwise like `Fair`.

    This is the default of `Cluster`. A new kind is observed in its first slot, in which `Fair` decides.
    """

    name: ClassVar[str] = "marginal-gain"

    def __init__(self) -> None:
        self._gain, self._fair = MarginalGain(), Fair()

    def score(self, situation: Situation) -> Floats:
        """Return the scores of one of the two policies for each cluster."""
        known = {*self._gain.speeds.kinds}
        of_kind = np.array([kind in known for kind in situation.kinds])
        uses_speeds = (of_kind[situation.kind] | ~situation.valid).all(1, keepdims=True)
        return np.where(uses_speeds, self._gain.score(situation), self._fair.score(situation))

    def observe(self, records: Sequence[Record]) -> None:
        """Learn speeds from the slot that has ended."""
        self._gain.observe(records)


def _descending_rank(numbers: Floats) -> Floats:
    """Return how many numbers of the same row are at least as large, for each number."""
    order = np.argsort(numbers, axis=1)
    ascending = np.take_along_axis(numbers, order, 1)
    column = np.arange(numbers.shape[1])
    is_new = np.diff(ascending, axis=1, prepend=-np.inf) > 0
    first_equal = np.maximum.accumulate(np.where(is_new, column, 0), 1)
    rank = np.empty(numbers.shape)
    np.put_along_axis(rank, order, numbers.shape[1] - first_equal.astype(np.float64), 1)
    return rank
