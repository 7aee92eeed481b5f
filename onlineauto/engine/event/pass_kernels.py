"""Passes over the actions of an event: which actions each pass visits, and with which targets and weights.

Rare paths receive the sealed context and open it themselves. Passing `LoopRun` by value would keep all its
arrays live across the hot loop and slow down every event.
"""

from __future__ import annotations

import math
from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np

from onlineauto.engine.records.loop import LoopRun
from onlineauto.engine.records.task import Shape
from onlineauto.explorers.sample_kernels import put_first
from onlineauto.jit import F32, call_at, inline_kernel, kernel
from onlineauto.learners.gradient_kernels import HOLDOUT_WEIGHT, UNLABELLED_WEIGHT, T
from onlineauto.learners.loss_kernels import DR, IPS, MTR, dr_cost, ips_cost, mtr_weight

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.engine.records.loop import Actions, Context, Label
    from onlineauto.features.records import Stream
    from onlineauto.learners.gradient_kernels import Model


class Pass(IntEnum):
    """Passes over the actions of an event. Their order matters, because the lanes may share penalties."""

    ESTIMATE = 0
    SCORE = 1
    LEARN = 2


_ZERO = np.float32(0)


@inline_kernel
def actions_to_visit(
    run: LoopRun, actions: Actions, label: Label, learns: bool, phase: int, cb_type: int
) -> tuple[int, int]:
    """Return the range [first, end) of the actions that the pass `phase` visits."""
    if phase == Pass.SCORE:
        # Learning a single line predicts it as well. Only a search needs the scores before learning.
        return 0, (0 if run.task.shape == Shape.SIMPLE and learns and not run.live.searching else actions.n)
    if not learns or (phase == Pass.ESTIMATE and (cb_type != DR or run.task.shape == Shape.SIMPLE)):
        return 0, 0
    if phase == Pass.LEARN and cb_type == MTR and run.task.shape != Shape.SIMPLE:
        return int(label.action), int(label.action) + 1
    return 0, actions.n


@inline_kernel
def target_of(run: LoopRun, label: Label, action: int, estimate: F32, cb_type: int) -> F32:
    """Return the cost (float32) that a model learns for `action`, by `cb_type`."""
    if action != label.action:
        return estimate if cb_type == DR else _ZERO
    if cb_type == IPS:
        return ips_cost(label.cost, label.probability, run.task.clip_p)
    if cb_type == DR:
        if label.probability > _ZERO:
            return dr_cost(label.cost, label.probability, run.task.clip_p, estimate)
        return estimate
    return label.cost


@inline_kernel
def weight_of(run: LoopRun, actions: Actions, label: Label, slot: int, policy: int) -> F32:
    """Return the importance weight (float32) with which `policy` of live config `slot` learns an event.

    Under ``mtr`` this also counts the event and its actions, whose mean number scales the weight.
    """
    if run.task.shape == Shape.SIMPLE or run.model.settings[slot].cb_type != MTR:
        return label.weight
    sums, at = run.model.sums[slot], 2 * policy
    sums[at] += actions.n
    sums[at + 1] += 1
    weight = label.weight * mtr_weight(label.probability, run.task.clip_p, sums[at + 1], sums[at])
    return weight if not run.rule.guarded or math.isfinite(weight) else _ZERO


@inline_kernel
def run_on(context: Context, stream: Stream) -> LoopRun:
    """Return the `LoopRun` of a context on the block `stream`."""
    return LoopRun(
        context.task, context.rule, context.layout, context.interactions, context.again,
        context.scratch, stream, context.model, context.live, context.screen,
    )  # fmt: skip


@inline_kernel
def over_again(run: LoopRun) -> LoopRun:
    """Return `run` for a second pass over the features of an event, when VW has dropped interactions."""
    return LoopRun(
        run.task, run.rule, run.layout, run.again, run.again,
        run.scratch, run.stream, run.model, run.live, run.screen,
    )  # fmt: skip


@inline_kernel
def account(model: Model, weight: F32, labelled: bool, holdout: bool) -> None:
    """Add the weight of an event to the time by which learning rates decay."""
    model.shared[T] += weight
    if labelled and holdout:
        model.shared[HOLDOUT_WEIGHT] += weight
    elif not labelled:
        model.shared[UNLABELLED_WEIGHT] += weight


@kernel
def call_explorer(context: Context, order: NDArray[np.int32], score: NDArray[np.float32]) -> None:
    """Replace ranked scores by the probabilities of the explorer, whose kernel is called by its address."""
    call_at(context.units.explore, (context.task.exploration, order, score, context.buffers.explored))


@kernel
def put_drawn_first(
    context: Context,
    order: NDArray[np.int32],
    score: NDArray[np.float32],
    logged: int,
    name: np.uint64,
    named: bool,
    counts_draw: bool,
) -> None:
    """Put the logged action or a drawn one first: `put_first` as a kernel that is not inlined."""
    put_first(context.task.exploration, order, score, logged, name, named, counts_draw)
