"""``EventTable``: the events of several rows in columns, which are checked and become blocks.

Every source of columns makes its blocks here: Arrow batches of files and frames, and matrices. There is one
rule for labels, costs, probabilities and weights; the sources differ in what a bad row does. Rows of files
are counted and left out, while a row in memory raises an error that names the row and the column.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import numpy as np

from onlineauto.errors import InputError
from onlineauto.features.block import UNLABELLED, Block
from onlineauto.features.records import COST, FEATURE, LINE, SPAN
from onlineauto.formats.datasets.column_kernels import lay_out
from onlineauto.formats.lines.diagnostics import ProblemCode, make_diagnostic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from onlineauto.formats.datasets.features import ColumnFeatures, Encoder, Repeated
    from onlineauto.formats.lines.diagnostics import Diagnostics


LARGEST_COST: Final = 1e30
"""No action may declare a larger cost."""


class RowProblems(Protocol):
    """A callback for problems of rows, numbered from 0; `texts` has a text for each of the first rows."""

    def __call__(self, code: ProblemCode, rows: NDArray[np.int64], texts: Sequence[str], column: str) -> None:
        """Count a problem of rows, or raise an error."""


@dataclass(frozen=True, slots=True)
class InMemory:
    """The rule for rows in memory: raise an error for the first bad row, and count rows without a label."""

    problems: Diagnostics | None = None
    strict: bool = True  # False: count and locate all problems.

    def __call__(self, code: ProblemCode, rows: NDArray[np.int64], texts: Sequence[str], column: str) -> None:
        """Raise an error, or count and locate rows that lack a part of their label."""
        if self.strict and code != ProblemCode.NO_LABEL:
            row, text = int(rows[0]), texts[0].encode("utf-8", "surrogateescape")
            problem = make_diagnostic(code, file="row", line=row + 1, column=1, text=text, unit="event")
            is_named = problem.message.startswith(f"{column} ") or repr(column) in problem.message
            raise InputError(f"row {row}: {'' if is_named else f'{column}: '}{problem.message}")
        if self.problems is not None:
            self.problems.count(code, len(rows) - len(texts))
            for row, lacking in zip(rows.tolist(), texts, strict=False):
                self.problems.locate(code, row + 1, lacking, reading="row")


class NumberColumn(NamedTuple):
    """A column of numbers as float32, NaN for null, and as they were given, for messages."""

    values: NDArray[np.float32]
    given: Any  # An array of Arrow or of NumPy.
    column: str

    def text(self, index: int) -> str:
        """Return the text of a number."""
        return spelled(self.given[index])


def spelled(value: Any) -> str:
    """Return the text of a number of Arrow or NumPy for messages."""
    number = value.as_py() if hasattr(value, "as_py") else value
    return "null" if number is None or number != number else f"{number:g}"


@dataclass(slots=True, kw_only=True)
class EventTable:
    """The events of consecutive rows of a file, a frame or a matrix."""

    row: NDArray[np.int64]  # int64[n_events]: first row of each event, counted from 0 in the source.
    end: int  # Row after the last one.
    good: NDArray[np.bool_]  # bool[n_events]: false for events to leave out.
    report: RowProblems  # `InMemory`, or the counter of a reader of files.
    # Features of the context; those of event `i` are in row ``context_row[i]``.
    context: Sequence[ColumnFeatures]
    context_row: NDArray[np.int64]  # int64[n_events]:
    elements: Sequence[ColumnFeatures | Repeated] = ()  # Features of the actions.
    # int64[n_events + 1], optional: first action of each event; None for events with a label.
    element_start: NDArray[np.int64] | None = None
    # int64[n_events], optional: index of the chosen action among those of the event.
    chosen: NDArray[np.int64] | None = None
    label: NDArray[np.float32] | None = None  # float32[n_events], optional: `UNLABELLED` where there is none.
    cost: NDArray[np.float32] | None = None
    probability: NDArray[np.float32] | None = None
    action_costs: NDArray[np.float32] | None = None  # What each action declares to cost, NaN if nothing.
    weight: NDArray[np.float32] | None = None
    # uint8[:], int64[n_events], int64[n_events]), optional: bytes of the tags, and the first byte and the end
    # of each event's tag.
    tags: tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]] | None = None

    @classmethod
    def of_rows(
        cls, context: Sequence[ColumnFeatures], first: int, n: int, report: RowProblems
    ) -> EventTable:
        """Return a table in which each of `n` rows is an event; `first` is the number of the first row."""
        rows = np.arange(n)
        return cls(
            row=rows + first,
            end=first + n,
            good=np.ones(n, bool),
            report=report,
            context=context,
            context_row=rows,
        )

    def __len__(self) -> int:
        """Return the number of events, including those to leave out."""
        return len(self.row)

    # -- checks ----------------------------------------------------------------------------------------

    def refuse(
        self, bad: NDArray[np.bool_], code: ProblemCode, text: str | Callable[[int], str], column: str
    ) -> None:
        """Leave out events and report the reason, except for events that are left out already."""
        bad = bad & self.good
        if bad.any():
            self.note(bad, code, text, column)
            self.good &= ~bad

    def note(
        self, bad: NDArray[np.bool_], code: ProblemCode, text: str | Callable[[int], str], column: str
    ) -> None:
        """Report a problem of events; `text` is the text of all events, or returns that of an event."""
        events = np.flatnonzero(bad)
        if len(events):
            texts = [text if isinstance(text, str) else text(event) for event in events[:100].tolist()]
            self.report(code, self.row[events], texts, column)

    def add_labels(self, labels: NumberColumn) -> None:
        """Add the labels of single lines; NaN is no label."""
        values = labels.values
        self.refuse(np.isinf(values), ProblemCode.LABEL_NOT_FINITE, labels.text, labels.column)
        self.label = np.where(np.isnan(values), UNLABELLED, values)

    def add_weights(self, weights: NumberColumn) -> None:
        """Add importance weights, which must be finite and not negative."""
        self.weight = weights.values
        bad = ~np.isfinite(self.weight)
        self.refuse(bad, ProblemCode.WEIGHT_NOT_FINITE, weights.text, weights.column)
        self.refuse(self.weight < 0, ProblemCode.WEIGHT_NEGATIVE, weights.text, weights.column)

    def add_outcomes(
        self,
        cost: NumberColumn,
        probability: NumberColumn | None,
        *,
        action: tuple[str, Callable[[int], str]],
        no_action: NDArray[np.bool_] | None = None,
        uniform: bool = False,
    ) -> None:
        """Add the costs of the actions in `chosen`; an event whose cost is NaN has no label.

        `action` is the column of the action, and returns the text of an event's action. In memory, an event
        that lacks any of the three has no label. In files, an event with a cost but without the others is
        left out, or taken as logged uniformly.
        """
        assert self.chosen is not None
        logged = ~np.isnan(cost.values)
        p = np.zeros(len(self), np.float32) if probability is None else probability.values
        if isinstance(self.report, InMemory):
            absent = {cost.column: ~logged}
            if probability is not None:
                absent[probability.column] = np.isnan(p)
            if no_action is not None:
                absent[action[0]] = no_action
                self.refuse(
                    (self.chosen < 0) & ~no_action, ProblemCode.JSON_LABEL_INDEX, action[1], action[0]
                )
            logged = ~np.logical_or.reduce([*absent.values()])

            def lacking(event: int) -> str:
                return ", ".join(name for name, rows in absent.items() if rows[event])

            self.note(~logged, ProblemCode.NO_LABEL, lacking, cost.column)
        is_infinite = logged & np.isinf(cost.values)
        self.refuse(is_infinite, ProblemCode.COST_NOT_FINITE, cost.text, cost.column)
        self.refuse(logged & (self.chosen < 0), ProblemCode.JSON_LABEL_INDEX, action[1], action[0])
        self.cost = np.where(logged, cost.values, UNLABELLED).astype(np.float32)
        self.probability = p
        if probability is None:
            return
        missing = logged & np.isnan(p)
        if uniform:
            self.note(missing & self.good, ProblemCode.TAKEN_AS_UNIFORM, "null", probability.column)
            self.probability = np.where(missing, np.float32(0), p)
        else:
            self.refuse(missing, ProblemCode.NO_PROBABILITY, "null", probability.column)
        for wrong, code in (
            (p == 0, ProblemCode.PROBABILITY_ZERO),
            (p < 0, ProblemCode.PROBABILITY_NEGATIVE),
            (p > 1, ProblemCode.PROBABILITY_ABOVE_ONE),
        ):
            self.refuse(logged & wrong, code, probability.text, probability.column)

    def add_action_costs(self, costs: NDArray[np.float32], declared: NDArray[np.bool_], column: str) -> None:
        """Add the costs that actions declare, float32[n_actions], where they are `declared`."""
        assert self.element_start is not None
        wrong = np.flatnonzero(declared & ~((costs >= 0) & (costs < LARGEST_COST)))[::-1]
        events = np.searchsorted(self.element_start, wrong, side="right") - 1
        first = dict(zip(events.tolist(), costs[wrong].tolist(), strict=True))  # the last one wins
        bad = np.zeros(len(self), bool)
        bad[events] = True

        def text(event: int) -> str:
            return f"column {column!r} has the cost {first[event]:g}: use a number from 0 to 1e30, or null"

        self.refuse(bad, ProblemCode.COST_NOT_FINITE, text, column)
        self.action_costs = np.where(declared, costs, np.float32(np.nan))

    # -- blocks ----------------------------------------------------------------------------------------

    def blocks(self, size: int, encoder: Encoder) -> Iterator[Block]:
        """Yield the valid events in blocks of `size` events."""
        for begin in range(0, len(self), size):
            yield self.block(begin, min(begin + size, len(self)), encoder)

    def block(self, begin: int, end: int, encoder: Encoder) -> Block:
        """Return the valid events among ``begin <= event < end`` as a block."""
        events = np.flatnonzero(self.good[begin:end]) + begin
        single = self.element_start is None
        shared = int(bool(self.context)) if not single else 0
        n_actions = np.ones(len(events), np.int64)
        if self.element_start is not None:
            n_actions = self.element_start[events + 1] - self.element_start[events]
        event_start = np.zeros(len(events) + 1, np.int64)
        np.cumsum(n_actions + shared, out=event_start[1:])
        n_lines, first = int(event_start[-1]), event_start[:-1]
        lines = np.zeros(n_lines + 1, LINE)
        parts: list[tuple[ColumnFeatures, NDArray[np.int64]]] = []
        action_costs = None
        if self.context and end > begin:
            low, high = int(self.context_row[begin]), int(self.context_row[end - 1]) + 1
            line = np.full(high - low, -1, np.int64)
            line[self.context_row[events] - low] = first
            parts += [(column.of_rows(low, high), line) for column in self.context]
        if self.element_start is not None:
            low, high = int(self.element_start[begin]), int(self.element_start[end])
            line = np.full(high - low, -1, np.int64)
            shift = first + shared - self.element_start[events]
            line_of = np.arange(n_lines, dtype=np.int64)
            line_of = np.delete(line_of, first) if shared else line_of
            element = line_of - np.repeat(shift, n_actions)
            line[element - low] = line_of
            if self.action_costs is not None:
                action_costs = np.full(n_lines, np.nan, np.float32)
                action_costs[line_of] = self.action_costs[element]
            parts += [(column.of_rows(low, high), line) for column in self.elements]
        spans, features = _features(parts, lines, encoder.numbers)
        lines["number"][:-1] = np.repeat(self.row[events] + 1, n_actions + shared)
        if shared:
            lines["shared"][first] = True
        lines["label"] = UNLABELLED
        if self.label is not None:
            lines["label"][:-1] = self.label[events]
        lines["weight"] = 1
        if self.weight is not None:
            lines["weight"][:-1] = np.repeat(self.weight[events], n_actions + shared)
        return Block(
            event_start=event_start,
            lines=lines,
            costs=self._costs(events, first + shared, lines),
            spans=spans,
            features=features,
            tag=self._tags(events, first, lines),
            namespaces=encoder.names.namespaces,
            rules=encoder.names.rules,
            objects="row" if isinstance(self.report, InMemory) else "",
            action_costs=action_costs,
        )

    def _costs(
        self, retained: NDArray[np.int64], first_action: NDArray[np.int64], lines: NDArray[np.void]
    ) -> NDArray[np.void]:
        """Return the records of costs, and set the lines' offsets to them."""
        if self.cost is None or self.chosen is None:
            return np.zeros(0, COST)
        logged = self.cost[retained] != UNLABELLED
        rows = retained[logged]
        costs = np.zeros(len(rows), COST)
        costs["cost"] = self.cost[rows]
        if self.probability is not None:
            costs["probability"] = self.probability[rows]
        with_cost = np.zeros(len(lines), np.int64)
        with_cost[first_action[logged] + self.chosen[rows] + 1] = 1
        lines["cost"] = np.cumsum(with_cost)
        return costs

    def _tags(
        self, retained: NDArray[np.int64], first: NDArray[np.int64], lines: NDArray[np.void]
    ) -> NDArray[np.uint8]:
        """Return the bytes of the tags, and set the lines' offsets to them."""
        if self.tags is None:
            return np.zeros(0, np.uint8)
        data, start, end = self.tags
        sizes = end[retained] - start[retained]
        bounds = np.concatenate([[0], np.cumsum(sizes)])
        of_line = np.zeros(len(lines), np.int64)
        of_line[first + 1] = sizes
        lines["tag"] = np.cumsum(of_line)
        tags: NDArray[np.uint8] = data[
            np.arange(bounds[-1]) + np.repeat(start[retained] - bounds[:-1], sizes)
        ]
        return tags


def _features(
    parts: Sequence[tuple[ColumnFeatures, NDArray[np.int64]]],
    lines: NDArray[np.void],
    numbers: NDArray[np.int32],
) -> tuple[NDArray[np.void], NDArray[np.void]]:
    """Return the records of spans and of features, and set the lines' offsets to the spans."""
    counts = np.zeros((len(lines) - 1, max(len(numbers), 1)), np.int64)
    for features, line in parts:
        features.count(line, counts)
    spans = np.zeros(int(np.count_nonzero(counts)) + 1, SPAN)
    records = np.empty(lay_out(counts, numbers, lines, spans), FEATURE)
    for features, line in parts:
        features.write(line, counts, records)
    return spans, records
