"""Random network distillation: normal numbers, and the noise added to the costs that members learn."""

from __future__ import annotations

import math
from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np

from onlineauto.explorers.ranking_kernels import DRAWN
from onlineauto.explorers.sample_kernels import mix_state, number_of, step_on
from onlineauto.jit import F32, inline_kernel, kernel

if TYPE_CHECKING:
    from onlineauto.explorers.ranking_kernels import Exploration

_ZERO = np.float32(0)
_ONE = np.float32(1)
_TWO = np.float32(2)


class RndNumber(IntEnum):
    """Entries of `Exploration.numbers` under ``--rnd``."""

    NOISE = 0  # size of the noise on costs
    VARIANCE = 1  # variance of the guesses


@inline_kernel
def normal_of(state: np.uint64) -> F32:
    """Return a normal number (float32) by the polar method, from VW's generator in state `state`."""
    x = size = _ZERO
    while not _ZERO < size < _ONE:
        state = step_on(state)
        x = _TWO * number_of(state) - _ONE
        state = step_on(state)
        y = _TWO * number_of(state) - _ONE
        size = x * x + y * y
    return x * math.sqrt((-_TWO * math.log(size)) / size)


@kernel
def draw_noise(at: Exploration) -> F32:
    """Draw the noise (float32) to add to the cost that a member is about to learn."""
    number = normal_of(mix_state(at.random[0], np.uint64(at.counts[DRAWN])))
    at.counts[DRAWN] += 1
    return np.float32(at.numbers[RndNumber.NOISE]) * number
