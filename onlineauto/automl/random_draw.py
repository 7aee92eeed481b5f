"""``RandomOrder``: random orders for oracles. The state is one uint64, stored in the search."""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod

from onlineauto.features.hash_constants import GOLDEN

_MASK = 2**64 - 1


def float32(number: float) -> float:
    """Return a number rounded to single precision.

    >>> float32(0.1)
    0.10000000149011612
    """
    rounded: float = struct.unpack("<f", struct.pack("<f", number))[0]
    return rounded


class RandomOrder(ABC):
    """A source of random orders; `state`, a uint64, continues the sequence."""

    def __init__(self, state: int) -> None:
        self.state = state & _MASK

    @abstractmethod
    def order(self, n: int) -> list[int]:
        """Return numbers less than `n` in random order."""


class FairDraw(RandomOrder):
    """A shuffle in which every order is equally likely.

    Source: Fisher and Yates' shuffle over SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number
    Generators, 2014).

    >>> sorted(FairDraw(1).order(4))
    [0, 1, 2, 3]
    """

    def order(self, n: int) -> list[int]:
        """Return all numbers less than `n`, each once."""
        numbers = list(range(n))
        for last in range(n - 1, 0, -1):
            other = self._draw_below(last + 1)
            numbers[last], numbers[other] = numbers[other], numbers[last]
        return numbers

    def _draw_below(self, bound: int) -> int:
        """Return a random number less than `bound`; a draw from the incomplete last range is repeated."""
        while (drawn := self._next_number()) >= 2**64 // bound * bound:
            pass
        return drawn % bound

    def _next_number(self) -> int:
        self.state = (self.state + GOLDEN) & _MASK
        mixed = (self.state ^ self.state >> 30) * 0xBF58476D1CE4E5B9 & _MASK
        mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & _MASK
        return mixed ^ mixed >> 31
