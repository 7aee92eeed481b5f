"""The ensemble of a classification: each event is learnt for all classes at once.

Members score classes instead of actions; see `onlineauto.engine.ensemble.member`. The combiner is a
multinomial logistic regression on their scores, with one weight a score for all classes, learnt by Newton's
method. Two further scores are the share of the events of each class so far and, while there are two classes,
the probability by the search of the first class. If predictions collapse, everything that was learnt is
forgotten; see `_collapses`.
"""

from __future__ import annotations

import math
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from onlineauto.engine.ensemble.member import Lesson
from onlineauto.engine.records.ensemble import MOST_FEATURES, MOST_NUMBERS, InputKind, Known
from onlineauto.features.table_kernels import slot_of_key
from onlineauto.jit import call_at, entry_kernel, inline_kernel, kernel, short_loop
from onlineauto.state.schema import between, field, record, untouched

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.engine.records.ensemble import Inputs, Taken

_FAR = 4.0
"""Maximum distance of a number from its mean, in standard deviations."""
_KEEPS, PRIOR = 0.9998, 5.0
"""Forgetting of the combiner's statistics, and their initial diagonal."""
_NEW = 4.0
"""Events of a class after which the combiner learns from it with half the weight."""

_FAST, _SLOW, _OLD = 64.0, 2048.0, 512.0
"""Numbers of learnt events over which the two shares of right predictions are averaged, and the minimum
number of learnt events before predictions may collapse."""
_COLLAPSE, _SURE = 0.25, 6.0
"""Predictions collapse if less than the first part of their advantage over the most frequent class is left,
and if the fall is more than the second number of standard deviations."""

_MOST = 1e30
"""The largest weight that a file may have: larger ones overflow in products."""


_BOUNDED = between(-_MOST, _MOST)


class Lately(IntEnum):
    """Entries of `Classes.lately`."""

    FAST = 0  # share of right predictions of the latest events
    SLOW = 1  # the same of many more events
    EVENTS = 2  # number of learnt events
    COLLAPSED = 3  # number of events of the call when predictions collapsed; 0 if they did not


@record
class Classes(NamedTuple):
    """The members of a classification, and the logistic regression on their scores.

    The axis `classes` is the capacity for classes. After the scores of members come two: the logarithm of the
    share of events of each class so far, and that of the search's probability.
    """

    # The weight of the learnt events of each class
    share: NDArray[np.float64] = field("classes", read=between(0.0, float(np.finfo(np.float64).max)))
    # Weights of the scores and their information
    mix: NDArray[np.float64] = field("scores", read=_BOUNDED)
    fisher: NDArray[np.float64] = field("scores", "scores", read=_BOUNDED)
    # The level of each class, and its information
    level: NDArray[np.float64] = field("classes", read=_BOUNDED)
    level_information: NDArray[np.float64] = field("classes", read=between(0.0, _MOST))
    # How often predictions were right, see `Lately`
    lately: NDArray[np.float64] = field(len(Lately), read=between(0.0, _MOST), since=2)
    inputs: Inputs = untouched()
    begins: NDArray[np.int64] = untouched()  # the first score of each member
    states: NDArray[np.int64] = untouched()  # addresses of the members' states; see `MemberStates`


class ClassUnits(NamedTuple):
    """Addresses, in this process, of the kernels of members."""

    score: NDArray[np.int64]  # [members]
    learn: NDArray[np.int64]  # [members]
    learn_regression: int


class ClassEvent(NamedTuple):
    """Memory for one event, and the kernels that it is passed to."""

    taken: Taken  # `Taken.raw` is NaN for a number that the event does not have
    key: NDArray[np.uint64]  # [features]: hash + 1
    value: NDArray[np.float64]  # [features]: none of them far from 0
    n_features: NDArray[np.int64]  # [1]
    renewed: NDArray[np.int64]  # [1]: 1 if the model of a member has been replaced
    score: NDArray[np.float64]  # [scores, classes]
    chance: NDArray[np.float64]  # [classes]
    error: NDArray[np.float64]  # [classes]
    matrix: NDArray[np.float64]  # [scores, scores]
    step: NDArray[np.float64]  # [scores]
    scratch: NDArray[np.int64]  # addresses of the members' scratch
    units: ClassUnits


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


@kernel
def _register(inputs: Inputs, key: np.uint64, value: float, crossed: bool) -> None:
    """Register a feature, and whether it is a number; what may not be crossed is a bin of one."""
    slot, tally = slot_of_key(inputs.feature, key), inputs.tally
    if inputs.feature[slot] == 0:
        at = tally[Known.FEATURES]
        if at >= MOST_FEATURES:
            return
        inputs.feature[slot], inputs.input[slot] = key, at
        inputs.number[at] = InputKind.WORD if crossed else InputKind.BIN
        tally[Known.FEATURES] += 1
    at, number = inputs.input[slot], tally[Known.NUMBERS]
    if (
        value != 1.0
        and math.isfinite(value)
        and inputs.number[at] == InputKind.WORD
        and number < MOST_NUMBERS
    ):
        inputs.number[at], inputs.numbers.of_number[number] = number, at
        tally[Known.NUMBERS] += 1


@kernel
def _take(inputs: Inputs, event: ClassEvent, rows: ClassRows, index: int) -> None:
    """Fill the inputs of an event."""
    taken, begin, words = event.taken, rows.start[index], 0
    n = rows.start[index + 1] - begin
    taken.values[: inputs.tally[Known.FEATURES]] = 0.0
    taken.values[0] = 1.0
    taken.raw[:] = np.nan
    for i in range(n):
        short_loop()
        key, value = np.uint64(rows.hash[begin + i]) + np.uint64(1), float(rows.value[begin + i])
        if not math.isfinite(value):
            value = 0.0
        near, number = min(max(value, -_FAR), _FAR), InputKind.WORD
        slot = slot_of_key(inputs.feature, key)
        if inputs.feature[slot] == key:
            at = inputs.input[slot]
            number = inputs.number[at]
            taken.values[at] += np.float32(near)
        if number >= 0:
            taken.raw[number] = value
        elif value == 1.0 and rows.crossed[begin + i] and words < len(taken.words):
            taken.words[words] = rows.hash[begin + i]
            words += 1
        event.key[i], event.value[i] = key, near
    event.n_features[0], taken.n_words[0] = n, words


@inline_kernel
def softmax(score: NDArray[np.float64], k: int, chance: NDArray[np.float64]) -> None:
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
def _score(classes: Classes, event: ClassEvent, searched: NDArray[np.float64], k: int) -> None:
    """Fill the scores of an event that was taken."""
    for member in range(len(classes.states)):
        short_loop()
        call_at(
            event.units.score[member],
            (classes, event, classes.begins[member], k, classes.states[member], event.scratch[member]),
        )
    share, search, total = len(classes.mix) - 2, len(classes.mix) - 1, 0.0
    for c in range(k):
        total += classes.share[c]
    for c in range(k):
        event.score[share, c] = math.log((classes.share[c] + 0.5) / (total + 0.5 * k))
        event.score[search, c] = searched[c]


@kernel
def _combine(classes: Classes, event: ClassEvent, k: int) -> None:
    """Write the probabilities of the scores."""
    error = event.error
    for c in range(k):
        error[c] = classes.level[c]
    for j in range(len(classes.mix)):
        for c in range(k):
            error[c] += classes.mix[j] * event.score[j, c]
    softmax(error, k, event.chance)


@kernel
def _learn_mix(classes: Classes, event: ClassEvent, code: int, weight: float, k: int) -> None:
    """Take a step of Newton's method for the weights of the scores and the levels of the classes."""
    n, score, chance, fisher = len(classes.mix), event.score, event.chance, classes.fisher
    matrix, step = event.matrix, event.step
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
        fisher[i, i] += (1.0 - _KEEPS) * PRIOR
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
        information = _KEEPS * classes.level_information[c] + weight * chance[c] * (1.0 - chance[c])
        classes.level_information[c] = information
        classes.level[c] += weight * ((1.0 if c == code else 0.0) - chance[c]) / (information + weight + 9.0)


@kernel
def _renew_mix(classes: Classes) -> None:
    """Forget half of the information about the weights of scores, as the model of a member is new."""
    fisher = classes.fisher
    for i in range(len(fisher)):
        for j in range(len(fisher)):
            fisher[i, j] *= 0.5
        fisher[i, i] += 0.5 * PRIOR


@inline_kernel
def _learn(classes: Classes, event: ClassEvent, code: int, weight: float, k: int) -> None:
    """Learn an event that was scored and combined."""
    event.renewed[0] = 0
    for member in range(len(classes.states)):
        short_loop()
        first = classes.begins[member]
        lesson = Lesson(code, 0, np.float64(code), weight, first, first, False, 1.0, 1.0)
        call_at(
            event.units.learn[member],
            (classes, event, lesson, k, classes.states[member], event.scratch[member]),
        )
    before = classes.share[code]  # the first events of a class surprise every member
    _learn_mix(classes, event, code, weight * before / (before + _NEW), k)
    if event.renewed[0] != 0:
        _renew_mix(classes)
    classes.share[code] += weight


@inline_kernel
def _collapses(classes: Classes, event: ClassEvent, code: int, k: int) -> bool:
    """Note whether a prediction was right; return whether predictions have collapsed.

    What was learnt then belongs to a concept that has ended, and members that forget nothing would carry it
    on for thousands of events.
    """
    lately, best, most, total = classes.lately, 0, 0.0, 0.0
    for c in range(k):
        best = c if event.chance[c] > event.chance[best] else best
        most = max(most, classes.share[c])
        total += classes.share[c]
    lately[Lately.EVENTS] += 1.0
    right, n = 1.0 if best == code else 0.0, lately[Lately.EVENTS]
    lately[Lately.FAST] += (right - lately[Lately.FAST]) / min(n, _FAST)
    lately[Lately.SLOW] += (right - lately[Lately.SLOW]) / min(n, _SLOW)
    if n < _OLD or not total > 0.0:
        return False
    fast, slow, chance = lately[Lately.FAST], lately[Lately.SLOW], most / total
    deviation = math.sqrt(slow * (1.0 - slow) / (2.0 * _FAST))
    return bool(fast < min(chance + _COLLAPSE * (slow - chance), slow - _SURE * deviation))


@entry_kernel
def run_classes(
    classes: Classes,
    event: ClassEvent,
    rows: ClassRows,
    targets: Targets,
    searched: NDArray[np.float64],
    result: NDArray[np.float64],
) -> None:
    """Write the probabilities of each event, float64[n_events, n_classes], and learn those with a class.

    `searched` has the logarithm of the probability by which the search of a class predicts it, or 0. The
    kernel stops after an event whose prediction collapses, and notes the number of events so far.
    """
    k, inputs = result.shape[1], classes.inputs
    classes.lately[Lately.COLLAPSED] = 0.0
    for index in range(len(result)):
        code, weight = targets.code[index], targets.weight[index]
        learns = code >= 0 and weight > 0.0
        if learns:
            for i in range(rows.start[index], rows.start[index + 1]):
                _register(inputs, np.uint64(rows.hash[i]) + np.uint64(1), rows.value[i], rows.crossed[i])
        _take(inputs, event, rows, index)
        _score(classes, event, searched[index], k)
        _combine(classes, event, k)
        for c in range(k):
            result[index, c] = event.chance[c]
        if learns:
            inputs.seen[-1] += 1
            if _collapses(classes, event, code, k):
                classes.lately[Lately.COLLAPSED] = index + 1
                return
            _learn(classes, event, code, weight, k)
