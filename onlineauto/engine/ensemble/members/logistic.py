"""Logistic: two logistic regressions of classes, on features, and on features and pairs of words.

Both learn by AdaGrad. Weights are rows of a hashed table, so features and pairs may share a row.

Source: Duchi, Hazan and Singer, *Adaptive subgradient methods for online learning and stochastic
optimization*, 2011.
"""

from __future__ import annotations

import math
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from onlineauto.engine.ensemble.class_kernels import softmax
from onlineauto.engine.ensemble.member import ClassKernels, ClassMember, Lesson, used_axes
from onlineauto.engine.records.ensemble import Known
from onlineauto.features.hash_constants import GOLDEN
from onlineauto.jit import entry_kernel, inline_kernel, kernel, short_loop
from onlineauto.state.schema import Sparse, field, record, save

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from onlineauto.engine.ensemble.class_kernels import Classes, ClassEvent
    from onlineauto.engine.records.ensemble import Inputs
    from onlineauto.state.stored import Stored

_GOLDEN = np.uint64(GOLDEN)
_RATE, _TINY = 0.3, 1e-3
_MOST_CROSSED = 64
"""Events with more words than this have no pairs."""


def _weights(stored: Stored, array: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return stored weights and sums of squares, which are at least 0."""
    result = stored.finite(np.float32, array.shape)
    if (result[:, 1] < 0).any():
        raise stored.fail("sums of squares, which are at least 0")
    return result


@record
class LogisticState(NamedTuple):
    """State of the member."""

    # Weights of both regressions, and their sums of squared gradients; cell 0 is the constant's
    logits: NDArray[np.float32] = field(Sparse("cells"), 2, "classes", read=_weights)


class LogisticScratch(NamedTuple):
    """Scratch of the member: the cells of an event, and the values that their weights are multiplied by."""

    cell: NDArray[np.int64]
    value: NDArray[np.float64]
    end: NDArray[np.int64]  # [1]: number of cells; the first score has one more than the event has features


@inline_kernel
def _cell_of(key: np.uint64, kind: np.uint64, n_cells: int) -> int:
    mixed = (key + kind) * _GOLDEN
    return int((mixed ^ (mixed >> np.uint64(31))) * _GOLDEN >> np.uint64(33)) & (n_cells - 1)


@inline_kernel
def _take_cells(event: ClassEvent, scratch: LogisticScratch, n_cells: int) -> None:
    """Fill the cells of an event: the constant and features; then features again, and pairs of words."""
    n, words, taken = event.n_features[0], event.taken.n_words[0], event.taken.words
    cell, value, end = scratch.cell, scratch.value, 2 * n + 1
    cell[0], value[0] = 0, 1.0
    for i in range(n):
        short_loop()
        cell[1 + i] = _cell_of(event.key[i], np.uint64(1), n_cells)
        cell[1 + n + i] = _cell_of(event.key[i], np.uint64(2), n_cells)
        value[1 + i] = value[1 + n + i] = event.value[i]
    for i in range(words if words <= _MOST_CROSSED else 0):
        short_loop()
        for j in range(i):
            short_loop()
            key = (np.uint64(taken[i]) + np.uint64(1)) * _GOLDEN + (np.uint64(taken[j]) + np.uint64(1))
            cell[end], value[end] = _cell_of(key, np.uint64(3), n_cells), 1.0
            end += 1
    scratch.end[0] = end


@kernel
def _score(
    logits: NDArray[np.float32],
    cells: NDArray[np.int64],
    values: NDArray[np.float64],
    score: NDArray[np.float64],
) -> None:
    """Write the score of each class."""
    score[:] = 0.0
    for i in range(len(cells)):
        for c in range(len(score)):
            score[c] += logits[cells[i], 0, c] * values[i]


@kernel
def _learn(
    logits: NDArray[np.float32],
    cells: NDArray[np.int64],
    values: NDArray[np.float64],
    error: NDArray[np.float64],
) -> None:
    """Update the weights with the error of the probability of each class."""
    rate = _RATE / math.sqrt(max(len(cells), 1))
    for i in range(len(cells)):
        weights = logits[cells[i]]
        for c in range(len(error)):
            gradient = error[c] * values[i]
            weights[1, c] += np.float32(gradient * gradient)
            weights[0, c] += np.float32(rate * gradient / (_TINY + math.sqrt(weights[1, c])))


@entry_kernel
def score_classes_by_logits(
    classes: Classes, event: ClassEvent, first: int, k: int, state: LogisticState, scratch: LogisticScratch
) -> None:
    """Score the classes of an event."""
    _take_cells(event, scratch, len(state.logits))
    single, end = event.n_features[0] + 1, scratch.end[0]
    _score(state.logits, scratch.cell[:single], scratch.value[:single], event.score[first, :k])
    _score(state.logits, scratch.cell[single:end], scratch.value[single:end], event.score[first + 1, :k])


@entry_kernel
def learn_classes_by_logits(
    classes: Classes,
    event: ClassEvent,
    lesson: Lesson,
    k: int,
    state: LogisticState,
    scratch: LogisticScratch,
) -> None:
    """Learn an event's class."""
    single, end, error = event.n_features[0] + 1, scratch.end[0], event.error[:k]
    for pairs in range(2):
        softmax(event.score[lesson.score + pairs], k, error)
        for c in range(k):
            error[c] = lesson.weight * ((1.0 if c == lesson.action else 0.0) - error[c])
        if pairs:
            _learn(state.logits, scratch.cell[single:end], scratch.value[single:end], error)
        else:
            _learn(state.logits, scratch.cell[:single], scratch.value[:single], error)


class Logistic(ClassMember):
    """Logistic regressions on features, and on features and pairs of words."""

    name = "logistic"
    record = LogisticState
    class_scores = MappingProxyType({"logistic": 0.5, "logistic of pairs": 0.5})
    class_kernels = ClassKernels(score_classes_by_logits, learn_classes_by_logits)

    def class_scratch(self, features: int) -> LogisticScratch:
        """Return scratch for the cells of an event."""
        n = 2 * features + 1 + _MOST_CROSSED * (_MOST_CROSSED - 1) // 2
        return LogisticScratch(np.zeros(n, np.int64), np.zeros(n), np.zeros(1, np.int64))

    def state(self, state: LogisticState, inputs: Inputs, *, working: Sequence[bool]) -> dict[str, Any]:
        """Return the cells that have a weight."""
        del working
        used: dict[str, Any] = used_axes(inputs)
        used["cells"] = np.flatnonzero(state.logits[:, :, : used["classes"]].any(axis=(1, 2)))
        return save(state, used)

    def restore(self, stored: Stored, state: LogisticState, inputs: Inputs) -> None:
        """Copy the stored cells into the state; all other weights are 0."""
        state.logits[:] = 0.0
        super().restore(stored, state, inputs)

    def add_class(self, state: LogisticState, inputs: Inputs) -> None:
        """Begin with the probability of one event among all so far."""
        state.logits[0, 0, inputs.tally[Known.ACTIONS] - 1] = -math.log(1.0 + inputs.seen[-1])


MEMBER = Logistic()
