"""The evidence for the ensemble: two tests against the champion decide what predicts.

The tests compare the ensemble with the champion, like a challenger with the champion: by rewards, and by
losses on logged actions. On single lines the ensemble is compared with the mix, by losses.

A proof takes hundreds of events, and meanwhile the champion may predict far worse. So the ensemble
also predicts while it *leads*: for bandits, as long as neither losses nor rewards speak against it. On single
lines every event tells the loss of both, so the ensemble leads while its loss over about the last 1,000 lines
is less.

The test of losses weights events by the rarity of their action, which needs few events. But the
propensity-weighted losses must lean towards the ensemble too, and in them the ensemble has the champion's
level, since a better level changes no choice. Otherwise a log whose policy used information that no feature
has would make the ensemble fit that policy.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from onlineauto.engine.ensemble.input_kernels import joins
from onlineauto.engine.event.live_config_kernels import (
    LEANING,
    best_action,
    is_one_in_eight,
    mix_predictions,
    rarity,
)
from onlineauto.engine.records.loop import LoopSignal
from onlineauto.engine.records.search import RewardOwner, Tally
from onlineauto.engine.records.task import Shape
from onlineauto.estimators.difference_kernels import (
    observe_any_difference,
    observe_difference_within,
    share,
)
from onlineauto.estimators.draw_kernels import events_per_draw, level_per_draw, tell_of_actions
from onlineauto.estimators.interval_kernels import observe_policy
from onlineauto.estimators.paired_kernels import EventTerms, is_better, is_worse, observe_counted
from onlineauto.estimators.robust_kernels import LARGEST_WEIGHT
from onlineauto.estimators.scale_kernels import HIGH, LOW
from onlineauto.jit import F32, inline_kernel, short_loop
from onlineauto.learners.gradient_kernels import clip

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.engine.records.ensemble import Ensemble
    from onlineauto.engine.records.loop import Buffers, Label, LoopRun
    from onlineauto.engine.records.search import Live

_RAREST = 32.0
"""Maximum propensity weight of an event, relative to an event that was logged with a uniform choice."""

_FIRST_EVENTS = 512
"""Number of first learnt events of which the ensemble scores all actions."""

_EARLY_LEVEL = 0.5
"""Level at which losses lean towards the ensemble, so that it scores all actions of each event."""

_SELDOM = 1.0 / 12.0
"""An action is logged very seldom if its probability is less than this part of that of uniform choice."""

_DOUBTED = 1.0 / 3.0
"""The part by which members trust an event whose policy may have known more than the features say."""

_LEADS = 0.5
"""Level at which losses must prove that the ensemble of a bandit is better where they have to for a lead."""

_WIDE = 8.0
"""Width of the range of costs, in standard deviations, beyond which losses must do so."""

_KEEPS = 0.999
"""Part of the earlier losses of single lines that a line retains."""

_ZERO = np.float32(0)
_HALF = np.float32(0.5)
_ONE = np.float32(1)
_LARGEST_WEIGHT = np.float32(LARGEST_WEIGHT)


@inline_kernel
def ensemble_column(buffers: Buffers) -> int:
    """Return the column of the ensemble's scores."""
    return int(buffers.score.shape[1] - 1)


@inline_kernel
def predicts(ensemble: Ensemble) -> bool:
    """Return whether predictions are the ensemble's: it is proved, or leads."""
    return bool(ensemble.serves or ensemble.test.leads[0] > 0)


@inline_kernel
def rank(score: NDArray[np.float32], action: int, n: int, column: int) -> int:
    """Return the number of actions that have a lower score than `action`."""
    before = 0
    for other in range(n):
        short_loop()
        before += score[other, column] < score[action, column]
    return before


@inline_kernel
def scores_all(live: Live) -> bool:
    """Return whether the ensemble scores all actions of the next event to be learnt, not only the logged one.

    It does if it predicts, among the first events, if losses lean towards it, or if only rewards decide.
    Otherwise, if there are many actions, it scores all of them on one event in eight. The result depends on
    earlier events only, so both tests stay valid.
    """
    ensemble = live.ensemble
    members = ensemble.members
    if predicts(ensemble) or not live.tests.by_loss or len(members.rests) == 0 or not joins(members.inputs):
        return True
    soon = live.tally[Tally.LEARNT] < _FIRST_EVENTS or is_better(ensemble.test.loss, _EARLY_LEVEL)
    return bool(soon or is_one_in_eight(live))


@inline_kernel
def fairness(label: Label, n: int) -> np.float64:
    """Return the propensity weight of an event, by which all of `n` actions count alike.

    Unlike the rarity of the action, this weight is fair to logs whose policy used information that no feature
    has.
    """
    if not label.probability > _ZERO:
        return np.float64(1.0)
    return min(np.float64(1.0) / (n * np.float64(label.probability)), np.float64(_RAREST))


@inline_kernel
def hardly_explores(label: Label, n: int) -> bool:
    """Return whether the policy hardly explores here: it took one of `n` actions nearly always, or seldom."""
    probability = np.float64(label.probability)
    if not probability > 0.0 or n < 2:
        return False
    if label.probability > _HALF:
        return bool(0.0 < (1.0 - probability) * n < _SELDOM * (n - 1))
    return bool(probability * n < _SELDOM)


@inline_kernel
def trust(score: NDArray[np.float32], ranking: int, label: Label, n: int) -> float:
    """Return the part by which members trust the cost of an event of `n` actions.

    It is less than 1 if the policy hardly explores, and nearly always takes an action here that is the best
    neither for the champion nor by the column `ranking`. Such a policy may know more than the features say,
    and then what its favourites cost says little of what they cost when they are drawn. A learner that acts
    itself has favourites that are the best by its scores.
    """
    if not (label.probability > _HALF and hardly_explores(label, n)):
        return 1.0
    action = int(label.action)
    surprises = rank(score, action, n, ranking) > 0 and rank(score, action, n, 0) > 0
    return _DOUBTED if surprises else 1.0


@inline_kernel
def _shift_to_champion(score: NDArray[np.float32], action: int, n: int) -> np.float32:
    """Return the ensemble's score of an action, moved so that the mean of all `n` is that of the champion."""
    moved, column = 0.0, score.shape[1] - 1
    for other in range(n):
        short_loop()
        moved += np.float64(score[other, 0]) - np.float64(score[other, column])
    return np.float32(score[action, column] + moved / n)


@inline_kernel
def test_losses(
    run: LoopRun, score: NDArray[np.float32], action: int, n: int, ranking: int, label: Label, kept: F32
) -> None:
    """Add an event to the test of losses: squared errors of the ensemble and of the champion.

    The weight of the event is 1 / (1 + rank). The rank is the number of actions ranked before the logged one,
    by the champion or by the column `ranking`, whichever is less. For a bandit's event, both predictions and
    the range of costs bound the difference of the errors. On single lines that bound would be loose, because
    most labels are far from the ends of their range. `kept` (float32) is the event's `keep_weight`; the bound
    must not depend on it, since it follows from the cost.
    """
    ensemble, shared, column = run.live.ensemble, run.model.shared, score.shape[1] - 1
    test = ensemble.test
    cost = np.float64(label.cost)
    without = mix_predictions(run, score) if run.live.mixing else score[action, 0]
    champion, own = np.float64(clip(shared, without)), np.float64(clip(shared, score[action, column]))
    before = min(rank(score, action, n, ranking), rank(score, action, n, 0))
    counts, times = np.float64(label.weight) / (1.0 + before), np.float64(kept)
    gain = times * counts * ((champion - cost) ** 2 - (own - cost) ** 2)
    moved = own
    if run.task.shape != Shape.SIMPLE and ranking == column:
        moved = np.float64(clip(shared, _shift_to_champion(score, action, n)))
    fair = times * counts * ((champion - cost) ** 2 - (moved - cost) ** 2) * fairness(label, n)
    if math.isfinite(fair):
        keeps = _KEEPS if run.task.shape == Shape.SIMPLE else 1.0
        test.fair[0] = keeps * test.fair[0] + fair
        test.fair[1] = keeps * test.fair[1] + fair * fair
    rare = rarity(run.live, action, n)
    if run.task.shape == Shape.SIMPLE:
        observe_any_difference(test.loss, test.loss_spread, rare * gain, 0.0)
        return
    both = champion + own
    reach = max(abs(both - 2.0 * ensemble.range[0]), abs(both - 2.0 * ensemble.range[1]))
    if run.task.thinning.share < 1.0:
        reach = max(reach, abs(both) / run.task.thinning.share)
    reach *= rare * counts * abs(champion - own)
    observe_difference_within(test.loss, test.loss_spread, rare * gain, reach)


@inline_kernel
def count_event_left_out(run: LoopRun, label: Label) -> None:
    """Count an event that is not learnt because of its cost in the test of rewards."""
    live, test, reward = run.live, run.live.ensemble.test, np.float64(label.cost)
    if live.ensemble.range[1] > live.ensemble.range[0] and scores_all(live):
        test.updates[0] += 1
        for owner in range(2):
            observe_policy(
                test.policies[owner], live.statistics.scale, 0.0, reward, 1.0 / run.task.thinning.share
            )


@inline_kernel
def test_rewards(
    run: LoopRun, score: NDArray[np.float32], n: int, column: int, label: Label, kept: F32
) -> None:
    """Add an event to the test of rewards: the rewards of the two best actions, if these differ.

    `kept` (float32) is its `keep_weight`.
    """
    live, ensemble = run.live, run.live.ensemble
    test, statistics = ensemble.test, live.statistics
    weight = _ONE / label.probability if label.probability > _ZERO else _ZERO
    weight = min(weight, _LARGEST_WEIGHT)
    sign = 1.0 if live.tests.cost_is_reward else -1.0
    reward = sign * np.float64(label.cost)
    champion, choice = best_action(score, 0, n), best_action(score, column, n)
    w1 = np.float64(weight if choice == label.action else _ZERO)
    w0 = np.float64(weight if champion == label.action else _ZERO)
    counts = EventTerms(0.0, np.float64(kept), 1.0 / run.task.thinning.share)
    observe_policy(test.policies[RewardOwner.SELF], statistics.scale, counts.weight * w1, reward, counts.most)
    observe_policy(
        test.policies[RewardOwner.CHAMPION], statistics.scale, counts.weight * w0, reward, counts.most
    )
    if choice != champion:
        low, high = np.float64(statistics.scale[LOW]), np.float64(statistics.scale[HIGH])
        q1 = min(max(sign * np.float64(score[choice, 0]), low), high)
        q0 = min(max(sign * np.float64(score[champion, 0]), low), high)
        observe_counted(test.pair, statistics.scale, (w1, w0), reward, (q1, q0), counts)


@inline_kernel
def _predicts_better(live: Live, simple: bool, level: float) -> bool:
    """Return whether losses prove at `level` that the ensemble predicts better than the champion.

    For bandits, propensity-weighted losses must agree by one standard error, and rewards must not lean the
    other way.
    """
    test, draws = live.ensemble.test, live.statistics.draws
    many = events_per_draw(draws)
    better = live.tests.by_loss and tell_of_actions(draws)
    better = better and is_better(test.loss, level_per_draw(level * share(test.loss_spread), many))
    better = better and (simple or test.fair[0] >= math.sqrt(test.fair[1]))
    return bool(better and not is_worse(test.pair, level_per_draw(LEANING, many)))


@inline_kernel
def verdict(live: Live, simple: bool) -> int:
    """Return the signal of a verdict that would change what predicts; else `LoopSignal.BLOCK_END`.

    A loss verdict against the ensemble needs rewards that lean against it too; single lines have no rewards.
    """
    tests, statistics = live.tests, live.statistics
    ensemble, by_reward, by_loss = live.ensemble, tests.by_reward, tests.by_loss
    test = ensemble.test
    many, level = events_per_draw(statistics.draws), test.level[0]
    level_of_losses = level * (0.5 if by_reward else 1.0)
    level_of_rewards = level_per_draw(level * (0.5 if by_loss else 1.0), many)
    if ensemble.serves:
        if by_reward and is_worse(test.pair, level_of_rewards):
            return LoopSignal.CHAMPION_EARNS
        if not (by_loss and tell_of_actions(statistics.draws)):
            return LoopSignal.BLOCK_END
        loses = is_worse(test.loss, level_per_draw(level_of_losses * share(test.loss_spread), many))
        against = loses and (simple or is_worse(test.pair, level_per_draw(LEANING, many)))
        return LoopSignal.CHAMPION_PREDICTS if against else LoopSignal.BLOCK_END
    if by_reward and is_better(test.pair, level_of_rewards):
        return LoopSignal.ENSEMBLE_EARNS
    proved = _predicts_better(live, simple, level_of_losses)
    return LoopSignal.ENSEMBLE_PREDICTS if proved else LoopSignal.BLOCK_END


@inline_kernel
def _has_lead(live: Live) -> bool:
    """Return whether the ensemble of a bandit leads.

    It does unless the propensity-weighted losses are against it by one standard error, or rewards lean
    against it. Without members, and where few costs are far larger than all others, losses must be for it.
    """
    test = live.ensemble.test
    if len(live.ensemble.members.rests) == 0 or live.ensemble.variance[0] < 1.0 / (_WIDE * _WIDE):
        return _predicts_better(live, False, _LEADS)
    many = events_per_draw(live.statistics.draws)
    against = test.fair[0] < -math.sqrt(test.fair[1])
    return not (against or is_worse(test.pair, level_per_draw(LEANING, many)))


@inline_kernel
def note_lead(live: Live) -> None:
    """Note whether the ensemble leads, and since which learnt event; on lines, by the latest losses."""
    leads, lines = live.ensemble.test.leads, live.ensemble.n_levels == 0
    if live.ensemble.test.fair[0] <= 0.0 if lines else not _has_lead(live):
        leads[0] = 0
    elif leads[0] == 0:
        leads[0] = live.tally[Tally.LEARNT] + 1
