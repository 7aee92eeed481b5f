"""The one loop: predict, learn and account for the events of a block.

An event is gone through in passes over its actions: under ``dr`` estimate the cost of all; score all; then
learn the logged one or all. Each pass lists the features of an action once, for all live slots. Where slots
could disturb one another, since they share the penalties as in VW, or do not learn the same costs, each has a
turn of its own.

The loop stops where something must be decided, and says why in the cursor, from which it goes on.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from onlineauto.engine.ensembles.ensemble_kernels import visit_members
from onlineauto.engine.event.ccb_slot_kernels import settle_slot
from onlineauto.engine.event.cost_bound_kernels import bound_costs
from onlineauto.engine.event.event_kernels import learns_from, open_event
from onlineauto.engine.event.example_kernels import (
    apply_link,
    begin_squares,
    list_action,
    open_action,
    predict_or_learn,
    shown_features,
    squares_of,
)
from onlineauto.engine.event.live_config_kernels import (
    learner,
    mixed,
    observe_losses,
    observe_rewards,
    place_of,
    signal_before,
    verdict,
)
from onlineauto.engine.event.outcome_kernels import open_row, settle_bandit
from onlineauto.engine.event.pass_kernels import (
    ESTIMATE,
    LEARN,
    SCORE,
    account,
    run_on,
    target_of,
    visited,
    weight_of,
)
from onlineauto.engine.event.score_kernels import score_actions, scores_directly
from onlineauto.engine.event.state import (
    ASIDE,
    BLOCK_END,
    CB_ADF,
    EVENT,
    SIGNAL,
    SIMPLE,
    SLOT,
    STEP,
    STREAM,
    Label,
    Run,
)
from onlineauto.explorers.explore_kernels import note_cost, note_learnt, taught_probability
from onlineauto.features._kernels import forget
from onlineauto.features.product_kernels import count_all
from onlineauto.jit import entry_kernel, inline_kernel, opened, short_loop
from onlineauto.learners._kernels import MAX_LABEL, MIN_LABEL, clip, see_label
from onlineauto.learners.cost_kernels import MTR
from onlineauto.learners.loss_kernels import loss_value
from onlineauto.learners.update_kernels import has_fours, update_four

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.engine.event.state import Actions, Buffers, Context, Results
    from onlineauto.features.records import Example, Stream
    from onlineauto.jit import Sealed

_ZERO = np.float32(0)
_ONE = np.float32(1)
_UNKNOWN = np.float32(np.nan)


@inline_kernel
def _tests_unlabelled(run: Run) -> bool:
    """Whether leases are spent on events without a label too, as VW does unless it explores."""
    return run.task.exact and run.task.shape == CB_ADF and not run.task.exploration.active


@inline_kernel
def _goes_apart(run: Run, learns: bool) -> bool:
    """Whether each slot has its own turn, since it learns other costs or changes the others' weights."""
    if not learns or run.live.n == 1:
        return False
    if run.task.exact and (run.rule.l1 > 0.0 or run.rule.l2 > 0.0):
        return True
    for slot in range(run.live.n):
        short_loop()
        if run.task.shape != SIMPLE and run.model.settings[slot].cb_type != MTR:
            return True
    return False


@inline_kernel
def _learn_fours(
    run: Run, actions: Actions, action: int, label: Label, example: Example, buffers: Buffers
) -> bool:
    """Let all live slots learn an action, four at a time; False if they are to learn one by one."""
    n, score, settings = run.live.n, buffers.score, run.model.settings
    if not has_fours(run.rule, run.model, (n - 1) // 4 * 4):
        return False
    finite = bool(not run.rule.guarded or math.isfinite(label.cost))
    if finite:
        see_label(run.rule, run.model.shared, label.cost)
    for slot in range(0, n, 4):
        short_loop()
        w0 = weight_of(run, actions, label, slot, 0)
        w1 = weight_of(run, actions, label, slot + 1, 0) if slot + 1 < n else _ZERO
        w2 = weight_of(run, actions, label, slot + 2, 0) if slot + 2 < n else _ZERO
        w3 = weight_of(run, actions, label, slot + 3, 0) if slot + 3 < n else _ZERO
        weight = (w0, w1, w2, w3)
        raw = (score[action, slot], score[action, slot + 1], score[action, slot + 2], score[action, slot + 3])
        learns = (
            bool(finite and w0 > _ZERO and settings[slot].plain),
            bool(finite and w1 > _ZERO and settings[slot + 1].plain),
            bool(finite and w2 > _ZERO and settings[slot + 2].plain),
            bool(finite and w3 > _ZERO and settings[slot + 3].plain),
        )
        together = update_four(run.rule, run.model, slot, example, raw, label.cost, weight, learns)
        for k in range(min(4, n - slot)):
            short_loop()
            if not (together and settings[slot + k].plain):
                place, squares = place_of(run.live, slot + k, 0), buffers.squares[slot + k]
                predict_or_learn(
                    run, place, example, label.initial, label.cost, weight[k], squares, True, raw[k]
                )
    return True


@inline_kernel
def _visit_actions(
    context: Sealed[Context],
    run: Run,
    results: Results,
    event: int,
    actions: Actions,
    label: Label,
    learns: bool,
    buffers: Buffers,
) -> None:
    """Score, estimate and learn: fill `buffers.score`, `buffers.target` and, for a single line, its row."""
    row = results.rows[event]
    simple = run.task.shape == SIMPLE
    counted = shown = 0
    apart = _goes_apart(run, learns)
    directly = not apart and scores_directly(run)
    begin_squares(actions.n, buffers)
    for turn in range(run.live.n if apart else 1):
        short_loop()
        of_champion = not apart or turn == run.live.n - 1
        cb_type = run.model.settings[learner(run.live, turn) if apart else 0].cb_type
        for phase in range(3):
            first, last = visited(run, actions, label, learns, phase, cb_type)
            if phase == LEARN and of_champion and run.task.exploration.bounds:
                bound_costs(context, run.stream, actions, label.weight)
            if phase == SCORE and directly:
                slots = run.live.n if learns or run.live.mixing else 1
                counted, shown = score_actions(run, actions, slots, label.initial, buffers)
                continue
            for action in range(first, last):
                short_loop()
                logged = bool(simple or action == label.action)
                screens = bool(phase == LEARN and of_champion and logged and len(run.screen.gains) > 0)
                example, numbers = list_action(run, actions, action, screens, label.cost, buffers)
                fours = phase == LEARN and directly and run.live.n > 1
                if fours and _learn_fours(run, actions, action, label, example, buffers):
                    continue
                for seat in range(run.live.n if learns and not apart else 1):
                    short_loop()
                    slot = learner(run.live, turn if apart else seat) if learns else 0
                    place = place_of(run.live, slot, 1 if phase == ESTIMATE else 0)
                    target, weight, updates = _ZERO, _ONE, phase == LEARN
                    if phase == LEARN:
                        target = target_of(run, label, action, buffers.target[action], cb_type)
                        weight = weight_of(run, actions, label, slot, 0)
                    elif phase == ESTIMATE and action == label.action and label.probability > _ZERO:
                        target, weight, updates = label.cost, label.weight / label.probability, True
                    squares = squares_of(run, buffers, action, slot)
                    score = _UNKNOWN
                    if phase == LEARN and directly and (simple or cb_type == MTR):
                        score = buffers.score[action, slot]  # nothing was learnt since
                    raw, prediction, learnt = predict_or_learn(
                        run, place, example, label.initial, target, weight, squares, updates, score
                    )
                    if learnt:
                        buffers.first_squares[action] = squares
                    if simple and slot == 0:
                        row.raw, row.prediction = raw, prediction
                    if phase == SCORE:
                        buffers.score[action, slot] = raw
                    elif phase == ESTIMATE:
                        buffers.target[action] = apply_link(run.task.link, prediction)
                    if slot == 0 and (phase == SCORE or (simple and not run.live.searching)):
                        counted += numbers.own + numbers.crossed
                        shown += shown_features(run, actions, action, numbers)
    if simple and directly:
        row.raw = buffers.score[0, 0]
        row.prediction = clip(run.model.shared, row.raw)
        if run.live.mixing:
            row.raw = row.prediction = mixed(run, buffers.score)
    row.shown_features = shown + actions.n * actions.repeated
    row.n_features = row.shown_features if run.task.exploration.active else counted + actions.once


@inline_kernel
def _settle_line(run: Run, results: Results, event: int, label: Label) -> bool:
    """Loss and final prediction of a single line; return whether it is labelled."""
    task, rule, shared = run.task, run.rule, run.model.shared
    row = results.rows[event]
    labelled = label.action >= 0
    if labelled and label.weight > _ZERO:
        low, high = np.float32(shared[MIN_LABEL]), np.float32(shared[MAX_LABEL])
        loss = loss_value(rule.loss, rule.low, rule.high, row.prediction, label.cost, low, high)
        row.loss = loss * label.weight
    row.prediction = apply_link(task.link, row.prediction)
    if task.binary:
        row.prediction = _ONE if row.prediction > _ZERO else -_ONE
        if labelled and abs(label.cost) == _ONE:
            row.loss = _ZERO if label.cost == row.prediction else label.weight
    return bool(labelled)


@inline_kernel
def _taught(run: Run, actions: Actions, label: Label) -> Label:
    """The label that the learners are shown."""
    if not run.task.exploration.regresses or label.action < 0:
        return label
    told = taught_probability(run.task.exploration, label.probability, int(label.action), actions.n)
    return Label(label.action, label.cost, told, label.weight, label.initial)


@entry_kernel
def run_events(
    context: Sealed[Context],
    stream: Stream,
    results: Results,
    cursor: NDArray[np.int64],
    stop: int,
    standing: int,
) -> None:
    """Predict, learn and account for events up to `stop`, or until something must be decided.

    The cursor says where to go on and which signal there is; `standing` is what the events are to the model.
    """
    at = opened(context)
    run = run_on(at, stream)
    buffers = at.buffers
    training = bool(run.task.training and standing == STREAM)
    searching = bool(run.live.searching and standing != ASIDE)
    while cursor[EVENT] < stop:
        event = cursor[EVENT]
        actions, label = open_event(run, event)
        open_row(run, results, event, actions.n)
        holdout = run.stream.holdout[event]
        learns = training and learns_from(run, label, holdout)
        tests = bool(learns or (training and _tests_unlabelled(run)))
        if searching:
            recounts = run.task.predicts_apart and (learns or (training and run.task.shape == CB_ADF))
            signal = signal_before(run, event, actions, tests, recounts, cursor)
            if signal != BLOCK_END:
                forget(run.scratch, 0, actions.n_shared)
                cursor[SIGNAL] = signal
                return
        taught = _taught(run, actions, label)
        if run.task.exploration.policies > 0:
            compares = learns or (training and run.task.exact and run.task.shape == CB_ADF)
            row = results.rows[event : event + 1]
            visit_members(context, stream, row, actions, label, learns, compares)
        else:
            _visit_actions(context, run, results, event, actions, taught, learns, buffers)
        if run.task.shape == SIMPLE:
            labelled = _settle_line(run, results, event, label)
        else:
            if learns and run.task.exact and run.task.exploration.samples:  # VW predicts while it learns
                note_cost(run.task.exploration, label.cost)
            labelled = settle_bandit(context, run, results, event, actions, label, learns, standing, buffers)
            if learns:
                note_cost(run.task.exploration, label.cost)
                note_learnt(run.task.exploration)
        results.rows[event].labelled = labelled
        forget(run.scratch, 0, actions.n_shared)
        if run.task.slots:
            settle_slot(context, stream, results, event, bool(standing == STREAM), holdout)
        elif standing == STREAM:
            account(run.model, label.weight, labelled, holdout)
        cursor[EVENT], cursor[STEP] = event + 1, 0
        if searching and tests:
            if run.task.shape != SIMPLE:
                observe_rewards(run, buffers.score, actions.n, taught if run.task.exact else label)
            if run.live.paired:
                observe_losses(run, buffers.score, max(int(label.action), 0), label)
            signal, slot = verdict(run.live)
            if signal != BLOCK_END:
                cursor[SIGNAL], cursor[SLOT] = signal, slot
                return
    cursor[SIGNAL] = BLOCK_END


@entry_kernel
def largest_example(context: Sealed[Context], stream: Stream) -> int:
    """Return the number of features of the largest action of a block, those of all interactions included.

    Where events have slots, each slot is an event of its own here too, as it is to the loop.
    """
    at = opened(context)
    run = run_on(at, stream)
    largest = 0
    for event in range(len(run.stream.holdout)):
        short_loop()
        actions, _ = open_event(run, event)
        for action in range(actions.n):
            short_loop()
            groups, _, _ = open_action(run, actions, action)
            n = max(count_all(run.interactions, run.scratch), count_all(run.again, run.scratch))
            n += count_all(run.screen.interactions, run.scratch)
            for group in range(groups):
                short_loop()
                n += run.scratch.groups[group].end - run.scratch.groups[group].start
            largest = max(largest, n)
            forget(run.scratch, actions.n_shared, groups)
        forget(run.scratch, 0, actions.n_shared)
    return largest
