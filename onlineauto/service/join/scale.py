"""``RewardScale``: how large a reward can plausibly be, learnt from the rewards so far."""

from __future__ import annotations

from math import frexp, ldexp
from typing import Final

__all__ = ["RewardScale"]

_SUPPORT: Final = 3
_ROOM: Final = 1
"""Powers of two by which a reward may exceed the rewards that support it."""
_AT_FIRST: Final = 1000.0


class RewardScale:
    """Bounds rewards by the magnitude of the others, so that one absurd reward does not ruin sums.

    The magnitude of a reward is its power of two. A magnitude is supported once three rewards, and one in a
    thousand of those that are not 0, had it or a larger one. A reward may be twice as large as the
    largest supported magnitude, or 1,000 while there is none; a larger one counts as this bound. So a rare
    reward of a new size is cut the first two times, and then counts in full.

    Examples
    --------
    >>> scale = RewardScale()
    >>> [scale.bounded(reward) for reward in (1.0, 0.0, 1.0, 1.0, -1e25, -3.0)]
    [1.0, 0.0, 1.0, 1.0, -4.0, -3.0]
    """

    def __init__(self, counts: dict[int, int] | None = None) -> None:
        self.counts: dict[int, int] = dict(counts or {})
        self._total = sum(self.counts.values())
        self._limit = self._bound()

    def bounded(self, reward: float) -> float:
        """Return a reward, or the bound that it exceeds, and count its magnitude."""
        if reward == 0.0:
            return reward
        power = frexp(reward)[1]
        self.counts[power] = self.counts.get(power, 0) + 1
        self._total += 1
        if abs(reward) > self._limit or self._total % 64 == 0 or self._total < 64:
            self._limit = self._bound()
        return min(max(reward, -self._limit), self._limit)

    def _bound(self) -> float:
        wanted, found = max(_SUPPORT, self._total // 1000), 0
        for power in sorted(self.counts, reverse=True):
            found += self.counts[power]
            if found >= wanted:
                return ldexp(1.0, min(power + _ROOM, 1023))
        return _AT_FIRST
