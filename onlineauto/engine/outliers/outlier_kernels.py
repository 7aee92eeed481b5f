"""Find numbers of an event that are orders of magnitude beyond all before, before the event is learnt.

Such a number would distort weights, scales, covariances, ranges and tests for the rest of the stream. So an
event with an outlier is not learnt; it counts as an event without a label. Typical sizes are learnt for costs
or labels, for importance weights, for inverse probabilities, and for the values of each feature, by its hash
(`onlineauto.estimators.typical_size_kernels`).

A rule that is neither normalized nor invariant, such as ``--sgd``, moves the weight of a value x so far that
the prediction of the event changes by x² times the step. So the gap for its values is half as large, after
the first events. For such a rule typical sizes are learnt from values below 1, too, but not from words, whose
value is 1.

Among the first events, and the first costs other than 0, typical sizes are unknown. If a number that was
learnt then turns out to be absurd, learning restarts.

An event that is held out, or that a run only predicts, is judged too, because its loss is counted. With
slots, an event is judged up to its first outlier, and the rest of the event is not learnt.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from onlineauto.engine.records.loop import ANY_VALUE, FIRST_FEATURE, Label, Outlier
from onlineauto.estimators.typical_size_kernels import (
    BEYOND,
    FEW,
    FIRST_EVENTS,
    GAP,
    KNOWN,
    NARROW_GAP,
    ONE,
    ORDINARY,
    RUINED,
    TYPICAL,
    USUAL,
    judge_number,
    size_of,
)
from onlineauto.features.hash_constants import GOLDEN
from onlineauto.features.records import FIRST_SLOT, SHARED_LINE, SLOT_LINE
from onlineauto.jit import inline_kernel, kernel, short_loop
from onlineauto.learners.gradient_kernels import MAX_LABEL, MIN_LABEL, SCALE

if TYPE_CHECKING:
    from onlineauto.engine.records.loop import Context
    from onlineauto.features.records import Records, Stream

_GOLDEN = np.uint64(GOLDEN)
_ZERO = np.float32(0)
_ONE = np.float32(1)
_FLOAT_MAX = np.float32(np.finfo(np.float32).max)
_SHIFT = np.uint64(52)


@inline_kernel
def _lines_of(context: Context, stream: Stream, event: int) -> tuple[int, int]:
    """Return the range [first, end) of the lines of context and actions of an event."""
    if context.task.slots:
        return int(stream.slots[event, SHARED_LINE]), int(stream.slots[event, FIRST_SLOT])
    return int(stream.events[event]), int(stream.events[event + 1])


@inline_kernel
def _largest_value(stream: Stream, begin: int, end: int) -> float:
    """Return the absolute value of the largest finite value of the features [begin, end)."""
    largest = 0.0
    for i in range(begin, end):
        size = abs(np.float64(stream.features[i].value))
        if math.isfinite(size):
            largest = max(largest, size)
    return largest


@kernel
def _judge_value(context: Context, feature: np.uint32, value: float, first: bool) -> int:
    """Return the verdict on a feature's value, other than 0.

    An unknown typical size is that of all values or, if known, the scale of the feature's weight. Values
    up to 1 are judged only among the `first` events, or if the rule is neither normalized nor invariant.
    """
    model, rule = context.model, context.rule
    index = FIRST_FEATURE + int((np.uint64(feature) * _GOLDEN) >> _SHIFT)
    squares = not (rule.normalized or rule.invariant)
    gap = NARROW_GAP if squares and not first else GAP
    if model.sizes[index, TYPICAL] == 0:
        if abs(value) <= 1.0 and (value == 1.0 or not squares):
            return ORDINARY
        value = max(abs(value), 1.0)
        before = 0 if first else max(int(model.sizes[ANY_VALUE, TYPICAL]), USUAL)
        if rule.normalized and not first:
            scale = model.statistics[np.uint64(feature) & context.task.mask, SCALE, 0]
            before = max(size_of(scale), ONE) if scale > _ZERO else before
        return judge_number(model.sizes, index, value, before, first, gap)
    return judge_number(model.sizes, index, value, 0, first, gap)


@kernel
def _judge_lines(context: Context, stream: Stream, begin: int, end: int, first: bool) -> int:
    """Return the worst verdict on the values of the features of the lines [begin, end)."""
    lines, spans, layout, worst = stream.lines, stream.spans, context.layout, ORDINARY
    for span in range(lines[begin].start, lines[end].start):
        short_loop()
        if layout.ignore[layout.key[spans[span].namespace]]:
            continue
        for i in range(spans[span].start, spans[span + 1].start):
            short_loop()
            value = np.float64(stream.features[i].value)
            if value != 0.0 and (first or abs(value) > 1.0) and math.isfinite(value):
                worst = max(worst, _judge_value(context, stream.features[i].hash, value, first))
    return worst


@inline_kernel
def _largest_of_lines(stream: Stream, begin: int, end: int) -> float:
    """Return the absolute value of the largest finite value of the features of the lines [begin, end)."""
    spans = stream.spans
    return _largest_value(
        stream, spans[stream.lines[begin].start].start, spans[stream.lines[end].start].start
    )


@kernel
def _judge_values(context: Context, stream: Stream, event: int, first: bool) -> int:
    """Return the worst verdict on the values of the features of an event, or of a slot and its event."""
    begin, end = _lines_of(context, stream, event)
    slot = int(stream.slots[event, SLOT_LINE]) if context.task.slots else -1
    largest = _largest_of_lines(stream, begin, end)
    if slot >= 0:
        largest = max(largest, _largest_of_lines(stream, slot, slot + 1))
    if not first and largest <= 1.0:
        return ORDINARY
    worst = _judge_lines(context, stream, begin, end, first)
    if slot >= 0:
        worst = max(worst, _judge_lines(context, stream, slot, slot + 1, first))
    judge_number(context.model.sizes, ANY_VALUE, largest, 0 if first else USUAL, first, GAP)
    return worst


@kernel
def find_outlier(context: Context, stream: Stream, event: int, label: Label) -> int:
    """Return the kind of the outlier of an event to be learnt, `Outlier.NONE` if there is none, and count it.

    `Outlier.BEGINS_AGAIN` means that an earlier outlier has ruined the model. Call again after the reset.
    """
    model = context.model
    first = bool(model.outliers[Outlier.NONE] < FIRST_EVENTS)
    unknown = 0 if first else USUAL
    largest, before = max(-model.shared[MIN_LABEL], model.shared[MAX_LABEL]), unknown
    if largest > 0.0 and model.sizes[Outlier.FAR_COST, TYPICAL] == 0 and not first:
        before = max(size_of(largest), ONE)
    label_size = max(abs(np.float64(label.cost)), abs(np.float64(label.initial)))
    inverse = 1.0 / np.float64(label.probability) if label.probability > _ZERO else 0.0
    few = first or model.sizes[Outlier.FAR_COST, KNOWN] < FEW  # costs other than 0 may be rare
    cost = judge_number(model.sizes, Outlier.FAR_COST, label_size, before, few, GAP)
    weight = judge_number(model.sizes, Outlier.FAR_WEIGHT, np.float64(label.weight), unknown, first, GAP)
    probability = judge_number(model.sizes, Outlier.FAR_PROBABILITY, inverse, unknown, first, GAP)
    value = _judge_values(context, stream, event, first)
    outlier = Outlier.NONE
    if max(cost, weight, probability, value) == RUINED:
        outlier = Outlier.BEGINS_AGAIN
    elif cost == BEYOND:
        outlier = Outlier.FAR_COST
    elif weight == BEYOND:
        outlier = Outlier.FAR_WEIGHT
    elif probability == BEYOND:
        outlier = Outlier.FAR_PROBABILITY
    elif value == BEYOND:
        outlier = Outlier.FAR_VALUE
    model.outliers[outlier] += 1
    return outlier


@inline_kernel
def is_far(outlier: int) -> bool:
    """Return whether an event with this outlier is not learnt."""
    return Outlier.NONE < outlier < Outlier.BEGINS_AGAIN


@inline_kernel
def outlier_of_event(stream: Stream, rows: Records, event: int) -> int:
    """Return the outlier of the previous slot of the event, which is then not learnt; else `Outlier.NONE`."""
    if event == 0 or stream.slots[event - 1, SHARED_LINE] != stream.slots[event, SHARED_LINE]:
        return Outlier.NONE
    # an unsigned byte and a member of an IntEnum have no common type in Numba
    outlier: int = np.int64(rows[event - 1].outlier)  # type: ignore[assignment]
    return outlier if is_far(outlier) else Outlier.NONE


@inline_kernel
def without_label(label: Label, outlier: int) -> Label:
    """Return the label of an event that is not learnt because of an outlier, without absurd numbers."""
    weight = _ZERO if outlier == Outlier.FAR_WEIGHT else label.weight
    return Label(
        np.int64(-1), _FLOAT_MAX, -_ONE, weight, _ZERO if outlier == Outlier.FAR_COST else label.initial
    )
