"""Visits to the actions of an event, or to a single line: score, estimate, learn.

An event takes up to three passes over its actions. The first pass, under ``dr`` only, estimates the cost of
each action. The second scores each action. The third learns the logged action, or all. A pass lists the
features of an action once, for all live configs. Live configs take turns instead if they learn different
costs, or share penalties and would change one another's weights.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from onlineauto.engine.event.example_kernels import (
    apply_link,
    begin_squares,
    learn,
    list_action,
    predict,
    shown_features,
)
from onlineauto.engine.event.live_config_kernels import compares_rewards, learner, mix_predictions, place_of
from onlineauto.engine.event.pass_kernels import Pass, actions_to_visit, target_of, weight_of
from onlineauto.engine.event.score_kernels import score_actions, scores_directly
from onlineauto.engine.records.loop import Label, LoopRun
from onlineauto.engine.records.task import Shape
from onlineauto.explorers.ranking_kernels import learnt_probability
from onlineauto.jit import call_at, inline_kernel, short_loop
from onlineauto.learners.gradient_kernels import (
    MAX_LABEL,
    MIN_LABEL,
    LearnedLabel,
    clip,
    has_fours,
    see_label,
    update_four,
)
from onlineauto.learners.loss_kernels import MTR, loss_value

if TYPE_CHECKING:
    from onlineauto.engine.records.loop import Actions, Buffers, Context, Results
    from onlineauto.features.records import Example, Records

_ZERO = np.float32(0)
_ONE = np.float32(1)


@inline_kernel
def _goes_apart(run: LoopRun, learns: bool) -> bool:
    """Return whether live configs take turns: they learn different costs, or share penalties."""
    if not learns or run.live.n == 1:
        return False
    together = run.model.penalised[run.live.slot_step] == run.model.penalised[0]
    if together and (run.rule.l1 > 0.0 or run.rule.l2 > 0.0):
        return True
    for slot in range(run.live.n):
        short_loop()
        if run.task.shape != Shape.SIMPLE and run.model.settings[slot].cb_type != MTR:
            return True
    return False


@inline_kernel
def _learn_fours(
    run: LoopRun, actions: Actions, action: int, label: Label, example: Example, buffers: Buffers
) -> bool:
    """Let all live configs learn an action, four at a time; return False if they must learn one by one."""
    n, score, cost = run.live.n, buffers.score, label.cost
    if not has_fours(run.rule, run.model, (n - 1) // 4 * 4):
        return False
    finite = bool(not run.rule.guarded or math.isfinite(cost))
    if finite:
        see_label(run.rule, run.model.shared, cost)
    for slot in range(0, n, 4):
        short_loop()
        w0 = weight_of(run, actions, label, slot, 0)
        w1 = weight_of(run, actions, label, slot + 1, 0) if slot + 1 < n else _ZERO
        w2 = weight_of(run, actions, label, slot + 2, 0) if slot + 2 < n else _ZERO
        w3 = weight_of(run, actions, label, slot + 3, 0) if slot + 3 < n else _ZERO
        lessons = (
            LearnedLabel(cost, w0),
            LearnedLabel(cost, w1),
            LearnedLabel(cost, w2),
            LearnedLabel(cost, w3),
        )
        raw = (score[action, slot], score[action, slot + 1], score[action, slot + 2], score[action, slot + 3])
        together = finite and update_four(run.rule, run.model, slot, example, raw, lessons)
        for k in range(min(4, n - slot)):
            short_loop()
            if not (together and run.model.settings[slot + k].plain):
                learn(run, place_of(run.live, slot + k, 0), example, raw[k], lessons[k], action, buffers)
    return True


@inline_kernel
def visit_actions(
    context: Context,
    run: LoopRun,
    row: Records,
    actions: Actions,
    label: Label,
    learns: bool,
    buffers: Buffers,
) -> None:
    """Score, estimate and learn an event: fill `buffers.score`, `buffers.target` and the event's `row`."""
    simple = run.task.shape == Shape.SIMPLE
    counted = printed = 0
    apart = _goes_apart(run, learns)
    directly = not apart and scores_directly(run)
    begin_squares(actions.n, buffers)
    for turn in range(run.live.n if apart else 1):
        short_loop()
        of_champion = not apart or turn == run.live.n - 1
        cb_type = run.model.settings[learner(run.live, turn) if apart else 0].cb_type
        for phase in range(3):
            first, last = actions_to_visit(run, actions, label, learns, phase, cb_type)
            if phase == Pass.LEARN and of_champion and run.task.exploration.bounds:
                call_at(context.units.bounds, (context, run.stream, actions, label.weight))
            if phase == Pass.SCORE and directly:
                slots = run.live.n if learns or run.live.mixing or run.live.ensemble.on else 1
                only = -1 if compares_rewards(run.live) else int(label.action)
                counted, printed = score_actions(run, actions, slots, only, label.initial, buffers)
                continue
            for action in range(first, last):
                short_loop()
                logged = bool(simple or action == label.action)
                screens = bool(phase == Pass.LEARN and of_champion and logged and run.screen.many > 0)
                example, numbers = list_action(run, actions, action, screens, label.cost, buffers)
                fours = phase == Pass.LEARN and directly and run.live.n > 1
                if fours and _learn_fours(run, actions, action, label, example, buffers):
                    continue
                for turn_of_config in range(run.live.n if learns and not apart else 1):
                    short_loop()
                    slot = learner(run.live, turn if apart else turn_of_config) if learns else 0
                    place = place_of(run.live, slot, 1 if phase == Pass.ESTIMATE else 0)
                    estimates = (
                        phase == Pass.ESTIMATE and action == label.action and label.probability > _ZERO
                    )
                    if phase == Pass.LEARN and directly and (simple or cb_type == MTR):
                        raw = buffers.score[action, slot]  # Nothing was learnt since this score.
                    else:
                        raw = predict(run, place, example, label.initial)
                    if phase == Pass.LEARN or estimates:
                        if phase == Pass.LEARN:
                            target = target_of(run, label, action, buffers.target[action], cb_type)
                            lesson = LearnedLabel(target, weight_of(run, actions, label, slot, 0))
                        else:
                            lesson = LearnedLabel(label.cost, label.weight / label.probability)
                        prediction = learn(run, place, example, raw, lesson, action, buffers)
                    else:
                        prediction = clip(run.model.shared, raw)
                    if simple and slot == 0:
                        row.raw, row.prediction = raw, prediction
                    if phase == Pass.SCORE:
                        buffers.score[action, slot] = raw
                    elif phase == Pass.ESTIMATE:
                        buffers.target[action] = apply_link(run.task.output.link, prediction)
                    if slot == 0 and (phase == Pass.SCORE or (simple and not run.live.searching)):
                        counted += numbers.own + numbers.crossed
                        printed += shown_features(run, actions, action, numbers)
    if simple and directly:
        row.raw = buffers.score[0, 0]
        row.prediction = clip(run.model.shared, row.raw)
        if run.live.mixing:
            row.raw = row.prediction = mix_predictions(run, buffers.score)
    row.shown_features = printed + actions.n * actions.repeated
    row.n_features = row.shown_features if run.task.exploration.active else counted + actions.once


@inline_kernel
def finish_line(run: LoopRun, results: Results, event: int, label: Label) -> bool:
    """Fill in the loss and the final prediction of a single line; return whether it is labelled."""
    task, rule, shared = run.task, run.rule, run.model.shared
    row = results.rows[event]
    labelled = label.action >= 0
    if labelled and label.weight > _ZERO:
        low, high = np.float32(shared[MIN_LABEL]), np.float32(shared[MAX_LABEL])
        loss = loss_value(rule.loss, rule.low, rule.high, row.prediction, label.cost, low, high)
        row.loss = loss * label.weight
    row.prediction = apply_link(task.output.link, row.prediction)
    if task.output.binary:
        row.prediction = _ONE if row.prediction > _ZERO else -_ONE
        if labelled and abs(label.cost) == _ONE:
            row.loss = _ZERO if label.cost == row.prediction else label.weight
    return bool(labelled)


@inline_kernel
def label_to_learn(run: LoopRun, actions: Actions, label: Label) -> Label:
    """Return the label that models learn; an explorer that `regresses` replaces its probability."""
    if not run.task.exploration.regresses or label.action < 0:
        return label
    probability = learnt_probability(run.task.exploration, label.probability, int(label.action), actions.n)
    return Label(label.action, label.cost, probability, label.weight, label.initial)
