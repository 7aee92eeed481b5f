"""The range of rewards and the least logged probability, supplied or learnt."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.naive.native_search.options import Options


def in_unit(x: float) -> float:
    """Return the nearest number in [0, 1]."""
    return min(max(0.0, x), 1.0)


class Scale:
    """Range of rewards, and the least probability that the logging policy gives to any action."""

    def __init__(self, options: Options) -> None:
        self.low, self.high = options.rewards
        self.learns_floor = options.min_prob is None
        self.floor = 1.0 if options.min_prob is None else options.min_prob

    @property
    def width(self) -> float:
        """Width of the range; nothing is tested before it has one."""
        return self.high - self.low

    @property
    def range(self) -> tuple[float, float]:
        """Lowest and highest reward, for people."""
        return (self.low, self.high) if self.low <= self.high else (0.0, 1.0)

    def part(self, reward: float) -> float:
        """Return the position of a reward in the range, from 0 to 1; rewards out of range are clipped."""
        return in_unit((reward - self.low) / self.width)

    def widen(self, reward: float, probability: float, n_actions: int) -> None:
        """Take a logged event in, once all tests have seen it.

        The actions that were not logged share what is left of the probability: one of them has no more than
        an equal part of it.
        """
        self.low, self.high = min(self.low, reward), max(self.high, reward)
        least = probability
        if n_actions > 1 and probability < 1.0:
            least = min(probability, (1.0 - probability) / (n_actions - 1))
        if 0.0 < least < self.floor * (1.0 - 1e-6):
            self.floor = least
