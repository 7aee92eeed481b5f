"""The models of ``--epsilon_decay``: let them learn, compare them, reset one.

The models are ordered by age: the first is the youngest, the last is the champion. For each model there is
evidence on its reward since its own reset, and since the reset of each younger model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.engine.policies.policy_kernels import learn_as, part_of, score_all
from onlineauto.engine.records.task import DecayTally
from onlineauto.estimators.robust_kernels import LARGEST_WEIGHT, LOWER, T, is_better, observe
from onlineauto.explorers.pmf_kernels import greedy
from onlineauto.explorers.ranking_kernels import FILLED, rank
from onlineauto.jit import F32, inline_kernel, kernel, short_loop
from onlineauto.learners.gradient_kernels import GRADIENTS, LATEST, NORM, SCALE, WEIGHT, W

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.engine.records.loop import Actions, Buffers, Label, LoopRun
    from onlineauto.engine.records.task import Decay

_ZERO = np.float32(0)
_ONE = np.float32(1)
_LARGEST_WEIGHT = np.float32(LARGEST_WEIGHT)
_POWER = np.float64(np.float32(-1) / np.float32(3))
_EPSILON = 0
"""Index of the champion's ε among the explorer's numbers."""


@inline_kernel
def _decay_epsilon(initial: F32, learnt: int) -> F32:
    """Return the ε (float32) of a model from its initial ε and the number of events that it has `learnt`."""
    return initial * np.float32(np.float64(learnt + 1) ** _POWER)


@inline_kernel
def _age(decay: Decay, model: int) -> int:
    """Return the number of events that a model has learnt since its reset."""
    return int(decay.evidence[model, model, LOWER, T])


@inline_kernel
def epsilon_of(run: LoopRun, model: int) -> F32:
    """Return the current ε (float32) of a model."""
    decay = run.task.decay
    if decay.constant:
        return run.task.exploration.epsilon
    return _decay_epsilon(decay.initial, _age(decay, model))


@kernel
def _probability(run: LoopRun, action: int, n: int, model: int, explores: bool, buffers: Buffers) -> F32:
    """Return the probability (float32) of `action` by `FILLED` scores: ε-greedy if the model `explores`."""
    score, order, pmf = buffers.explored[FILLED], buffers.order, buffers.cost
    rank(score, n, order)
    if not explores:
        return _ONE if order[0] == action else _ZERO
    for i in range(n):
        pmf[i] = score[order[i]]
    greedy(pmf, n, epsilon_of(run, model), run.task.exploration.first_only)
    for i in range(n):
        if order[i] == action:
            return pmf[i]
    return _ZERO


@kernel
def _reward(run: LoopRun, label: Label, counts: bool) -> F32:
    """Return a label's reward (float32), scaled to [0, 1] and clipped; `counts` tallies those outside."""
    decay = run.task.decay
    reward = label.cost if decay.cost_is_reward else -label.cost
    reward = (reward - decay.low) / (decay.high - decay.low)
    if reward < _ZERO or reward > _ONE:
        decay.tally[DecayTally.OUTSIDE_RANGE] += counts
        reward = min(max(reward, _ZERO), _ONE)
    return reward


@kernel
def _observe(run: LoopRun, label: Label, model: int, n: int, buffers: Buffers) -> None:
    """Add an event to the evidence on a model, from the scores (`FILLED`) computed before it was learnt."""
    decay, champion = run.task.decay, model == run.task.exploration.policies - 1
    reward, explores = _reward(run, label, champion), champion or decay.explores
    share = _probability(run, int(label.action), n, model, explores, buffers)
    weight = share / label.probability if label.probability > _ZERO else _ZERO
    weight = weight if run.task.quirks.raw_rewards else min(weight, _LARGEST_WEIGHT)
    for since in range(model + 1):
        observe(decay.evidence[model, since], np.float64(weight), np.float64(reward))


@kernel
def visit_models(
    run: LoopRun, actions: Actions, label: Label, slot: int, learns: bool, buffers: Buffers
) -> tuple[int, int]:
    """Let all models of live config `slot` score and learn an event, the champion first; see `score_all`.

    Unless the event is learnt, only the champion scores. Only live config 0 collects evidence.
    """
    decay, n, models = run.task.decay, actions.n, run.task.exploration.policies
    counted = printed = 0
    for model in range(models - 1, -1 if learns else models - 2, -1):
        champion, policy = model == models - 1, decay.place[model]
        counted, printed = score_all(run, actions, label, slot, part_of(run, policy), buffers)
        if champion:
            decay.epsilon[0] = epsilon_of(run, model)
            run.task.exploration.numbers[_EPSILON] = decay.epsilon[0]
            for action in range(n):
                short_loop()
                buffers.score[action, slot] = buffers.explored[FILLED, action]
        if learns and slot == 0:
            _observe(run, label, model, n, buffers)
        if learns:
            learn_as(run, actions, label, slot, policy, champion and slot == 0, buffers)
    return counted, printed


@kernel
def _clear_lane(run: LoopRun, lane: int) -> None:
    """Reset a lane to the state before the first event."""
    model, decay = run.model, run.task.decay
    for cell in range(len(model.touched)):
        if model.touched[cell] or decay.everywhere:
            model.touched[cell] = True
            model.weights[cell, lane] = decay.unlearnt[W]
            for field in (GRADIENTS, SCALE, LATEST):
                model.statistics[cell, field, lane] = decay.unlearnt[1 + field]
    if not run.task.quirks.begins_anew_in_part:
        model.lanes[lane, NORM] = model.lanes[lane, WEIGHT] = 0.0


@kernel
def _reset_model(run: LoopRun, model: int) -> None:
    """Reset model `model` of every live config to the state before the first event."""
    models, policy = run.task.exploration.policies, run.task.decay.place[model]
    if run.task.quirks.begins_anew_in_part:
        for k in range(run.model.weights.shape[1] // models):
            _clear_lane(run, k * models + policy)
        return
    lanes = run.task.parts // models * run.live.part_step
    for k in range(lanes):
        _clear_lane(run, policy * lanes + k)
    for slot in range(len(run.model.sums)):
        run.model.sums[slot, 2 * policy] = run.model.sums[slot, 2 * policy + 1] = 0


@inline_kernel
def _copy(bounds: NDArray[np.float64], to: NDArray[np.float64]) -> None:
    """Copy the evidence of one estimator to another."""
    for bound in range(bounds.shape[0]):
        for entry in range(bounds.shape[1]):
            to[bound, entry] = bounds[bound, entry]


@kernel
def _move_up(run: LoopRun, last: int, distance: int) -> None:
    """Move models 0 to `last` (-1: none) up by `distance`, overwriting others; reset the first `distance`."""
    decay, models = run.task.decay, run.task.exploration.policies
    place, evidence = decay.place, decay.evidence
    for model in range(last, -1, -1):
        for since in range(model + 1):
            _copy(evidence[model, since], evidence[model + distance, since + distance])
        place[model], place[model + distance] = place[model + distance], place[model]
    for model in range(last + distance + 1 if last >= 0 else models, models):
        for since in range(last + 1, distance - 1, -1):
            _copy(evidence[model, since - distance], evidence[model, since])
    for model in range(models):
        evidence[model, : min(model + 1, distance)] = 0.0
    for model in range(distance):
        _reset_model(run, model)


@kernel
def compare_models(run: LoopRun) -> None:
    """Make a challenger the champion if it is proved to be better; drop a challenger that is too old."""
    decay, champion = run.task.decay, run.task.exploration.policies - 1
    for model in range(champion - 1, -1, -1):
        if _age(decay, model) >= decay.min_events:
            own, other = decay.evidence[model, model], decay.evidence[champion, model]
            if is_better(own, other, decay.test)[0]:
                decay.tally[DecayTally.PROMOTED] += 1
                _move_up(run, model, champion - model)
                break
    whole = np.float32(champion + 1 + decay.shift)
    for model in range(champion - 1, -1, -1):
        power = np.float64(np.float32(model + 1 + decay.shift) / whole)
        age = _age(decay, model)
        if age > decay.min_scope and np.float64(age) > np.float64(_age(decay, champion)) ** power:
            decay.tally[DecayTally.DROPPED] += 1
            _move_up(run, model - 1, 1)
            break
