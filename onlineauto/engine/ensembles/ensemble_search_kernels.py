"""The search below an explorer of several models, as Vowpal Wabbit has it: to it each of them is an event.

When a model scores, the search counts namespaces, and has its champion score by the weights that this model
has of it; when it learns, the search does all that it does when it learns an event. Between any two models
the loop may stop, since something must be decided, and so the cursor also says which of them are through.

With ``--epsilon_decay`` the champion of its models scores, and then all of them learn, the champion first.
With ``--cover`` only the first policy is above the search. All others, and the model that estimates costs,
know no interactions, and their weights are those of live slots at the same places.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.engine.ensembles.decay_kernels import compare_models, epsilon_of, observe_model
from onlineauto.engine.ensembles.ensemble_kernels import choose_in_turn, true_costs
from onlineauto.engine.ensembles.policy_kernels import learn_as, prepare, score_all
from onlineauto.engine.event.ccb_slot_kernels import settle_slot
from onlineauto.engine.event.event_kernels import learns_from, open_event
from onlineauto.engine.event.example_kernels import begin_squares
from onlineauto.engine.event.live_config_kernels import (
    count_namespaces,
    learner,
    observe_rewards,
    signal_before,
    verdict,
)
from onlineauto.engine.event.outcome_kernels import open_row, settle_bandit
from onlineauto.engine.event.pass_kernels import account, over_again, run_on
from onlineauto.engine.event.state import (
    ASIDE,
    BLOCK_END,
    CALL,
    CB,
    CB_ADF,
    EVENT,
    LEFT,
    MET,
    NEW_NAMESPACE,
    SIGNAL,
    SLOT,
    STEP,
    STREAM,
    Label,
)
from onlineauto.explorers.bag_kernels import add_vote, draw_time
from onlineauto.explorers.explore_kernels import (
    COVER,
    EPSILON_DECAY,
    FILLED,
    SUMS,
    VOTES,
    WORK,
    note_learnt,
)
from onlineauto.features._kernels import forget
from onlineauto.jit import entry_kernel, inline_kernel, kernel, opened, short_loop

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.engine.event.state import Actions, Buffers, Context, Results, Run
    from onlineauto.features.records import Records, Stream
    from onlineauto.jit import Sealed

_ZERO = np.float32(0)
_ONE = np.float32(1)

_THROUGH = -1
"""Beside the signals: all models are through with the event."""


@inline_kernel
def _first_part(run: Run, model: int) -> int:
    """Where the parts of a model begin: behind those of all slots of the models before."""
    return model * (run.task.parts // run.task.exploration.policies) * len(run.live.lease)


@inline_kernel
def _tell(run: Run, label: Label) -> None:
    """Keep what the search is told of, until it has learnt it."""
    run.live.told[0], run.live.told[1] = label.cost, label.probability


@inline_kernel
def _as_told(run: Run, label: Label) -> Label:
    """The label that the search is told of."""
    return Label(label.action, run.live.told[0], run.live.told[1], label.weight, label.initial)


@kernel
def _begin(n: int, buffers: Buffers) -> None:
    """Nobody has voted, and nobody has learnt."""
    begin_squares(n, buffers)
    for action in range(n):
        short_loop()
        buffers.explored[VOTES, action] = buffers.explored[SUMS, action] = _ZERO


@inline_kernel
def _count_features(row: Records, actions: Actions, shown: int) -> None:
    """Let the row have the features that the champion had when it was asked last."""
    row[0].shown_features = row[0].n_features = shown + actions.n * actions.repeated


@inline_kernel
def _meets(run: Run, event: int, actions: Actions, counts: bool, cursor: NDArray[np.int64]) -> bool:
    """Whether the first model that scores meets a namespace; the step says that it was asked."""
    if not counts or cursor[STEP] == MET:
        return False
    cursor[STEP] = MET
    return count_namespaces(run, event, actions)


@kernel
def _score(
    run: Run, row: Records, event: int, actions: Actions, label: Label, counts: bool, buffers: Buffers
) -> None:
    """Let all models score, the first of which is counted; leave votes, and what is shown."""
    at, room, n = run.task.exploration, buffers.explored, actions.n
    column = buffers.score.shape[1] - 1
    for model in range(at.policies):
        if counts and model > 0:
            count_namespaces(run, event, actions)
        _, shown = score_all(run, actions, label, 0, _first_part(run, model), buffers)
        _count_features(row, actions, shown)
        add_vote(room[FILLED], n, at.first_only, room[VOTES], room[SUMS], buffers.order, room[WORK])
    for action in range(n):
        short_loop()
        buffers.score[action, column] = room[SUMS, action]


@kernel
def _learn(
    run: Run,
    row: Records,
    event: int,
    actions: Actions,
    label: Label,
    model: int,
    cursor: NDArray[np.int64],
    buffers: Buffers,
) -> tuple[int, int]:
    """Let a model of all slots learn, as an event of the search.

    Returns what is to be decided, and of which slot. If that comes before it can learn, the step is not 0.
    """
    signal = signal_before(run, event, actions, True, False, cursor)
    if signal != BLOCK_END:
        return signal, 0
    part = _first_part(run, model)
    for turn in range(run.live.n):
        slot = learner(run.live, turn)
        cb_type = run.model.settings[slot].cb_type
        prepare(run, actions, label, slot, part, cb_type, buffers)
        _, shown = score_all(run, actions, label, slot, part, buffers)
        _count_features(row, actions, shown)
        for action in range(actions.n):
            short_loop()
            buffers.score[action, slot] = buffers.explored[FILLED, action]
        learn_as(run, actions, label, slot, part, model, cb_type, False, buffers)
    observe_rewards(run, buffers.score, actions.n, label)
    cursor[STEP] = 0
    return verdict(run.live)


@kernel
def _go_on(
    run: Run,
    row: Records,
    event: int,
    actions: Actions,
    label: Label,
    learns: bool,
    counts: bool,
    recounts: bool,
    pauses: bool,
    cursor: NDArray[np.int64],
    buffers: Buffers,
) -> tuple[int, int]:
    """Let models score, and then learn, until something must be decided; return that, and of which slot."""
    at = run.task.exploration
    if cursor[CALL] == 0:
        if _meets(run, event, actions, counts, cursor):
            return NEW_NAMESPACE, 0
        _score(run, row, event, actions, label, counts, buffers)
        for _ in range(at.policies if recounts and not learns else 0):
            count_namespaces(run, event, actions)
        cursor[CALL], cursor[STEP] = 1, 0
    while learns and cursor[CALL] <= at.policies:
        model = cursor[CALL] - 1
        if cursor[LEFT] == 0:
            cursor[LEFT] = 1 + draw_time(at, model)
        while cursor[LEFT] > 1:
            if cursor[STEP] == 0:
                _tell(run, label)
            told = _as_told(run, label)
            signal, slot = _learn(run, row, event, actions, told, model, cursor, buffers)
            if cursor[STEP] == 0:
                cursor[LEFT] -= 1
            if pauses or signal != BLOCK_END:
                return signal, slot
        cursor[CALL], cursor[LEFT] = cursor[CALL] + 1, 0
    return _THROUGH, 0


@kernel
def _cover(
    run: Run,
    row: Records,
    event: int,
    actions: Actions,
    label: Label,
    learns: bool,
    counts: bool,
    pauses: bool,
    cursor: NDArray[np.int64],
    buffers: Buffers,
) -> tuple[int, int]:
    """`_go_on` with ``--cover``: ask the first policy, and then all others."""
    plain, room, column = over_again(run), buffers.explored, buffers.score.shape[1] - 1
    if cursor[CALL] == 0 and learns:
        if cursor[STEP] == 0:
            true_costs(plain, actions, label, 0, buffers)
            _tell(run, label)
        signal, slot = _learn(run, row, event, actions, label, 0, cursor, buffers)
        if cursor[STEP] != 0:
            return signal, slot
        for action in range(actions.n):
            short_loop()
            buffers.score[action, column] = buffers.score[action, 0]
        cursor[CALL] = 1
        if pauses or signal != BLOCK_END:
            return signal, slot
    elif cursor[CALL] == 0:
        if _meets(run, event, actions, counts, cursor):
            return NEW_NAMESPACE, 0
        _, shown = score_all(run, actions, label, 0, 0, buffers)
        _count_features(row, actions, shown)
        for action in range(actions.n):
            short_loop()
            buffers.score[action, column] = room[FILLED, action]
    for action in range(actions.n):
        short_loop()
        room[FILLED, action] = buffers.score[action, column]
    shown = choose_in_turn(plain, actions, label, 0, learns, -1, buffers)
    if shown >= 0:
        _count_features(row, actions, shown)
    return _THROUGH, 0


@kernel
def _decay(
    run: Run,
    row: Records,
    event: int,
    actions: Actions,
    label: Label,
    learns: bool,
    counts: bool,
    pauses: bool,
    cursor: NDArray[np.int64],
    buffers: Buffers,
) -> tuple[int, int]:
    """`_go_on` with ``--epsilon_decay``: let the champion score, and then all learn, the champion first.

    What is shown it predicted before all that; under ``--cb_explore K``, and of slots, in its turn.
    """
    decay, champion = run.task.decay, run.task.exploration.policies - 1
    room, column = buffers.explored, buffers.score.shape[1] - 1
    if cursor[CALL] == 0:
        if _meets(run, event, actions, counts, cursor):
            return NEW_NAMESPACE, 0
        decay.epsilon[0] = epsilon_of(run, champion)
        _, shown = score_all(run, actions, label, 0, _first_part(run, decay.place[champion]), buffers)
        _count_features(row, actions, shown)
        for action in range(actions.n):
            short_loop()
            buffers.score[action, column] = room[FILLED, action]
        cursor[CALL], cursor[STEP] = 1, 0
    while learns and cursor[CALL] <= champion + 1:
        model = champion + 1 - cursor[CALL]
        if cursor[STEP] == 0:
            _tell(run, label)
        signal, slot = _learn(run, row, event, actions, label, decay.place[model], cursor, buffers)
        if cursor[STEP] != 0:
            return signal, slot
        for action in range(actions.n):
            short_loop()
            room[FILLED, action] = buffers.score[action, 0]
            if model == champion and (run.task.shape == CB or run.task.slots):
                buffers.score[action, column] = room[FILLED, action]
        observe_model(run, label, model, actions.n, buffers)
        cursor[CALL] += 1
        if pauses or signal != BLOCK_END:
            return signal, slot
    return _THROUGH, 0


@entry_kernel
def run_below(
    context: Sealed[Context],
    stream: Stream,
    results: Results,
    cursor: NDArray[np.int64],
    stop: int,
    standing: int,
    pauses: bool,
) -> None:
    """`run_events`, with the search below the explorer; it `pauses` whenever a model has learnt."""
    at = opened(context)
    run = run_on(at, stream)
    buffers = at.buffers
    training = bool(run.task.training and standing == STREAM)
    column = buffers.score.shape[1] - 1
    while cursor[EVENT] < stop:
        event = cursor[EVENT]
        actions, label = open_event(run, event)
        holdout = run.stream.holdout[event]
        learns = bool(training and learns_from(run, label, holdout))
        row = results.rows[event : event + 1]
        if cursor[CALL] == 0 and cursor[STEP] == 0:
            open_row(run, results, event, actions.n)
            _begin(actions.n, buffers)
        signal, slot = _THROUGH, 0
        counts, recounts = standing != ASIDE, bool(training and run.task.shape == CB_ADF)
        if actions.n > 0:
            if run.task.exploration.code == COVER:
                signal, slot = _cover(
                    run, row, event, actions, label, learns, counts, pauses, cursor, buffers
                )
            elif run.task.exploration.code == EPSILON_DECAY:
                counts = counts and not (run.task.slots and training)  # of slots VW learns without predicting
                signal, slot = _decay(
                    run, row, event, actions, label, learns, counts, pauses, cursor, buffers
                )
            else:
                signal, slot = _go_on(
                    run, row, event, actions, label, learns, counts, recounts, pauses, cursor, buffers
                )
        if signal != _THROUGH:
            forget(run.scratch, 0, actions.n_shared)
            cursor[SIGNAL], cursor[SLOT] = signal, slot
            return
        if run.task.exploration.code == EPSILON_DECAY and (learns or recounts):
            compare_models(run)
        labelled = settle_bandit(
            context, run, results, event, actions, label, learns, standing, column, buffers
        )
        if learns:
            note_learnt(run.task.exploration, max(len(run.task.decay.place), 1))
        row[0].labelled = labelled
        forget(run.scratch, 0, actions.n_shared)
        if run.task.slots:
            settle_slot(context, stream, results, event, bool(standing == STREAM), holdout)
        elif standing == STREAM:
            account(run.model, label.weight, labelled, holdout)
        cursor[EVENT], cursor[CALL], cursor[STEP] = event + 1, 0, 0
    cursor[SIGNAL] = BLOCK_END
