"""New actions: actions of which at least one feature in eight was never learnt.

The *learnt part* p of an action is the fraction of its features that some live config has learnt. The
ensemble, whose members learn known actions separately, halves p for an action that it has never learnt.

A new action gets the score p · own + (1 - p) · mean. Here `own` is its own score, clipped to the range of the
scores of the actions that are not new, and `mean` is the mean of these scores. If p is at most 3/4, explorers
other than ε-greedy treat its gap to the best action as 0. Its probability is at most 1 / K with K actions;
the excess goes to the best action that is not new.

All this begins once `_YOUNG` events for each action of an event were learnt. If all actions of an event are
new, there is nothing to compare them with, and nothing changes.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from onlineauto.engine.event.example_kernels import line_of
from onlineauto.engine.records.task import Shape
from onlineauto.explorers.explore_kernels import PART, PLACED
from onlineauto.explorers.ranking_kernels import LEARNT, rank
from onlineauto.jit import inline_kernel, kernel, short_loop

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.engine.records.loop import Actions, Buffers, LoopRun
    from onlineauto.features.records import Layout, Stream

_MOST_LEARNT, _LITTLE_LEARNT = np.float32(0.875), np.float32(0.75)
"""The largest learnt part of a new action, and of a new action whose gap explorers treat as 0."""
_YOUNG = 10
_ZERO, _ONE = np.float32(0), np.float32(1)


@inline_kernel
def _counts(layout: Layout, key: int) -> bool:
    """Return whether features of a namespace are learnt, not only crossed."""
    return not (layout.ignore[key] or (layout.ignore_linear[key] and not layout.singled))


@kernel
def _learnt_part(
    stream: Stream, layout: Layout, touched: NDArray[np.bool_], mask: np.uint64, line: int
) -> np.float32:
    """Return the learnt part of the action on a line; ignored features do not count."""
    unlearnt, total = 0, 0
    for span in range(stream.lines[line].start, stream.lines[line + 1].start):
        if not _counts(layout, layout.key[stream.spans[span].namespace]):
            continue
        for i in range(stream.spans[span].start, stream.spans[span + 1].start):
            if stream.features[i].value != _ZERO:
                unlearnt += not touched[np.uint64(stream.features[i].hash) & mask]
                total += 1
    return _ONE - np.float32(unlearnt) / np.float32(total) if unlearnt > 0 else _ONE


@inline_kernel
def note_learnt_parts(run: LoopRun, actions: Actions, buffers: Buffers) -> None:
    """Write the learnt part of each action into the explorer's scratch, before the event is learnt."""
    stream, touched, mask = run.stream, run.model.touched, run.task.mask
    for action in range(actions.n):
        short_loop()
        line, all_learnt = line_of(run, actions, action), True
        begin = stream.spans[stream.lines[line].start].start
        for i in range(np.uint64(begin), np.uint64(stream.spans[stream.lines[line + 1].start].start)):
            short_loop()
            all_learnt &= touched[np.uint64(stream.features[i].hash) & mask]
        buffers.explored[PART, action] = (
            _ONE if all_learnt else _learnt_part(stream, run.layout, touched, mask, line)
        )


@inline_kernel
def mark_learnt(run: LoopRun, actions: Actions, action: int) -> None:
    """Mark the features of a learnt action, also if the prediction was right and no weight has changed."""
    stream, line = run.stream, line_of(run, actions, action)
    for span in range(stream.lines[line].start, stream.lines[line + 1].start):
        short_loop()
        if _counts(run.layout, run.layout.key[stream.spans[span].namespace]):
            for i in range(stream.spans[span].start, stream.spans[span + 1].start):
                short_loop()
                run.model.touched[np.uint64(stream.features[i].hash) & run.task.mask] = True


@inline_kernel
def has_new_actions(run: LoopRun, n: int, buffers: Buffers) -> bool:
    """Return whether some of the `n` actions of an event are new and others are not."""
    counts = run.task.exploration.counts
    if run.task.shape != Shape.CB_ADF or counts[LEARNT] < _YOUNG * n:
        return False
    n_new = 0
    for action in range(n):
        short_loop()
        n_new += buffers.explored[PART, action] <= _MOST_LEARNT
    return 0 < n_new < n


@inline_kernel
def _put_known_first(order: NDArray[np.int32], score: NDArray[np.float32], part: NDArray[np.float32]) -> None:
    """Move the first action that is not new, with its score, to the front of ranked actions."""
    first = 0
    while part[order[first]] <= _MOST_LEARNT:
        first += 1
    action, its_score = order[first], score[first]
    for i in range(first, 0, -1):
        order[i], score[i] = order[i - 1], score[i - 1]
    order[0], score[0] = action, its_score


@kernel
def place_new_actions(
    order: NDArray[np.int32], score: NDArray[np.float32], scratch: NDArray[np.float32], tries: bool
) -> None:
    """Replace the scores of new actions among ranked ones, and rank again; if it `tries`, without gaps."""
    n, part, placed = len(order), scratch[PART], scratch[PLACED]
    best, worst, total, n_known = _ZERO, _ZERO, 0.0, 0
    for i in range(n):
        placed[order[i]] = score[i]
        if part[order[i]] > _MOST_LEARNT:
            best = score[i] if n_known == 0 else best
            worst = score[i]
            total += score[i]
            n_known += 1
    mean = np.float32(total / n_known)
    for action in range(n):
        p = part[action]
        if p <= _MOST_LEARNT and math.isfinite(mean):
            own = min(max(placed[action], best), worst) if math.isfinite(placed[action]) else mean
            expected = p * own + (_ONE - p) * mean
            placed[action] = best if tries and p <= _LITTLE_LEARNT else expected
    rank(placed, n, order)
    for i in range(n):
        score[i] = placed[order[i]]
    _put_known_first(order, score, part)


@kernel
def bound_new_actions(
    order: NDArray[np.int32], pmf: NDArray[np.float32], scratch: NDArray[np.float32]
) -> None:
    """Reduce the probabilities of new actions to at most 1 / K; put the best of the others first."""
    most, excess = _ONE / np.float32(len(order)), _ZERO
    for i in range(len(order)):
        if scratch[PART, order[i]] <= _MOST_LEARNT and pmf[i] > most:
            excess += pmf[i] - most
            pmf[i] = most
    _put_known_first(order, pmf, scratch[PART])
    pmf[0] += excess
