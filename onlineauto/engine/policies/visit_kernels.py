"""Explorers with several policies: each live config has a model for each policy.

The parts of a live config are the lanes of these models, in this order:

- bag: for each policy its lane, and one that estimates its costs if it needs estimates;
- online cover: the first policy; one that estimates costs for all policies; the other policies;
- ``--rnd``: the parts of the model itself, then the same parts for each member;
- ``--epsilon_decay``: the same parts for each model.
"""

from __future__ import annotations

import math
from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np

from onlineauto.engine.event.example_kernels import begin_squares, open_action
from onlineauto.engine.event.live_config_kernels import learner
from onlineauto.engine.event.pass_kernels import run_on
from onlineauto.engine.policies.decay_kernels import compare_models, visit_models
from onlineauto.engine.policies.policy_kernels import estimate_all, learn_as, learn_costs, part_of, score_all
from onlineauto.engine.records.loop import Label
from onlineauto.explorers.pmf_kernels import falling_floor
from onlineauto.explorers.ranking_kernels import (
    BAG,
    BONUS,
    COVER,
    DRAWN,
    EPSILON_DECAY,
    FILLED,
    RND,
    SUMS,
    VOTES,
    WORK,
    count_leaders,
)
from onlineauto.explorers.sample_kernels import mix_number, mix_state, number_of, step_on
from onlineauto.features.group_kernels import forget
from onlineauto.features.product_kernels import cross_all, list_linear
from onlineauto.features.records import Listing
from onlineauto.jit import F32, entry_kernel, inline_kernel, kernel, short_loop
from onlineauto.learners.loss_kernels import IPS, MTR, dr_cost, ips_cost

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.engine.records.loop import Actions, Buffers, Context, LoopRun
    from onlineauto.explorers.ranking_kernels import Exploration
    from onlineauto.features.records import Records, Stream

_ZERO = np.float32(0)
_ONE = np.float32(1)

_MOST = 20
GREEDIFY = 0
"""Index, among the explorer's numbers, of the flag that the first model learns each event exactly once."""

_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_TWO = np.float32(2)
_LEAST = np.float32(1e-12)
_APART = np.uint64(0xD6E8FEB86659FD93)


class RndNumber(IntEnum):
    """Entries of `Exploration.numbers` under ``--rnd``."""

    NOISE = 0  # size of the noise on costs
    VARIANCE = 1  # variance of the guesses


@inline_kernel
def normal_of(state: np.uint64) -> F32:
    """Return a normal number (float32) by the polar method, from VW's generator in state `state`."""
    x = size = _ZERO
    while not _ZERO < size < _ONE:
        state = step_on(state)
        x = _TWO * number_of(state) - _ONE
        state = step_on(state)
        y = _TWO * number_of(state) - _ONE
        size = x * x + y * y
    return x * math.sqrt((-_TWO * math.log(size)) / size)


@kernel
def draw_noise(exploration: Exploration) -> F32:
    """Draw the noise (float32) to add to the cost that a member is about to learn."""
    number = normal_of(mix_state(exploration.random[0], np.uint64(exploration.counts[DRAWN])))
    exploration.counts[DRAWN] += 1
    return np.float32(exploration.numbers[RndNumber.NOISE]) * number


@kernel
def _list_names(run: LoopRun, actions: Actions, action: int, buffers: Buffers) -> int:
    """List the features of an action by their 64-bit hashes in `buffers.name`; return the number of runs."""
    scratch, features, n_shared = run.scratch, run.stream.features, actions.n_shared
    groups, _, _ = open_action(run, actions, action)
    listing = Listing(buffers.name, buffers.value, _ALL)
    n = list_linear(run.layout, scratch, features, n_shared, groups, listing)
    _, n_runs = cross_all(run.interactions, scratch, features, listing, buffers.runs, n)
    forget(scratch, n_shared, groups)
    return n_runs


@kernel
def guess(run: LoopRun, actions: Actions, slot: int, member: int, buffers: Buffers) -> None:
    """Fill `WORK` with a member's guess for each action, by live config `slot`'s features, over √(2 Σ x²)."""
    seed = run.task.exploration.random[0]
    spread: F32 = math.sqrt(np.float32(run.task.exploration.numbers[RndNumber.VARIANCE]))
    apart = np.uint64(member) * _APART
    for action in range(actions.n):
        n_runs = _list_names(run, actions, action, buffers)
        squares = product = _ZERO
        for r in range(n_runs):
            short_loop()
            listed = buffers.runs[r]
            if not run.interactions.holders[listed.product, slot]:
                continue
            for i in range(listed.start, listed.end):
                x = buffers.value[i]
                number = normal_of(mix_state(seed, buffers.name[i] + apart))
                squares += x * x
                product += x * number
        size: F32 = math.sqrt(_TWO * max(_LEAST, squares))
        buffers.explored[WORK, action] = spread * product / size


class CoverNumber(IntEnum):
    """Entries of `Exploration.numbers` under online cover."""

    PSI = 0  # the reward for diversity ψ
    FALLS = 1  # the flag that the floor of probabilities falls over time


@inline_kernel
def pseudo_cost(cost: F32, psi: F32, share: F32, least: F32, norm: F32) -> F32:
    """Return the cost (float32) that a policy learns for an action with probability `share` so far."""
    return cost - psi * least / (max(share, least) / norm)


@inline_kernel
def add_policy(
    exploration: Exploration,
    n: int,
    least: F32,
    norm: F32,
    explored: NDArray[np.float32],
    order: NDArray[np.int32],
) -> F32:
    """Add a policy's vote, shared by its best actions, and its scores (`FILLED`) to the sums.

    Returns the norm (float32): the sum of all shares, each at least `least`. With `sums_by_rank` ranks count.
    """
    votes, sums, ranked = explored[VOTES], explored[SUMS], explored[WORK]
    leading = count_leaders(explored[FILLED], n, exploration.first_only, order, ranked)
    share = _ONE / np.float32(exploration.policies) / np.float32(leading)
    for i in range(n):
        sums[i if exploration.quirks.sums_by_rank else order[i]] += ranked[i]
    for i in range(leading):
        before = votes[order[i]]
        if before < least:
            norm += max(_ZERO, share - (least - before))
        else:
            norm += share
        votes[order[i]] = before + share
    return norm


@inline_kernel
def poisson(number: F32) -> int:
    """Return a count from the Poisson distribution of mean 1, given a uniform number (float32) in [0, 1)."""
    chance = np.exp(np.float64(-1.0))
    through, count = chance, 0
    while np.float64(number) > through and count < _MOST:
        count += 1
        chance /= count
        through += chance
    return count


@kernel
def draw_time(exploration: Exploration, policy: int) -> int:
    """Draw the number of times that a model learns an event; 1 for the first model of a greedified bag."""
    if exploration.numbers[GREEDIFY] > 0.0 and policy == 0:
        return 1
    if exploration.quirks.steps_generator:
        exploration.random[0] = step_on(exploration.random[0])
        return poisson(number_of(exploration.random[0]))
    exploration.counts[DRAWN] += 1
    return poisson(mix_number(exploration.random[0], np.uint64(exploration.counts[DRAWN] - 1)))


@inline_kernel
def add_vote(
    score: NDArray[np.float32],
    n: int,
    first_only: bool,
    votes: NDArray[np.float32],
    sums: NDArray[np.float32],
    order: NDArray[np.int32],
    ranked: NDArray[np.float32],
) -> None:
    """Add a model's vote, shared by its best actions, to `votes`, and its scores to `sums`."""
    leading = count_leaders(score, n, first_only, order, ranked)
    for i in range(n):
        sums[order[i]] += ranked[i]
        if i < leading:
            votes[order[i]] += _ONE / np.float32(leading)


@kernel
def _bag(
    run: LoopRun, actions: Actions, label: Label, slot: int, learns: bool, buffers: Buffers
) -> tuple[int, int]:
    """Let the policies of a bag vote, and learn a drawn number of times; return the result of `score_all`."""
    exploration, scratch, n = run.task.exploration, buffers.explored, actions.n
    counted = printed = 0
    for policy in range(exploration.policies):
        counted, printed = score_all(run, actions, label, slot, part_of(run, policy), buffers)
        add_vote(
            scratch[FILLED],
            n,
            exploration.first_only,
            scratch[VOTES],
            scratch[SUMS],
            buffers.order,
            scratch[WORK],
        )
    for action in range(n):
        short_loop()
        buffers.score[action, slot] = scratch[SUMS, action] / np.float32(exploration.policies)
    if learns:
        screens = slot == 0
        for policy in range(exploration.policies):
            for _ in range(exploration.times[policy]):
                learn_as(run, actions, label, slot, policy, screens, buffers)
                screens = False
    return counted, printed


@inline_kernel
def _true_costs(run: LoopRun, actions: Actions, label: Label, slot: int, buffers: Buffers) -> None:
    """Fill `buffers.cost` with estimated costs (0 under ``ips``), corrected for the logged action."""
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
    """Let the policies of a cover choose in turn; if it `learns`, all but the first one, in `FILLED`, learn.

    `shown` is the number of features that VW prints for the first policy. Returns that of the last one.
    """
    exploration, scratch, n = run.task.exploration, buffers.explored, actions.n
    least, psi = (
        falling_floor(exploration, bool(exploration.numbers[CoverNumber.FALLS] > 0.0), n),
        np.float32(exploration.numbers[CoverNumber.PSI]),
    )
    add_policy(exploration, n, least, _ZERO, scratch, buffers.order)
    norm = least * np.float32(n) + (_ONE / np.float32(exploration.policies) - least)
    for policy in range(1, exploration.policies):
        _, shown = score_all(run, actions, label, slot, policy + 1, buffers)
        if learns:
            for action in range(n):
                short_loop()
                buffers.target[action] = pseudo_cost(
                    buffers.cost[action], psi, scratch[VOTES, action], least, norm
                )
        norm = add_policy(exploration, n, least, norm, scratch, buffers.order)
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

    All score before any learns. The bonus of an action is the root of the mean squared error of guesses.
    """
    exploration, scratch = run.task.exploration, buffers.explored
    members = np.float32(exploration.policies - 1)
    counted = printed = 0
    for turn in range(1, exploration.policies + 1):
        member = turn % exploration.policies
        if member > 0:
            guess(run, actions, slot, member, buffers)
            exploration.guesses[member] = scratch[WORK, max(int(label.action), 0)]
        counted, printed = score_all(run, actions, label, slot, part_of(run, member), buffers)
        for action in range(actions.n if member > 0 else 0):
            short_loop()
            error = scratch[FILLED, action] - scratch[WORK, action]
            scratch[BONUS, action] += error * error
    for action in range(actions.n):
        short_loop()
        scratch[BONUS, action] = math.sqrt(scratch[BONUS, action] / members)
        buffers.score[action, slot] = scratch[FILLED, action]
    for turn in range(1, exploration.policies + 1 if learns else 1):
        member = turn % exploration.policies
        learnt = label
        if member > 0:
            cost = draw_noise(exploration) + exploration.guesses[member]
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

    A live config's score is the mean of its bag, or that of its first policy or champion model.
    """
    run, buffers = run_on(context, stream), context.buffers
    exploration, scratch = run.task.exploration, buffers.explored
    counted = printed = 0
    begin_squares(actions.n, buffers)
    if learns and exploration.policy_kind == BAG:
        for policy in range(exploration.policies):
            exploration.times[policy] = draw_time(exploration, policy)
    for turn in range(run.live.n if learns else 1):
        slot = learner(run.live, turn) if learns else 0
        for action in range(actions.n):
            short_loop()
            scratch[VOTES, action] = scratch[SUMS, action] = _ZERO
        if exploration.policy_kind == EPSILON_DECAY:
            counted, printed = visit_models(run, actions, label, slot, learns, buffers)
        elif exploration.policy_kind == BAG:
            counted, printed = _bag(run, actions, label, slot, learns, buffers)
        elif exploration.policy_kind == RND:
            counted, printed = _distil(run, actions, label, slot, learns, buffers)
        elif exploration.policy_kind == COVER:
            counted, printed = _cover(run, actions, label, slot, learns, buffers)
    if compares and exploration.policy_kind == EPSILON_DECAY:
        compare_models(run)
    row = rows[0]
    row.shown_features = printed + actions.n * actions.repeated
    row.n_features = row.shown_features if run.task.exploration.active else counted + actions.once
