"""The one loop: predict, learn and account for the events of a block."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.engine.bandit_kernels import bandit_event
from onlineauto.engine.example_kernels import account, apply_link, learn, list_line, predict
from onlineauto.engine.state import SIMPLE
from onlineauto.jit import kernel
from onlineauto.learners._kernels import MAX_LABEL, MIN_LABEL, clip
from onlineauto.learners.loss_kernels import loss_value

if TYPE_CHECKING:
    from onlineauto.engine.state import Buffers, Rows, Run

_ZERO = np.float32(0)
_ONE = np.float32(1)
_FLOAT_MAX = np.float32(np.finfo(np.float32).max)


@kernel
def _single_event(run: Run, rows: Rows, event: int, buffers: Buffers) -> Buffers:
    """Predict, learn and account for one line of regression or classification."""
    task, rule, model, columns = run.task, run.rule, run.model, run.columns
    line = columns.event_start[event]
    example, buffers = list_line(run, line, buffers)
    label, weight, initial = columns.label[line], columns.weight[line], columns.initial[line]
    labelled, holdout = label != _FLOAT_MAX, columns.holdout[event]
    if labelled and task.training and not holdout:
        raw, prediction = learn(run, 0, example, initial, label, weight)
    else:
        raw = predict(run, 0, example, initial)
        prediction = clip(model.shared, raw)
    loss = _ZERO
    if labelled and weight > _ZERO:
        low, high = np.float32(model.shared[MIN_LABEL]), np.float32(model.shared[MAX_LABEL])
        loss = loss_value(rule.loss, rule.low, rule.high, prediction, label, low, high) * weight
    prediction = apply_link(task.link, prediction)
    if task.binary:
        prediction = _ONE if prediction > _ZERO else -_ONE
        if labelled and abs(label) == _ONE:
            loss = _ZERO if label == prediction else weight
    rows.loss[event] = loss
    rows.labelled[event] = labelled
    rows.n_features[event] = example.n_own + example.n_crossed
    rows.shown_features[event] = example.n_own + example.n_crossed
    rows.raw[event] = raw
    rows.prediction[event] = prediction
    account(model, weight, labelled, holdout)
    return buffers


@kernel
def run_events(run: Run, rows: Rows, start: int, stop: int, buffers: Buffers) -> Buffers:
    """Predict, learn and account for events [start, stop); return the buffers, grown if need was."""
    for event in range(start, stop):
        if run.task.shape == SIMPLE:
            buffers = _single_event(run, rows, event, buffers)
        else:
            buffers = bandit_event(run, rows, event, buffers)
    return buffers
