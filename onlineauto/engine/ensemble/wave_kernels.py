"""Waves: cosines of sums over the inputs of an event, which approximate any smooth function of them.

A wave is cos(ω·x + φ) with random ω and φ; many of them approximate a Gaussian kernel. Source: Rahimi and
Recht, *Random features for large-scale kernel machines*, 2007.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from onlineauto.engine.records.ensemble import MOST_NUMBERS
from onlineauto.features.hash_constants import GOLDEN
from onlineauto.jit import inline_kernel, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

_GOLDEN = np.uint64(GOLDEN)
WAVES = 128
"""Number of waves."""

WAVY_SPREAD = 10.0
"""Variance of the weight of a wave before the first event."""

_TERMS = tuple((-1.0) ** k * (2.0 * math.pi) ** (2 * k) / math.factorial(2 * k) for k in range(10))
"""Taylor series of a cosine, in the square of turns."""
_ROUNDER = 1.5 * 2.0**52  # adding and subtracting it rounds to the next whole number


class Basis(NamedTuple):
    """Random frequencies and phases, the same in every model."""

    frequency: NDArray[np.float32]  # [actions * waves]: first of numbers
    phase: NDArray[np.float64]  # [waves]


@inline_kernel
def begin_of(feature: np.uint32) -> int:
    """Return the index of the first frequency of a word."""
    mixed = (np.uint64(feature) * _GOLDEN) >> np.uint64(32)
    return int(mixed % np.uint64(WAVES * (MOST_NUMBERS - 1)))


@kernel
def add_wave(basis: Basis, sums: NDArray[np.float32], begin: int, times: float) -> None:
    """Add `times` times the frequencies of an input to the sums of all waves."""
    frequency, factor = basis.frequency[begin : begin + WAVES], np.float32(times)
    for i in range(WAVES):
        sums[i] += factor * frequency[i]


@inline_kernel
def _cosine(angle: float) -> float:
    """Return the cosine of an angle to within 2e-7, by a polynomial that the compiler can vectorise."""
    turn = angle * (0.5 / math.pi)
    turn -= (turn + _ROUNDER) - _ROUNDER
    y = turn * turn
    total = _TERMS[9] * y + _TERMS[8]
    total = total * y + _TERMS[7]
    total = total * y + _TERMS[6]
    total = total * y + _TERMS[5]
    total = total * y + _TERMS[4]
    total = total * y + _TERMS[3]
    total = total * y + _TERMS[2]
    total = total * y + _TERMS[1]
    return total * y + 1.0


@kernel
def make_waves(basis: Basis, waves: NDArray[np.float32], scale: float) -> None:
    """Compute the waves from their sums, multiplied by `scale` to be angles; the first is the constant."""
    size, phase = math.sqrt(2.0 / WAVES), basis.phase
    for i in range(WAVES):
        waves[i] = size * _cosine(phase[i] + scale * waves[i])
    waves[0] = 1.0
