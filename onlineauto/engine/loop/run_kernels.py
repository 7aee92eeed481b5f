"""The loop: predict, learn and account for the events of a block, or for a single event.

The loop stops when the search must make a decision. The cursor records why it stopped and where it continues.
The passes over the actions of an event are in `onlineauto.engine.loop.visit_kernels`.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from onlineauto.engine.ensemble.evidence_kernels import ensemble_column, predicts
from onlineauto.engine.event.event_kernels import learns_from, open_event
from onlineauto.engine.event.keep_kernels import keep_weight, weigh
from onlineauto.engine.event.new_action_kernels import note_learnt_parts
from onlineauto.engine.event.outcome_kernels import explore, finish_bandit, leave_out, open_row, rank_placed
from onlineauto.engine.event.pass_kernels import account, run_on
from onlineauto.engine.loop.follow_kernels import hand_over
from onlineauto.engine.loop.visit_kernels import finish_line, label_to_learn, visit_actions
from onlineauto.engine.outliers.outlier_kernels import (
    find_outlier,
    is_far,
    outlier_of_event,
    without_label,
)
from onlineauto.engine.records.loop import Cursor, EventMode, LoopSignal, Outlier
from onlineauto.engine.records.task import Shape
from onlineauto.estimators.scale_kernels import HIGH, LOW
from onlineauto.estimators.typical_size_kernels import FIRST_EVENTS
from onlineauto.explorers.ranking_kernels import UNSURE, note_cost, note_error, note_learnt
from onlineauto.features.group_kernels import forget
from onlineauto.features.records import CONSTANT_HASH
from onlineauto.formats.lines.reader_state_kernels import FINE, NAMES, SIZES, SPANS
from onlineauto.jit import call_at, entry_kernel, kernel
from onlineauto.learners.gradient_kernels import ORIGIN, clip

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.engine.records.loop import Context, LoopRun, Results
    from onlineauto.features.records import Stream
    from onlineauto.formats.lines.reader_state_kernels import Reader

_ZERO = np.float32(0)
_ONE = np.float32(1)

FAR = 16.0
"""Costs are far from 0 if all exceed this many times their range."""


@kernel
def finds_origin(run: LoopRun) -> bool:
    """Return whether all costs so far are far from 0; if so, set the origin to their middle.

    Costs are looked at after `FIRST_EVENTS` learnt events, and whenever that number has doubled. Learning
    must restart when the origin is found.
    """
    learnt = run.model.outliers[Outlier.NONE]
    if not run.task.finds_origin or learnt < FIRST_EVENTS or learnt & (learnt - 1) != 0:
        return False
    low, high = run.live.statistics.scale[LOW], run.live.statistics.scale[HIGH]
    if run.model.shared[ORIGIN] != 0.0 or not low < high or max(low, -high) <= FAR * (high - low):
        return False
    sign = -1.0 if not run.live.tests.cost_is_reward else 1.0
    run.model.shared[ORIGIN] = np.float32(sign * 0.5 * (low + high))
    return True


@entry_kernel
def run_events(
    context: Context,
    stream: Stream,
    results: Results,
    cursor: NDArray[np.int64],
    stop: int,
    mode: int,
) -> None:
    """Predict, learn and account for events up to `stop`, or until a decision is due.

    The cursor contains the event to continue from, and receives the signal. `mode` is a `EventMode`. If
    `results` say so, an ensemble follows on another thread, and only live configs run here.
    """
    run = run_on(context, stream)
    buffers, units = context.buffers, context.units
    ahead = len(results.ahead.handed) > 0
    training = bool(run.task.training and mode == EventMode.LEARN)
    searching = bool(run.live.searching and training)
    while cursor[Cursor.EVENT] < stop:
        event = cursor[Cursor.EVENT]
        actions, label = open_event(run, event)
        open_row(run, results, event, actions.n)
        holdout = run.stream.holdout[event]
        learns = training and learns_from(run, label, holdout)
        counted = mode == EventMode.LEARN and learns_from(run, label, False)
        if run.task.slots:
            known = outlier_of_event(stream, results.rows, event)
            if known != Outlier.NONE:
                results.rows[event].outlier = known
        weight = keep_weight(run, label) if learns else _ONE
        if weight == _ZERO:
            leave_out(run, results, event, label)
            forget(run.scratch, 0, actions.n_shared)
            cursor[Cursor.EVENT] += 1
            if searching:
                call_at(units.after_event, (context, stream, cursor, actions, label, weight))
            continue
        if counted and cursor[Cursor.STEP] == 0 and not is_far(results.rows[event].outlier):
            outlier = find_outlier(context, stream, event, label)
            if outlier != Outlier.NONE or results.rows[event].outlier != Outlier.BEGINS_AGAIN:
                results.rows[event].outlier = outlier
            begins = outlier == Outlier.BEGINS_AGAIN and training
            if begins or (searching and learns and outlier == Outlier.NONE and finds_origin(run)):
                cursor[Cursor.SIGNAL] = LoopSignal.BEGIN_AGAIN
                forget(run.scratch, 0, actions.n_shared)
                return
        if counted and is_far(results.rows[event].outlier):
            label, learns = without_label(label, results.rows[event].outlier), False
        if searching:
            call_at(units.before_event, (context, stream, cursor, actions, learns))
            if cursor[Cursor.SIGNAL] != LoopSignal.BLOCK_END:
                forget(run.scratch, 0, actions.n_shared)
                return
        row, exploration = results.rows[event], run.task.exploration
        if exploration.sees_errors:
            buffers.explored[UNSURE, : actions.n] = _ZERO
        if run.task.shape == Shape.CB_ADF:
            note_learnt_parts(run, actions, int(label.action) if learns else -1, buffers)
        if exploration.policies > 0:
            rows = results.rows[event : event + 1]
            call_at(
                units.policies, (context, stream, rows, actions, weigh(run, label, weight), learns, learns)
            )
        else:
            learnt = weigh(run, label_to_learn(run, actions, label), weight)
            visit_actions(context, run, row, actions, learnt, learns, buffers)
            if ahead:
                hand_over(context, results, event, actions, label, weight, learns)
            elif run.live.ensemble.on:
                call_at(units.score_ensemble, (context, stream, actions, learnt, learns))
        if run.task.shape == Shape.SIMPLE:
            if predicts(run.live.ensemble):
                row.raw = buffers.score[0, ensemble_column(buffers)]
                row.prediction = clip(run.model.shared, row.raw)
            labelled = finish_line(run, results, event, label)
        elif ahead:
            labelled = bool(label.action >= 0 and label.probability > _ZERO)
        else:
            column = ensemble_column(buffers) if predicts(run.live.ensemble) else 0
            new = rank_placed(run, results, event, buffers, column)
            if exploration.active:
                explore(context, results, event, label, learns, mode, new)
            labelled = finish_bandit(run, results, event, label, learns, buffers)
            if learns:
                note_cost(exploration, label.cost - label.initial)
                if exploration.sees_errors:
                    note_error(exploration, label.cost, buffers.score[label.action, column], weight)
                note_learnt(exploration)
        row.labelled = labelled
        forget(run.scratch, 0, actions.n_shared)
        if run.task.slots:
            counts = bool(mode == EventMode.LEARN)
            call_at(units.ccb_slot, (context, stream, results, event, counts, holdout))
        elif mode == EventMode.LEARN:
            account(run.model, label.weight, labelled, holdout)
        cursor[Cursor.EVENT], cursor[Cursor.STEP] = event + 1, 0
        if searching and learns:
            if run.live.ensemble.on and not ahead:  # before this reward widens the range of rewards
                call_at(units.learn_ensemble, (context, stream, cursor, actions, label, weight))
            call_at(units.after_event, (context, stream, cursor, actions, label, weight))
            if cursor[Cursor.SIGNAL] != LoopSignal.BLOCK_END:
                return
    cursor[Cursor.SIGNAL] = LoopSignal.BLOCK_END


class EventReport(IntEnum):
    """Entries of `Single.report`, the report on a single event."""

    RAN = 0  # whether the loop was run over the event
    ENDED = 1  # whether the loop reached the end of the event
    PREDICTED = 2  # if so, the number of predictions


class Single(NamedTuple):
    """A single event: the kernels that read and run it, its sizes, and the results of the loop."""

    loop: int  # address of the loop
    mode: int  # `EventMode`
    read: int  # address of the kernel that reads encoded events, 0 if there is none
    data: NDArray[np.uint8]  # the encoded event, and free space after it
    sizes: NDArray[np.int64]  # [SIZES]: sizes measured by the reader
    most: NDArray[np.int64]  # [SIZES]: maximum sizes; the entry NAMES is the number of known names
    seen: NDArray[np.bool_]  # by namespace: whether it had features before; empty if all had
    cursor: NDArray[np.int64]
    row: NDArray[np.uint64]  # the event's row in the results, as words
    prediction: NDArray[np.float32]  # by action; for a single line the first entry
    report: NDArray[np.int64]  # [EventReport]


@entry_kernel
def read_single(
    end: int, reader: Reader, context: Context, stream: Stream, results: Results, event: Single
) -> None:
    """Read the first `end` bytes of the encoded event, then run the loop over the event if it was read."""
    call_at(event.read, (event.data, end, reader, event.sizes))
    event.report[EventReport.RAN] = 0
    if event.sizes[FINE]:
        run_single(context, stream, results, event)


@entry_kernel
def run_single(context: Context, stream: Stream, results: Results, event: Single) -> None:
    """Run the loop over a single event and list its predictions, if it is small and has no new namespace."""
    report = event.report
    report[EventReport.RAN] = report[EventReport.ENDED] = 0
    for i in range(NAMES, SIZES):
        if event.sizes[i] > event.most[i]:
            return
    if len(event.seen) > 0:
        for i in range(event.sizes[SPANS]):
            if not event.seen[stream.spans[i].namespace]:
                return
    constant = stream.features[stream.constant]  # an earlier, larger event may have overwritten it
    constant.hash, constant.value = CONSTANT_HASH, np.float32(1)
    event.row[:] = 0
    event.cursor[:] = 0
    resume_single(context, stream, results, event)
    report[EventReport.RAN] = 1


@entry_kernel
def resume_single(context: Context, stream: Stream, results: Results, event: Single) -> None:
    """Run the loop over a single event from its cursor on, and list the predictions at the end."""
    call_at(event.loop, (context, stream, results, event.cursor, len(stream.holdout), event.mode))
    if event.cursor[Cursor.SIGNAL] != LoopSignal.BLOCK_END:
        return
    row, n = results.rows[0], 1
    if context.task.shape == Shape.SIMPLE:
        event.prediction[0] = row.prediction
    else:
        n = row.n_actions
        for i in range(n):
            event.prediction[results.action[i]] = results.score[i]
    event.report[EventReport.ENDED], event.report[EventReport.PREDICTED] = 1, n
