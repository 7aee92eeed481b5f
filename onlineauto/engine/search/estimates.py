"""Estimates: what is known of the rewards of live slots; bounds are computed when they are asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onlineauto.engine.event.state import CHAMPION, LEARNT, N_ACTIONS, N_EVENTS, SELF
from onlineauto.estimators.interval_kernels import interval
from onlineauto.estimators.robust_kernels import lower_bound, upper_bound

if TYPE_CHECKING:
    from collections.abc import Mapping

    from onlineauto.automl.config import Interaction
    from onlineauto.engine.search.live_configs import LiveSlots
    from onlineauto.engine.search.screening import Screening

__all__ = ["Estimates"]


class Estimates:
    """Bounds on the average reward of live slots, each over the examples since the slot got its config.

    Rewards are negated costs (or costs, with ``--reward_as_cost``), those of single lines negated losses. The
    bounds are wrong at any time with the significance level at most, and lie in the range of the rewards that
    were seen; with ``--estimator robust`` they are VW's, in [0, 1].

    Parameters
    ----------
    slots : LiveSlots
        Whose estimators these are.
    screening : Screening
        Which knows the gains.
    alpha : float
        Significance level.

    Source: `onlineauto.estimators.interval_kernels`; VW ``confidence_sequence_robust``.
    """

    def __init__(self, slots: LiveSlots, screening: Screening, *, alpha: float) -> None:
        self._slots, self._screening, self._alpha = slots, screening, alpha

    def __len__(self) -> int:
        """Count the live slots."""
        return self._slots.live.n

    def count(self, namespace: bytes) -> int:
        """Count the actions, so far, that have features in this namespace."""
        return self._slots.count(namespace)

    def size(self, namespace: bytes) -> float:
        """Features that an action has in this namespace, on average so far."""
        return self._slots.size(namespace) / max(int(self._slots.live.tally[N_ACTIONS]), 1)

    def n_actions(self) -> float:
        """Actions of an event, on average so far."""
        tally = self._slots.live.tally
        return float(tally[N_ACTIONS] / max(tally[N_EVENTS], 1))

    def learnt(self) -> int:
        """Count the events learnt so far."""
        return int(self._slots.live.tally[LEARNT])

    def gains(self) -> Mapping[Interaction, float]:
        """What every interaction that is screened seems to gain."""
        return self._screening.gains()

    def promise(self, slot: int) -> float:
        """Evidence that the config in a slot is better than the champion; 1 is none."""
        return self._slots.promise(slot)

    def updates(self, slot: int) -> int:
        """Count the events on which the estimators of a slot rest."""
        return int(self._slots.live.updates[slot])

    def lower(self, slot: int) -> float:
        """Bound the reward of the config in a slot from below."""
        return self._bound(slot, SELF, upper=False)

    def upper(self, slot: int) -> float:
        """Bound the reward of the config in a slot from above."""
        return self._bound(slot, SELF, upper=True)

    def champion_lower(self, slot: int) -> float:
        """Bound the reward of the champion from below, over the examples of a slot."""
        return self._bound(slot, CHAMPION, upper=False)

    def champion_upper(self, slot: int) -> float:
        """Bound the reward of the champion from above, over the examples of a slot."""
        return self._bound(slot, CHAMPION, upper=True)

    def last(self, slot: int) -> tuple[tuple[float, float], tuple[float, float]]:
        """Return the importance weight and reward seen last, of the config and of the champion beside it."""
        last = self._slots.live.last[slot]
        return (float(last[SELF, 0]), float(last[SELF, 1])), (
            float(last[CHAMPION, 0]),
            float(last[CHAMPION, 1]),
        )

    def _bound(self, slot: int, who: int, *, upper: bool) -> float:
        live = self._slots.live
        if not 0 <= slot < live.n:
            raise IndexError(f"there is no live slot {slot}: there are {live.n}")
        if live.paired:
            return self._interval(slot, who, upper=upper)
        find = upper_bound if upper else lower_bound
        return float(find(live.evidence[slot, who], live.test))

    def _interval(self, slot: int, who: int, *, upper: bool) -> float:
        """Bound from the sums of an interval, within the range of rewards."""
        slots = self._slots
        events = max(slots.champion_events if slot == 0 else self.updates(slot), 1)
        low, high = slots.range
        bounds = interval(slots.policy(slot, who), self._alpha)
        return float(min(max(bounds[upper] / events, low), high))
