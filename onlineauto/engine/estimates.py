"""Estimates: what is known of the rewards of live slots; bounds are computed when they are asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onlineauto.engine.state import CHAMPION, SELF
from onlineauto.estimators.robust_kernels import lower_bound, upper_bound

if TYPE_CHECKING:
    from onlineauto.engine.live_slots import LiveSlots

__all__ = ["Estimates"]


class Estimates:
    """Bounds on the average reward of live slots, each over the examples since the slot got its config.

    Rewards are negated costs (or costs, with ``--reward_as_cost``); a bound is a float in [0, 1].

    Parameters
    ----------
    slots : LiveSlots
        Whose estimators these are.

    Source: VW ``confidence_sequence_robust``.
    """

    def __init__(self, slots: LiveSlots) -> None:
        self._slots = slots

    def __len__(self) -> int:
        """Count the live slots."""
        return self._slots.live.n

    def count(self, namespace: bytes) -> int:
        """Count the actions, so far, that have features in this namespace."""
        return self._slots.count(namespace)

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
        find = upper_bound if upper else lower_bound
        return float(find(live.evidence[slot, who], live.test))
