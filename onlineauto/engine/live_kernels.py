"""Live slots in the loop: count namespaces, look after leases, observe rewards, find a better challenger."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.engine.state import (
    BLOCK_END,
    BOUND_CROSSED,
    CB,
    CHAMPION,
    LEARNT,
    MARK,
    OUTSIDE,
    PROVED_WORSE,
    SELF,
)
from onlineauto.estimators.paired_kernels import is_better as is_ahead
from onlineauto.estimators.paired_kernels import is_worse as is_behind
from onlineauto.estimators.paired_kernels import observe as pair_up
from onlineauto.estimators.robust_kernels import IN_FULL, LARGEST_WEIGHT, is_better, observe, observe_nothing
from onlineauto.estimators.scale_kernels import widen
from onlineauto.jit import F32, entry_kernel, inline_kernel, short_loop
from onlineauto.learners._kernels import Place

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.engine.state import Actions, Label, Live, Run
    from onlineauto.features.records import Layout, Stream

_ZERO = np.float32(0)
_ONE = np.float32(1)
_LARGEST_WEIGHT = np.float32(LARGEST_WEIGHT)


@inline_kernel
def _count_line(
    layout: Layout, stream: Stream, live: Live, line: int, times: int, above: int, mark: int
) -> bool:
    """Count the namespaces of a line that no mark above `above` has yet; return whether one is new."""
    new = False
    for span in range(stream.lines[line].start, stream.lines[line + 1].start):
        short_loop()
        key = layout.key[stream.spans[span].namespace]
        empty = stream.spans[span + 1].start == stream.spans[span].start
        if layout.ignore[key] or empty or live.marks[key] == above or live.marks[key] == mark:
            continue
        live.marks[key] = mark
        live.counts[key] += times
        new = new or not live.met[key]
    return new


@inline_kernel
def count_namespaces(run: Run, actions: Actions) -> bool:
    """Count each namespace once for every action of an event; return whether one is new."""
    live, stream = run.live, run.stream
    shared = live.tally[MARK] + 1
    if run.task.shape == CB:
        live.tally[MARK] = shared
        return _count_line(run.layout, stream, live, actions.first, actions.n, -1, shared)
    new = False
    if actions.n_lines > actions.n and actions.n > 0:
        new = _count_line(run.layout, stream, live, actions.first - 1, actions.n, -1, shared)
    for action in range(actions.n):
        short_loop()
        line = actions.first + action
        found = _count_line(run.layout, stream, live, line, 1, shared, shared + 1 + action)
        new = new or found
    live.tally[MARK] = shared + actions.n
    return new


@inline_kernel
def lease_is_due(live: Live) -> bool:
    """Whether a live slot has learnt as many events as it was given, or a place is to be filled."""
    due = live.fill
    for slot in range(live.n):
        short_loop()
        due = due or live.updates[slot] >= live.lease[slot]
    return due


@inline_kernel
def learner(live: Live, turn: int) -> int:
    """Slot that learns at a turn: the challengers first, the champion last."""
    if turn == live.n - 1:
        return 0
    return live.n - 1 - turn if live.reversed else turn + 1


@inline_kernel
def place_of(live: Live, slot: int, part: int) -> Place:
    """Where part `part` of a slot's model lies."""
    return Place(slot, slot * live.width + part)


@inline_kernel
def best_action(score: NDArray[np.float32], slot: int, n: int) -> int:
    """Action to which a slot gives its lowest score, the first of several."""
    best = 0
    for action in range(1, n):
        short_loop()
        if score[action, slot] < score[best, slot]:
            best = action
    return best


@inline_kernel
def _observe(live: Live, slot: int, who: int, weight: F32, reward: F32) -> None:
    if weight == _ZERO:
        observe_nothing(live.evidence, slot, who)
    else:
        observe(live.evidence[slot, who], np.float64(weight), np.float64(reward))
    live.last[slot, who, 0] = weight
    live.last[slot, who, 1] = reward


@inline_kernel
def observe_rewards(run: Run, score: NDArray[np.float32], n: int, label: Label) -> None:
    """Let the estimators of every challenger see the reward of its own best action and of the champion's."""
    live = run.live
    weight = _ONE / label.probability if label.probability > _ZERO else _ZERO
    if not run.task.exact:
        weight = min(weight, _LARGEST_WEIGHT)
    reward = label.cost if live.cost_is_reward else -label.cost
    earned = reward
    if not _ZERO <= reward <= _ONE:
        live.tally[OUTSIDE] += 1
        if not run.task.exact:
            reward = min(max(reward, _ZERO), _ONE)
    chosen = best_action(score, 0, n)
    champion = weight if chosen == label.action else _ZERO
    for slot in range(1, live.n):
        short_loop()
        choice = best_action(score, slot, n)
        own = weight if choice == label.action else _ZERO
        if live.paired and choice != chosen:
            pair_up(live.pairs[slot], live.scale, np.float64(own), np.float64(champion), np.float64(earned))
        _observe(live, slot, SELF, own, reward)
        _observe(live, slot, CHAMPION, champion, reward)
        live.settled[slot] &= own == _ZERO and champion == _ZERO
        live.updates[slot] += 1
    if live.paired:
        widen(live.scale, np.float64(earned), np.float64(label.probability))
    live.tally[LEARNT] += 1


@inline_kernel
def better_challenger(live: Live) -> int:
    """Last live slot that is proved to be better than the champion; 0 if none is.

    Where a point between the bounds is known it stays one until somebody's weight is not 0: a reward of 0
    raises no lower bound, as no bet wins by it, and lowers no upper one.
    """
    found = 0
    for slot in range(1, live.n):
        short_loop()
        if not live.settled[slot]:
            better, effort = is_better(live.evidence[slot, SELF], live.evidence[slot, CHAMPION], live.test)
            live.settled[slot] = not better and effort != IN_FULL
            if better:
                found = slot
    return found


@inline_kernel
def verdict(live: Live) -> tuple[int, int]:
    """What is proved of a challenger, as a signal, and of which; `BLOCK_END` if nothing is."""
    if not live.paired:
        slot = better_challenger(live)
        return (BOUND_CROSSED if slot > 0 else BLOCK_END), slot
    signal, found = BLOCK_END, 0
    for slot in range(1, live.n):
        short_loop()
        if is_ahead(live.pairs[slot], live.levels[slot]):
            signal, found = BOUND_CROSSED, slot
        elif live.replaceable and signal != BOUND_CROSSED and is_behind(live.pairs[slot], live.levels[slot]):
            signal, found = PROVED_WORSE, slot
    return signal, found


@entry_kernel
def copy_lane(weights: NDArray[np.float32], cells: NDArray[np.int64], source: int, target: int) -> None:
    """Copy what differs in some cells from one lane to another; zeros of either sign are equal, as in VW."""
    for cell in cells:
        for field in range(weights.shape[1]):
            if weights[cell, field, target] != weights[cell, field, source]:
                weights[cell, field, target] = weights[cell, field, source]


@entry_kernel
def swap_lanes(weights: NDArray[np.float32], cells: NDArray[np.int64], one: int, other: int) -> None:
    """Swap some cells of two lanes."""
    for cell in cells:
        for field in range(weights.shape[1]):
            if weights[cell, field, one] != weights[cell, field, other]:
                kept = weights[cell, field, one]
                weights[cell, field, one] = weights[cell, field, other]
                weights[cell, field, other] = kept
