"""Gradient descent on a table of weights: ``--sgd``, ``--adaptive``, ``--normalized``, ``--invariant``.

A cell has four numbers for each lane: w (the weight), a (sum of squared gradients), n (largest |x| seen) and
rate (scratch of the last update). Predictions read only w, of many cells, and only few cells are learnt. So
the weights of all cells are contiguous in ``weights[cell, lane]``, and the other numbers are in a separate
array, ``statistics[cell, field, lane]``.

The features of an event are a list of (cell, value), an `Example`. Float operations are in Vowpal Wabbit's
order and must not be reordered.

Source: Ross, Mineiro & Langford, *Normalized Online Learning*, 2013; VW's ``--invariant`` options.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from onlineauto.jit import F32, Flags, Four, entry_kernel, inline_kernel, kernel, short_loop
from onlineauto.jit.four import (
    at_most,
    below,
    both,
    element,
    flags,
    four,
    load,
    load_flags,
    pick,
    prefetch,
    root,
    some,
    splat,
    store,
)
from onlineauto.learners.loss_kernels import (
    loss_plain_step,
    loss_slope,
    loss_slope_squared,
    loss_step,
    loss_value,
)

if TYPE_CHECKING:
    from typing import TypeAlias

    from numpy.typing import NDArray

    from onlineauto.features.records import Example, Records

    FourFloats: TypeAlias = tuple[F32, F32, F32, F32]
    FourLessons: TypeAlias = "tuple[LearnedLabel, LearnedLabel, LearnedLabel, LearnedLabel]"

W, A, N, RATE = range(4)
"""Fields of a cell, in the order of model files; see `onlineauto.learners.model`."""

GRADIENTS, SCALE, LATEST = A - 1, N - 1, RATE - 1
"""Indices of the fields of `Model.statistics`."""

NORM, WEIGHT, GRAVITY, CONTRACTION = range(4)
"""Columns of a lane's float64 state: Σ weight · Σ (x/n)²; Σ weight; the number that L1 penalties subtract
from the size of every weight; and the factor by which L2 penalties then shrink it."""

T, UNLABELLED_WEIGHT, HOLDOUT_WEIGHT, MIN_LABEL, MAX_LABEL, FACTOR, ORIGIN = range(7)
"""Entries of the learner's shared float64 state; the last four hold float32 values.

The origin is the cost with which every prediction of a bandit's cost begins, see
`onlineauto.engine.loop.run_kernels`."""

SHARED = 7
"""Number of these entries."""

SIZES, OUTLIERS = 4 + 4096, 6
"""Number of states of typical sizes, and number of counters of outliers; see `onlineauto.engine.outliers`."""

SETTINGS = np.dtype(
    [
        ("l1", np.float64),
        ("l2", np.float64),
        ("rate", np.float32),
        ("minus_power_t", np.float32),
        ("norm_power", np.float32),
        ("cb_type", np.int32),
        ("square_root", np.bool_),
        ("plain", np.bool_),
    ],
    align=True,
)
"""Record of a live config's settings. `rate` is a factor on the rule's learning rate; the others replace
the rule's values. `square_root` is true if power_t is ½; `plain` is true if also no penalty is set."""

_ZERO = np.float32(0)
_ONE = np.float32(1)
_X_MIN = np.float32(1.084202e-19)
_X2_MIN = np.float32(_X_MIN * _X_MIN)
_FLOAT_MAX = np.float32(np.finfo(np.float32).max)


class Rule(NamedTuple):
    """The constants of the update rule."""

    learning_rate: F32
    minus_power_t: F32
    norm_power: F32
    square_root: bool
    adaptive: bool
    normalized: bool
    invariant: bool
    l1: np.float64
    l2: np.float64
    loss: int
    low: F32
    high: F32
    track_labels: bool
    guarded: bool  # keep weights and penalties finite; VW does not


class Model(NamedTuple):
    """The arrays that learning changes."""

    table: NDArray[np.float32]  # [4 · cells · lanes]: the memory of the weights, then of the statistics
    weights: NDArray[np.float32]  # [cells, lanes]
    statistics: NDArray[np.float32]  # [cells, 3, lanes], see the fields above
    rows: NDArray[np.float32]  # [cells, 3 · lanes]: the statistics, row by row
    touched: NDArray[np.bool_]  # [cells]: the cell may differ from its initial value
    shared: NDArray[np.float64]  # [SHARED], see the entries above
    lanes: NDArray[np.float64]  # [lanes, 4], see the columns above
    penalised: NDArray[np.int64]  # [lanes]: row that holds a lane's penalties, see `TableShape`
    sums: NDArray[np.int64]  # [live configs, 2 · policies]: numbers of actions and events averaged by mtr
    settings: Records  # [live configs]
    sizes: NDArray[np.uint8]  # [SIZES, 4]: typical sizes of costs, weights, propensities and values
    outliers: NDArray[np.int64]  # [OUTLIERS]: events learnt, and events not learnt by kind of outlier


class ModelLane(NamedTuple):
    """The position of a model: its live config, and the lane of its weights and sums."""

    slot: int
    lane: int


class LearnedLabel(NamedTuple):
    """The label of an example and its weight."""

    label: F32
    weight: F32  # importance weight


@inline_kernel
def rule_of(rule: Rule, model: Model, slot: int) -> Rule:
    """Return the update rule of live config `slot`."""
    own = model.settings[slot]
    return Rule(
        rule.learning_rate * own.rate,
        own.minus_power_t,
        own.norm_power,
        own.square_root,
        rule.adaptive,
        rule.normalized,
        rule.invariant,
        own.l1,
        own.l2,
        rule.loss,
        rule.low,
        rule.high,
        rule.track_labels,
        rule.guarded,
    )


@inline_kernel
def _truncate(weight: F32, gravity: F32) -> F32:
    if gravity < abs(weight):
        return weight - gravity if weight > _ZERO else weight + gravity
    return _ZERO


@inline_kernel
def dot(rule: Rule, model: Model, model_lane: ModelLane, example: Example, initial: F32) -> F32:
    """Return the raw prediction (float32): `initial` + Σ w·x in the order of the list."""
    weights, lane = model.weights, model_lane.lane
    cell, value = example.cell, example.value
    penalties = model.lanes[model.penalised[model_lane.lane]]
    gravity = np.float32(penalties[GRAVITY])
    total = initial
    for r in range(example.n_runs):
        short_loop()
        run = example.runs[r]
        if not example.holders[run.product, model_lane.slot]:
            continue
        if rule.l1 > 0.0:
            for i in range(run.start, run.end):
                short_loop()
                total += _truncate(weights[cell[i], lane], gravity) * value[i]
        else:
            for i in range(run.start, run.end):
                short_loop()
                total += weights[cell[i], lane] * value[i]
    return total * np.float32(penalties[CONTRACTION])


@inline_kernel
def clip(shared: NDArray[np.float64], raw: F32) -> F32:
    """Return the prediction (float32) clipped to the labels seen so far; 0 for NaN."""
    if math.isnan(raw):
        return _ZERO
    if raw > np.float32(shared[MAX_LABEL]):
        return np.float32(shared[MAX_LABEL])
    if raw < np.float32(shared[MIN_LABEL]):
        return np.float32(shared[MIN_LABEL])
    return raw


@inline_kernel
def see_label(rule: Rule, shared: NDArray[np.float64], label: F32) -> None:
    """Widen the range of predictions to `label`."""
    if rule.track_labels:
        shared[MIN_LABEL] = min(shared[MIN_LABEL], np.float64(label))
        if label != _FLOAT_MAX:
            shared[MAX_LABEL] = max(shared[MAX_LABEL], np.float64(label))


@inline_kernel
def rate_of(rule: Rule, a: F32, n: F32) -> F32:
    """Return the rate (float32) of a feature, from its sum of squared gradients and its scale."""
    rate = _ONE
    if rule.adaptive:
        rate = _ONE / math.sqrt(a) if rule.square_root else a**rule.minus_power_t
    if rule.normalized:
        if rule.square_root:
            inverse = _ONE / n
            rate *= inverse if rule.adaptive else inverse * inverse
        else:
            rate *= (n * n) ** rule.norm_power
    return rate


@inline_kernel
def _rescale(rule: Rule, w: F32, before: F32, now: F32) -> F32:
    """Return weight `w` rescaled from scale `before` to the larger scale `now`."""
    if rule.square_root:
        ratio = before / now
        return w * ratio if rule.adaptive else w * (ratio * ratio)
    ratio = now / before
    return w * (ratio * ratio) ** rule.norm_power


@inline_kernel
def _accumulate(
    rule: Rule, model: Model, model_lane: ModelLane, example: Example, slope_squared: F32
) -> tuple[F32, F32]:
    """Do the first pass of an update: statistics and rates; return (prediction per unit step, Σ (x/n)²)."""
    weights, statistics, lane = model.weights, model.statistics, model_lane.lane
    per_update = _ZERO
    norm = _ZERO
    for r in range(example.n_runs):
        short_loop()
        run = example.runs[r]
        if not example.holders[run.product, model_lane.slot]:
            continue
        for i in range(run.start, run.end):
            short_loop()
            c = example.cell[i]
            x = example.value[i]
            x2 = x * x
            if x2 < _X2_MIN:
                if x == _ZERO and rule.guarded:  # a number of a vector
                    continue
                x = _X_MIN if x > _ZERO else -_X_MIN
                x2 = _X2_MIN
            if rule.adaptive:
                grown = statistics[c, GRADIENTS, lane] + slope_squared * x2
                if not rule.guarded or math.isfinite(grown):
                    statistics[c, GRADIENTS, lane] = grown
                if not rule.normalized:  # If normalized, a cell is marked when its scale grows.
                    model.touched[c] = True
            if rule.normalized:
                size = abs(x)
                before = statistics[c, SCALE, lane]
                # If a product of finite values overflows, no step moves the weight.
                if size > before and (not rule.guarded or size <= _FLOAT_MAX):
                    if before > _ZERO:
                        rescaled = _rescale(rule, weights[c, lane], before, size)
                        if not rule.guarded or math.isfinite(rescaled):
                            weights[c, lane] = rescaled
                    statistics[c, SCALE, lane] = size
                    model.touched[c] = True
                scale = statistics[c, SCALE, lane]
                share = x2 / (scale * scale)
                if x2 > _FLOAT_MAX:
                    share = _ONE
                norm += share
            rate = rate_of(rule, statistics[c, GRADIENTS, lane], statistics[c, SCALE, lane])
            if rule.guarded and not math.isfinite(rate):
                rate = _ZERO
            statistics[c, LATEST, lane] = rate
            per_update += x2 * rate
    return per_update, norm


@inline_kernel
def average(rule: Rule, total_weight: F32, total_norm: F32) -> F32:
    """Return the factor (float32) on every rate, from the sums of a lane."""
    if rule.square_root:
        ratio = total_weight / total_norm
        return math.sqrt(ratio) if rule.adaptive else ratio
    return (total_norm / total_weight) ** rule.norm_power


@kernel
def _sensitivity(
    rule: Rule,
    model: Model,
    model_lane: ModelLane,
    example: Example,
    slope_squared: F32,
    weight: F32,
    sum_squares: F32,
) -> F32:
    """Return how far a unit step moves the prediction; update the statistics and the factor of all steps."""
    if not (rule.adaptive or rule.normalized):
        return sum_squares
    if slope_squared == _ZERO:
        return _ONE
    per_update, norm = _accumulate(rule, model, model_lane, example, slope_squared)
    if rule.normalized:
        sums = model.lanes[model_lane.lane]
        sums[NORM] += np.float64(weight) * norm
        sums[WEIGHT] += weight
        factor = average(rule, np.float32(sums[WEIGHT]), np.float32(sums[NORM]))
        model.shared[FACTOR] = factor
        per_update *= factor
    return per_update


@inline_kernel
def step_scale(rule: Rule, shared: NDArray[np.float64], weight: F32) -> F32:
    """Return the learning rate (float32) for an event of this importance weight."""
    scale = rule.learning_rate * weight
    if not rule.adaptive:
        t = np.float32(shared[T] + weight - shared[HOLDOUT_WEIGHT] - shared[UNLABELLED_WEIGHT])
        scale *= t**rule.minus_power_t
    return scale


@kernel
def _regularize(rule: Rule, model: Model, lane: int, prediction: F32, label: F32, step: F32) -> F32:
    """Add the penalties of a step, which are applied to all weights lazily; return the step to take."""
    shared, penalties = model.shared, model.lanes[model.penalised[lane]]
    minimum, maximum = np.float32(shared[MIN_LABEL]), np.float32(shared[MAX_LABEL])
    slope = np.float64(loss_slope(rule.loss, rule.low, rule.high, prediction, label, minimum, maximum))
    eta = 0.0
    if abs(slope) > 1e-8:
        eta = -step / slope
        if rule.guarded and not math.isfinite(eta):
            return _ZERO
        shrunk = 1.0 - rule.l2 * eta
        if rule.guarded and shrunk <= 0.0:
            shrunk = 1.0 / (
                1.0 + abs(rule.l2 * eta)
            )  # like VW's 1 - l2 · eta to first order, but never negative
        penalties[CONTRACTION] *= shrunk
    step /= np.float32(penalties[CONTRACTION])
    penalties[GRAVITY] += eta * rule.l1
    return step


@entry_kernel
def materialize(model: Model, lane: int) -> None:
    """Apply the accumulated penalties of a lane to the weights of all lanes that share them."""
    weights, row = model.weights, model.penalised[lane]
    gravity, contraction = np.float32(model.lanes[row, GRAVITY]), np.float32(model.lanes[row, CONTRACTION])
    if gravity == _ZERO and contraction == _ONE:
        return
    for c in range(weights.shape[0]):
        short_loop()
        for each in range(weights.shape[1]):
            if model.penalised[each] == row:
                before = weights[c, each]
                weights[c, each] = _truncate(before, gravity) * contraction
                if weights[c, each] != before:
                    model.touched[c] = True
    model.lanes[row, GRAVITY] = 0.0
    model.lanes[row, CONTRACTION] = 1.0


@inline_kernel
def _move(rule: Rule, model: Model, model_lane: ModelLane, example: Example, step: F32) -> None:
    """Do the second pass of an update: move each weight by `step` times the weight's rate."""
    weights, lane = model.weights, model_lane.lane
    rated = rule.adaptive or rule.normalized
    for r in range(example.n_runs):
        short_loop()
        run = example.runs[r]
        if not example.holders[run.product, model_lane.slot]:
            continue
        for i in range(run.start, run.end):
            short_loop()
            c = example.cell[i]
            x = example.value[i]
            if -_FLOAT_MAX < x < _FLOAT_MAX:
                if rated:
                    x *= model.statistics[c, LATEST, lane]
                if not rated:
                    model.touched[c] = True
                moved = weights[c, lane] + step * x
                if not rule.guarded or math.isfinite(moved):
                    weights[c, lane] = moved


@kernel
def update(
    rule: Rule,
    model: Model,
    model_lane: ModelLane,
    example: Example,
    prediction: F32,
    lesson: LearnedLabel,
    sum_squares: F32,
) -> bool:
    """Learn a label of positive weight, of clipped `prediction`; return False if there is no loss."""
    shared, (label, weight) = model.shared, lesson
    minimum, maximum = np.float32(shared[MIN_LABEL]), np.float32(shared[MAX_LABEL])
    if not loss_value(rule.loss, rule.low, rule.high, prediction, label, minimum, maximum) > 0.0:
        return False
    slope_squared = weight * loss_slope_squared(rule.loss, rule.low, rule.high, prediction, label)
    per_update = _sensitivity(rule, model, model_lane, example, slope_squared, weight, sum_squares)
    scale = step_scale(rule, shared, weight)
    if rule.invariant:
        step = loss_step(rule.loss, rule.low, rule.high, prediction, label, scale, per_update)
    else:
        step = loss_plain_step(rule.loss, rule.low, rule.high, prediction, label, scale)
    if (rule.l1 > 0.0 or rule.l2 > 0.0) and abs(step) > 1e-8:
        step = _regularize(rule, model, model_lane.lane, prediction, label, step)
    if math.isnan(step) or step == _ZERO:
        return True
    if rule.normalized:
        step *= np.float32(shared[FACTOR])
    if rule.guarded and not math.isfinite(step):
        return True
    _move(rule, model, model_lane, example, step)
    penalties = model.lanes[model.penalised[model_lane.lane]]
    if penalties[CONTRACTION] < 1e-9 or penalties[GRAVITY] > 1e3:
        materialize(model, model_lane.lane)
    return True


_AHEAD = np.uint64(16)
"""Number of features by which an update prefetches statistics ahead, since scores have not read them."""


@inline_kernel
def _grow(model: Model, cell: np.uint64, slot: int, size: F32, grows: Flags, guarded: bool) -> None:
    """Raise the scale of a feature to `size` in lanes from `slot` on that `grows`; rescale its weight."""
    if guarded and size > _FLOAT_MAX:  # a product of finite values that overflowed
        return
    model.touched[cell] = True
    at_n, zero, now = SCALE * model.weights.shape[1] + slot, splat(_ZERO), splat(size)
    before, weight = load(model.rows, cell, at_n), load(model.weights, cell, slot)
    rescaled = weight * (before / now)
    moves = both(grows, below(zero, before))
    if guarded:
        moves = both(moves, both(at_most(splat(-_FLOAT_MAX), rescaled), at_most(rescaled, splat(_FLOAT_MAX))))
    store(model.weights, cell, slot, pick(moves, rescaled, weight))
    store(model.rows, cell, at_n, pick(grows, now, before))


@inline_kernel
def accumulate_four(
    model: Model, slot: int, example: Example, slopes: Four, learns: Flags, guarded: bool
) -> tuple[Four, Four]:
    """Do the first pass of an update of four lanes: return predictions per unit step, and Σ (x/n)²."""
    rows, lanes = model.rows, model.weights.shape[1]
    at_a, at_n, at_rate = GRADIENTS * lanes + slot, SCALE * lanes + slot, LATEST * lanes + slot
    zero, one, largest = splat(_ZERO), splat(_ONE), splat(_FLOAT_MAX)
    per_step, norm = zero, zero
    last = np.uint64(example.runs[example.n_runs - 1].end - 1) if example.n_runs > 0 else np.uint64(0)
    for r in range(example.n_runs):
        short_loop()
        active = both(learns, load_flags(example.holders, example.runs[r].product, slot))
        if not some(active):
            continue
        for i in range(np.uint64(example.runs[r].start), np.uint64(example.runs[r].end)):
            short_loop()
            later = np.uint64(example.cell[min(i + _AHEAD, last)])
            prefetch(rows, later, at_a)
            prefetch(rows, later, at_rate)
            c, x = np.uint64(example.cell[i]), example.value[i]
            x2 = x * x
            size = abs(x)
            if x2 < _X2_MIN:
                if x == _ZERO and guarded:  # a number of a vector
                    continue
                x2, size = _X2_MIN, _X_MIN
            grows = both(active, below(load(rows, c, at_n), splat(size)))
            if some(grows):
                _grow(model, c, slot, size, grows, guarded)
            square, scale, before = splat(x2), load(rows, c, at_n), load(rows, c, at_a)
            grown = before + slopes * square
            if guarded:
                grown = pick(at_most(grown, largest), grown, before)
            grown = pick(active, grown, before)
            store(rows, c, at_a, grown)
            rate = (one / root(grown)) * (one / scale)
            if guarded:
                rate = pick(at_most(rate, largest), rate, zero)
            store(rows, c, at_rate, pick(active, rate, load(rows, c, at_rate)))
            share = square / (scale * scale)
            if x2 > _FLOAT_MAX:
                share = one
            norm = norm + pick(active, share, zero)
            per_step = per_step + pick(active, square * rate, zero)
    return per_step, norm


@inline_kernel
def move_four(model: Model, slot: int, example: Example, steps: Four, moves: Flags, guarded: bool) -> None:
    """Do the second pass of an update: move the weights of four lanes, each by its own step and rate."""
    weights, rows = model.weights, model.rows
    at_rate = LATEST * weights.shape[1] + slot
    lowest, largest = splat(-_FLOAT_MAX), splat(_FLOAT_MAX)
    for r in range(example.n_runs):
        short_loop()
        active = both(moves, load_flags(example.holders, example.runs[r].product, slot))
        if not some(active):
            continue
        for i in range(np.uint64(example.runs[r].start), np.uint64(example.runs[r].end)):
            short_loop()
            c, x = np.uint64(example.cell[i]), example.value[i]
            if not -_FLOAT_MAX < x < _FLOAT_MAX:
                continue
            before = load(weights, c, slot)
            moved = before + steps * (splat(x) * load(rows, c, at_rate))
            if guarded:
                moved = pick(both(at_most(lowest, moved), at_most(moved, largest)), moved, before)
            store(weights, c, slot, pick(active, moved, before))


@inline_kernel
def has_fours(rule: Rule, model: Model, slot: int) -> bool:
    """Return whether the rule is the default one, except for settings, and four lanes begin at `slot`."""
    return bool(rule.adaptive and rule.normalized and rule.invariant and slot + 4 <= model.weights.shape[1])


@inline_kernel
def _slope(rule: Rule, model: Model, slot: int, raw: F32, lesson: LearnedLabel) -> tuple[F32, F32]:
    """Return the clipped prediction and the squared slope (float32); -1 as slope if there is no loss."""
    label, weight = lesson
    minimum, maximum = np.float32(model.shared[MIN_LABEL]), np.float32(model.shared[MAX_LABEL])
    prediction = clip(model.shared, raw)
    loss = loss_value(rule.loss, rule.low, rule.high, prediction, label, minimum, maximum)
    slope = -_ONE
    if weight > _ZERO and model.settings[slot].plain and loss > 0.0:
        slope = weight * loss_slope_squared(rule.loss, rule.low, rule.high, prediction, label)
    return prediction, slope


@inline_kernel
def _step(
    rule: Rule, model: Model, lane: int, prediction: F32, lesson: LearnedLabel, per_step: F32, norm: F32
) -> F32:
    """Add a label to the sums of a lane; return the step (float32) of the lane, 0 if it is not finite."""
    sums, (label, weight) = model.lanes[lane], lesson
    sums[NORM] += np.float64(weight) * norm
    sums[WEIGHT] += weight
    factor = math.sqrt(np.float32(sums[WEIGHT]) / np.float32(sums[NORM]))
    model.shared[FACTOR] = factor  # an `update` whose slope underflows reads it
    scale = rule.learning_rate * model.settings[lane].rate * weight
    step = loss_step(rule.loss, rule.low, rule.high, prediction, label, scale, per_step * factor)
    if math.isnan(step) or step == _ZERO:
        return _ZERO
    step *= factor
    return _ZERO if rule.guarded and not math.isfinite(step) else step


@inline_kernel
def update_four(
    rule: Rule,
    model: Model,
    slot: int,
    example: Example,
    raw: FourFloats,
    lessons: FourLessons,
) -> bool:
    """Learn an example in four lanes from `slot` on, if their weight is positive and their settings `plain`.

    If a slope underflows, the function changes nothing and returns False; then call `update` for each lane.
    """
    p0, g0 = _slope(rule, model, slot, raw[0], lessons[0])
    p1, g1 = _slope(rule, model, slot + 1, raw[1], lessons[1])
    p2, g2 = _slope(rule, model, slot + 2, raw[2], lessons[2])
    p3, g3 = _slope(rule, model, slot + 3, raw[3], lessons[3])
    if g0 == _ZERO or g1 == _ZERO or g2 == _ZERO or g3 == _ZERO:
        return False
    learns = (g0 != -_ONE, g1 != -_ONE, g2 != -_ONE, g3 != -_ONE)
    slopes, slots = four(g0, g1, g2, g3), flags(learns[0], learns[1], learns[2], learns[3])
    per_step, norm = accumulate_four(model, slot, example, slopes, slots, rule.guarded)
    u0 = u1 = u2 = u3 = _ZERO
    if learns[0]:
        u0 = _step(rule, model, slot, p0, lessons[0], element(per_step, 0), element(norm, 0))
    if learns[1]:
        u1 = _step(rule, model, slot + 1, p1, lessons[1], element(per_step, 1), element(norm, 1))
    if learns[2]:
        u2 = _step(rule, model, slot + 2, p2, lessons[2], element(per_step, 2), element(norm, 2))
    if learns[3]:
        u3 = _step(rule, model, slot + 3, p3, lessons[3], element(per_step, 3), element(norm, 3))
    moves = flags(u0 != _ZERO, u1 != _ZERO, u2 != _ZERO, u3 != _ZERO)
    move_four(model, slot, example, four(u0, u1, u2, u3), moves, rule.guarded)
    return True
