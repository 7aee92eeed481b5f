"""The steps of a search around an event: count its namespaces, and compare the live configs on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onlineauto.engine.ensemble.evidence_kernels import count_event_left_out
from onlineauto.engine.event.live_config_kernels import (
    compares_rewards,
    count_left_out,
    note_logged,
    observe_losses,
    observe_rewards,
    observes_namespace,
    signal_before_test,
    verdict,
)
from onlineauto.engine.event.pass_kernels import run_on
from onlineauto.engine.records.loop import Cursor, LoopSignal
from onlineauto.engine.records.task import Shape
from onlineauto.jit import F32, entry_kernel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from onlineauto.engine.records.loop import Actions, Context, Label
    from onlineauto.features.records import Stream


@entry_kernel
def before_event(
    context: Context, stream: Stream, cursor: NDArray[np.int64], actions: Actions, learns: bool
) -> None:
    """Count the namespaces of the event at the cursor; set the signal of the first decision that is due."""
    run = run_on(context, stream)
    cursor[Cursor.SIGNAL] = LoopSignal.BLOCK_END
    if observes_namespace(run, cursor[Cursor.EVENT], actions, cursor):
        cursor[Cursor.SIGNAL] = LoopSignal.NEW_NAMESPACE
    elif learns:
        cursor[Cursor.SIGNAL] = signal_before_test(run, cursor)


@entry_kernel
def after_event(
    context: Context,
    stream: Stream,
    cursor: NDArray[np.int64],
    actions: Actions,
    label: Label,
    weight: F32,
) -> None:
    """Compare the live configs on an event of this `keep_weight`; signal a proved verdict to the cursor."""
    run, score = run_on(context, stream), context.buffers.score
    compared = compares_rewards(run.live)
    if weight == 0.0:
        if run.live.ensemble.on:
            count_event_left_out(run, label)
        count_left_out(run, actions.n, label, compared)
        return
    if run.task.shape != Shape.SIMPLE:
        observe_rewards(run, score, actions.n, label, compared, weight)
    if run.live.tests.paired:
        observe_losses(run, score, max(int(label.action), 0), actions.n, label, weight)
        if label.action >= 0 and run.task.shape != Shape.SIMPLE:
            note_logged(run.live, int(label.action), label, compared)
    signal, slot = verdict(run.live)
    if signal != LoopSignal.BLOCK_END:
        cursor[Cursor.SIGNAL], cursor[Cursor.SLOT] = signal, slot
