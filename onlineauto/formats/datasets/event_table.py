"""``EventTable``: the events of several rows in columns, which become blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from onlineauto.features.block import UNLABELLED, Block
from onlineauto.features.records import COST, FEATURE, LINE, SPAN
from onlineauto.formats.datasets.column_kernels import lay_out

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from onlineauto.formats.datasets.features import ColumnFeatures, Encoder, Repeated


@dataclass(slots=True, kw_only=True)
class EventTable:
    """The events of consecutive rows of a file."""

    row: NDArray[np.int64]  # int64[n_events]: first row of each event, counted from 0 in the file.
    end: int  # Row after the last one.
    good: NDArray[np.bool_]  # bool[n_events]: false for events to leave out.
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
    weight: NDArray[np.float32] | None = None
    # uint8[:], int64[n_events], int64[n_events]), optional: bytes of the tags, and the first byte and the end
    # of each event's tag.
    tags: tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]] | None = None

    def __len__(self) -> int:
        """Return the number of events, including those to leave out."""
        return len(self.row)

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
        if self.context and end > begin:
            low, high = int(self.context_row[begin]), int(self.context_row[end - 1]) + 1
            line = np.full(high - low, -1, np.int64)
            line[self.context_row[events] - low] = first
            parts += [(each.of_rows(low, high), line) for each in self.context]
        if self.element_start is not None:
            low, high = int(self.element_start[begin]), int(self.element_start[end])
            line = np.full(high - low, -1, np.int64)
            shift = first + shared - self.element_start[events]
            line_of = np.arange(n_lines, dtype=np.int64) if not shared else _lines_after_first(event_start)
            line[line_of - np.repeat(shift, n_actions) - low] = line_of
            parts += [(each.of_rows(low, high), line) for each in self.elements]
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


def _lines_after_first(event_start: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return all lines except the first line of each event."""
    action = np.ones(int(event_start[-1]), bool)
    action[event_start[:-1]] = False
    return np.flatnonzero(action)


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
