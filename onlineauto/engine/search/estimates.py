"""Estimates: bounds on the rewards of live configs, computed on demand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onlineauto.engine.event.state import CHAMPION, LEARNT, N_ACTIONS, N_EVENTS, SELF
from onlineauto.estimators.interval_kernels import interval
from onlineauto.estimators.robust_kernels import lower_bound, upper_bound

if TYPE_CHECKING:
    from collections.abc import Mapping

    from onlineauto.automl.config import Interaction
    from onlineauto.engine.search.live_configs import LiveConfigs
    from onlineauto.engine.search.screening import Screening

__all__ = ["Estimates"]


class Estimates:
    """Bounds on the average reward of each live config, over the events since it became live.

    The reward is the negated cost (the cost with ``--reward_as_cost``), on single lines the negated loss. The
    probability that the bounds are ever wrong is at most the significance level. They lie in the range of the
    rewards seen. With ``--estimator robust`` they are VW's, in [0, 1].

    Parameters
    ----------
    slots : LiveConfigs
        The live configs, with their estimators.
    screening : Screening
        Measures the gains of interactions.
    alpha : float
        Significance level.

    Source: `onlineauto.estimators.interval_kernels`; VW ``confidence_sequence_robust``.
    """

    def __init__(self, slots: LiveConfigs, screening: Screening, *, alpha: float) -> None:
        self._slots, self._screening, self._alpha = slots, screening, alpha

    def __len__(self) -> int:
        """Count the live configs."""
        return self._slots.live.n

    def count(self, namespace: bytes) -> int:
        """Count the actions so far that have features in this namespace."""
        return self._slots.count(namespace)

    def size(self, namespace: bytes) -> float:
        """Return the mean number of features that an action has in this namespace, so far."""
        return self._slots.size(namespace) / max(int(self._slots.live.tally[N_ACTIONS]), 1)

    def n_actions(self) -> float:
        """Return the mean number of actions of an event, so far."""
        tally = self._slots.live.tally
        return float(tally[N_ACTIONS] / max(tally[N_EVENTS], 1))

    def learnt(self) -> int:
        """Count the events learnt so far."""
        return int(self._slots.live.tally[LEARNT])

    def gains(self) -> Mapping[Interaction, float]:
        """Return the estimated gain of each screened interaction."""
        return self._screening.gains()

    def promise(self, slot: int) -> float:
        """Return the evidence that live config `slot` is better than the champion; 1 is none."""
        return self._slots.promise(slot)

    def updates(self, slot: int) -> int:
        """Count the events that the estimators of live config `slot` have observed."""
        return int(self._slots.live.updates[slot])

    def lower(self, slot: int) -> float:
        """Return the lower bound on the reward of live config `slot`."""
        return self._bound(slot, SELF, upper=False)

    def upper(self, slot: int) -> float:
        """Return the upper bound on the reward of live config `slot`."""
        return self._bound(slot, SELF, upper=True)

    def champion_lower(self, slot: int) -> float:
        """Return the lower bound on the champion's reward over the events of live config `slot`."""
        return self._bound(slot, CHAMPION, upper=False)

    def champion_upper(self, slot: int) -> float:
        """Return the upper bound on the champion's reward over the events of live config `slot`."""
        return self._bound(slot, CHAMPION, upper=True)

    def last(self, slot: int) -> tuple[tuple[float, float], tuple[float, float]]:
        """Return the latest (importance weight, reward) of live config `slot`, and that of the champion."""
        last = self._slots.live.last[slot]
        return (float(last[SELF, 0]), float(last[SELF, 1])), (
            float(last[CHAMPION, 0]),
            float(last[CHAMPION, 1]),
        )

    def _bound(self, slot: int, who: int, *, upper: bool) -> float:
        """Return a bound on the reward of live config `slot`, or of the champion (`who`)."""
        live = self._slots.live
        if not 0 <= slot < live.n:
            raise IndexError(f"there is no live config {slot}: there are {live.n}")
        if live.paired:
            return self._interval(slot, who, upper=upper)
        find = upper_bound if upper else lower_bound
        return float(find(live.evidence[slot, who], live.test))

    def _interval(self, slot: int, who: int, *, upper: bool) -> float:
        """Return a bound from the sums of an interval, clipped to the range of rewards."""
        slots = self._slots
        events = max(slots.champion_events if slot == 0 else self.updates(slot), 1)
        low, high = slots.range
        bounds = interval(slots.policy(slot, who), self._alpha)
        return float(min(max(bounds[upper] / events, low), high))
