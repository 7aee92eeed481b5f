"""Members and combiner of a classification: each event is learnt for all classes at once.

The members are two regressions of the truth values "the event is of this class", on the features and on waves
of the numbers; two multinomial logistic regressions, on the features and on these and the pairs of words;
boosted trees (`learners.tree_kernels`); and, while there are two classes, the search of the first class.
The inputs of a regression are the same for all classes, so that the classes share its covariance, and a
further class costs only a further column of weights.

The combiner is a multinomial logistic regression on the scores of the members, with one weight a score for
all classes, learnt by Newton's method.
"""

from __future__ import annotations

import math
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from onlineauto.jit import entry_kernel, inline_kernel, kernel, short_loop
from onlineauto.learners.tree_kernels import add_input, begin_row, learn_trees, score_trees
from onlineauto.learners.tree_records import Fit, Grown, LoggedOutput, TreeRow, Trees

if TYPE_CHECKING:
    from numpy.typing import NDArray

INPUTS, NUMBERS, WAVES, SLOTS = 384, 64, 128, 4096
"""Maximum numbers of inputs of the linear regression and of numbers; the number of waves; and the size of the
table of features."""
MOST_CROSSED = 64
"""Events with more words than this have no pairs."""
_FAR = 4.0
_RATE = 0.3
_KEEPS, _PRIOR = 0.9998, 5.0
"""Forgetting of the combiner's statistics, and their initial diagonal."""
_LEAST, _TINY = 0.01, 1e-3
_NEW = 4.0
"""Events of a class after which the combiner learns from it with half the weight."""
VARIANCE = 0.1
"""Variance of a regression's weight before the first event."""
_ROUND, _RAISE = 64, 1e-5
"""Every `_ROUND` events, variances rise by this share of their distance from `VARIANCE`, to follow drift."""
_OFTEN, EACH = 512, 4
"""The covariances learn each of the first `_OFTEN` events, and later one event in `EACH`."""
_MIX = np.uint64(0x9E3779B97F4A7C15)
_QUARTER = np.uint64(1) << np.uint64(62)


class Score(IntEnum):
    """Scores of a class."""

    LINEAR = 0
    WAVES = 1
    SINGLE = 2
    PAIRS = 3
    LOG_LINEAR = 4
    LOG_WAVES = 5
    SHARE = 6
    SEARCH = 7
    TREES = 8


class ClassTally(IntEnum):
    """Entries of `Classes.tally`."""

    INPUTS = 0
    NUMBERS = 1
    EVENTS = 2


class Classes(NamedTuple):
    """All that is learnt; K is the capacity for classes."""

    # uint64[SLOTS], int64[SLOTS]: the table of features: hash + 1, 0 if empty; and the input of the feature.
    # Input 0 is the constant.
    key: NDArray[np.uint64]
    input: NDArray[np.int64]
    number: NDArray[np.int64]  # int64[INPUTS]: the index of the number that an input is, -1 for words.
    tally: NDArray[np.int64]  # int64[3]: see `ClassTally`.
    # float64[3, NUMBERS]: count, mean and sum of squared deviations of each number.
    moments: NDArray[np.float64]
    linear: NDArray[np.float64]  # float64[INPUTS, K], float64[WAVES, K]: weights of the regressions.
    waves: NDArray[np.float64]
    spread: NDArray[np.float64]  # float64[INPUTS, INPUTS], float64[WAVES, WAVES]: their covariances.
    wave_spread: NDArray[np.float64]
    # float32[n_rows, 2, K]: weights of the logistic regressions, and their sums of squared gradients, by
    # hash.
    logits: NDArray[np.float32]
    share: NDArray[np.float64]  # float64[K]: the weight of the learnt events of each class.
    # float64[n_scores], float64[n_scores, n_scores]: weights of the scores and their information.
    mix: NDArray[np.float64]
    fisher: NDArray[np.float64]
    bias: NDArray[np.float64]  # float64[2, K]: the level of each class, and its information.
    trees: Trees  # Boosted trees.


class ClassScratch(NamedTuple):
    """Memory for one event; `frequency` and `phase` are constant."""

    frequency: NDArray[np.float64]
    phase: NDArray[np.float64]
    row: NDArray[np.int64]
    value: NDArray[np.float64]
    word: NDArray[np.uint64]
    known: NDArray[np.int64]
    of_known: NDArray[np.float64]
    number: NDArray[np.float64]
    wave: NDArray[np.float64]
    every: NDArray[np.int64]
    gain: NDArray[np.float64]
    score: NDArray[np.float64]
    chance: NDArray[np.float64]
    error: NDArray[np.float64]
    own: NDArray[np.float64]
    matrix: NDArray[np.float64]
    step: NDArray[np.float64]
    sizes: NDArray[np.int64]
    kept: TreeRow
    fit: Fit


class ClassRows(NamedTuple):
    """Events: their features from `start[i]` to `start[i + 1]`, and whether each may be crossed."""

    start: NDArray[np.int64]
    hash: NDArray[np.uint32]
    value: NDArray[np.float32]
    crossed: NDArray[np.bool_]


class Targets(NamedTuple):
    """The class of each event, -1 to predict only, and its weight."""

    code: NDArray[np.int64]
    weight: NDArray[np.float64]


SINGLE, PAIR, KNOWN = range(3)
"""Entries of `ClassScratch.sizes`: numbers of rows of single features, of all rows, and of known inputs."""


@inline_kernel
def _slot_of(classes: Classes, key: np.uint64) -> int:
    mask = SLOTS - 1
    slot = int((key * _MIX) >> np.uint64(40)) & mask
    while classes.key[slot] != np.uint64(0) and classes.key[slot] != key:
        slot = (slot + 1) & mask
    return slot


@inline_kernel
def _row_of(key: np.uint64, seed: np.uint64, n_rows: int) -> int:
    mixed = (key + seed) * _MIX
    return int((mixed ^ (mixed >> np.uint64(31))) * _MIX >> np.uint64(33)) & (n_rows - 1)


@kernel
def _register(classes: Classes, key: np.uint64, value: float) -> None:
    """Register a feature, and whether it is a number."""
    slot, tally = _slot_of(classes, key), classes.tally
    if classes.key[slot] == np.uint64(0):
        if tally[ClassTally.INPUTS] >= INPUTS:
            return
        classes.key[slot], classes.input[slot] = key, tally[ClassTally.INPUTS]
        classes.number[tally[ClassTally.INPUTS]] = -1
        tally[ClassTally.INPUTS] += 1
    at = classes.input[slot]
    if (
        value != 1.0
        and math.isfinite(value)
        and classes.number[at] < 0
        and tally[ClassTally.NUMBERS] < NUMBERS
    ):
        classes.number[at] = tally[ClassTally.NUMBERS]
        tally[ClassTally.NUMBERS] += 1


@kernel
def _count_number(classes: Classes, key: np.uint64, value: float) -> None:
    """Count a value of a number."""
    slot, moments = _slot_of(classes, key), classes.moments
    number = classes.number[classes.input[slot]] if classes.key[slot] == key else -1
    if number >= 0 and math.isfinite(value):
        moments[0, number] += 1.0
        off = value - moments[1, number]
        moments[1, number] += off / moments[0, number]
        moments[2, number] += off * (value - moments[1, number])


@kernel
def _take(classes: Classes, scratch: ClassScratch, rows: ClassRows, event: int) -> None:
    """Fill the scratch with the inputs of an event."""
    n_rows, n, n_known, words = len(classes.logits), 1, 1, 0
    scratch.row[0], scratch.value[0] = 0, 1.0
    scratch.known[0], scratch.of_known[0] = 0, 1.0
    scratch.number[:] = 0.0
    begin_row(scratch.kept)
    for i in range(rows.start[event], rows.start[event + 1]):
        short_loop()
        key, value = np.uint64(rows.hash[i]) + np.uint64(1), float(rows.value[i])
        if not math.isfinite(value):
            value = 0.0
        slot, number, at = _slot_of(classes, key), -1, -1
        if classes.key[slot] == key:
            at = classes.input[slot]
            number = classes.number[at]
        if number >= 0:
            add_input(scratch.kept, at, value)
            variance = classes.moments[2, number] / max(classes.moments[0, number], 1.0)
            value = (value - classes.moments[1, number]) / math.sqrt(variance) if variance > 0.0 else 0.0
        elif value == 1.0 and rows.crossed[i]:
            if words < MOST_CROSSED:
                scratch.word[words] = key
            words += 1
        value = min(max(value, -_FAR), _FAR)
        if number >= 0:
            scratch.number[number] = value
        if at >= 0:
            scratch.known[n_known], scratch.of_known[n_known] = at, value
            n_known += 1
        scratch.row[n], scratch.value[n] = _row_of(key, np.uint64(1), n_rows), value
        n += 1
    scratch.sizes[SINGLE], scratch.sizes[KNOWN] = n, n_known
    for i in range(rows.start[event], rows.start[event + 1]):
        short_loop()
        key = np.uint64(rows.hash[i]) + np.uint64(1)
        scratch.row[n], scratch.value[n] = (
            _row_of(key, np.uint64(2), n_rows),
            scratch.value[i - rows.start[event] + 1],
        )
        n += 1
        slot = _slot_of(classes, key)
        if rows.crossed[i] and classes.key[slot] == key and classes.number[classes.input[slot]] < 0:
            add_input(scratch.kept, classes.input[slot], 1.0)  # after the numbers, which come first
    if words <= MOST_CROSSED:
        for i in range(words):
            short_loop()
            for j in range(i):
                short_loop()
                key = scratch.word[i] * _MIX + scratch.word[j]
                scratch.row[n], scratch.value[n] = _row_of(key, np.uint64(3), n_rows), 1.0
                n += 1
    scratch.sizes[PAIR] = n


@inline_kernel
def _softmax(score: NDArray[np.float64], k: int, chance: NDArray[np.float64]) -> None:
    """Write the probabilities of the first `k` scores."""
    highest, total = score[0], 0.0
    for c in range(1, k):
        highest = max(highest, score[c])
    for c in range(k):
        chance[c] = math.exp(score[c] - highest)
        total += chance[c]
    for c in range(k):
        chance[c] /= total


@inline_kernel
def _sum_of(
    weights: NDArray[np.float64],
    known: NDArray[np.int64],
    value: NDArray[np.float64],
    n: int,
    k: int,
    score: NDArray[np.float64],
) -> None:
    score[:k] = 0.0
    for i in range(n):
        for c in range(k):
            score[c] += weights[known[i], c] * value[i]


@kernel
def _score(classes: Classes, scratch: ClassScratch, searched: NDArray[np.float64], k: int) -> None:
    """Fill the scores of all members, of an event that was taken."""
    score, wave, n_numbers = scratch.score, scratch.wave, classes.tally[ClassTally.NUMBERS]
    n, n_known = scratch.sizes[PAIR], scratch.sizes[KNOWN]
    _sum_of(classes.linear, scratch.known, scratch.of_known, n_known, k, score[Score.LINEAR])
    score[Score.WAVES, :k] = 0.0
    if n_numbers > 0:
        wave[:] = 0.0
        for number in range(n_numbers):
            for i in range(WAVES):
                wave[i] += scratch.frequency[number, i] * scratch.number[number]
        scale = 1.0 / math.sqrt(n_numbers)
        for i in range(WAVES):
            wave[i] = math.cos(wave[i] * scale + scratch.phase[i])
        _sum_of(classes.waves, scratch.every, wave, WAVES, k, score[Score.WAVES])
    score[Score.SINGLE, :k] = 0.0
    score[Score.PAIRS, :k] = 0.0
    for i in range(n):
        kind = Score.SINGLE if i < scratch.sizes[SINGLE] else Score.PAIRS
        for c in range(k):
            score[kind, c] += classes.logits[scratch.row[i], 0, c] * scratch.value[i]
    total = 0.0
    for c in range(k):
        total += classes.share[c]
    for c in range(k):
        score[Score.LOG_LINEAR, c] = math.log(min(max(score[Score.LINEAR, c], _LEAST), 1.0))
        score[Score.LOG_WAVES, c] = math.log(min(max(score[Score.WAVES, c], _LEAST), 1.0))
        score[Score.SHARE, c] = math.log((classes.share[c] + 0.5) / (total + 0.5 * k))
        score[Score.SEARCH, c] = searched[c]
    score_trees(classes.trees, scratch.kept, k, score[Score.TREES])


@kernel
def _combine(classes: Classes, scratch: ClassScratch, k: int) -> None:
    """Write the probabilities of the scores."""
    error = scratch.error
    for c in range(k):
        error[c] = classes.bias[0, c]
    for j in range(len(classes.mix)):
        for c in range(k):
            error[c] += classes.mix[j] * scratch.score[j, c]
    _softmax(error, k, scratch.chance)


@kernel
def _learn_mix(classes: Classes, scratch: ClassScratch, code: int, weight: float, k: int) -> None:
    """Take a step of Newton's method for the weights of the scores and the levels of the classes."""
    n, score, chance, fisher = len(classes.mix), scratch.score, scratch.chance, classes.fisher
    matrix, step = scratch.matrix, scratch.step
    for j in range(n):
        mean = 0.0
        for c in range(k):
            mean += chance[c] * score[j, c]
        step[j] = weight * (score[j, code] - mean)
        for c in range(k):
            score[j, c] -= mean
    for i in range(n):
        for j in range(n):
            total = 0.0
            for c in range(k):
                total += chance[c] * score[i, c] * score[j, c]
            fisher[i, j] = _KEEPS * fisher[i, j] + weight * total
            matrix[i, j] = fisher[i, j]
        fisher[i, i] += (1.0 - _KEEPS) * _PRIOR
    for i in range(n):  # elimination without pivots: the matrix is positive definite
        for row in range(i + 1, n):
            factor = matrix[row, i] / matrix[i, i]
            for column in range(i, n):
                matrix[row, column] -= factor * matrix[i, column]
            step[row] -= factor * step[i]
    for i in range(n - 1, -1, -1):
        for column in range(i + 1, n):
            step[i] -= matrix[i, column] * step[column]
        step[i] /= matrix[i, i]
        classes.mix[i] += step[i]
    for c in range(k):
        classes.bias[1, c] = _KEEPS * classes.bias[1, c] + weight * chance[c] * (1.0 - chance[c])
        off = (1.0 if c == code else 0.0) - chance[c]
        classes.bias[0, c] += weight * off / (classes.bias[1, c] + weight + 9.0)


@kernel
def _renew_mix(classes: Classes) -> None:
    """Forget half of the information about the weights of scores, as the trees are new."""
    fisher = classes.fisher
    for i in range(len(fisher)):
        for j in range(len(fisher)):
            fisher[i, j] *= 0.5
        fisher[i, i] += 0.5 * _PRIOR


@kernel
def _learn_logits(
    classes: Classes, scratch: ClassScratch, code: int, weight: float, k: int, kind: int
) -> None:
    """Update the logistic regression of single features or of pairs, by AdaGrad."""
    begin, end = (
        (0, scratch.sizes[SINGLE]) if kind == Score.SINGLE else (scratch.sizes[SINGLE], scratch.sizes[PAIR])
    )
    _softmax(scratch.score[kind], k, scratch.own)
    for c in range(k):
        scratch.error[c] = weight * ((1.0 if c == code else 0.0) - scratch.own[c])
    rate = _RATE / math.sqrt(max(end - begin, 1))
    for i in range(begin, end):
        row = classes.logits[scratch.row[i]]
        for c in range(k):
            gradient = scratch.error[c] * scratch.value[i]
            row[1, c] += np.float32(gradient * gradient)
            row[0, c] += np.float32(rate * gradient / (_TINY + math.sqrt(row[1, c])))


@kernel
def _learn_squares(
    spread: NDArray[np.float64],
    weights: NDArray[np.float64],
    known: NDArray[np.int64],
    value: NDArray[np.float64],
    gain: NDArray[np.float64],
    error: NDArray[np.float64],
    of: tuple[int, int, int, int, float],
) -> None:
    """Learn an event by least squares, for all classes; `error` has what is to be added to each prediction.

    `of` has the numbers of given inputs, of all inputs and of classes; the number of events for which the
    covariance learns this one, and the weight of the event.
    """
    n, width, k, times, weight = of
    gain[:width] = 0.0
    for i in range(n):
        for j in range(width):
            gain[j] += spread[known[i], j] * value[i]
    own = 0.0
    for i in range(n):
        own += gain[known[i]] * value[i]
    for i in range(width):
        share = gain[i] / (1.0 / weight + own)
        for c in range(k):
            weights[i, c] += share * error[c]
    if times == 0:
        return
    share = 1.0 / (1.0 / (times * weight) + own)
    for i in range(width):
        if gain[i] != 0.0:
            for j in range(width):
                spread[i, j] -= gain[i] * gain[j] * share  # symmetric to the last bit: a file has one half


@kernel
def _raise_variances(spread: NDArray[np.float64], n: int) -> None:
    for i in range(n):
        spread[i, i] += _RAISE * max(VARIANCE - spread[i, i], 0.0)


@kernel
def _learn(classes: Classes, scratch: ClassScratch, code: int, weight: float, k: int) -> None:
    """Learn an event that was scored and combined."""
    score, error, tally = scratch.score, scratch.error, classes.tally
    for c in range(k):
        error[c] = (1.0 if c == code else 0.0) - score[Score.LINEAR, c]
    times, events = 1, tally[ClassTally.EVENTS]
    if events >= _OFTEN:  # at irregular intervals, since events often recur in a cycle
        times = EACH if (np.uint64(events) * _MIX) < _QUARTER else 0
    of = (scratch.sizes[KNOWN], tally[ClassTally.INPUTS], k, times, weight)
    _learn_squares(classes.spread, classes.linear, scratch.known, scratch.of_known, scratch.gain, error, of)
    if tally[ClassTally.NUMBERS] > 0:
        for c in range(k):
            error[c] = (1.0 if c == code else 0.0) - score[Score.WAVES, c]
        every = (WAVES, WAVES, k, times, weight)
        _learn_squares(
            classes.wave_spread, classes.waves, scratch.every, scratch.wave, scratch.gain, error, every
        )
    _learn_logits(classes, scratch, code, weight, k, Score.SINGLE)
    _learn_logits(classes, scratch, code, weight, k, Score.PAIRS)
    before = classes.share[code]  # the first events of a class surprise every member
    _learn_mix(classes, scratch, code, weight * before / (before + _NEW), k)
    model = classes.trees.tally[Grown.MODEL]
    learn_trees(classes.trees, scratch.fit, scratch.kept, k, LoggedOutput(code, weight, 0.0))
    if classes.trees.tally[Grown.MODEL] != model:
        _renew_mix(classes)
    classes.share[code] += weight
    tally[ClassTally.EVENTS] += 1
    if tally[ClassTally.EVENTS] % _ROUND == 0:
        _raise_variances(classes.spread, tally[ClassTally.INPUTS])
        _raise_variances(classes.wave_spread, WAVES)


@entry_kernel
def run_classes(
    classes: Classes,
    scratch: ClassScratch,
    rows: ClassRows,
    targets: Targets,
    searched: NDArray[np.float64],
    result: NDArray[np.float64],
) -> None:
    """Write the probabilities of each event, float64[n_events, n_classes], and learn those with a class.

    `searched` has the logarithm of the probability by which the search of a class predicts it, or 0.
    """
    k = result.shape[1]
    for event in range(len(result)):
        code, weight = targets.code[event], targets.weight[event]
        learns = code >= 0 and weight > 0.0
        if learns:
            for i in range(rows.start[event], rows.start[event + 1]):
                _register(classes, np.uint64(rows.hash[i]) + np.uint64(1), rows.value[i])
        _take(classes, scratch, rows, event)
        _score(classes, scratch, searched[event], k)
        _combine(classes, scratch, k)
        for c in range(k):
            result[event, c] = scratch.chance[c]
        if learns:
            _learn(classes, scratch, code, weight, k)
            for i in range(rows.start[event], rows.start[event + 1]):
                _count_number(classes, np.uint64(rows.hash[i]) + np.uint64(1), rows.value[i])
