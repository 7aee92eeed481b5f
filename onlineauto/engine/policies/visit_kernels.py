"""Explorers with several policies: each live config has a model for each policy.

The parts of a live config are the lanes of these models, in this order:

- bag: for each policy its lane, and one that estimates its costs if it needs estimates;
- online cover: the first policy; one that estimates costs for all policies; the other policies;
- ``--rnd``: the parts of the model itself, then the same parts for each member;
- ``--epsilon_decay``: the same parts for each model.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from onlineauto.engine.event.example_kernels import begin_squares
from onlineauto.engine.event.live_config_kernels import learner
from onlineauto.engine.event.pass_kernels import run_on
from onlineauto.engine.policies.bag_kernels import add_vote, draw_time
from onlineauto.engine.policies.cover_kernels import CoverNumber, add_policy, pseudo_cost
from onlineauto.engine.policies.decay_kernels import compare_models, visit_models
from onlineauto.engine.policies.policy_kernels import estimate_all, learn_as, learn_costs, part_of, score_all
from onlineauto.engine.policies.rnd_guess_kernels import guess
from onlineauto.engine.policies.rnd_noise_kernels import draw_noise
from onlineauto.engine.records.loop import Label
from onlineauto.explorers.explore_kernels import BONUS, FILLED, SUMS, VOTES, WORK
from onlineauto.explorers.pmf_kernels import falling_floor
from onlineauto.explorers.ranking_kernels import BAG, COVER, EPSILON_DECAY, RND
from onlineauto.jit import entry_kernel, inline_kernel, kernel, short_loop
from onlineauto.learners.cost_kernels import IPS, MTR, dr_cost, ips_cost

if TYPE_CHECKING:
    from onlineauto.engine.records.loop import Actions, Buffers, Context, LoopRun
    from onlineauto.features.records import Records, Stream

_ZERO = np.float32(0)
_ONE = np.float32(1)


@kernel
def _bag(
    run: LoopRun, actions: Actions, label: Label, slot: int, learns: bool, buffers: Buffers
) -> tuple[int, int]:
    """Let the policies of a bag vote, and learn a drawn number of times; return the result of `score_all`."""
    at, scratch, n = run.task.exploration, buffers.explored, actions.n
    counted = printed = 0
    for policy in range(at.policies):
        counted, printed = score_all(run, actions, label, slot, part_of(run, policy), buffers)
        add_vote(
            scratch[FILLED], n, at.first_only, scratch[VOTES], scratch[SUMS], buffers.order, scratch[WORK]
        )
    for action in range(n):
        short_loop()
        buffers.score[action, slot] = scratch[SUMS, action] / np.float32(at.policies)
    if learns:
        screens = slot == 0
        for policy in range(at.policies):
            for _ in range(at.times[policy]):
                learn_as(run, actions, label, slot, policy, screens, buffers)
                screens = False
    return counted, printed


@inline_kernel
def _true_costs(run: LoopRun, actions: Actions, label: Label, slot: int, buffers: Buffers) -> None:
    """Fill `buffers.cost` with the estimated cost of each action, corrected for the logged one.

    Under ``ips`` there are no estimates, and the cost of other actions is 0.
    """
    cb_type = run.model.settings[slot].cb_type
    if cb_type != IPS:
        estimate_all(run, actions, label, slot, 1, cb_type == MTR, buffers)
    for action in range(actions.n):
        short_loop()
        cost = buffers.target[action] if cb_type != IPS else _ZERO
        if action == label.action and cb_type == IPS:
            cost = ips_cost(label.cost, label.probability, _ZERO)
        elif action == label.action and label.probability > _ZERO:
            cost = dr_cost(label.cost, label.probability, _ZERO, cost)
        buffers.cost[action] = cost


@kernel
def _choose_in_turn(
    run: LoopRun, actions: Actions, label: Label, slot: int, learns: bool, shown: int, buffers: Buffers
) -> int:
    """Let the policies of a cover choose one after the other; if it `learns`, all but the first one learn.

    The scores of the first policy are in the explorer's scratch (`FILLED`). `shown` is the number of features
    that VW prints for the first policy. Returns that number for the last policy.
    """
    at, scratch, n = run.task.exploration, buffers.explored, actions.n
    least, psi = (
        falling_floor(at, bool(at.numbers[CoverNumber.FALLS] > 0.0), n),
        np.float32(at.numbers[CoverNumber.PSI]),
    )
    add_policy(at, n, least, _ZERO, scratch, buffers.order)
    norm = least * np.float32(n) + (_ONE / np.float32(at.policies) - least)
    for policy in range(1, at.policies):
        _, shown = score_all(run, actions, label, slot, policy + 1, buffers)
        if learns:
            for action in range(n):
                short_loop()
                buffers.target[action] = pseudo_cost(
                    buffers.cost[action], psi, scratch[VOTES, action], least, norm
                )
        norm = add_policy(at, n, least, norm, scratch, buffers.order)
        if learns:
            for action in range(n):
                short_loop()
                scratch[FILLED, action] = buffers.target[action]
            learn_costs(run, actions, label, slot, policy + 1, buffers)
    return shown


@kernel
def _cover(
    run: LoopRun, actions: Actions, label: Label, slot: int, learns: bool, buffers: Buffers
) -> tuple[int, int]:
    """Let the policies of a cover choose one after the other, and learn; return the result of `score_all`."""
    if learns:
        _true_costs(run, actions, label, slot, buffers)
    counted, printed = score_all(run, actions, label, slot, 0, buffers)
    for action in range(actions.n):
        short_loop()
        buffers.score[action, slot] = buffers.explored[FILLED, action]
    if learns:
        learn_as(run, actions, label, slot, 0, slot == 0, buffers)
    return counted, _choose_in_turn(run, actions, label, slot, learns, printed, buffers)


@kernel
def _distil(
    run: LoopRun, actions: Actions, label: Label, slot: int, learns: bool, buffers: Buffers
) -> tuple[int, int]:
    """Let the members of ``--rnd``, then the model itself, score and learn; return the result of `score_all`.

    All score before any of them learns. A member learns its own guess plus a little noise. The bonus of an
    action is the root of the mean squared difference between score and guess.
    """
    at, scratch = run.task.exploration, buffers.explored
    members = np.float32(at.policies - 1)
    counted = printed = 0
    for turn in range(1, at.policies + 1):
        member = turn % at.policies
        if member > 0:
            guess(run, actions, slot, member, buffers)
            at.guesses[member] = scratch[WORK, max(int(label.action), 0)]
        counted, printed = score_all(run, actions, label, slot, part_of(run, member), buffers)
        for action in range(actions.n if member > 0 else 0):
            short_loop()
            error = scratch[FILLED, action] - scratch[WORK, action]
            scratch[BONUS, action] += error * error
    for action in range(actions.n):
        short_loop()
        scratch[BONUS, action] = math.sqrt(scratch[BONUS, action] / members)
        buffers.score[action, slot] = scratch[FILLED, action]
    for turn in range(1, at.policies + 1 if learns else 1):
        member = turn % at.policies
        learnt = label
        if member > 0:
            cost = draw_noise(at) + at.guesses[member]
            learnt = Label(label.action, cost, _ONE, label.weight, label.initial)
        learn_as(run, actions, learnt, slot, member, member + slot == 0, buffers)
    return counted, printed


@entry_kernel
def visit_policies(
    context: Context,
    stream: Stream,
    rows: Records,
    actions: Actions,
    label: Label,
    learns: bool,
    compares: bool,
) -> None:
    """Score and learn with all policies of all live configs; fill `buffers.score` and count features.

    Leaves votes or bonuses in the explorer's scratch. A live config's score is the mean of its bag, the score
    of its first cover policy, or that of its champion model. If it `compares`, the models of
    ``--epsilon_decay`` are compared and may be exchanged.
    """
    run, buffers = run_on(context, stream), context.buffers
    at, scratch = run.task.exploration, buffers.explored
    counted = printed = 0
    begin_squares(actions.n, buffers)
    if learns and at.policy_kind == BAG:
        for policy in range(at.policies):
            at.times[policy] = draw_time(at, policy)
    for turn in range(run.live.n if learns else 1):
        slot = learner(run.live, turn) if learns else 0
        for action in range(actions.n):
            short_loop()
            scratch[VOTES, action] = scratch[SUMS, action] = _ZERO
        if at.policy_kind == EPSILON_DECAY:
            counted, printed = visit_models(run, actions, label, slot, learns, buffers)
        elif at.policy_kind == BAG:
            counted, printed = _bag(run, actions, label, slot, learns, buffers)
        elif at.policy_kind == RND:
            counted, printed = _distil(run, actions, label, slot, learns, buffers)
        elif at.policy_kind == COVER:
            counted, printed = _cover(run, actions, label, slot, learns, buffers)
    if compares and at.policy_kind == EPSILON_DECAY:
        compare_models(run)
    row = rows[0]
    row.shown_features = printed + actions.n * actions.repeated
    row.n_features = row.shown_features if run.task.exploration.active else counted + actions.once
