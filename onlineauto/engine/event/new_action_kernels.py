"""New actions: actions of which at least one feature in eight was never learnt.

The *learnt part* p of an action is the fraction of its features that were learnt; the ensemble halves it for
an action that its members do not know. A new action gets the score p · own + (1 - p) · mean, where `own` is
clipped to the range, and `mean` is the mean, of the scores of other actions. If p is at most 3/4, explorers
except ε-greedy treat its gap to the best action as 0. Its probability is at most 1 / K with K actions.

This begins once `_YOUNG` events for each action of an event were learnt, unless all its actions are new.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from onlineauto.engine.event.example_kernels import line_of
from onlineauto.engine.records.task import Shape
from onlineauto.explorers.ranking_kernels import LEARNT, PART, PLACED, RND, rank
from onlineauto.jit import inline_kernel, kernel, short_loop

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.engine.records.loop import Actions, Buffers, LoopRun
    from onlineauto.features.records import Layout, Stream

_MOST_LEARNT, _LITTLE_LEARNT = np.float32(0.875), np.float32(0.75)
"""The largest learnt part of a new action, and of a new action whose gap explorers treat as 0."""
_YOUNG = 10
_ZERO, _ONE = np.float32(0), np.float32(1)


@kernel
def learnt_part(
    stream: Stream, layout: Layout, touched: NDArray[np.bool_], mask: np.uint64, line: int, marks: bool
) -> np.float32:
    """Return the learnt part of the action on a line; if it `marks`, its features are learnt from now on."""
    unlearnt, total = 0, 0
    for span in range(stream.lines[line].start, stream.lines[line + 1].start):
        key = layout.key[stream.spans[span].namespace]
        if layout.ignore[key] or (layout.ignore_linear[key] and not layout.singled):
            continue
        for i in range(stream.spans[span].start, stream.spans[span + 1].start):
            if stream.features[i].value != _ZERO:
                cell = np.uint64(stream.features[i].hash) & mask
                unlearnt += not touched[cell]
                touched[cell] |= marks
                total += 1
    return _ONE - np.float32(unlearnt) / np.float32(total) if unlearnt > 0 else _ONE


@inline_kernel
def note_learnt_parts(run: LoopRun, actions: Actions, logged: int, buffers: Buffers) -> None:
    """Write the learnt part of each action into the explorer's scratch; then mark the `logged` action."""
    stream, touched, mask = run.stream, run.model.touched, run.task.mask
    for action in range(actions.n):
        short_loop()
        line, all_learnt = line_of(run, actions, action), True
        begin = stream.spans[stream.lines[line].start].start
        for i in range(np.uint64(begin), np.uint64(stream.spans[stream.lines[line + 1].start].start)):
            short_loop()
            all_learnt &= touched[np.uint64(stream.features[i].hash) & mask]
        part = _ONE if all_learnt else learnt_part(stream, run.layout, touched, mask, line, False)
        buffers.explored[PART, action] = part
    if logged >= 0:
        learnt_part(stream, run.layout, touched, mask, line_of(run, actions, logged), True)


@inline_kernel
def has_new_actions(run: LoopRun, n: int, buffers: Buffers) -> bool:
    """Return whether some of the `n` actions of an event are new and others are not."""
    exploration = run.task.exploration
    if run.task.shape != Shape.CB_ADF or exploration.policy_kind == RND:  # which prefers new actions
        return False
    n_new = 0
    for action in range(n):
        short_loop()
        n_new += buffers.explored[PART, action] <= _MOST_LEARNT
    return 0 < n_new < n and exploration.counts[LEARNT] >= _YOUNG * n


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
            best, worst = score[i] if n_known == 0 else best, score[i]
            total, n_known = total + score[i], n_known + 1
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
def bound_new(order: NDArray[np.int32], pmf: NDArray[np.float32], scratch: NDArray[np.float32]) -> None:
    """Reduce the probabilities of new actions to at most 1 / K; put the best of the others first."""
    most, excess = _ONE / np.float32(len(order)), _ZERO
    for i in range(len(order)):
        if scratch[PART, order[i]] <= _MOST_LEARNT and pmf[i] > most:
            excess, pmf[i] = excess + (pmf[i] - most), most
    _put_known_first(order, pmf, scratch[PART])
    pmf[0] += excess
