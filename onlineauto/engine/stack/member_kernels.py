"""Members: learners of the context, for each action, whose scores the stack uses beside the live configs'.

One is least squares on the features themselves, and on bins of those that are numbers: features that ever had
a value other than 1. The other is least squares on waves, cos(ω·x + φ) with random ω, of the numbers and of
words: enough of them approximate any smooth function of the numbers, as a Gaussian kernel does. Numbers are
standardised by their mean and variance so far; one that an event does not have is 0.

Each action has regressions of its own, by the features on its line, all together. If there are more actions
than that, all share one, whose inputs are those of the context and of the action. A member has no score while
there are more features than it can have, or nothing for it in the events.

Source: Rahimi and Recht, *Random features for large-scale kernel machines*, 2007.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from onlineauto.engine.event.example_kernels import line_of
from onlineauto.engine.event.state import (
    ACTIONS,
    BIN,
    BINS,
    CB,
    FEATURES,
    FIRST_BINS,
    MEMBERS,
    MOST_ACTIONS,
    MOST_FEATURES,
    MOST_NUMBERS,
    NUMBERS,
    RING,
    SIMPLE,
    WAVES,
    WORD,
)
from onlineauto.engine.stack.least_squares_kernels import cut_off, learn_squares
from onlineauto.jit import inline_kernel, kernel, short_loop

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.engine.event.state import Actions, Buffers, Label, Members, Regression, Run

LINEAR, WAVY = 0, 1
"""Members, and rows of their inputs."""

_RAW, _WORDS = 2, 3
"""Rows of the inputs that have the numbers as they are, and the hashes of the words."""

LINEAR_SPREAD, WAVY_SPREAD = 1.0 / 3.0, 10.0
"""Variance of a weight before the first event."""

_KEEPS = 0.9995
_ROUND = 64
_WHOLE = 2.0**52
_ROUNDER = 1.5 * 2.0**52  # what is added to it and taken off again is rounded to the next whole number
_FAR, _MEMORY = 4.0, 16384.0
_MIX = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(29)


@inline_kernel
def _place_of(members: Members, feature: np.uint32) -> int:
    """Return the place of a feature in the table: where it is, or where it would be."""
    mask = len(members.feature) - 1
    key = np.uint64(feature) + np.uint64(1)
    place = int((key * _MIX) >> np.uint64(40)) & mask
    while members.feature[place] != 0 and members.feature[place] != key:
        place = (place + 1) & mask
    return place


@inline_kernel
def _context_line(run: Run, actions: Actions) -> int:
    """Return the line that all actions share, -1 if there is none."""
    if run.task.shape in (SIMPLE, CB):
        return actions.first
    return actions.first - 1 if actions.n_lines > actions.n else -1


@inline_kernel
def action_key(run: Run, actions: Actions, action: int) -> np.uint64:
    """Return what tells an action from others: its number, or a hash of all its features."""
    if run.task.shape in (SIMPLE, CB):
        return np.uint64(action + 1)
    stream, line = run.stream, line_of(run, actions, action)
    key = np.uint64(1)  # a sum, so that the order of features does not matter
    for span in range(stream.lines[line].start, stream.lines[line + 1].start):
        short_loop()
        if run.layout.ignore[run.layout.key[stream.spans[span].namespace]]:
            continue
        for i in range(stream.spans[span].start, stream.spans[span + 1].start):
            short_loop()
            value = np.float64(stream.features[i].value) * 65536.0
            whole = np.int64(value) if abs(value) < _WHOLE else np.int64(0)  # NaN, too, is no whole number
            part = (np.uint64(stream.features[i].hash) ^ (np.uint64(whole) << np.uint64(32))) * _MIX
            key += (part ^ (part >> _SHIFT)) * _MIX
    return key


@inline_kernel
def joins(members: Members) -> bool:
    """Return whether one regression has all actions, by their features too, as there are too many."""
    return bool(members.tally[ACTIONS] > MOST_ACTIONS)


@inline_kernel
def index_of(members: Members, key: np.uint64) -> int:
    """Return the index of an action's regressions, -1 if the action is not known."""
    if joins(members):
        return 0
    for i in range(min(members.tally[ACTIONS], MOST_ACTIONS)):
        short_loop()
        if members.action[i] == key:
            return i
    return -1


@inline_kernel
def works(members: Members, member: int) -> bool:
    """Return whether a member has scores: there is something for it, and not too much."""
    tally = members.tally
    if tally[ACTIONS] == 0:
        return False
    if member == LINEAR:
        return bool(members.features and tally[FEATURES] <= MOST_FEATURES)
    return bool(members.waving and tally[NUMBERS] <= MOST_NUMBERS and (tally[NUMBERS] > 0 or joins(members)))


@inline_kernel
def _add_input(members: Members, kind: int) -> int:
    """Add an input of a kind, `WORD` or `BIN`, to the features; return its number."""
    at = int(members.tally[FEATURES])
    members.number[at] = kind
    for action in range(min(members.tally[ACTIONS], MOST_ACTIONS)):
        members.linear.spread[action, at, at] = LINEAR_SPREAD
    members.tally[FEATURES] += 1
    return at


@kernel
def _meet(members: Members, feature: np.uint32, is_number: bool) -> None:
    """Note a feature of a learnt event; nothing more is noted once there are too many."""
    tally = members.tally
    place = _place_of(members, feature)
    if members.feature[place] == 0:
        if tally[FEATURES] > MOST_FEATURES - 1:
            tally[FEATURES] = MOST_FEATURES + 1
            return
        members.feature[place] = np.uint64(feature) + np.uint64(1)
        members.input[place] = _add_input(members, WORD)
    at = members.input[place]
    if is_number and members.number[at] < 0 and tally[NUMBERS] <= MOST_NUMBERS:
        if tally[NUMBERS] == MOST_NUMBERS:
            tally[NUMBERS] += 1
            return
        members.number[at] = tally[NUMBERS]
        members.of_number[tally[NUMBERS]] = at
        tally[NUMBERS] += 1


@kernel
def _meet_action(members: Members, key: np.uint64) -> None:
    """Note an action, and prepare its regressions."""
    tally = members.tally
    if tally[ACTIONS] > MOST_ACTIONS or index_of(members, key) >= 0:
        return
    action = tally[ACTIONS]
    tally[ACTIONS] += 1
    if action == MOST_ACTIONS:
        action = 0
        members.seen[action] = 0
    else:
        members.action[action] = key
    linear, waves = members.linear, members.waves
    linear.weights[action], waves.weights[action] = 0.0, 0.0
    linear.spread[action], waves.spread[action] = 0.0, 0.0
    for i in range(min(tally[FEATURES], MOST_FEATURES)):
        linear.spread[action, i, i] = LINEAR_SPREAD
    for i in range(WAVES):
        waves.spread[action, i, i] = WAVY_SPREAD


@inline_kernel
def score_members(run: Run, actions: Actions, buffers: Buffers) -> None:
    """Fill the members' columns of the scores; where a member has none for an action, with the champion's."""
    members, score, inputs = run.live.stack.members, buffers.score, buffers.inputs
    joined = joins(members)
    if not joined:
        take_inputs(run, actions, -1, buffers)
    first = score.shape[1] - 1 - MEMBERS
    linear, wavy = works(members, LINEAR), works(members, WAVY)
    n = members.tally[FEATURES]
    for action in range(actions.n):
        short_loop()
        index = index_of(members, action_key(run, actions, action))
        known = bool(index >= 0 and members.seen[index] > 0)
        if joined:
            take_inputs(run, actions, action, buffers)
        score[action, first + LINEAR] = score[action, first + WAVY] = score[action, 0]
        if known and linear:
            score[action, first + LINEAR] = score_of(members.linear, index, inputs[LINEAR], n)
        if known and wavy:
            score[action, first + WAVY] = score_of(members.waves, index, inputs[WAVY], WAVES)


@inline_kernel
def _meet_line(run: Run, line: int) -> None:
    """Note the features of a line."""
    members, stream = run.live.stack.members, run.stream
    for span in range(stream.lines[line].start, stream.lines[line + 1].start):
        short_loop()
        if run.layout.ignore[run.layout.key[stream.spans[span].namespace]]:
            continue
        for i in range(stream.spans[span].start, stream.spans[span + 1].start):
            short_loop()
            value = stream.features[i].value
            if value != np.float32(0) and math.isfinite(value):
                _meet(members, stream.features[i].hash, value != np.float32(1))


@inline_kernel
def meet_event(run: Run, actions: Actions) -> bool:
    """Note the features of the context, and the actions, of a learnt event.

    Returns whether the inputs that its scores were made of are not those to learn from.
    """
    members, line = run.live.stack.members, _context_line(run, actions)
    features, numbers = members.tally[FEATURES], members.tally[NUMBERS]
    if members.tally[FEATURES] == 0:
        members.tally[FEATURES] = 1  # the constant
    if line >= 0:
        _meet_line(run, line)
    for action in range(actions.n):
        short_loop()
        _meet_action(members, action_key(run, actions, action))
        if joins(members):
            _meet_line(run, line_of(run, actions, action))
    new = features != members.tally[FEATURES] or numbers != members.tally[NUMBERS]
    return bool(new or joins(members))


@inline_kernel
def bin_of(members: Members, number: int, value: float) -> int:
    """Return the bin of a value."""
    found = 0
    while found < members.bins[number] - 1 and value > members.cut[number, found]:
        found += 1
    return found


@inline_kernel
def _take_line(run: Run, line: int, words: int, buffers: Buffers) -> int:
    """Add a line to the inputs, behind so many words; return how many words there are."""
    members, stream, linear = run.live.stack.members, run.stream, buffers.inputs[LINEAR]
    for span in range(stream.lines[line].start, stream.lines[line + 1].start):
        short_loop()
        if run.layout.ignore[run.layout.key[stream.spans[span].namespace]]:
            continue
        for i in range(stream.spans[span].start, stream.spans[span + 1].start):
            short_loop()
            feature, value = stream.features[i].hash, np.float64(stream.features[i].value)
            if not math.isfinite(value):
                continue
            place, number = _place_of(members, feature), WORD
            if members.feature[place] != 0:
                linear[members.input[place]] += value
                number = members.number[members.input[place]]
            if number == WORD and value == 1.0 and words < MOST_FEATURES:
                buffers.inputs[_WORDS, words] = np.float64(feature)
                words += 1
    return words


@inline_kernel
def take_inputs(run: Run, actions: Actions, action: int, buffers: Buffers) -> None:
    """Fill the inputs of the members from the context of an event, and from `action` unless it is -1."""
    members, linear = run.live.stack.members, buffers.inputs[LINEAR]
    tally, line = members.tally, _context_line(run, actions)
    n, numbers = min(tally[FEATURES], MOST_FEATURES), min(tally[NUMBERS], MOST_NUMBERS)
    linear[:] = 0.0
    words = _take_line(run, line, 0, buffers) if line >= 0 else 0
    if action >= 0:
        words = _take_line(run, line_of(run, actions, action), words, buffers)
    linear[0] = 1.0 if n > 0 else 0.0
    for k in range(numbers):
        short_loop()
        at = members.of_number[k]
        buffers.inputs[_RAW, k] = linear[at]
        if members.bins[k] > 0:
            linear[members.of_bin[k, bin_of(members, k, linear[at])]] = 1.0
        spread = math.sqrt(members.variance[k])
        away = (linear[at] - members.mean[k]) / spread if spread > 0.0 else 0.0
        linear[at] = min(max(away, -_FAR), _FAR)
    if works(members, WAVY):
        _make_waves(members, buffers.inputs, words)


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


@kernel
def _make_waves(members: Members, inputs: NDArray[np.float64], words: int) -> None:
    """Fill the waves from standardised numbers and from words; the first is the constant."""
    numbers, waves = min(members.tally[NUMBERS], MOST_NUMBERS), inputs[WAVY]
    scale = math.sqrt(2.0 / max(numbers + words, 1))
    phase, frequency = members.phase, members.frequency  # read here once, not in each step of a loop
    for i in range(WAVES):
        waves[i] = phase[i]
    for k in range(numbers):
        away = scale * inputs[LINEAR, members.of_number[k]]
        for i in range(WAVES):
            waves[i] += away * frequency[k * WAVES + i]
    for k in range(words):
        begin = int((np.uint64(inputs[_WORDS, k]) * _MIX) >> np.uint64(32)) % (WAVES * (MOST_NUMBERS - 1))
        for i in range(WAVES):
            waves[i] += scale * frequency[begin + i]
    size = math.sqrt(2.0 / WAVES)
    for i in range(WAVES):
        waves[i] = size * _cosine(waves[i])
    waves[0] = 1.0


@kernel
def _sort(values: NDArray[np.float64], n: int) -> None:
    """Sort the first `n` values in place."""
    for i in range(1, n):
        value, j = values[i], i
        while j > 0 and values[j - 1] > value:
            values[j] = values[j - 1]
            j -= 1
        values[j] = value


@kernel
def _divide_bin(members: Members, number: int, fullest: int) -> None:
    """Divide a bin at the median of the latest in it; the new bin begins with the weights of the old one."""
    values, n = members.gains[:RING], 0
    for i in range(RING):
        if bin_of(members, number, members.latest[number, i]) == fullest:
            values[n] = members.latest[number, i]
            n += 1
    _sort(values, n)
    middle = n // 2
    while middle < n and values[middle] == values[middle - 1]:
        middle += 1
    if middle == n:
        return
    old, at = members.of_bin[number, fullest], _add_input(members, BIN)
    for action in range(min(members.tally[ACTIONS], MOST_ACTIONS)):
        members.linear.weights[action, at] = members.linear.weights[action, old]
    for i in range(members.bins[number], fullest, -1):
        members.of_bin[number, i] = members.of_bin[number, i - 1]
        members.cut[number, i] = members.cut[number, i - 1]
    members.cut[number, fullest] = 0.5 * (values[middle] + values[middle - 1])
    members.of_bin[number, fullest + 1] = at
    members.bins[number] += 1


@kernel
def _renew_bins(members: Members, number: int) -> None:
    """Divide a number into bins, or the bin with the most of the latest numbers into two.

    A number that has taken few values gets a bin for each. Others get bins of equally many of the latest. A
    bin is divided if it has more than twice its share.
    """
    values = members.gains[:RING]
    if members.bins[number] == 0:
        for i in range(RING):
            values[i] = members.latest[number, i]
        _sort(values, RING)
        different = 1
        for i in range(1, RING):
            different += values[i] > values[i - 1]
        bins = min(different, FIRST_BINS) if different > BINS else different
        if members.tally[FEATURES] + bins > MOST_FEATURES or different < 2:
            return
        each, last = RING / bins, 0
        for i in range(1, RING):
            wanted = different <= BINS or i >= each * (last + 1)
            if wanted and values[i] > values[i - 1]:
                members.cut[number, last] = 0.5 * (values[i] + values[i - 1])
                last += 1
        for i in range(last + 1):
            members.of_bin[number, i] = _add_input(members, BIN)
        members.bins[number] = last + 1
        return
    fullest, most = 0, 0
    for at in range(members.bins[number]):
        n = 0
        for i in range(RING):
            n += bin_of(members, number, members.latest[number, i]) == at
        if n > most:
            fullest, most = at, n
    if (
        most * FIRST_BINS > 2 * RING
        and members.bins[number] < BINS
        and members.tally[FEATURES] < MOST_FEATURES
    ):
        _divide_bin(members, number, fullest)


@kernel
def _see_numbers(members: Members, raw: NDArray[np.float64]) -> None:
    """Add the numbers of an event to their means and variances; the latest `_MEMORY` events count most."""
    members.seen[MOST_ACTIONS] += 1
    seen = min(np.float64(members.seen[MOST_ACTIONS]), _MEMORY)
    for k in range(min(members.tally[NUMBERS], MOST_NUMBERS)):
        away = raw[k] - members.mean[k]
        members.mean[k] += away / seen
        members.variance[k] += (away * (raw[k] - members.mean[k]) - members.variance[k]) / seen
        members.latest[k, members.seen[MOST_ACTIONS] % RING] = raw[k]
    if members.seen[MOST_ACTIONS] % RING == 0:
        for k in range(min(members.tally[NUMBERS], MOST_NUMBERS)):
            _renew_bins(members, k)


@kernel
def score_of(regression: Regression, action: int, inputs: NDArray[np.float64], n: int) -> float:
    """Return the prediction of a regression for an action; four sums are added in parallel."""
    a, b, c, d, weights = 0.0, 0.0, 0.0, 0.0, regression.weights[action]
    for i in range(0, n - 3, 4):
        a += weights[i] * inputs[i]
        b += weights[i + 1] * inputs[i + 1]
        c += weights[i + 2] * inputs[i + 2]
        d += weights[i + 3] * inputs[i + 3]
    for i in range(n - n % 4, n):
        a += weights[i] * inputs[i]
    total: float = (a + b) + (c + d)
    return total


@kernel
def _learn(
    members: Members, member: int, action: int, inputs: NDArray[np.float64], cost: float, weight: float
) -> None:
    """Let a member learn the cost of the logged action of an event."""
    n = members.tally[FEATURES] if member == LINEAR else WAVES
    regression = members.linear if member == LINEAR else members.waves
    weights, spread = regression.weights[action, :n], regression.spread[action]
    noise = 1.0 / weight
    learn_squares(weights, spread, inputs[:n], members.gains[:n], cost, noise, _KEEPS)
    if members.seen[action] % _ROUND == 0:
        cut_off(spread, n, LINEAR_SPREAD if member == LINEAR else WAVY_SPREAD)


@inline_kernel
def learn_members(run: Run, actions: Actions, label: Label, cost: float, buffers: Buffers) -> None:
    """Let the members learn an event, the context of which is in the inputs as it was predicted.

    `cost` is the label's, if it is not far off.
    """
    members = run.live.stack.members
    action = max(int(label.action), 0)
    if meet_event(run, actions):
        take_inputs(run, actions, action if joins(members) else -1, buffers)
    index = index_of(members, action_key(run, actions, action))
    if index >= 0:
        members.seen[index] += 1
        for member in (LINEAR, WAVY):
            if works(members, member):
                _learn(members, member, index, buffers.inputs[member], cost, np.float64(label.weight))
    _see_numbers(members, buffers.inputs[_RAW])
