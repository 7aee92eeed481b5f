"""Live configs in the loop: count namespaces, check leases, observe rewards and losses, test challengers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from onlineauto.engine.event.example_kernels import line_of
from onlineauto.engine.records.loop import Cursor, LoopSignal, Step
from onlineauto.engine.records.search import GROUP, NEVER, PLACES, Due, RewardOwner, Tally
from onlineauto.engine.records.task import Shape
from onlineauto.estimators.difference_kernels import observe_any_difference, share
from onlineauto.estimators.draw_kernels import events_per_draw, level_per_draw, note_draw, tell_of_actions
from onlineauto.estimators.drift_kernels import add_losses
from onlineauto.estimators.interval_kernels import observe_loss, observe_policy
from onlineauto.estimators.paired_kernels import EventTerms
from onlineauto.estimators.paired_kernels import is_better as is_ahead
from onlineauto.estimators.paired_kernels import is_worse as is_behind
from onlineauto.estimators.paired_kernels import observe_counted as pair_up
from onlineauto.estimators.robust_kernels import IN_FULL, LARGEST_WEIGHT, is_better, observe, observe_nothing
from onlineauto.estimators.scale_kernels import HIGH, LOW, widen
from onlineauto.features.hash_constants import GOLDEN
from onlineauto.features.records import SLOT_LINE
from onlineauto.jit import F32, entry_kernel, inline_kernel, short_loop
from onlineauto.learners.gradient_kernels import MAX_LABEL, MIN_LABEL, ModelLane, clip
from onlineauto.learners.loss_kernels import loss_value

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.engine.records.loop import Actions, Label, LoopRun
    from onlineauto.engine.records.search import Live

_GOLDEN = np.uint64(GOLDEN)
_ZERO = np.float32(0)
_ONE = np.float32(1)
_LARGEST_WEIGHT = np.float32(LARGEST_WEIGHT)

_EIGHTH = np.uint64(1 << 61)

_MEMORY = 256.0
_SHARE = 1e-3

LEANING = 0.25
"""Level at which a reward test that leans against a loss verdict prevents it."""


@inline_kernel
def _count_line(run: LoopRun, line: int, times: int, above: int, mark: int, slot: bool = False) -> bool:
    """Count `times` each namespace of a line that has features; return whether one is new.

    Namespaces with the mark `above` (counted on the shared line) or `mark` are skipped. The default
    namespace of a `slot` has a separate key.
    """
    layout, stream, live = run.layout, run.stream, run.live
    namespaces = live.namespaces
    new = False
    for span in range(stream.lines[line].start, stream.lines[line + 1].start):
        short_loop()
        key = layout.key[stream.spans[span].namespace]
        ignored = layout.ignore[key]
        if slot and key == layout.default_key:
            key = np.int32(layout.slot_key)
        empty = stream.spans[span + 1].start == stream.spans[span].start
        if ignored or empty or namespaces.marks[key] == above or namespaces.marks[key] == mark:
            continue
        namespaces.marks[key] = mark
        namespaces.counts[key] += times
        namespaces.sizes[key] += times * (stream.spans[span + 1].start - stream.spans[span].start)
        new = new or not namespaces.seen[key]
    return new


@inline_kernel
def count_namespaces(run: LoopRun, event: int, actions: Actions) -> bool:
    """Count each namespace once for every action of an event; return whether one is new."""
    live, stream = run.live, run.stream
    namespaces = live.namespaces
    live.tally[Tally.EVENTS] += 1
    live.tally[Tally.ACTIONS] += actions.n
    shared = live.tally[Tally.MARK] + 1
    if run.task.shape == Shape.CB:
        live.tally[Tally.MARK] = shared
        return _count_line(run, actions.first, actions.n, -1, shared)
    new = False
    if actions.n_lines > actions.n and actions.n > 0:
        new = _count_line(run, actions.first - 1, actions.n, -1, shared)
        if run.task.slots:
            slot = stream.slots[event, SLOT_LINE]
            any_new = _count_line(run, slot, actions.n, -1, shared, True)
            new = new or any_new
            for i in range(run.scratch.n_left[0]):
                short_loop()
                key = run.scratch.left[i]
                namespaces.counts[key] += actions.n if namespaces.marks[key] != shared else 0
                namespaces.marks[key] = shared
    for action in range(actions.n):
        short_loop()
        line = line_of(run, actions, action)
        any_new = _count_line(run, line, 1, shared, shared + 1 + action)
        new = new or any_new
    live.tally[Tally.MARK] = shared + actions.n
    return new


@inline_kernel
def lease_is_due(live: Live) -> bool:
    """Return whether the lease of a live config has expired, or a waiting config can become live."""
    schedule = live.schedule
    due = bool(schedule.due[Due.FILL] != 0)
    for slot in range(live.n):
        short_loop()
        due = due or schedule.updates[slot] >= schedule.lease[slot]
    return due


@inline_kernel
def observes_namespace(run: LoopRun, event: int, actions: Actions, cursor: NDArray[np.int64]) -> bool:
    """Count the namespaces of the event at the cursor, once per event; return whether one is new."""
    if cursor[Cursor.STEP] >= Step.COUNTED:
        return False
    cursor[Cursor.STEP] = Step.COUNTED
    return count_namespaces(run, event, actions)


@entry_kernel
def take_losses(recent: NDArray[np.float64], fresh: NDArray[np.int64], losses: NDArray[np.float64]) -> int:
    """Move the champion's mean losses, over `GROUP` events each, into an array; return their number."""
    n, left = fresh[0] // GROUP, fresh[0] % GROUP
    for i in range(n):
        losses[i] = recent[i] / GROUP
    rest = recent[n] if left > 0 else 0.0
    recent[:] = 0.0
    recent[0], fresh[0] = rest, left
    return int(n)


@inline_kernel
def signal_before_test(run: LoopRun, cursor: NDArray[np.int64]) -> int:
    """Return the signal of a decision that is due before live configs are tested on the cursor's event."""
    if cursor[Cursor.STEP] < Step.REVIEWED:
        cursor[Cursor.STEP] = Step.REVIEWED
        live, due, fresh = run.live, run.live.schedule.due, run.live.statistics.fresh[0]
        reviews = bool(live.tally[Tally.LEARNT] >= due[Due.REVIEW] or fresh >= due[Due.STOP])
        if fresh >= due[Due.LOOK] or (reviews and due[Due.LOOK] != NEVER):
            n = take_losses(live.statistics.recent, live.statistics.fresh, live.drift.losses)
            live.drift.found[0] = add_losses(live.drift, live.drift.losses, n)
        if reviews or live.drift.found[0]:
            return LoopSignal.REVIEW_DUE
    if cursor[Cursor.STEP] < Step.SCHEDULED:
        cursor[Cursor.STEP] = Step.SCHEDULED
        if lease_is_due(run.live):
            return LoopSignal.LEASE_DUE
    return LoopSignal.BLOCK_END


@inline_kernel
def learner(live: Live, turn: int) -> int:
    """Return the live config that learns at a turn: the challengers first, the champion last."""
    if turn == live.n - 1:
        return 0
    return live.n - 1 - turn if live.reversed else turn + 1


@inline_kernel
def place_of(live: Live, slot: int, part: int) -> ModelLane:
    """Return live config `slot` with the lane of its part `part`."""
    return ModelLane(slot, slot * live.slot_step + part * live.part_step)


@inline_kernel
def best_action(score: NDArray[np.float32], slot: int, n: int) -> int:
    """Return the action that has the lowest score of live config `slot`, the first one of a tie."""
    best = 0
    for action in range(1, n):
        short_loop()
        if score[action, slot] < score[best, slot]:
            best = action
    return best


@inline_kernel
def _observe(live: Live, slot: int, policy: int, weight: F32, reward: F32) -> None:
    """Add a reward to a live config's estimator of its own reward, or of the champion's (`policy`)."""
    tests = live.tests
    if weight == _ZERO:
        observe_nothing(tests.evidence, slot, policy)
    else:
        observe(tests.evidence[slot, policy], np.float64(weight), np.float64(reward))


@inline_kernel
def is_one_in_eight(live: Live) -> bool:
    """Return whether the next event to be learnt is one of eight; it depends on the number of events only.

    Multiples of the golden ratio fall into each eighth of [0, 1) equally often, for any period of the log.
    """
    return bool(np.uint64(live.tally[Tally.LEARNT]) * _GOLDEN < _EIGHTH)


@inline_kernel
def compares_rewards(live: Live) -> bool:
    """Return whether rewards are compared on the next learnt event: one in eight if the search is sparing."""
    return not live.tests.sparing or is_one_in_eight(live)


@inline_kernel
def observe_rewards(
    run: LoopRun, score: NDArray[np.float32], n: int, label: Label, compared: bool, kept: F32
) -> None:
    """Add an event of weight `kept` to all reward estimators, or if not `compared` to the champion's only."""
    live = run.live
    tests, statistics = live.tests, live.statistics
    scale, most = statistics.scale, 1.0 / run.task.thinning.share
    weight = _ONE / label.probability if label.probability > _ZERO else _ZERO
    if not run.task.quirks.raw_rewards:
        weight = min(weight, _LARGEST_WEIGHT)
    reward = label.cost if tests.cost_is_reward else -label.cost
    value = np.float64(reward)
    if not _ZERO <= reward <= _ONE:
        live.tally[Tally.OUTSIDE] += 1
        if not run.task.quirks.raw_rewards:
            reward = min(max(reward, _ZERO), _ONE)
    chosen = best_action(score, 0, n)
    champion = weight if chosen == label.action else _ZERO
    if tests.paired:
        observe_policy(
            statistics.policies[0, RewardOwner.SELF], scale, np.float64(kept * champion), value, most
        )
    for slot in range(1, live.n):
        short_loop()
        live.schedule.updates[slot] += 1
        if not compared:
            continue
        tests.compared[slot] += 1
        choice = best_action(score, slot, n)
        importance = weight if choice == label.action else _ZERO
        if tests.paired:
            observe_policy(
                statistics.policies[slot, RewardOwner.SELF], scale, np.float64(kept * importance), value, most
            )
            if choice != chosen:
                q1, q0 = _predicted_reward(live, score[choice, 0]), _predicted_reward(live, score[chosen, 0])
                w1, w0, price = np.float64(importance), np.float64(champion), tests.prices[slot]
                counts = EventTerms(price, np.float64(kept), most)
                pair_up(tests.pairs[slot], scale, (w1, w0), value, (q1, q0), counts)
        else:
            _observe(live, slot, RewardOwner.SELF, importance, reward)
            _observe(live, slot, RewardOwner.CHAMPION, champion, reward)
            tests.decided[slot] &= importance == _ZERO and champion == _ZERO
        statistics.last[slot, RewardOwner.SELF, 0], statistics.last[slot, RewardOwner.SELF, 1] = (
            importance,
            reward,
        )
        statistics.last[slot, RewardOwner.CHAMPION, 0], statistics.last[slot, RewardOwner.CHAMPION, 1] = (
            champion,
            reward,
        )
    if tests.paired:
        widen(scale, value, np.float64(label.probability), n)
    live.tally[Tally.LEARNT] += 1


@inline_kernel
def count_left_out(run: LoopRun, n: int, label: Label, compared: bool) -> None:
    """Count an event that is not learnt because of its cost, like an event whose action no config chooses."""
    live, reward = run.live, np.float64(label.cost)
    tests, statistics = live.tests, live.statistics
    scale, most = statistics.scale, 1.0 / run.task.thinning.share
    for slot in range(live.n):
        short_loop()
        live.schedule.updates[slot] += slot > 0
        if slot == 0 or compared:
            observe_policy(statistics.policies[slot, RewardOwner.SELF], scale, 0.0, reward, most)
            tests.compared[slot] += slot > 0
    widen(scale, reward, np.float64(label.probability), n)
    note_logged(live, int(label.action), label, compared)
    live.tally[Tally.LEARNT] += 1


@inline_kernel
def _predicted_reward(live: Live, cost: F32) -> np.float64:
    """Return the champion's predicted reward from its predicted `cost`, clipped to the rewards seen."""
    statistics = live.statistics
    low, high = np.float64(statistics.scale[LOW]), np.float64(statistics.scale[HIGH])
    reward = np.float64(cost if live.tests.cost_is_reward else -cost)
    return min(reward, high) if reward >= low else low  # NaN gives `low`


@inline_kernel
def _loss(run: LoopRun, raw: F32, target: F32) -> np.float64:
    """Return the loss of a raw prediction after clipping to the labels seen so far."""
    rule, shared = run.rule, run.model.shared
    low, high = np.float32(shared[MIN_LABEL]), np.float32(shared[MAX_LABEL])
    prediction = clip(shared, raw)
    return np.float64(loss_value(rule.loss, rule.low, rule.high, prediction, target, low, high))


@inline_kernel
def rarity(live: Live, action: int, n: int) -> np.float64:
    """Return how much rarer an action was logged so far than one of `n` actions on average.

    Losses are multiplied by this factor, or else the log's favourite action would dominate them.
    """
    statistics = live.statistics
    logged = statistics.logged[min(action, PLACES - 1)]
    if action >= PLACES - 1 and n > PLACES:
        logged /= n - PLACES + 1  # the last entry counts all positions from PLACES - 1 on
    return np.float64((statistics.logged[PLACES] + n) / (n * (logged + 1.0)))


@inline_kernel
def note_logged(live: Live, action: int, label: Label, compared: bool) -> None:
    """Count a logged action, and note whether it seems to be drawn separately, also among the `compared`."""
    statistics = live.statistics
    index = min(action, PLACES - 1)
    if label.probability > _ZERO and statistics.logged[PLACES] > 0.0:
        often = statistics.logged[index] / statistics.logged[PLACES]
        note_draw(statistics.draws, action, often, np.float64(label.probability))
        if compared:
            note_draw(statistics.compared_draws, action, often, np.float64(label.probability))
    statistics.logged[index] += 1.0
    statistics.logged[PLACES] += 1.0


@inline_kernel
def observe_losses(
    run: LoopRun, score: NDArray[np.float32], action: int, n: int, label: Label, kept: F32
) -> None:
    """Add an event of weight `kept` to all loss estimators: the losses of configs on the logged `action`."""
    live, simple = run.live, run.task.shape == Shape.SIMPLE
    tests, statistics = live.tests, live.statistics
    weight = np.float64(label.weight) if simple else np.float64(kept)
    rare = 1.0 if simple else rarity(live, action, n)
    champion = weight * _loss(run, score[action, 0], label.cost)
    if not math.isfinite(champion):
        return
    group = statistics.fresh[0] // GROUP
    if group < len(statistics.recent):
        statistics.recent[group] += champion
        statistics.fresh[0] += 1
    reach, rate = statistics.reach[0], 0.0
    if simple:
        observe_loss(statistics.policies[0, RewardOwner.SELF], champion, reach)
        statistics.reach[0] = max(reach, champion)
        statistics.reach[1] += (champion - statistics.reach[1]) / min(live.tally[Tally.LEARNT] + 1.0, _MEMORY)
        live.tally[Tally.LEARNT] += 1
    if live.mixing:
        rate = 0.5 / statistics.reach[1] if statistics.reach[1] > 0.0 else 0.0
        live.mix[0] *= math.exp(-rate * champion)
    for slot in range(1, live.n):
        short_loop()
        if not (tests.by_loss and tests.alike[slot]):
            continue
        weighted_loss = weight * _loss(run, score[action, slot], label.cost)
        if math.isfinite(weighted_loss):
            gain = rare * (champion - weighted_loss)
            observe_any_difference(tests.losses[slot], tests.spread[slot], gain, tests.prices[slot])
        if live.mixing:
            live.mix[slot] *= math.exp(-rate * weighted_loss) if math.isfinite(weighted_loss) else 0.0
        if simple:
            observe_loss(statistics.policies[slot, RewardOwner.SELF], weighted_loss, reach)
            statistics.reach[0] = (
                max(statistics.reach[0], weighted_loss)
                if math.isfinite(weighted_loss)
                else statistics.reach[0]
            )
            statistics.last[slot, RewardOwner.SELF, 0], statistics.last[slot, RewardOwner.SELF, 1] = (
                weight,
                -weighted_loss,
            )
            statistics.last[slot, RewardOwner.CHAMPION, 0], statistics.last[slot, RewardOwner.CHAMPION, 1] = (
                weight,
                -champion,
            )
            live.schedule.updates[slot] += 1
            tests.compared[slot] += 1
    if live.mixing:
        _share(live)


@inline_kernel
def _share(live: Live) -> None:
    """Scale the weights of the mix to sum to 1; keep each of them large enough to recover quickly."""
    total = 0.0
    for slot in range(live.n):
        short_loop()
        total += live.mix[slot]
    for slot in range(live.n):
        short_loop()
        say = live.mix[slot] / total if total > 0.0 else 1.0 / live.n
        live.mix[slot] = (1.0 - _SHARE) * say + _SHARE / live.n


@inline_kernel
def mix_predictions(run: LoopRun, score: NDArray[np.float32]) -> F32:
    """Return the prediction (float32) of a single line by the mix of all live configs."""
    total = 0.0
    for slot in range(run.live.n):
        short_loop()
        total += run.live.mix[slot] * np.float64(clip(run.model.shared, score[0, slot]))
    return np.float32(total)


@inline_kernel
def better_challenger(live: Live) -> int:
    """Return the last live config that is proved to be better than the champion, 0 if none is.

    Once a quick check has shown that the bounds do not cross, the test is decided until a weight is not 0:
    an observation of 0 neither raises a lower bound, because no bet wins by it, nor lowers an upper bound.
    """
    tests = live.tests
    better_slot = 0
    for slot in range(1, live.n):
        short_loop()
        if not tests.decided[slot]:
            own, champion = tests.evidence[slot, RewardOwner.SELF], tests.evidence[slot, RewardOwner.CHAMPION]
            better, effort = is_better(own, champion, tests.robust)
            tests.decided[slot] = not better and effort != IN_FULL
            if better:
                better_slot = slot
    return better_slot


@entry_kernel
@inline_kernel
def reward_level(live: Live, slot: int) -> float:
    """Return the error probability of a challenger's reward test: half its level if losses are tested too."""
    tests = live.tests
    level: float = tests.levels[slot] * (0.5 if tests.by_loss and tests.alike[slot] else 1.0)
    return level


@entry_kernel
@inline_kernel
def loss_level(live: Live, slot: int) -> float:
    """Return the error probability of a challenger's loss test: a part of its level, see `share`."""
    tests = live.tests
    level: float = tests.levels[slot] * share(tests.spread[slot]) * (0.5 if tests.by_reward else 1.0)
    return level


@inline_kernel
def verdict(live: Live) -> tuple[int, int]:
    """Return (signal, live config) for the strongest proven verdict, else (`LoopSignal.BLOCK_END`, 0).

    A reward verdict precedes a loss verdict, which must not contradict rewards; "worse" comes last.
    """
    tests, statistics = live.tests, live.statistics
    if not tests.paired:
        slot = better_challenger(live)
        return (LoopSignal.BOUND_CROSSED if slot > 0 else LoopSignal.BLOCK_END), slot
    signal, about = LoopSignal.BLOCK_END, 0
    many, compared = events_per_draw(statistics.draws), events_per_draw(statistics.compared_draws)
    leaning, losses_tell = (
        level_per_draw(LEANING, compared),
        tests.by_loss and tell_of_actions(statistics.draws),
    )
    for slot in range(1, live.n):
        short_loop()
        pair, losses = tests.pairs[slot], tests.losses[slot]
        by_loss = losses_tell and tests.alike[slot]
        level = level_per_draw(reward_level(live, slot), compared)
        level_of_losses = level_per_draw(loss_level(live, slot), many)
        if tests.by_reward and is_ahead(pair, level):
            signal, about = LoopSignal.BOUND_CROSSED, slot
        elif signal == LoopSignal.BOUND_CROSSED:
            continue
        elif by_loss and is_ahead(losses, level_of_losses) and not is_behind(pair, leaning):
            signal, about = LoopSignal.LOSS_CROSSED, slot
        elif signal == LoopSignal.BLOCK_END and live.schedule.due[Due.REPLACEABLE] != 0:
            behind = tests.by_reward and is_behind(pair, level)
            behind = behind or (
                by_loss and is_behind(losses, level_of_losses) and not is_ahead(pair, leaning)
            )
            if behind:
                signal, about = LoopSignal.PROVED_WORSE, slot
    return signal, about
