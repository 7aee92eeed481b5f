"""``RewardScale``: a bound on plausible rewards, learnt from the rewards so far."""

from __future__ import annotations

from math import frexp, ldexp
from typing import Final

_AT_FIRST: Final = 100.0
"""The bound before any magnitude is supported."""
_ALWAYS: Final = 1.0
"""Rewards up to this are never limited."""
_SUPPORT: Final = 3
_EARLY: Final = 32
_ROOM_EARLY: Final = 3
_ROOM: Final = 1


class RewardScale:
    """Bounds rewards by the magnitude of the others, so that one absurd reward does not ruin sums.

    The magnitude of a reward is the next power of two. A magnitude is supported once three rewards, and one
    in a thousand of the nonzero rewards, have it or a larger one. The bound is twice the largest supported
    magnitude, or eight times while there are fewer than 32 rewards. A larger reward is replaced by the bound.
    So rewards of a new size are limited until their magnitude is supported, and then count in full.

    Examples
    --------
    >>> scale = RewardScale()
    >>> [scale.bound_reward(reward) for reward in (1.0, 0.0, 1.0, 1.0, -1e25, -12.0)]
    [1.0, 0.0, 1.0, 1.0, -16.0, -12.0]
    """

    def __init__(self, counts: dict[int, int] | None = None, limit: float = _AT_FIRST) -> None:
        self.counts: dict[int, int] = dict(counts or {})
        self._total = sum(self.counts.values())
        self.limit = limit

    def bound_reward(self, reward: float) -> float:
        """Return a reward limited to the bound, and count its magnitude."""
        if reward == 0.0:
            return reward
        power = frexp(reward)[1]
        self.counts[power] = self.counts.get(power, 0) + 1
        self._total += 1
        if abs(reward) > self.limit or self._total % _EARLY == 0 or self._total < _EARLY:
            self.limit = self._current_bound()
        return min(max(reward, -self.limit), self.limit)

    def _current_bound(self) -> float:
        wanted, count = max(_SUPPORT, self._total // 1000), 0
        room = _ROOM_EARLY if self._total < _EARLY else _ROOM
        for power in sorted(self.counts, reverse=True):
            count += self.counts[power]
            if count >= wanted:
                return max(ldexp(1.0, min(power + room, 1023)), _ALWAYS)
        return _AT_FIRST
