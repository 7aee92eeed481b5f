"""The ensemble predicts with the weighted sum of its members' scores; logged actions teach the weights.

Scores and costs are scaled by the range of costs so far to [0, 1] and clipped to [-1, 2]. The weights are
learnt by recursive least squares with slow forgetting, because live configs change. The less the ensemble
explains of a bandit's costs, the slower it forgets: 2,000 events with few clicks are too few to learn weights
from. Before the first event the champion and the member `ridge` have a weight of 1/2 each, if there is that
member, and all others 0. The more actions the ensemble ranks before the logged one, the less an event counts:
what matters is to distinguish the best actions.

For bandits the *level* of a member, the mean of its scores over the event's actions, has a weight too. Levels
are the same for all actions, so they explain how the context moves the cost, and the weights of members are
learnt from the differences between actions. Without levels, a context that moves the cost by far more than
the action decides on the weights, which may then reverse the order of actions. The noise of a bandit's event
is the part of the variance of costs that the ensemble has not explained so far: events from before the
context was explained count less than later ones. The first events count least, because the range of costs is
still unknown. Few rewards may be far larger than all others, and would decide on all weights. So members
and weights learn a cost of a bandit as if it were at most `_FAR` standard deviations from the mean.

On single lines the champion has the rest of 1 as its weight, and the other weights are learnt from what each
score differs from the champion's. The noise is the mean squared error so far. An error of more than three
standard deviations counts by its size instead of its square, since one label may be an outlier.

Events of bandits are weighted by the square root of their propensity weight when they are learnt. With the
whole weight few events would count, if the policy logged most actions seldom.

`evidence_kernels` has the tests of the ensemble against the champion.

Source: Breiman, *Stacked regressions*, 1996; Haykin, *Adaptive filter theory*, chapter on recursive least
squares.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from onlineauto.engine.ensemble.evidence_kernels import (
    ensemble_column,
    fairness,
    hardly_explores,
    note_lead,
    predicts,
    rank,
    scores_all,
    test_losses,
    test_rewards,
    trust,
    verdict,
)
from onlineauto.engine.ensemble.input_kernels import (
    action_key,
    add_projections,
    all_rest,
    constant_of,
    index_of,
    joins,
    leave_out_stopped,
    register_event,
    take_inputs,
    trust_champion,
    works,
)
from onlineauto.engine.ensemble.least_squares_kernels import Observed, cut_off, learn_squares
from onlineauto.engine.ensemble.member import Lesson, Need, Part
from onlineauto.engine.ensemble.number_bin_kernels import see_numbers
from onlineauto.engine.ensemble.product_kernels import forget_products
from onlineauto.engine.ensemble.shrinkage_kernels import (
    can_shrink,
    learn_shrinkage,
    mean_score,
    shrink_scores,
)
from onlineauto.engine.ensemble.vector_kernels import see_vectors
from onlineauto.engine.event.keep_kernels import weigh
from onlineauto.engine.event.pass_kernels import run_on
from onlineauto.engine.records.ensemble import CostSoFar, InVectors, Known, Shrinkage
from onlineauto.engine.records.loop import Cursor
from onlineauto.engine.records.task import Shape
from onlineauto.explorers.ranking_kernels import PART, UNSURE
from onlineauto.jit import F32, call_at, entry_kernel, inline_kernel, kernel, short_loop
from onlineauto.learners.gradient_kernels import ORIGIN

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.engine.records.ensemble import Ensemble
    from onlineauto.engine.records.loop import Actions, Buffers, Context, Label, LoopRun
    from onlineauto.engine.records.search import Live
    from onlineauto.features.records import Stream

PRIOR_VARIANCE = 2.0
"""Variance of the constant and of weights that begin above 0, and the maximum of all later on."""

NEW_VARIANCE = 0.5
"""Variance of a weight of bandits that begins at 0."""

LINE_VARIANCE = 0.02
"""Variance of a weight of single lines before the first event, and the maximum of all later on."""

_USUAL, _LEAST_SQUARE = 3.0, 1e-12
"""A line counts less if its error exceeds the first number of standard deviations; the second number is the
minimum variance of errors, in units of the squared range of labels."""

LEVEL_FACTOR = 0.25
"""Factor of a level as an input, which keeps the weight of the level nearer to 0 at first."""

KEEPS = 0.9995
"""Part of the earlier information that weights retain at each event; bandits may retain more."""

LATEST = 2000.0
"""Number of latest events over which errors and costs are averaged."""

_LEAST_NOISE, _YOUNG = 0.02, 64.0
"""Bounds of the factor of an event's noise: at least the first, and at least the second divided by the number
of events."""

_EXPLAINED, _SLOWEST = 0.2, 0.05
"""Weights of bandits forget in proportion to the explained part of the variance of costs: by `KEEPS` from the
first number on, and never slower than by the second multiple of that."""

_FAR = 6.0
"""Maximum distance of a cost that members and weights learn from the mean, in standard deviations."""

_UNKNOWN = np.float32(0.5)
"""Factor of the learnt part of an action that members do not know; see `new_action_kernels`."""

_ZERO = np.float32(0)


@inline_kernel
def _origin(run: LoopRun) -> np.float32:
    """Return the origin of costs; 0 for single lines."""
    return np.float32(run.model.shared[ORIGIN])


@inline_kernel
def _scale_cost(ensemble: Ensemble, cost: float) -> np.float64:
    """Return a cost scaled by the range of costs so far to [0, 1], clipped to [-1, 2]; -1 for NaN."""
    position = (np.float64(cost) - ensemble.range[0]) / (ensemble.range[1] - ensemble.range[0])
    return min(position, np.float64(2.0)) if position >= -1.0 else np.float64(-1.0)


@inline_kernel
def _bounded_cost(ensemble: Ensemble, cost: float) -> np.float64:
    """Return a scaled cost; that of a bandit is at most `_FAR` standard deviations from the mean."""
    scaled, costs = _scale_cost(ensemble, cost), ensemble.costs
    if ensemble.n_levels == 0 or costs[CostSoFar.EVENTS] < _YOUNG:
        return scaled
    away = scaled - costs[CostSoFar.MEAN]
    reach = _FAR * math.sqrt(ensemble.variance[0] + away * away / costs[CostSoFar.EVENTS])
    return np.float64(min(max(scaled, costs[CostSoFar.MEAN] - reach), costs[CostSoFar.MEAN] + reach))


@inline_kernel
def _has_levels(ensemble: Ensemble) -> bool:
    """Return whether levels are inputs; if actions are joined, most events have no scores of all actions."""
    return ensemble.n_levels > 0 and not joins(ensemble.members.inputs)


@inline_kernel
def _add_up_scores(buffers: Buffers, n: int, members: int, origin: float) -> None:
    """Add up the scores of `n` actions in each column; those of the `members` are scores less `origin`."""
    score, totals = buffers.score, buffers.members.totals
    first = len(totals) - 1 - members
    totals[:first] = 0.0
    totals[first:] = n * origin
    for action in range(n):
        for column in range(len(totals)):
            totals[column] += score[action, column]


@inline_kernel
def _level(ensemble: Ensemble, buffers: Buffers, n: int, column: int) -> np.float64:
    """Return the level of a column of the scores of `n` actions, from their sum, as an input."""
    return LEVEL_FACTOR * _scale_cost(ensemble, buffers.members.totals[column] / n)


@inline_kernel
def _score_members(context: Context, stream: Stream, actions: Actions, begin: int, end: int) -> None:
    """Compute the columns of the members in the scores of the actions [begin, end).

    Columns of members contain scores less the origin of costs, because members learn costs less the origin.
    An action that a member cannot score gets the champion's score. `buffers.members.known` receives the index
    of each action that was learnt before, and -1 for the others.
    """
    run, buffers = run_on(context, stream), context.buffers
    members, score, scored = run.live.ensemble.members, buffers.score, buffers.members.scored
    origin = _origin(run)
    n, inputs = len(members.rests), members.inputs
    takes = inputs.tally[Known.NUMBERS] > 0 or inputs.vectors.vectors[InVectors.NUMBERS] > 0
    forget_products(buffers, begin, end)
    for at in range(n):
        short_loop()
        scored[at] = works(members, at)
        takes = takes or (scored[at] and members.needs[at, Need.INPUTS] != 0)
    if all_rest(members, 0, n):
        return
    joined, first = joins(inputs), score.shape[1] - 1 - n
    for action in range(begin, end):
        short_loop()
        for at in range(n):
            short_loop()
            score[action, first + at] = score[action, 0] - origin
        index = 0 if joined else index_of(inputs, action_key(run, actions, action))
        buffers.members.known[action] = index if index >= 0 and inputs.seen[index] > 0 else -1
        if buffers.members.known[action] < 0 and predicts(run.live.ensemble):
            buffers.explored[PART, action] *= _UNKNOWN
    if takes:
        take_inputs(run, actions, -1, buffers)
    for member in range(len(members.states)):
        short_loop()
        first_score = members.begins[member]
        any_scored = False
        for at in range(first_score, members.begins[member + 1]):
            short_loop()
            any_scored = any_scored or scored[at]
        if any_scored:
            call_at(
                context.units.score_members[member],
                (
                    context,
                    stream,
                    actions,
                    Part(begin, end, first_score, first + first_score),
                    members.states[member],
                    buffers.members.scratch[member],
                ),
            )


@inline_kernel
def _grow_members(context: Context) -> None:
    """Prepare the members for new features, bins and actions."""
    members = context.live.ensemble.members
    for member in range(len(members.states)):
        short_loop()
        call_at(context.units.grow_members[member], (context, members.states[member]))


@inline_kernel
def _learn_members(
    context: Context, stream: Stream, actions: Actions, label: Label, cost: float, trusted: float
) -> None:
    """Update the members with an event, from the inputs by which it was scored.

    `cost` is the label's cost, clipped, and `trusted` the part by which it is trusted.
    """
    run, buffers = run_on(context, stream), context.buffers
    members = run.live.ensemble.members
    inputs, n = members.inputs, len(members.rests)
    action = max(int(label.action), 0)
    if all_rest(members, 0, n):
        return
    known = inputs.tally[Known.ACTIONS]
    new, joined = register_event(run, actions, buffers.members.known), joins(inputs)
    repeats = new or joined
    if new:
        forget_products(buffers, action, action + 1)
    if repeats:
        take_inputs(run, actions, action if joined else -1, buffers)
    if new or known != inputs.tally[Known.ACTIONS]:
        _grow_members(context)
    index = 0 if joined else buffers.members.known[action]
    if index < 0:
        index = index_of(inputs, action_key(run, actions, action))
    if index >= 0:
        inputs.seen[index] += 1
    first, weight = buffers.score.shape[1] - 1 - n, np.float64(label.weight)
    fair = fairness(label, actions.n) if hardly_explores(label, actions.n) else np.float64(1.0)
    origin = np.float64(_origin(run))
    for member in range(len(members.states)):
        short_loop()
        score = members.begins[member]
        if not all_rest(members, score, members.begins[member + 1]):
            call_at(
                context.units.learn_members[member],
                (
                    context,
                    stream,
                    actions,
                    Lesson(
                        action, index, cost - origin, weight, score, first + score, repeats, trusted, fair
                    ),
                    members.states[member],
                    buffers.members.scratch[member],
                ),
            )
    grows = see_numbers(inputs, buffers.members.taken.raw)
    if see_vectors(inputs.vectors, buffers.members.taken):
        add_projections(inputs)
        grows = True
    if grows:
        _grow_members(context)


@kernel
def fill_disagreement(
    ensemble: Ensemble,
    score: NDArray[np.float32],
    scored: NDArray[np.bool_],
    n: int,
    unsure: NDArray[np.float32],
) -> None:
    """Write how far the members are from the ensemble about each of `n` actions: the weighted mean square.

    Scores are compared by their differences from the mean over the actions. Negative weights do not count.
    """
    column, last, total = score.shape[1] - 1, constant_of(ensemble), 0.0
    level, first = mean_score(score, n, column), column - len(scored)
    for at in range(column):
        short_loop()
        weight = ensemble.weights[at if at < first else last - column + at]
        if not weight > 0.0 or (at >= first and not scored[at - first]):
            continue
        total, own = total + weight, mean_score(score, n, at) - level
        for action in range(n):
            short_loop()
            away = np.float64(score[action, at]) - np.float64(score[action, column]) - own
            unsure[action] += np.float32(weight * away * away)
    for action in range(n):
        short_loop()
        unsure[action] /= np.float32(max(total, 1.0))


@entry_kernel
def score_ensemble(context: Context, stream: Stream, actions: Actions, label: Label, learns: bool) -> None:
    """Fill the ensemble's column of the scores where needed; before costs differ, with the champion's scores.

    Unless the ensemble predicts, an event that is not learnt needs no score, and most other events need the
    score of the logged action only.
    """
    run, score = run_on(context, stream), context.buffers.score
    ensemble, column = run.live.ensemble, ensemble_column(context.buffers)
    begin, end = 0, actions.n
    if not predicts(ensemble):
        if not learns:
            return
        if not scores_all(run.live):
            begin = max(int(label.action), 0)
            end = min(begin + 1, end)
    last, members = constant_of(ensemble), len(ensemble.members.rests)
    low, width = ensemble.range[0], ensemble.range[1] - ensemble.range[0]
    if members > 0:
        _score_members(context, stream, actions, begin, end)
    constant, origin = ensemble.weights[last], np.float64(_origin(run))
    if width > 0.0 and _has_levels(ensemble):
        _add_up_scores(context.buffers, actions.n, members, origin)
        for slot in range(run.live.n):
            short_loop()
            weight = ensemble.weights[last + 1 + slot]
            constant += weight * _level(ensemble, context.buffers, actions.n, slot)
        for at in range(members):
            short_loop()
            if context.buffers.members.scored[at]:
                weight = ensemble.weights[2 * last + 1 - members + at]
                score_index = column - members + at
                constant += weight * _level(ensemble, context.buffers, actions.n, score_index)
    for action in range(begin, end):
        short_loop()
        if not width > 0.0:
            score[action, column] = score[action, 0]
            continue
        total = constant
        for slot in range(run.live.n):
            short_loop()
            total += ensemble.weights[slot] * _scale_cost(ensemble, score[action, slot])
        for at in range(members):
            short_loop()
            if context.buffers.members.scored[at]:
                weight = ensemble.weights[last - members + at]
                total += weight * _scale_cost(ensemble, origin + score[action, column - members + at])
        score[action, column] = np.float32(low + width * total)
    if width > 0.0 and run.task.exploration.sees_errors and predicts(ensemble):
        buffers = context.buffers
        fill_disagreement(ensemble, score, buffers.members.scored, actions.n, buffers.explored[UNSURE])
    if (
        width > 0.0
        and end - begin == actions.n
        and can_shrink(ensemble, context.buffers.members.scored, actions.n)
    ):
        shrink_scores(ensemble, score, actions.n)


@kernel
def _widen(ensemble: Ensemble, cost: float) -> None:
    """Widen the range of costs to include `cost`, at most by the present width: one cost may be an outlier.

    The weights are rescaled, so that predictions do not change.
    """
    low, high = ensemble.range[0], ensemble.range[1]
    width = high - low
    if low <= cost <= high:
        return
    if width > 0.0:
        ensemble.range[0], ensemble.range[1] = (
            max(min(low, cost), low - width),
            min(max(high, cost), high + width),
        )
    else:
        ensemble.range[0], ensemble.range[1] = min(low, cost), max(high, cost)
        return
    last, total = constant_of(ensemble), 0.0
    for i in range(last):
        total += ensemble.weights[i]
    for i in range(last + 1, len(ensemble.weights)):
        total += LEVEL_FACTOR * ensemble.weights[i]
    wider = ensemble.range[1] - ensemble.range[0]
    costs, scale = ensemble.costs, width / wider
    costs[CostSoFar.MEAN] = costs[CostSoFar.MEAN] * scale + (low - ensemble.range[0]) / wider
    costs[CostSoFar.VARIANCE] *= scale * scale
    ensemble.error[0] *= scale * scale
    ensemble.variance[0] *= scale * scale
    for i in range(Shrinkage.OWN, len(ensemble.shrinkage)):
        ensemble.shrinkage[i] *= scale * scale
    ensemble.weights[last] = (
        width * ensemble.weights[last] + (low - ensemble.range[0]) * (1.0 - total)
    ) / wider
    for i in range(len(ensemble.weights)):
        ensemble.spread[last, i] *= width / wider
        ensemble.spread[i, last] *= width / wider


@entry_kernel
def learn_ensemble(
    context: Context,
    stream: Stream,
    cursor: NDArray[np.int64],
    actions: Actions,
    label: Label,
    weight: F32,
) -> None:
    """Test the ensemble on a learnt event, learn its weights, and set the cursor's signal on a verdict.

    The scores are those from before the event was learnt. Rewards are compared on events that have scores of
    all actions. `weight` (float32) is the event's `keep_weight`.
    """
    run, buffers = run_on(context, stream), context.buffers
    live, ensemble, score = run.live, run.live.ensemble, buffers.score
    simple = run.task.shape == Shape.SIMPLE
    action = 0 if simple else int(label.action)
    if action < 0 or not math.isfinite(label.cost) or not label.weight > _ZERO:
        return
    cost, learnt, trusted = np.float64(label.cost), weigh(run, label, weight), 1.0
    if ensemble.range[1] > ensemble.range[0]:
        column, scored = ensemble_column(buffers), scores_all(live)
        ranking = column if scored else 0
        test_losses(run, score, action, actions.n, ranking, label, weight)
        if scored:
            ensemble.test.updates[0] += 1
            if not simple:
                test_rewards(run, score, actions.n, column, label, weight)
        cursor[Cursor.SIGNAL] = verdict(live, simple)
        note_lead(live)
        trusted = trust(score, ranking, label, actions.n)
        bounded = _bounded_cost(ensemble, label.cost)
        shrinks = scored and can_shrink(ensemble, buffers.members.scored, actions.n)
        _learn_weights(run, actions, learnt, bounded, ranking, buffers, shrinks)
        cost = ensemble.range[0] + bounded * (ensemble.range[1] - ensemble.range[0])
    if len(ensemble.members.rests) > 0:
        _learn_members(context, stream, actions, learnt, cost, trusted)
        leave_out_stopped(ensemble, buffers.members.scored, LINE_VARIANCE if simple else NEW_VARIANCE)
    _widen(ensemble, np.float64(label.cost))


@inline_kernel
def _unexplained_variance(ensemble: Ensemble, cost: float, noise: float, weight: F32) -> np.float64:
    """Return the part of the variance of costs that is not explained, once the variance includes `cost`."""
    costs = ensemble.costs
    costs[CostSoFar.EVENTS] = min(costs[CostSoFar.EVENTS] + 1.0, LATEST)
    events = max(costs[CostSoFar.EVENTS] / np.float64(weight), 1.0)
    costs[CostSoFar.MEAN] += (cost - costs[CostSoFar.MEAN]) / events
    square = (cost - costs[CostSoFar.MEAN]) ** 2
    ensemble.variance[0] += (square - ensemble.variance[0]) / costs[CostSoFar.EVENTS]
    square /= noise
    costs[CostSoFar.VARIANCE] += (square - costs[CostSoFar.VARIANCE]) / costs[CostSoFar.EVENTS]
    if not costs[CostSoFar.VARIANCE] > 0.0:
        return np.float64(1.0)
    return np.float64(min(max(ensemble.error[0] / costs[CostSoFar.VARIANCE], _LEAST_NOISE), 1.0))


@inline_kernel
def _learn_weights(
    run: LoopRun, actions: Actions, label: Label, cost: float, ranking: int, buffers: Buffers, shrinks: bool
) -> None:
    """Learn the weights from the logged action's scores, its bounded cost and its rank in a column.

    The factors of shrinkage are learnt too if the event `shrinks`.
    """
    ensemble, score, column = run.live.ensemble, buffers.score, ensemble_column(buffers)
    action = max(int(label.action), 0)
    inputs, levels = ensemble.scratch[0], _has_levels(ensemble)
    last, members = constant_of(ensemble), len(ensemble.members.rests)
    origin = np.float64(_origin(run))
    inputs[:] = 0.0
    if levels:
        _add_up_scores(buffers, actions.n, members, origin)
    for slot in range(run.live.n):
        short_loop()
        inputs[slot] = _scale_cost(ensemble, score[action, slot])
        if levels:
            inputs[last + 1 + slot] = _level(ensemble, buffers, actions.n, slot)
    for at in range(members):
        short_loop()
        if buffers.members.scored[at]:
            index, score_index = last - members + at, column - members + at
            inputs[index] = _scale_cost(ensemble, origin + score[action, score_index])
            if levels:
                inputs[last + 1 + index] = _level(ensemble, buffers, actions.n, score_index)
    inputs[last] = 1.0
    place = np.float64(rank(score, action, actions.n, ranking) + 1)
    noise = place / (math.sqrt(fairness(label, actions.n)) * np.float64(label.weight))
    error = cost
    for i in range(len(inputs)):
        error -= ensemble.weights[i] * inputs[i]
    if shrinks:
        width = ensemble.range[1] - ensemble.range[0]
        own, scaled = ensemble.range[0] + width * (cost - error), ensemble.range[0] + width * cost
        learn_shrinkage(ensemble, score, action, actions.n, scaled, own, math.sqrt(place) / noise)
    square = ensemble.error[0] if ensemble.error[1] > 0.0 else 1.0
    ensemble.error[1] = min(ensemble.error[1] + 1.0, LATEST)
    ensemble.error[0] += (error * error / noise - ensemble.error[0]) / ensemble.error[1]
    keeps, most = KEEPS, PRIOR_VARIANCE
    if ensemble.n_levels == 0:
        square, most = max(square, _LEAST_SQUARE), LINE_VARIANCE
        noise *= square * max(1.0, abs(error) / (_USUAL * math.sqrt(square)))
        cost -= _compare_with_champion(run.live, inputs, buffers.members.scored)
    else:
        unexplained = _unexplained_variance(ensemble, _scale_cost(ensemble, label.cost), noise, label.weight)
        noise *= max(unexplained, _YOUNG / ensemble.error[1])
        keeps = 1.0 - (1.0 - KEEPS) * min(max((1.0 - unexplained) / _EXPLAINED, _SLOWEST), 1.0)
    learn_squares(
        ensemble.weights, ensemble.spread, inputs, ensemble.scratch[1], Observed(cost, noise, keeps, 1)
    )
    cut_off(ensemble.spread, len(inputs), most, ensemble.scratch[1])
    if ensemble.n_levels == 0:
        trust_champion(ensemble.weights, last)


@inline_kernel
def _compare_with_champion(live: Live, inputs: NDArray[np.float64], scored: NDArray[np.bool_]) -> np.float64:
    """Replace each score in the inputs of a line by its difference from the champion's, which is returned."""
    champion, last, members = inputs[0], constant_of(live.ensemble), len(live.ensemble.members.rests)
    for slot in range(live.n):
        short_loop()
        inputs[slot] -= champion
    for at in range(members):
        short_loop()
        if scored[at]:
            inputs[last - members + at] -= champion
    return np.float64(champion)
