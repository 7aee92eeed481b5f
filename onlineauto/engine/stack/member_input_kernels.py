"""Inputs of the members: the numbers and words of an event, bins of its numbers, and waves of both.

The waves of an event are cosines of sums over its numbers and words. What several actions have in common is
added up once.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from onlineauto.engine.event.example_kernels import line_of
from onlineauto.engine.event.state import (
    ACTIONS,
    CB,
    FEATURES,
    MOST_ACTIONS,
    MOST_CROSSED,
    MOST_FEATURES,
    MOST_NUMBERS,
    NUMBERS,
    SIMPLE,
    WAVES,
    WIDEST,
    WORD,
)
from onlineauto.jit import inline_kernel, kernel, short_loop

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.engine.event.state import Actions, Buffers, Members, Run

LINEAR, WAVY, SINGLES, LAYER = 0, 1, 2, 5
"""Members, and rows of the inputs of all but the third, which is the first of those that cross."""

LAYER_AFTER = 1024
"""Learnt events after which there is a layer upon the features: until then their scores say little."""

RAW, SUMS, SHARED = 2, 3, 4
"""Rows of the inputs that have the numbers as they are, the sums of which waves are made, and the numbers of
the context alone."""

_FAR = 4.0

_ROUNDER = 1.5 * 2.0**52  # what is added to it and taken off again is rounded to the next whole number
_MIX = np.uint64(0x9E3779B97F4A7C15)


@inline_kernel
def joins(members: Members) -> bool:
    """Return whether one regression has all actions, by their features too, as there are too many."""
    return bool(members.tally[ACTIONS] > MOST_ACTIONS)


@inline_kernel
def has_layer(members: Members) -> bool:
    """Return whether there is a layer upon the features, if these have scores."""
    several = 1 < members.tally[ACTIONS] <= MOST_ACTIONS
    return bool(members.layering and several and members.seen[MOST_ACTIONS] >= LAYER_AFTER)


@inline_kernel
def works(members: Members, member: int) -> bool:
    """Return whether a member has scores: it does not rest, and has something to go by, and not too much."""
    tally = members.tally
    if tally[ACTIONS] == 0 or members.rests[member]:
        return False
    features = members.features and tally[FEATURES] <= MOST_FEATURES
    if member == LINEAR:
        return bool(features)
    if member == LAYER:
        return bool(features and not members.rests[LINEAR] and has_layer(members))
    if member >= SINGLES:
        return bool(members.crossing and tally[WIDEST] <= MOST_CROSSED[member - SINGLES])
    return bool(members.waving and tally[NUMBERS] <= MOST_NUMBERS and (tally[NUMBERS] > 0 or joins(members)))


@inline_kernel
def all_rest(members: Members, first: int, end: int) -> bool:
    """Return whether all members from `first` to before `end` rest."""
    rest = True
    for member in range(first, end):
        rest = rest and members.rests[member]
    return rest


@inline_kernel
def place_of(members: Members, feature: np.uint64) -> int:
    """Return the place of a feature, or of a stem, in the table: where it is, or where it would be."""
    mask = len(members.feature) - 1
    key = feature + np.uint64(1)
    place = int((key * _MIX) >> np.uint64(40)) & mask
    while members.feature[place] != 0 and members.feature[place] != key:
        place = (place + 1) & mask
    return place


@inline_kernel
def is_named(members: Members, at: int, value: float) -> bool:
    """Return whether an input is a word whose name has a number, so that it counts as that number too."""
    return bool(members.names[at] >= 0 and members.number[at] == WORD and value == 1.0)


@inline_kernel
def context_line(run: Run, actions: Actions) -> int:
    """Return the line that all actions share, -1 if there is none."""
    if run.task.shape in (SIMPLE, CB):
        return actions.first
    return actions.first - 1 if actions.n_lines > actions.n else -1


@inline_kernel
def bin_of(members: Members, number: int, value: float) -> int:
    """Return the bin of a value."""
    found = 0
    while found < members.bins[number] - 1 and value > members.cut[number, found]:
        found += 1
    return found


@inline_kernel
def copy_numbers(source: NDArray[np.float64], target: NDArray[np.float64], n: int) -> None:
    """Copy the first `n` numbers."""
    for i in range(n):
        target[i] = source[i]


@inline_kernel
def deviations(value: float, mean: float, variance: float) -> float:
    """Return how many standard deviations a value is away from a mean, cut off."""
    spread = math.sqrt(variance)
    away = (value - mean) / spread if spread > 0.0 else 0.0
    return min(max(away, -_FAR), _FAR)


@inline_kernel
def standardised(members: Members, number: int, value: float) -> float:
    """Return how many standard deviations a value of a number is away from its mean, cut off."""
    return deviations(value, members.mean[number], members.variance[number])


@inline_kernel
def begin_of(feature: np.uint32) -> int:
    """Return where the frequencies of a word begin."""
    mixed = (np.uint64(feature) * _MIX) >> np.uint64(32)
    return int(mixed % np.uint64(WAVES * (MOST_NUMBERS - 1)))


@kernel
def add_wave(members: Members, sums: NDArray[np.float64], begin: int, times: float) -> None:
    """Add the frequencies of an input to the sums of all waves, so many times."""
    frequency = members.frequency[begin : begin + WAVES]
    for i in range(WAVES):
        sums[i] += times * frequency[i]


@inline_kernel
def _take_line(run: Run, line: int, words: int, buffers: Buffers) -> int:
    """Add a line to the inputs, behind so many words; return how many words there are."""
    members, stream, linear = run.live.stack.members, run.stream, buffers.inputs[LINEAR]
    wavy = works(members, WAVY)
    for span in range(stream.lines[line].start, stream.lines[line + 1].start):
        short_loop()
        if run.layout.ignore[run.layout.key[stream.spans[span].namespace]]:
            continue
        for i in range(stream.spans[span].start, stream.spans[span + 1].start):
            short_loop()
            feature, value = stream.features[i].hash, np.float64(stream.features[i].value)
            if not math.isfinite(value):
                continue
            place, number = place_of(members, np.uint64(feature)), WORD
            if members.feature[place] != 0:
                at = members.input[place]
                linear[at] += value
                number = members.number[at]
                if is_named(members, at, value):
                    number = members.names[at]
                    linear[members.of_number[number]] += members.amount[at]
            if number == WORD and value == 1.0 and words < MOST_FEATURES:
                if wavy:
                    add_wave(members, buffers.inputs[SUMS], begin_of(feature), 1.0)
                words += 1
    return words


@inline_kernel
def take_inputs(run: Run, actions: Actions, action: int, buffers: Buffers) -> int:
    """Fill the inputs of the members from the context of an event, and from `action` unless it is -1.

    Returns the number of words.
    """
    members, inputs, linear = run.live.stack.members, buffers.inputs, buffers.inputs[LINEAR]
    tally, line, wavy = members.tally, context_line(run, actions), works(members, WAVY)
    n, numbers = min(tally[FEATURES], MOST_FEATURES), min(tally[NUMBERS], MOST_NUMBERS)
    linear[:n] = 0.0
    if wavy:
        inputs[SUMS, :WAVES] = 0.0
    words = _take_line(run, line, 0, buffers) if line >= 0 else 0
    if action >= 0:
        words = _take_line(run, line_of(run, actions, action), words, buffers)
    if n > 0:
        linear[0] = 1.0
    for k in range(numbers):
        short_loop()
        at = members.of_number[k]
        inputs[RAW, k] = linear[at]
        if members.bins[k] > 0:
            linear[members.of_bin[k, bin_of(members, k, linear[at])]] = 1.0
        linear[at] = standardised(members, k, linear[at])
        if wavy:
            add_wave(members, inputs[SUMS], k * WAVES, linear[at])
    if wavy and (action >= 0 or not joins(members)):
        copy_numbers(inputs[SUMS], inputs[WAVY], WAVES)
        make_waves(members, inputs[WAVY], scale_of(members, words))
    return words


@inline_kernel
def _cosine(angle: float) -> float:
    """Return the cosine of an angle to within 2e-7, by a polynomial: several are computed at once."""
    turn = angle * (0.5 / math.pi)
    turn -= (turn + _ROUNDER) - _ROUNDER
    y = (2.0 * math.pi * turn) * (2.0 * math.pi * turn)
    total = 1.0 - y * (1.0 / 306.0)
    total = 1.0 - y * (1.0 / 240.0) * total
    total = 1.0 - y * (1.0 / 182.0) * total
    total = 1.0 - y * (1.0 / 132.0) * total
    total = 1.0 - y * (1.0 / 90.0) * total
    total = 1.0 - y * (1.0 / 56.0) * total
    total = 1.0 - y * (1.0 / 30.0) * total
    total = 1.0 - y * (1.0 / 12.0) * total
    return 1.0 - y * 0.5 * total


@inline_kernel
def scale_of(members: Members, words: int) -> float:
    """Return what the sums over numbers and so many words are multiplied by, to be angles."""
    return math.sqrt(2.0 / max(min(members.tally[NUMBERS], MOST_NUMBERS) + words, 1))


@kernel
def make_waves(members: Members, waves: NDArray[np.float64], scale: float) -> None:
    """Make the waves of their sums, which are angles once they are scaled; the first is the constant."""
    size, phase = math.sqrt(2.0 / WAVES), members.phase
    for i in range(WAVES):
        waves[i] = size * _cosine(phase[i] + scale * waves[i])
    waves[0] = 1.0
