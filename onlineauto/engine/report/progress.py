"""VW's counters, its progress table (`ProgressTable`), and the lines after the table (`summary`).

VW prints a row after the event at which the weight of all events reaches the next mark: 1, 2, 4, ... by
default (``--progress``). A row contains the average loss so far and since the last row. From the second pass
on, if events are held out, it contains their average loss instead and ends with ``h``.

All sums are doubles of float32 terms, added one at a time in the order of the events, so that every printed
digit is VW's. `numpy.cumsum` adds in that order, and Python loops only over the rows that are printed.

Source: VW ``shared_data.cc``, ``simple_label.cc``, ``cb.cc``, ``best_constant.cc``, ``loss_functions.cc``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from onlineauto.engine.event.outcomes import Outcomes
from onlineauto.engine.options.registry import OutputOptions, RunOptions
from onlineauto.engine.records.loop import ROW, Outlier
from onlineauto.engine.stream.counters import Counters, total
from onlineauto.explorers.options import SlotOptions
from onlineauto.features.block import UNLABELLED
from onlineauto.learners.options import LossOptions, UpdateOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from onlineauto.features.slots import Slots
    from onlineauto.options import Configuration

COLUMN_TITLES: Final = (
    "average  since         example        example        current        current  current",
    "loss     last          counter         weight          label        predict features",
)
"""The two lines above the table."""

FLOAT_MAX: Final = float(UNLABELLED)
"""Largest float32, VW's mark for a missing number."""

_WIDTHS: Final = (8, 8, 12, 14, 14, 14, 8)
_FACTOR_SUSPECT: Final = 9
_LOGISTIC_RANGE: Final = 50.0

_SHOWN = 2


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EventOutcomes(Outcomes):
    """Outcomes of events: labelled if any slot is, with the loss of the first slot, or of all."""

    by_slot: Outcomes  # Outcomes of the slots.

    def short_repr(self, event: int) -> tuple[str, str]:
        """Return label (the first two slots') and prediction (the chosen actions) for the progress table."""
        slots, first = self.by_slot, 0
        assert slots.slots is not None
        first, last = slots.slots.start[event : event + 2].tolist()
        labels = [
            f"{slots.known_action[slot]}:{format_general(slots.known_cost[slot])}"
            if slots.labelled[slot]
            else "?"
            for slot in range(first, last)
        ]
        if len(labels) > _SHOWN:
            labels[_SHOWN:] = ["..."]
        start = slots.action_start
        chosen = [
            str(slots.action[start[slot]]) if start[slot] < start[slot + 1] else "None"
            for slot in range(first, last)
        ]
        return ",".join(labels), ",".join(chosen)


def of_events(outcomes: Outcomes, slots: Slots, *, all_slots: bool) -> EventOutcomes:
    """Return the outcomes of events, summed over the outcomes of their slots."""
    n = len(slots.start) - 1
    rows = np.zeros(n, ROW)
    rows["known_action"], rows["known_cost"] = -1, UNLABELLED
    holdout = np.zeros(n, bool)
    holdout[slots.event] = outcomes.holdout
    for number in range(int(slots.number.max(initial=-1)) + 1):  # The order of float32 sums matters.
        chosen = slots.number == number
        event = slots.event[chosen]
        if number == 0 or all_slots:
            rows["loss"][event] += outcomes.loss[chosen]
        rows["labelled"][event] |= outcomes.labelled[chosen]
        rows["n_features"][event] += outcomes.n_features[chosen]
        rows["shown_features"][event] += outcomes.shown_features[chosen]
    return EventOutcomes(
        rows=rows,
        line=slots.event_start[:-1],
        weight=slots.event_weight,
        holdout=holdout,
        label=np.full(n, UNLABELLED),
        action=np.empty(0, np.int32),
        score=np.empty(0, np.float32),
        by_slot=outcomes,
    )


def format_general(value: float | np.float32) -> str:
    """Return a float32 as text with six significant digits, in the format of a C++ stream."""
    with np.errstate(over="ignore"):
        return f"{float(np.float32(value)):g}"


class _Totals(NamedTuple):
    """Counters after each event of a block; every array has one entry for each event."""

    example_number: NDArray[np.int64]
    labelled: NDArray[np.float64]
    unlabelled: NDArray[np.float64]
    weight: NDArray[np.float64]  # weight of labelled and unlabelled events
    loss: NDArray[np.float64]
    held_weight: NDArray[np.float64]
    held_loss: NDArray[np.float64]


class _Terms(NamedTuple):
    """Terms that each event of a block adds to the counters; float64[n] each."""

    loss: NDArray[np.float64]
    held_weight: NDArray[np.float64]
    held_loss: NDArray[np.float64]


class ProgressTable(Counters):
    """Counts outcomes like VW, and makes the rows of its progress table.

    Call `update` with the outcomes of each block, in order, and `end_pass` after the last block of each pass.

    >>> from onlineauto.workspace.options import REGISTRY
    >>> progress = ProgressTable(REGISTRY.parse("--holdout_after 100"), kind="simple")
    >>> progress.end_pass() == FLOAT_MAX / 2  # nothing was held out
    True
    """

    counted = (
        *("example_number", "total_features", "weighted_labelled", "weighted_unlabelled", "weighted_labels"),
        *("sum_loss", "holdout_weight", "holdout_loss", "best_loss", "best_pass", "current_pass"),
        *("first_label", "second_label", "more_labels", "min_label", "max_label", "_mark", "_old_labelled"),
        *("_recent_loss", "_recent_held_weight", "_recent_held_loss"),
        *("_pass_held_weight", "_pass_held_loss"),
    )

    def __init__(self, configuration: Configuration, *, kind: str) -> None:
        run = configuration[RunOptions]
        self._simple = kind == "simple"
        self._all_slots = configuration[SlotOptions].all_slots_loss
        self.example_number = self.total_features = 0
        self.weighted_labelled = self.weighted_unlabelled = self.weighted_labels = self.sum_loss = 0.0
        self.holdout = not run.holdout_off and (run.passes > 1 or run.holdout_after is not None)
        self.holdout_weight = self.holdout_loss = 0.0
        self.best_loss, self.best_pass = FLOAT_MAX if self.holdout else 0.0, 0
        self.current_pass = 0
        self.first_label = self.second_label = FLOAT_MAX
        self.more_labels = False
        self._set_label_range(configuration)
        self._set_marks(configuration[OutputOptions].progress)
        self._old_labelled = self._recent_loss = 0.0
        self._recent_held_weight = self._recent_held_loss = 0.0
        self._pass_held_weight = self._pass_held_loss = 0.0

    def _set_label_range(self, configuration: Configuration) -> None:
        update, run = configuration[UpdateOptions], configuration[RunOptions]
        fixed_range = update.min_prediction is not None or update.max_prediction is not None
        self._widens = not fixed_range and not run.testonly
        self.min_label = float(np.float32(update.min_prediction or 0))
        self.max_label = float(np.float32(update.max_prediction or 0))
        if self._widens and configuration[LossOptions].loss_function in ("logistic", "poisson"):
            self.min_label, self.max_label = -_LOGISTIC_RANGE, _LOGISTIC_RANGE
        self._first_range = self.min_label, self.max_label

    def _set_marks(self, text: str | None) -> None:
        self._adds = text is not None and "." not in text
        self._step = np.float32(2 if text is None else float(text))
        self._mark = float(self._step) if self._adds else 1.0
        self.warning = ""
        if not self._adds and self._step > _FACTOR_SUSPECT:
            self.warning = f"--progress {text} is a factor; a number of events has no decimal point"

    @property
    def weighted_examples(self) -> float:
        """Weight of the events that were not held out."""
        return self.weighted_labelled + self.weighted_unlabelled

    def update(self, outcomes: Outcomes, *, emit: Callable[[str], object] | None = None) -> None:
        """Count the outcomes of a block."""
        with np.errstate(all="ignore"):
            begins = np.flatnonzero(outcomes.outlier == Outlier.BEGINS_AGAIN)
            if len(begins):
                outcomes = self._discard_before(outcomes, int(begins[-1]))
            if outcomes.slots is not None:
                outcomes = of_events(outcomes, outcomes.slots, all_slots=self._all_slots)
            self._record_labels(outcomes)
            terms, totals = self._add_up(outcomes)
            start = 0
            while emit is not None:
                row = _find_mark(totals.weight, start, self._mark)
                if row == len(outcomes):
                    break
                self._add_recent(terms, start, row + 1)
                emit(self._make_row(outcomes, totals, row))
                start = row + 1
            self._add_recent(terms, start, len(outcomes))
            self._keep_totals(outcomes, totals)

    def _discard_before(self, outcomes: Outcomes, begin: int) -> Outcomes:
        """Count all events before event `begin` of a block as unlabelled, because learning restarts there."""
        self.weighted_unlabelled += self.weighted_labelled
        self.weighted_labelled = self.weighted_labels = self.sum_loss = 0.0
        self._recent_loss = self._old_labelled = 0.0
        self.first_label = self.second_label = FLOAT_MAX
        self.more_labels = False
        self.min_label, self.max_label = self._first_range
        rows = outcomes.rows.copy()
        rows["labelled"][:begin], rows["loss"][:begin] = False, 0
        return replace(outcomes, rows=rows)

    def end_pass(self) -> float:
        """Close a pass and return the average loss of its held-out events."""
        self.current_pass += 1
        loss = float(np.float32(FLOAT_MAX * 0.5))
        if self._pass_held_weight > 0:
            with np.errstate(all="ignore"):
                loss = float(np.float32(self._pass_held_loss / self._pass_held_weight))
        self._pass_held_weight = self._pass_held_loss = 0.0
        if self.holdout and loss < self.best_loss:
            self.best_loss, self.best_pass = loss, self.current_pass
        return loss

    def _add_up(self, outcomes: Outcomes) -> tuple[_Terms, _Totals]:
        weight, loss = outcomes.weight.astype(np.float64), outcomes.loss.astype(np.float64)
        labelled, held_out = outcomes.labelled, outcomes.holdout & outcomes.labelled
        if not held_out.any():
            return self._add_up_all(labelled, weight, loss)
        terms = _Terms(
            np.where(held_out, 0, loss), np.where(held_out, weight, 0), np.where(held_out, loss, 0)
        )
        of_labelled = _running_sums(self.weighted_labelled, np.where(labelled & ~held_out, weight, 0))
        of_others = _running_sums(self.weighted_unlabelled, np.where(labelled, 0, weight))
        return terms, _Totals(
            example_number=self.example_number + np.cumsum(~held_out),
            labelled=of_labelled,
            unlabelled=of_others,
            weight=of_labelled + of_others,
            loss=_running_sums(self.sum_loss, terms.loss),
            held_weight=_running_sums(self.holdout_weight, terms.held_weight),
            held_loss=_running_sums(self.holdout_loss, terms.held_loss),
        )

    def _add_up_all(
        self, labelled: NDArray[np.bool_], weight: NDArray[np.float64], loss: NDArray[np.float64]
    ) -> tuple[_Terms, _Totals]:
        """Add up events of which none is held out."""
        none = np.broadcast_to(0.0, len(loss))
        of_labelled = _running_sums(self.weighted_labelled, np.where(labelled, weight, 0))
        of_others = np.broadcast_to(self.weighted_unlabelled, len(loss))
        if not labelled.all():
            of_others = _running_sums(self.weighted_unlabelled, np.where(labelled, 0, weight))
        return _Terms(loss, none, none), _Totals(
            example_number=np.arange(self.example_number + 1, self.example_number + len(loss) + 1),
            labelled=of_labelled,
            unlabelled=of_others,
            weight=of_labelled + of_others,
            loss=_running_sums(self.sum_loss, loss),
            held_weight=np.broadcast_to(self.holdout_weight, len(loss)),
            held_loss=np.broadcast_to(self.holdout_loss, len(loss)),
        )

    def _keep_totals(self, outcomes: Outcomes, totals: _Totals) -> None:
        if not len(outcomes):
            return
        self.example_number = int(totals.example_number[-1])
        self.weighted_labelled = float(totals.labelled[-1])
        self.weighted_unlabelled = float(totals.unlabelled[-1])
        self.sum_loss = float(totals.loss[-1])
        self.holdout_weight = float(totals.held_weight[-1])
        self.holdout_loss = float(totals.held_loss[-1])
        self.total_features += int(outcomes.n_features[~(outcomes.holdout & outcomes.labelled)].sum())

    def _add_recent(self, terms: _Terms, start: int, stop: int) -> None:
        """Add the events from `start` to `stop` to the counters that each row or each pass resets."""
        of_rows = slice(start, stop)
        self._recent_loss = total(self._recent_loss, terms.loss[of_rows])
        if self.holdout:
            held_weight, held_loss = terms.held_weight[of_rows], terms.held_loss[of_rows]
            self._recent_held_weight = total(self._recent_held_weight, held_weight)
            self._recent_held_loss = total(self._recent_held_loss, held_loss)
            self._pass_held_weight = total(self._pass_held_weight, held_weight)
            self._pass_held_loss = total(self._pass_held_loss, held_loss)

    def _record_labels(self, outcomes: Outcomes) -> None:
        """Record the first labels, the sum of labels and their range."""
        if not self._simple:
            return
        trained = outcomes.labelled & ~outcomes.holdout
        labels, weights = (
            outcomes.label[trained].astype(np.float64),
            outcomes.weight[trained].astype(np.float64),
        )
        self.weighted_labels = total(self.weighted_labels, labels * weights)
        if self._widens and len(labels):
            self.min_label = float(np.fmin(self.min_label, np.fmin.reduce(labels)))
            self.max_label = float(np.fmax(self.max_label, np.fmax.reduce(labels)))
        if not self.more_labels:
            self._count_labels(outcomes.label[outcomes.labelled])

    def _count_labels(self, labels: NDArray[np.float32]) -> None:
        if self.first_label == FLOAT_MAX and len(labels):
            self.first_label = float(labels[0])
            labels = labels[1:]
        others = labels[labels != self.first_label]
        if self.second_label == FLOAT_MAX and len(others):
            self.second_label = float(others[0])
            others = others[1:]
        self.more_labels = bool((others != self.second_label).any())

    # -- rows ------------------------------------------------------------------------------------------

    def _make_row(self, outcomes: Outcomes, totals: _Totals, row: int) -> str:
        """Return the row after event `row` of a block, and set the mark for the next row."""
        shows_holdout = self.holdout and self.current_pass >= 1
        average, since = self._holdout_losses(totals, row) if shows_holdout else self._losses(totals, row)
        weight = float(totals.weight[row])
        if isinstance(outcomes, EventOutcomes):
            label, prediction = outcomes.short_repr(row)
        else:
            label, prediction = _simple_cells(outcomes, row) if self._simple else _bandit_cells(outcomes, row)
        line = format_row(
            average,
            since,
            str(totals.example_number[row]),
            format_fixed(weight, digits=1),
            label,
            prediction,
            str(outcomes.shown_features[row]),
        )
        self._recent_loss, self._old_labelled = 0.0, float(totals.labelled[row])
        weight32 = np.float32(weight)
        self._mark = float(weight32 + self._step if self._adds else weight32 * self._step)
        return line + " h" if shows_holdout else line

    def _losses(self, totals: _Totals, row: int) -> tuple[str, str]:
        labelled = float(totals.labelled[row])
        average = since = "n.a."
        if labelled > 0:
            average = format_fixed(float(totals.loss[row]) / labelled, digits=6)
        if labelled != self._old_labelled:
            since = format_fixed(self._recent_loss / (labelled - self._old_labelled), digits=6)
        return average, since

    def _holdout_losses(self, totals: _Totals, row: int) -> tuple[str, str]:
        average = _average(float(totals.held_loss[row]), float(totals.held_weight[row]))
        since = _average(self._recent_held_loss, self._recent_held_weight)
        self._recent_held_loss = self._recent_held_weight = 0.0
        return average, since


def format_fixed(value: float, *, digits: int) -> str:
    """Return a number as text with `digits` decimals, in the format of C: NaN keeps its sign.

    >>> format_fixed(2 / 3, digits=4)
    '0.6667'
    """
    if math.isnan(value):
        return "-nan" if math.copysign(1, value) < 0 else "nan"
    return f"{value:.{digits}f}"


def format_trimmed(value: float, *, digits: int) -> str:
    """Return a number as text with at most `digits` decimals, and without trailing zeros.

    >>> format_trimmed(0.5, digits=6), format_trimmed(10, digits=2), format_trimmed(2 / 3, digits=2)
    ('0.5', '10', '0.67')
    """
    return format_fixed(value, digits=digits).rstrip("0").rstrip(".")


def format_row(*cells: str) -> str:
    """Return seven cells as one row in VW's layout: two aligned left, five right, long ones truncated.

    >>> format_row("-10.000000", "n.a.", "1", "1.0", "unknown", "0:0.3333333333", "12")
    '-10.0000 n.a.                1            1.0        unknown 0:0.3333333333       12'
    """
    average, since, *middle, label, prediction, features = (
        cell if len(cell) <= width else cell[: width - 3] + "..." if column in (4, 5) else cell[:width]
        for column, (cell, width) in enumerate(zip(cells, _WIDTHS, strict=True))
    )
    rights = (*middle, label, prediction, features)
    return " ".join(
        [f"{average:<8}", f"{since:<8}", *(c.rjust(w) for c, w in zip(rights, _WIDTHS[2:], strict=True))]
    )


def _simple_cells(outcomes: Outcomes, row: int) -> tuple[str, str]:
    label = float(outcomes.label[row])
    text = format_fixed(label, digits=4) if label < FLOAT_MAX else "unknown"
    return text, format_fixed(float(outcomes.prediction[row]), digits=4)


def _bandit_cells(outcomes: Outcomes, row: int) -> tuple[str, str]:
    label = "unknown"
    if outcomes.labelled[row]:
        cost, probability = float(outcomes.known_cost[row]), float(outcomes.known_probability[row])
        label = f"{outcomes.known_action[row]}:{cost:.2g}:{probability:.2g}"
    start, stop = outcomes.action_start[row : row + 2]
    if start == stop:
        return label, "no action"
    return label, f"{outcomes.action[start]}:{format_trimmed(float(outcomes.score[start]), digits=2)}"


def _average(loss: float, weight: float) -> str:
    if loss == 0 and weight == 0:
        return "unknown"
    return format_fixed(float(np.divide(loss, weight)), digits=6)


def _running_sums(start: float, terms: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return `start` plus the first term, plus the second, and so on: float64[n]."""
    sums: NDArray[np.float64] = np.cumsum(np.concatenate(([start], terms)))
    return sums[1:]


def _find_mark(weight: NDArray[np.float64], start: int, mark: float) -> int:
    """Return the first event from `start` on at which `weight` reaches the mark, or the number of events.

    Weights can be negative, so a binary search is impossible.
    """
    width = 64
    while start < len(weight):
        reached = weight[start : start + width] >= mark
        if reached.any():
            return start + int(reached.argmax())
        start += width
        width *= 2
    return len(weight)


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

    >>> from onlineauto.workspace.options import REGISTRY
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
    """Return the constant prediction with the smallest loss, from sums of labels and weights, as in VW.

    With more than two labels there is a result for squared loss only. One label counts as two: itself and 0.
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
