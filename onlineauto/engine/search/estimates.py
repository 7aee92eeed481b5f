"""Estimates: bounds on the rewards of live configs, computed on demand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onlineauto.automl.decisions import ENSEMBLE, MemberTerms
from onlineauto.engine.ensemble.ensemble import able_scores, prices, terms_of, work_of, worths
from onlineauto.engine.ensemble.member import price_of_config
from onlineauto.engine.ensemble.states import states_of
from onlineauto.engine.records.search import RewardOwner, Tally
from onlineauto.estimators.interval_kernels import interval
from onlineauto.estimators.robust_kernels import lower_bound, upper_bound
from onlineauto.jit import prepare

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    import numpy as np
    from numpy.typing import NDArray

    from onlineauto.automl.config import Config, Interaction
    from onlineauto.engine.search.live_configs import LiveConfigs
    from onlineauto.engine.search.screening import Screening


class Estimates:
    """Bounds on the average reward of each live config, over the events since it became live.

    The reward is the negated cost (the cost with ``--reward_as_cost``); on single lines it is the negated
    loss. The probability that the bounds are ever wrong is at most the significance level. The bounds lie in
    the range of the rewards seen. With ``--estimator robust`` they are VW's, in [0, 1].
    """

    def __init__(self, live_configs: LiveConfigs, screening: Screening, *, alpha: float) -> None:
        self._live_configs, self._screening, self._alpha = live_configs, screening, alpha
        self._members: dict[str, MemberTerms] = {}
        self._causes: tuple[object, ...] = ()  # what the terms of members are computed from

    def __len__(self) -> int:
        """Return the number of live configs."""
        return self._live_configs.arrays.n

    def prepare(self) -> None:
        """Compile or load the machine code of the bounds."""
        arrays = self._live_configs.arrays
        if arrays.tests.paired:
            prepare(interval, self._live_configs.interval_sums(0, RewardOwner.SELF), self._alpha)
        else:
            prepare(lower_bound, arrays.tests.evidence[0, RewardOwner.SELF], arrays.tests.robust)
            prepare(upper_bound, arrays.tests.evidence[0, RewardOwner.SELF], arrays.tests.robust)

    def count(self, namespace: bytes) -> int:
        """Return the number of actions so far that have features in this namespace."""
        return self._live_configs.count(namespace)

    def sizes(self, namespaces: Iterable[bytes]) -> dict[bytes, float]:
        """Return the mean number of features of an action in each namespace, so far."""
        configs = self._live_configs
        n = max(int(configs.arrays.tally[Tally.ACTIONS]), 1)
        return {name: configs.size(name) / n for name in namespaces}

    def n_actions(self) -> float:
        """Return the mean number of actions of an event, so far."""
        tally = self._live_configs.arrays.tally
        return float(tally[Tally.ACTIONS] / max(tally[Tally.EVENTS], 1))

    def learnt(self) -> int:
        """Return the number of events learnt so far."""
        return int(self._live_configs.arrays.tally[Tally.LEARNT])

    def gains(self) -> Mapping[Interaction, float]:
        """Return the estimated gain of each screened interaction."""
        return self._screening.gains()

    def promise(self, live: int) -> float:
        """Return the evidence that live config `live` is better than the champion; 1 is no evidence."""
        return self._live_configs.promise(live)

    def updates(self, live: int) -> int:
        """Return the number of events that the estimators of live config `live` have observed."""
        arrays = self._live_configs.arrays
        return int(arrays.ensemble.test.updates[0] if live == ENSEMBLE else arrays.schedule.updates[live])

    def members(self) -> Mapping[str, MemberTerms]:
        """Return the price of each member's score that can be computed, and when the score rests, by name."""
        configs, ensemble = self._live_configs, self._live_configs.arrays.ensemble
        sizes, crossed = self.sizes(configs.namespaces), configs.interactions(0)
        work = work_of(ensemble, features=1.0 + sum(sizes.values()), n_actions=self.n_actions())
        causes = work, able_scores(ensemble), sizes, crossed
        if causes != self._causes:  # prices change seldom
            one, terms = (
                price_of_config(sizes, crossed, work.n_actions),
                terms_of(states_of(ensemble).members),
            )
            self._members = {
                name: MemberTerms(price / one, *terms[name])
                for name, price in prices(ensemble, work, causes[1]).items()
            }
            self._causes = causes
        return self._members

    def member_worths(self, resting: Collection[str]) -> Mapping[str, float]:
        """Return the worth of each extra member of the ensemble, without those that are `resting`.

        The worth is the F-statistic of the member's weight; see `onlineauto.automl.member_budget`.
        """
        return worths(self._live_configs.arrays.ensemble, resting)

    def lower(self, live: int) -> float:
        """Return the lower bound on the reward of live config `live`."""
        return self._bound(live, RewardOwner.SELF, upper=False)

    def upper(self, live: int) -> float:
        """Return the upper bound on the reward of live config `live`."""
        return self._bound(live, RewardOwner.SELF, upper=True)

    def waiting_lower(self, config: Config) -> float:
        """Return the lower bound on the reward of a waiting config, or the lowest reward."""
        waiting = self._live_configs.waiting.get(config)
        if waiting is None:
            return self._live_configs.range[0]
        sums, events = waiting.evidence["policies"][0, RewardOwner.SELF], int(waiting.evidence["compared"][0])
        return self._mean_bound(sums, events, upper=False)

    def champion_lower(self, live: int) -> float:
        """Return the lower bound on the champion's reward over the events of live config `live`."""
        return self._bound(live, RewardOwner.CHAMPION, upper=False)

    def champion_upper(self, live: int) -> float:
        """Return the upper bound on the champion's reward over the events of live config `live`."""
        return self._bound(live, RewardOwner.CHAMPION, upper=True)

    def last(self, live: int) -> tuple[tuple[float, float], tuple[float, float]]:
        """Return the latest (importance weight, reward) of live config `live`, and those of the champion."""
        last = self._live_configs.arrays.statistics.last[live]
        return (float(last[RewardOwner.SELF, 0]), float(last[RewardOwner.SELF, 1])), (
            float(last[RewardOwner.CHAMPION, 0]),
            float(last[RewardOwner.CHAMPION, 1]),
        )

    def _bound(self, live: int, owner: int, *, upper: bool) -> float:
        """Return a bound on the reward of live config `live`, or of the champion (`owner`)."""
        arrays = self._live_configs.arrays
        if not ENSEMBLE <= live < arrays.n:
            raise IndexError(f"there is no live config {live}: there are {arrays.n}")
        if arrays.tests.paired:
            return self._interval(live, owner, upper=upper)
        find = upper_bound if upper else lower_bound
        return float(find(arrays.tests.evidence[live, owner], arrays.tests.robust))

    def _interval(self, live: int, owner: int, *, upper: bool) -> float:
        """Return a bound from the sums of an interval, clipped to the range of rewards."""
        configs = self._live_configs
        events = configs.champion_events if live == 0 else self.updates(live)
        if live > 0 and owner == RewardOwner.SELF:
            events = int(configs.arrays.tests.compared[live])
        return self._mean_bound(configs.interval_sums(live, owner), events, upper=upper)

    def _mean_bound(self, sums: NDArray[np.float64], events: int, *, upper: bool) -> float:
        """Return a bound on the mean of `events` rewards, clipped to their range."""
        low, high = self._live_configs.range
        bounds = interval(sums, self._alpha)
        return float(min(max(bounds[upper] / max(events, 1), low), high))
