"""One part of a live config, which is one model: score actions, estimate costs, learn."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.engine.event.example_kernels import (
    apply_link,
    learn,
    list_action,
    predict,
    shown_features,
)
from onlineauto.engine.event.live_config_kernels import place_of
from onlineauto.engine.event.pass_kernels import Pass, actions_to_visit, target_of, weight_of
from onlineauto.explorers.ranking_kernels import FILLED, RND
from onlineauto.jit import inline_kernel, kernel, short_loop
from onlineauto.learners.gradient_kernels import LearnedLabel, clip
from onlineauto.learners.loss_kernels import DR, MTR

if TYPE_CHECKING:
    from onlineauto.engine.records.loop import Actions, Buffers, Label, LoopRun

_ZERO = np.float32(0)


@inline_kernel
def part_of(run: LoopRun, policy: int) -> int:
    """Return the first part of a policy of a live config; for a cover, only of its first policy."""
    return policy * (run.task.parts // run.task.exploration.policies)


@kernel
def score_all(
    run: LoopRun, actions: Actions, label: Label, slot: int, part: int, buffers: Buffers
) -> tuple[int, int]:
    """Fill `FILLED` with all scores of a part; return VW's count of features, and that of its table."""
    place = place_of(run.live, slot, part)
    counted = shown = 0
    for action in range(actions.n):
        short_loop()
        example, numbers = list_action(run, actions, action, False, _ZERO, buffers)
        buffers.explored[FILLED, action] = predict(run, place, example, label.initial)
        counted += numbers.own + numbers.crossed
        shown += shown_features(run, actions, action, numbers)
    return counted, shown


@kernel
def estimate_all(
    run: LoopRun, actions: Actions, label: Label, slot: int, part: int, learns: bool, buffers: Buffers
) -> None:
    """Fill `buffers.target` with the cost that a part predicts for each action; it may learn the logged."""
    place = place_of(run.live, slot, part)
    for action in range(actions.n):
        short_loop()
        example, _ = list_action(run, actions, action, False, _ZERO, buffers)
        raw = predict(run, place, example, label.initial)
        if learns and action == label.action and label.probability > _ZERO:
            lesson = LearnedLabel(label.cost, label.weight / label.probability)
            prediction = learn(run, place, example, raw, lesson, action, buffers)
        else:
            prediction = clip(run.model.shared, raw)
        buffers.target[action] = apply_link(run.task.output.link, prediction)


@kernel
def learn_as(
    run: LoopRun, actions: Actions, label: Label, slot: int, policy: int, screens: bool, buffers: Buffers
) -> None:
    """Let a policy learn an event, and screen its logged action; members of ``--rnd`` learn by ``mtr``."""
    policy_kind, part = run.task.exploration.policy_kind, part_of(run, policy)
    cb_type = MTR if policy_kind == RND and policy > 0 else run.model.settings[slot].cb_type
    if cb_type == DR:
        estimate_all(run, actions, label, slot, part + 1, True, buffers)
    place = place_of(run.live, slot, part)
    first, last = actions_to_visit(run, actions, label, True, Pass.LEARN, cb_type)
    for action in range(first, last):
        short_loop()
        screened = bool(screens and action == label.action and run.screen.many > 0)
        example, _ = list_action(run, actions, action, screened, label.cost, buffers)
        target = target_of(run, label, action, buffers.target[action], cb_type)
        lesson = LearnedLabel(target, weight_of(run, actions, label, slot, policy))
        learn(run, place, example, predict(run, place, example, label.initial), lesson, action, buffers)


@kernel
def learn_costs(run: LoopRun, actions: Actions, label: Label, slot: int, part: int, buffers: Buffers) -> None:
    """Let a part learn the costs of all actions, read from the explorer's scratch (`FILLED`)."""
    place = place_of(run.live, slot, part)
    for action in range(actions.n):
        short_loop()
        example, _ = list_action(run, actions, action, False, _ZERO, buffers)
        lesson = LearnedLabel(buffers.explored[FILLED, action], label.weight)
        learn(run, place, example, predict(run, place, example, label.initial), lesson, action, buffers)
