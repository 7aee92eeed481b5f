"""A layer upon the features: waves of the scores that they give to all actions, as inputs of one more member.

Scores of all actions together tell where a context lies. No sum of what features say has its peak in the
middle, where a price is neither low nor high; but where the actions for low and for high ones both score
little, the layer knows that it is the turn of the one between. Scores are standardised by their mean and
variance so far, for each action. An action that an event does not have, or that was never learnt, is 0.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from onlineauto.engine.event.state import ACTIONS, MEMBERS, WAVES
from onlineauto.engine.stack.member_input_kernels import LAYER, LINEAR, add_wave, deviations, make_waves
from onlineauto.engine.stack.number_bin_kernels import MEMORY, add_value
from onlineauto.jit import inline_kernel, kernel, short_loop

if TYPE_CHECKING:
    from onlineauto.engine.event.state import Buffers, Members

__all__ = ["forget_inputs", "has_inputs", "measure_scores", "take_layer"]

_COUNT, _MEAN, _VARIANCE = range(3)


@inline_kernel
def forget_inputs(buffers: Buffers) -> None:
    """Note that an event has no inputs of the layer so far."""
    buffers.inputs[LAYER, 0] = 0.0


@inline_kernel
def has_inputs(buffers: Buffers) -> bool:
    """Return whether the event has inputs of the layer: the first of them is the constant."""
    return bool(buffers.inputs[LAYER, 0] == 1.0)


@kernel
def take_layer(members: Members, n: int, buffers: Buffers) -> None:
    """Fill the inputs of the layer from the scores that the features give to `n` actions."""
    inputs, column = buffers.inputs[LAYER], buffers.score.shape[1] - 1 - MEMBERS + LINEAR
    inputs[:WAVES] = 0.0
    for action in range(n):
        short_loop()
        at = buffers.known[action]
        if at < 0:
            continue
        score = np.float64(buffers.score[action, column])
        away = deviations(score, members.measure[_MEAN, at], members.measure[_VARIANCE, at])
        add_wave(members, inputs, at * WAVES, away)
    make_waves(members, inputs, math.sqrt(1.0 / members.tally[ACTIONS]))


@kernel
def measure_scores(members: Members, n: int, buffers: Buffers) -> None:
    """Add the scores that the features gave to `n` actions to the means and variances of each."""
    measure, column = members.measure, buffers.score.shape[1] - 1 - MEMBERS + LINEAR
    for action in range(n):
        short_loop()
        at, score = buffers.known[action], np.float64(buffers.score[action, column])
        if at < 0 or not math.isfinite(score):
            continue
        measure[_COUNT, at] = min(measure[_COUNT, at] + 1.0, MEMORY)
        add_value(measure[_MEAN], measure[_VARIANCE], at, score, measure[_COUNT, at])
