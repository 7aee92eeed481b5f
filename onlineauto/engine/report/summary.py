"""``summary``: the lines after VW's progress table, with the best constant prediction in hindsight.

Source: VW ``shared_data.cc`` (``print_summary``), ``best_constant.cc``, ``loss_functions.cc``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from onlineauto.engine.report.progress import FLOAT_MAX, format_fixed
from onlineauto.learners.options import LossOptions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from onlineauto.engine.event.outcomes import Outcomes
    from onlineauto.engine.report.progress import ProgressTable
    from onlineauto.options import Configuration

_ZERO, _ONE = np.float32(0), np.float32(1)


class LabelRange:
    """Counts labels outside the range of the logistic loss, and detects labels of 0 and 1."""

    def __init__(self, configuration: Configuration) -> None:
        options = configuration[LossOptions]
        self._counts = options.loss_function == "logistic"
        self._low, self._high = options.logistic_min, options.logistic_max
        self._outside = 0
        self._labels: set[float] = set()

    def update(self, outcomes: Outcomes) -> None:
        """Count the labels of a block."""
        if not self._counts:
            return
        labels = outcomes.label[outcomes.labelled]
        self._outside += int(((labels < self._low) | (labels > self._high)).sum())
        if len(self._labels) < 3:
            self._labels |= {float(label) for label in np.unique(labels)[:3]}

    @property
    def warning(self) -> str | None:
        """A warning about the labels of all blocks, None if there is nothing to report."""
        if self._outside:
            count = f"{self._outside} label{'s' * (self._outside != 1)}"
            return (
                f"{count} outside [{self._low:g}, {self._high:g}], where the logistic loss means nothing; "
                "--logistic_min and --logistic_max set another range"
            )
        if self._labels == {0.0, 1.0} and self._low < 0:
            return (
                "labels are 0 and 1, and --loss_function logistic takes -1 for no: a 0 counts as undecided; "
                "--logistic_min 0 makes it no"
            )
        return None


class BestConstant(NamedTuple):
    """A constant prediction."""

    value: float  # The prediction, a float32.
    loss: float | None  # Its average loss, a float32; None if there are more than two different labels.


class _Side(NamedTuple):
    """One of two labels, and the weight of its events, computed from the sums."""

    label: np.float32
    weight: np.float32


def summary(
    progress: ProgressTable, configuration: Configuration, *, ending: str = "finished run"
) -> Iterator[str]:
    """Yield the lines after the table, an empty one first, without newlines; `ending` is the second.

    Examples
    --------
    >>> from onlineauto.workspace.options import REGISTRY
    >>> from onlineauto.engine.report.progress import ProgressTable
    >>> configuration = REGISTRY.parse("--cb_explore_adf")
    >>> for line in summary(ProgressTable(configuration, kind="cb_explore_adf"), configuration):
    ...     print(line or "<empty>")
    <empty>
    finished run
    number of examples = 0
    weighted example sum = 0.000000
    weighted label sum = 0.000000
    average loss = n.a.
    total feature number = 0
    """
    yield from ("", ending)
    if progress.current_pass <= 1:
        yield f"number of examples = {progress.example_number}"
    else:
        yield f"number of examples per pass = {progress.example_number // progress.current_pass}"
        yield f"passes used = {progress.current_pass}"
    yield f"weighted example sum = {format_fixed(progress.weighted_examples, digits=6)}"
    yield f"weighted label sum = {format_fixed(progress.weighted_labels, digits=6)}"
    yield f"average loss = {_average_loss(progress)}"
    best = best_constant(progress, configuration[LossOptions])
    if best is not None:
        yield f"best constant = {format_fixed(best.value, digits=6)}"
        if best.loss is not None:
            yield f"best constant's loss = {format_fixed(best.loss, digits=6)}"
    yield f"total feature number = {progress.total_features}"


def _average_loss(progress: ProgressTable) -> str:
    if progress.holdout:
        none = (FLOAT_MAX, float(np.float32(FLOAT_MAX * 0.5)))
        return (
            "undefined (no holdout)"
            if progress.best_loss in none
            else format_fixed(progress.best_loss, digits=6) + " h"
        )
    if progress.weighted_labelled > 0:
        return format_fixed(progress.sum_loss / progress.weighted_labelled, digits=6)
    return "n.a."


def best_constant(progress: ProgressTable, options: LossOptions) -> BestConstant | None:
    """Return the constant prediction with the smallest loss, computed from the sums of labels and weights.

    Like in VW, the weights of two labels are computed from the sums. With more than two labels there is a
    result for squared loss only. A single label counts as two: itself and 0.
    """
    if progress.first_label == FLOAT_MAX:
        return None
    with np.errstate(all="ignore"):
        sides = _two_sides(progress)
        if sides is None:
            return None
        low, high = sides
        if options.loss_function == "logistic":
            low, high = _Side(-_ONE, low.weight), _Side(_ONE, high.weight)
        value = _best_value(progress, options, low, high)
        if value is None:
            return None
        if progress.more_labels:
            return BestConstant(float(value), None)
        total = _ZERO
        for label, weight in (low, high):
            if weight > 0:
                total += _loss(progress, options, value, label) * weight
        return BestConstant(float(value), float(total / (low.weight + high.weight)))


def _two_sides(progress: ProgressTable) -> tuple[_Side, _Side] | None:
    one = np.float32(progress.first_label)
    other = _ZERO if progress.second_label == FLOAT_MAX else np.float32(progress.second_label)
    low, high = (other, one) if one > other else (one, other)
    if low == high:
        return None
    excess = np.float32(progress.weighted_labels - float(high) * progress.weighted_labelled)
    low_weight = excess / (low - high)
    high_weight = np.float32(progress.weighted_labelled) - low_weight
    if low_weight + high_weight <= 0:
        return None
    return _Side(low, low_weight), _Side(high, high_weight)


def _best_value(progress: ProgressTable, options: LossOptions, low: _Side, high: _Side) -> np.float32 | None:
    loss = options.loss_function
    if loss in ("squared", "classic"):
        return np.float32(progress.weighted_labels) / np.float32(progress.weighted_labelled)
    if progress.more_labels:
        return None
    if loss == "hinge":
        return -_ONE if high.weight <= low.weight else _ONE
    if loss == "logistic":
        if low.weight <= 0:
            return _ONE
        return -_ONE if high.weight <= 0 else np.log(high.weight / low.weight)
    if loss == "quantile":
        share = np.float32(options.quantile_tau) * (low.weight + high.weight)
        return high.label if share < high.weight else low.label
    return None


def _loss(progress: ProgressTable, options: LossOptions, value: np.float32, label: np.float32) -> np.float32:
    """Return the loss (float32) of predicting `value`, for the losses that have a best constant."""
    if options.loss_function == "hinge":
        return max(_ONE - label * value, _ZERO)
    if options.loss_function == "logistic":
        low, high = np.float32(options.logistic_min), np.float32(options.logistic_max)
        share = (label - low) / (high - low)
        return np.float32(
            share * np.log(_ONE + np.exp(-value)) + (_ONE - share) * np.log(_ONE + np.exp(value))
        )
    if options.loss_function == "quantile":
        tau, error = np.float32(options.quantile_tau), label - value
        return tau * error if error > 0 else -(_ONE - tau) * error
    if options.loss_function == "squared":
        return _clipped_squared_loss(
            value, label, np.float32(progress.min_label), np.float32(progress.max_label)
        )
    return (value - label) * (value - label)


def _clipped_squared_loss(
    value: np.float32, label: np.float32, low: np.float32, high: np.float32
) -> np.float32:
    """Return the squared loss, which grows linearly outside the range of predictions."""
    if low <= value <= high:
        return (value - label) * (value - label)
    bound = low if value < low else high
    if label == bound:
        return _ZERO
    sign = -_ONE if value < low else _ONE
    inside, outside = sign * (bound - label), sign * (value - bound)
    return np.float32(float(inside * inside) + 2.0 * float(inside) * float(outside))
