"""One part of a live config, which is one model: score actions, estimate costs, learn."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.engine.event.example_kernels import (
    apply_link,
    list_action,
    predict_or_learn,
    shown_features,
    squares_of,
)
from onlineauto.engine.event.live_config_kernels import place_of
from onlineauto.engine.event.pass_kernels import LEARN, target_of, visited, weight_of
from onlineauto.explorers.explore_kernels import FILLED
from onlineauto.jit import inline_kernel, kernel, short_loop
from onlineauto.learners.cost_kernels import DR

if TYPE_CHECKING:
    from onlineauto.engine.event.state import Actions, Buffers, Label, Run

_ZERO = np.float32(0)
_ONE = np.float32(1)
_UNKNOWN = np.float32(np.nan)


@kernel
def score_all(
    run: Run, actions: Actions, label: Label, slot: int, part: int, buffers: Buffers
) -> tuple[int, int]:
    """Fill the explorer's scratch (`FILLED`) with the scores of all actions by part `part` of a live config.

    Returns two numbers of the champion's features: as VW counts them, and as its progress table prints them.
    """
    place = place_of(run.live, slot, part)
    counted = shown = 0
    for action in range(actions.n):
        short_loop()
        example, numbers = list_action(run, actions, action, False, _ZERO, buffers)
        raw, _, _ = predict_or_learn(run, place, example, label.initial, _ZERO, _ONE, _ZERO, False, _UNKNOWN)
        buffers.explored[FILLED, action] = raw
        counted += numbers.own + numbers.crossed
        shown += shown_features(run, actions, action, numbers)
    return counted, shown


@kernel
def estimate_all(
    run: Run, actions: Actions, label: Label, slot: int, part: int, learns: bool, buffers: Buffers
) -> None:
    """Fill `buffers.target` with the cost that a part predicts for each action.

    If it `learns`, it learns the cost of the logged action, whose prediction is from before.
    """
    place = place_of(run.live, slot, part)
    for action in range(actions.n):
        short_loop()
        example, _ = list_action(run, actions, action, False, _ZERO, buffers)
        squares = squares_of(run, buffers, action, slot)
        taught = bool(learns and action == label.action and label.probability > _ZERO)
        cost, weight = (label.cost, label.weight / label.probability) if taught else (_ZERO, _ONE)
        _, prediction, learnt = predict_or_learn(
            run, place, example, label.initial, cost, weight, squares, taught, _UNKNOWN
        )
        if learnt:
            buffers.first_squares[action] = squares
        buffers.target[action] = apply_link(run.task.link, prediction)


@inline_kernel
def prepare(
    run: Run, actions: Actions, label: Label, slot: int, part: int, cb_type: int, buffers: Buffers
) -> None:
    """Estimate the costs that a policy is about to learn, if `cb_type` needs estimates."""
    if cb_type == DR:
        estimate_all(run, actions, label, slot, part + 1, True, buffers)


@kernel
def learn_as(
    run: Run,
    actions: Actions,
    label: Label,
    slot: int,
    part: int,
    policy: int,
    cb_type: int,
    screens: bool,
    buffers: Buffers,
) -> None:
    """Let policy `policy`, which is part `part` of a live config, learn an event by `cb_type`.

    Call `prepare` before. If it `screens`, the logged action is screened too.
    """
    place = place_of(run.live, slot, part)
    first, last = visited(run, actions, label, True, LEARN, cb_type)
    for action in range(first, last):
        short_loop()
        screened = bool(screens and action == label.action and len(run.screen.gains) > 0)
        example, _ = list_action(run, actions, action, screened, label.cost, buffers)
        squares = squares_of(run, buffers, action, slot)
        target = target_of(run, label, action, buffers.target[action], cb_type)
        weight = weight_of(run, actions, label, slot, policy)
        _, _, learnt = predict_or_learn(
            run, place, example, label.initial, target, weight, squares, True, _UNKNOWN
        )
        if learnt:
            buffers.first_squares[action] = squares


@kernel
def learn_costs(run: Run, actions: Actions, label: Label, slot: int, part: int, buffers: Buffers) -> None:
    """Let a part learn the costs of all actions, which are in the explorer's scratch (`FILLED`)."""
    place = place_of(run.live, slot, part)
    for action in range(actions.n):
        short_loop()
        example, _ = list_action(run, actions, action, False, _ZERO, buffers)
        squares, cost = squares_of(run, buffers, action, slot), buffers.explored[FILLED, action]
        _, _, learnt = predict_or_learn(
            run, place, example, label.initial, cost, label.weight, squares, True, _UNKNOWN
        )
        if learnt:
            buffers.first_squares[action] = squares
