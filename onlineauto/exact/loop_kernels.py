"""The loop of exact mode: predict, learn and account for the events of a block as Vowpal Wabbit does.

It consists of the primitives of the engine's loop, with these differences:

- A search of ``--cb_adf``, which does not explore, also spends leases on events without a label, and compares
  the live configs on them.
- If an explorer predicts an event before learning it, namespaces are counted both times.
- Models of ``--epsilon_decay`` are also compared on events without a label.
- If actions are drawn, the cost of an event is recorded before the draw, since VW predicts while it learns.
- Rewards are weighted by the probability in the label that the learners receive.
- Bounds on rewards decide; VW does not pair losses.

Source: VW ``automl_impl.cc``, ``cb_explore_adf_common.h``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.engine.event.event_kernels import learns_from, open_event
from onlineauto.engine.event.live_config_kernels import (
    better_challenger,
    count_namespaces,
    observe_rewards,
    observes_namespace,
    signal_before_test,
)
from onlineauto.engine.event.outcome_kernels import explore, finish_bandit, open_row, rank_actions
from onlineauto.engine.event.pass_kernels import account, run_on
from onlineauto.engine.loop.visit_kernels import finish_line, label_to_learn, visit_actions
from onlineauto.engine.records.loop import Cursor, EventMode, LoopSignal, Step
from onlineauto.engine.records.task import Shape
from onlineauto.explorers.ranking_kernels import note_cost, note_learnt
from onlineauto.features.group_kernels import forget
from onlineauto.jit import call_at, entry_kernel, inline_kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.engine.records.loop import Actions, Context, LoopRun, Results
    from onlineauto.features.records import Stream

_ONE = np.float32(1)


@inline_kernel
def _signal_before(
    run: LoopRun, event: int, actions: Actions, recounts: bool, tests: bool, cursor: NDArray[np.int64]
) -> int:
    """Return the signal of the decision that is due before the current event is learnt; advance the step."""
    if observes_namespace(run, event, actions, cursor):
        return LoopSignal.NEW_NAMESPACE
    if cursor[Cursor.STEP] < Step.RECOUNTED:
        cursor[Cursor.STEP] = Step.RECOUNTED
        if recounts:
            count_namespaces(run, event, actions)
    return signal_before_test(run, cursor) if tests else LoopSignal.BLOCK_END


@entry_kernel
def run_events_as_vw(
    context: Context,
    stream: Stream,
    results: Results,
    cursor: NDArray[np.int64],
    stop: int,
    mode: int,
) -> None:
    """Predict, learn and account for events up to `stop`, or until a decision is due.

    The cursor receives the position to continue from and the signal of the decision that is due. `mode`,
    an `EventMode`, says whether the events are part of the stream or predicted without effect on it.
    """
    run = run_on(context, stream)
    buffers, units, exploration = context.buffers, context.units, run.task.exploration
    training = bool(run.task.training and mode == EventMode.LEARN)
    searching = bool(run.live.searching and mode != EventMode.PREDICT)
    trains_on_all = bool(training and run.task.shape == Shape.CB_ADF)
    while cursor[Cursor.EVENT] < stop:
        event = cursor[Cursor.EVENT]
        actions, label = open_event(run, event)
        open_row(run, results, event, actions.n)
        holdout = run.stream.holdout[event]
        learns = training and learns_from(run, label, holdout)
        tests = bool(learns or (trains_on_all and not exploration.active))
        if searching:
            recounts = bool(run.task.predicts_apart and (learns or trains_on_all))
            signal = _signal_before(run, event, actions, recounts, tests, cursor)
            if signal != LoopSignal.BLOCK_END:
                forget(run.scratch, 0, actions.n_shared)
                cursor[Cursor.SIGNAL] = signal
                return
        learnt = label_to_learn(run, actions, label)
        row = results.rows[event]
        if exploration.policies > 0:
            rows, compares = results.rows[event : event + 1], bool(learns or trains_on_all)
            call_at(units.policies, (context, stream, rows, actions, label, learns, compares))
        else:
            visit_actions(context, run, row, actions, learnt, learns, buffers)
        if run.task.shape == Shape.SIMPLE:
            labelled = finish_line(run, results, event, label)
        else:
            if learns and exploration.samples:
                note_cost(exploration, label.cost)
            rank_actions(results, event, buffers, 0)
            if exploration.active:
                explore(context, results, event, label, learns, mode, False)
            labelled = finish_bandit(run, results, event, label, learns, buffers)
            if learns:
                note_cost(exploration, label.cost)
                note_learnt(exploration)
        row.labelled = labelled
        forget(run.scratch, 0, actions.n_shared)
        if run.task.slots:
            counts = bool(mode == EventMode.LEARN)
            call_at(units.ccb_slot, (context, stream, results, event, counts, holdout))
        elif mode == EventMode.LEARN:
            account(run.model, label.weight, labelled, holdout)
        cursor[Cursor.EVENT], cursor[Cursor.STEP] = event + 1, 0
        if searching and tests:
            observe_rewards(run, buffers.score, actions.n, learnt, True, _ONE)
            slot = better_challenger(run.live)
            if slot > 0:
                cursor[Cursor.SIGNAL], cursor[Cursor.SLOT] = LoopSignal.BOUND_CROSSED, slot
                return
    cursor[Cursor.SIGNAL] = LoopSignal.BLOCK_END
