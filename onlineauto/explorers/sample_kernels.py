"""Draw an action by its probability and put it first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.explorers.ranking_kernels import DRAWN
from onlineauto.features.hash_constants import FNV_64_BASIS, FNV_64_PRIME, GOLDEN
from onlineauto.jit import F32, inline_kernel, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.explorers.ranking_kernels import Exploration

_FNV_64_BASIS = np.uint64(FNV_64_BASIS)
_FNV_64_PRIME = np.uint64(FNV_64_PRIME)
_GOLDEN = np.uint64(GOLDEN)
_ZERO = np.float32(0)
_ONE = np.float32(1)
_HALF = np.float32(2.0**-23)
_A, _C = np.uint64(0xEECE66D5DEECE66D), np.uint64(2147483647)
_BITS = np.uint64(0x7FFFFF)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


@inline_kernel
def step_on(state: np.uint64) -> np.uint64:
    """Return the next state of VW's generator."""
    return _A * state + _C


@inline_kernel
def number_of(state: np.uint64) -> F32:
    """Return the number (float32) in [0, 1) of a state of VW's generator: 23 of its bits."""
    return np.float32((state >> np.uint64(25)) & _BITS) * _HALF


@inline_kernel
def mix_state(seed: np.uint64, name: np.uint64) -> np.uint64:
    """Return a 64-bit mix of a seed and the hash of a name."""
    mixed = name + (seed + np.uint64(1)) * _GOLDEN
    mixed = (mixed ^ (mixed >> np.uint64(30))) * _FIRST
    mixed = (mixed ^ (mixed >> np.uint64(27))) * _SECOND
    return mixed ^ (mixed >> np.uint64(31))


@inline_kernel
def mix_number(seed: np.uint64, name: np.uint64) -> F32:
    """Return the number (float32) of a seed and the hash of an event's name; see `sampling.uniform`."""
    return np.float32(mix_state(seed, name) >> np.uint64(41)) * _HALF


@kernel
def fnv1a(data: NDArray[np.uint8], start: int, end: int) -> np.uint64:
    """Return the FNV-1a hash of bytes [start, end)."""
    hashed = _FNV_64_BASIS
    for i in range(start, end):
        hashed = (hashed ^ np.uint64(data[i])) * _FNV_64_PRIME
    return hashed


@kernel
def pick_place(pmf: NDArray[np.float32], n: int, number: F32) -> int:
    """Return the index that a number from 0 to 1 selects; the probabilities are scaled to sum to 1."""
    total = _ZERO
    for i in range(n):
        pmf[i] = max(pmf[i], _ZERO)
        total += pmf[i]
    if total == _ZERO:
        pmf[0] = _ONE
        return 0
    drawn = min(total * number, total)
    place, through = -1, _ZERO
    for i in range(n):
        through += pmf[i]
        if place < 0 and through > drawn:
            place = i
        pmf[i] /= total
    return place if place >= 0 else n - 1


@kernel
def put_first(
    exploration: Exploration,
    order: NDArray[np.int32],
    pmf: NDArray[np.float32],
    logged: int,
    name: np.uint64,
    named: bool,
    counts_draw: bool,
) -> None:
    """Put an action first in `order` and `pmf`: the `logged` one or, if that is -1, a drawn one.

    `name` is the hash of the event's name if it is `named`, else an offset to the number of earlier draws.
    """
    place = 0
    if logged >= 0:
        for i in range(len(order)):
            place = i if order[i] == logged else place
    else:
        seed = exploration.random[0]
        if exploration.quirks.steps_generator:
            number = number_of(step_on(name if named else seed))
        else:
            number = mix_number(seed, name if named else np.uint64(exploration.counts[DRAWN]) + name)
        place = pick_place(pmf, len(order), number)
        if counts_draw and not named:
            exploration.counts[DRAWN] += 1
            if exploration.quirks.steps_generator:
                exploration.random[0] = step_on(seed)
    order[0], order[place] = order[place], order[0]
    pmf[0], pmf[place] = pmf[place], pmf[0]
