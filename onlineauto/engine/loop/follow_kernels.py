"""The ensemble on a thread of its own, behind the live configs: hand events over, and follow.

Live configs never depend on the ensemble. So they run ahead, with everything that may stop the loop for
them, and hand over each event with their scores. The ensemble follows in the order of events. It depends on
a few numbers of the live configs as they were at that event. These are handed over too, and put into copies
of the arrays that the live configs change. `onlineauto.engine.loop.follower` runs both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.engine.ensemble.evidence_kernels import ensemble_column, predicts
from onlineauto.engine.event.outcome_kernels import explore, finish_bandit, rank_placed
from onlineauto.engine.event.pass_kernels import run_on
from onlineauto.engine.records.loop import Actions, Cursor, Label, LoopSignal
from onlineauto.engine.records.search import PLACES, Tally
from onlineauto.estimators.draw_kernels import DRAWS_SIZE
from onlineauto.estimators.scale_kernels import SCALE_SIZE
from onlineauto.explorers.ranking_kernels import PART, UNSURE, note_cost, note_error, note_learnt
from onlineauto.jit import F32, call_at, entry_kernel, kernel, short_loop
from onlineauto.learners.gradient_kernels import SHARED

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.engine.records.loop import Ahead, Context, Results
    from onlineauto.features.records import Stream

SCALE = SHARED
"""Where in the numbers of an event the scale begins; the model's `shared` numbers come first."""

DRAWS = SCALE + SCALE_SIZE
LOGGED, TOTAL, LEARNT, NUMBERS = range(DRAWS + DRAWS_SIZE, DRAWS + DRAWS_SIZE + 4)
"""Where the draws begin, where the other numbers are, and how many there are in all. They are the number of
events that logged the event's action, that of all logged actions, and the number of events learnt."""


@kernel
def hand_over(
    context: Context, results: Results, event: int, actions: Actions, label: Label, weight: F32, learns: bool
) -> None:
    """Hand over an event of this `keep_weight` (float32): actions, label, scores, the numbers before it."""
    live, ahead, score = context.live, results.ahead, context.buffers.score
    handed, numbers, statistics = ahead.handed[event], ahead.numbers[event], live.statistics
    handed.first, handed.n, handed.n_lines = actions.first, actions.n, actions.n_lines
    handed.n_shared, handed.room = actions.n_shared, actions.room
    handed.repeated, handed.once = actions.repeated, actions.once
    handed.action, handed.cost, handed.probability = label.action, label.cost, label.probability
    handed.weight, handed.initial, handed.kept = label.weight, label.initial, weight
    handed.learns = learns
    for i in range(SHARED):
        numbers[i] = context.model.shared[i]
    for i in range(SCALE_SIZE):
        numbers[SCALE + i] = statistics.scale[i]
    for i in range(DRAWS_SIZE):
        numbers[DRAWS + i] = statistics.draws[i]
    numbers[LOGGED] = statistics.logged[min(max(int(label.action), 0), PLACES - 1)]
    numbers[TOTAL] = statistics.logged[PLACES]
    numbers[LEARNT] = live.tally[Tally.LEARNT]
    first = results.rows[event].action_start
    for action in range(actions.n):
        short_loop()
        for slot in range(live.n):
            short_loop()
            ahead.score[first + action, slot] = score[action, slot]
        ahead.score[first + action, ahead.score.shape[1] - 1] = context.buffers.explored[PART, action]


@kernel
def _recall(context: Context, ahead: Ahead, event: int, first: int) -> tuple[Actions, Label]:
    """Return the actions and the label of an event; restore the scores and numbers that came with it."""
    live, score = context.live, context.buffers.score
    handed, numbers, statistics = ahead.handed[event], ahead.numbers[event], live.statistics
    actions = Actions(
        handed.first,
        handed.n,
        handed.n_lines,
        handed.n_shared,
        handed.room,
        handed.repeated,
        handed.once,
    )
    label = Label(handed.action, handed.cost, handed.probability, handed.weight, handed.initial)
    for i in range(SHARED):
        context.model.shared[i] = numbers[i]
    for i in range(SCALE_SIZE):
        statistics.scale[i] = numbers[SCALE + i]
    for i in range(DRAWS_SIZE):
        statistics.draws[i] = numbers[DRAWS + i]
    statistics.logged[min(max(int(label.action), 0), PLACES - 1)] = numbers[LOGGED]
    statistics.logged[PLACES] = numbers[TOTAL]
    live.tally[Tally.LEARNT] = np.int64(numbers[LEARNT])
    for action in range(actions.n):
        short_loop()
        for slot in range(live.n):
            short_loop()
            score[action, slot] = ahead.score[first + action, slot]
        context.buffers.explored[UNSURE, action] = np.float32(0)
        context.buffers.explored[PART, action] = ahead.score[first + action, ahead.score.shape[1] - 1]
    return actions, label


@entry_kernel
def follow_events(
    context: Context,
    stream: Stream,
    results: Results,
    cursor: NDArray[np.int64],
    stop: int,
    mode: int,
) -> None:
    """Run the ensemble over the events handed over, to `stop` or a verdict on it; see `run_events`."""
    run, buffers, units = run_on(context, stream), context.buffers, context.units
    exploration = run.task.exploration
    while cursor[Cursor.EVENT] < stop:
        event = cursor[Cursor.EVENT]
        row, handed = results.rows[event], results.ahead.handed[event]
        actions, label = _recall(context, results.ahead, event, row.action_start)
        learns, weight = bool(handed.learns), handed.kept
        call_at(units.score_ensemble, (context, stream, actions, label, learns))
        column = ensemble_column(buffers) if predicts(run.live.ensemble) else 0
        new = rank_placed(run, results, event, buffers, column)
        if exploration.active:
            explore(context, results, event, label, learns, mode, new)
        finish_bandit(run, results, event, label, learns, buffers)
        cursor[Cursor.EVENT] = event + 1
        if learns:
            note_cost(exploration, label.cost - label.initial)
            if exploration.sees_errors:
                note_error(exploration, label.cost, buffers.score[label.action, column], weight)
            note_learnt(exploration)
            call_at(units.learn_ensemble, (context, stream, cursor, actions, label, weight))
            if cursor[Cursor.SIGNAL] != LoopSignal.BLOCK_END:
                return
    cursor[Cursor.SIGNAL] = LoopSignal.BLOCK_END
