"""``RowDecoder``: turns Arrow batches into tables of events, and reports problems of their rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from onlineauto.features.block import UNLABELLED
from onlineauto.formats.datasets.arrow_arrays import (
    MOST_ELEMENTS,
    as_texts,
    column_at,
    fields_of,
    flatten,
    numbers_of,
    run_codes,
    texts_of,
)
from onlineauto.formats.datasets.event_table import EventTable
from onlineauto.formats.datasets.features import ColumnName, Repeated
from onlineauto.formats.mappings.identities import named
from onlineauto.formats.mappings.named_event import spans_of
from onlineauto.formats.records.problem_code_kernels import ProblemCode

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.formats.datasets.columns import DatasetColumns
    from onlineauto.formats.datasets.features import ColumnFeatures, Encoder


class RowProblems(Protocol):
    """A callback that counts problems of rows and records their positions."""

    def __call__(self, code: ProblemCode, rows: NDArray[np.int64], texts: Sequence[str]) -> None:
        """Count a problem of rows, numbered from 0 in their file; `texts` has a text for each row."""


class RowDecoder:
    """Makes tables of events from batches."""

    def __init__(
        self,
        columns: DatasetColumns,
        encoder: Encoder,
        *,
        choices: Sequence[str] | Mapping[str, Mapping[str, Any]],
        uniform: bool,
        report: RowProblems,
    ) -> None:
        self._columns, self.encoder, self._uniform, self._report = columns, encoder, uniform, report
        self._place = {choice: i for i, choice in enumerate(choices)}
        self._choices_given, self._choices = choices, list[Repeated]()

    def _features_of_choices(self) -> list[Repeated]:
        """Return the features of the choices: those of a mapping, or ``action=choice``."""
        encoder, names, choices = self.encoder, self.encoder.names, self._choices_given
        if not isinstance(choices, Mapping):
            action = self._columns.action or ""
            hashes = names.features([f"{action}={each}" for each in choices], names.namespace(action))
            return [Repeated(encoder.namespace("actions", action), hashes)]
        spans = [
            dict(spans_of(named(features, encoder.identities), f"choices.{each}"))
            for each, features in choices.items()
        ]
        repeated = []
        for namespace in dict.fromkeys(name for each in spans for name in each):
            features = (each.get(namespace, ()) for each in spans)
            for layer in zip_longest(*features, fillvalue=("", 0.0)):  # the first of each action, and so on
                hashes = names.features([name for name, _ in layer], names.namespace(namespace))
                value = np.array([value for _, value in layer], np.float32)
                repeated.append(Repeated(encoder.namespace("actions", namespace), hashes, value))
        return repeated

    def first_rows(self, batch: Any) -> NDArray[np.int64]:
        """Return the first row of each event, if rows are actions."""
        codes = run_codes(column_at(batch, self._columns.event or ""))
        return np.concatenate([np.zeros(min(len(codes), 1), np.int64), np.flatnonzero(np.diff(codes)) + 1])

    def table(self, batch: Any, first_row: int) -> EventTable:
        """Return the events of a batch; `first_row` is the number of its first row in the file."""
        rows = np.arange(first_row, first_row + batch.num_rows)
        if self._columns.rows == "actions":
            return self._table_of_actions(batch, rows)
        context = self._encode_columns(batch, "context", self._columns.context)
        table = EventTable(
            row=rows,
            end=first_row + len(rows),
            good=np.ones(len(rows), bool),
            context=context,
            context_row=np.arange(len(rows)),
            tags=self._tags(batch, None),
        )
        self._refuse_infinite(table, context, None)
        if self._columns.rows == "labels":
            table.label = self._label(batch, table)
        elif self._columns.rows == "events":
            if not self._choices:  # their namespaces come after those of the context
                self._choices = self._features_of_choices()
            table.elements = self._choices
            table.element_start = np.arange(len(rows) + 1) * len(self._place)
            if self._columns.cost_column is not None:
                table.chosen, texts = self._chosen_actions(batch)
                self._log(batch, table, texts)
        else:
            self._add_lists(batch, table)
        table.weight = self._weights(batch, table, None)
        return table

    def _encode_columns(
        self, batch: Any, owner: str, groups: Mapping[str, Sequence[str]]
    ) -> list[ColumnFeatures]:
        return [
            self.encoder.encode(
                column_at(batch, column), ColumnName.of(batch.schema, namespace, column), owner
            )
            for namespace, columns in groups.items()
            for column in columns
        ]

    # -- actions ---------------------------------------------------------------------------------------

    def _add_lists(self, batch: Any, table: EventTable) -> None:
        """Add the actions of events with lists of actions."""
        lists = column_at(batch, self._columns.list or "")
        actions, table.element_start, too_long = flatten(lists)
        sizes = np.diff(table.element_start)
        elements = self._encode_columns(fields_of(actions), "actions", self._columns.actions)
        table.elements = elements
        self._refuse(table, too_long, ProblemCode.LIST_TOO_LONG, [self._columns.list or ""])
        self._refuse(table, sizes == 0, ProblemCode.NO_ACTIONS, [self._columns.list or ""])
        self._refuse_infinite(table, elements, table.element_start)
        if self._columns.chosen is None:
            return
        values = numbers_of(column_at(batch, self._columns.chosen))
        known = np.isfinite(values)
        table.chosen = np.where(known, values, -1).astype(np.int64)
        table.chosen[table.chosen >= sizes] = -1
        self._log(batch, table, values)

    def _chosen_actions(self, batch: Any) -> tuple[NDArray[np.int64], Sequence[str]]:
        """Return the index of each row's action among the choices, -1 for an unknown one, and the actions."""
        texts = texts_of(as_texts(column_at(batch, self._columns.action or "")))
        values = [
            each.decode("utf-8", "surrogateescape") if isinstance(each, bytes) else each
            for each in texts.values.to_pylist()
        ]
        index = np.array([self._place.get(each, -1) for each in values] + [-1], np.int64)
        return index[texts.code], _Texts(texts.code, [*values, "null"])

    def _table_of_actions(self, batch: Any, rows: NDArray[np.int64]) -> EventTable:
        first = self.first_rows(batch)
        start = np.append(first, len(rows))
        context, elements = (
            self._encode_columns(batch, "context", self._columns.context),
            self._encode_columns(batch, "actions", self._columns.actions),
        )
        table = EventTable(
            row=rows[first],
            end=int(rows[-1]) + 1,
            good=np.ones(len(first), bool),
            context=context,
            context_row=first,
            elements=elements,
            element_start=start,
            tags=self._tags(batch, first),
        )
        ids = run_codes(column_at(batch, self._columns.event or ""))[first]
        self._refuse(table, ids < 0, ProblemCode.EVENT_MISSING, [self._columns.event or ""])
        too_many = np.diff(start) > MOST_ELEMENTS
        self._refuse(table, too_many, ProblemCode.LIST_TOO_LONG, [self._columns.event or ""])
        is_repeated = np.ones(len(ids), bool)
        is_repeated[np.unique(ids, return_index=True)[1]] = False
        self._refuse(table, is_repeated & (ids >= 0), ProblemCode.EVENT_AGAIN, [self._columns.event or ""])
        self._refuse_infinite(table, elements, start)
        self._refuse_infinite(table, context, None, of_rows=True)
        table.weight = self._weights(batch, table, first)
        if self._columns.cost_column is None:
            return table
        costs = numbers_of(column_at(batch, self._columns.cost_column))
        logged = np.flatnonzero(~np.isnan(costs))
        of_event = np.searchsorted(first, logged, side="right") - 1
        several = np.bincount(of_event, minlength=len(first)) > 1
        self._refuse(table, several, ProblemCode.SECOND_COST, [self._columns.cost_column])
        table.chosen = np.zeros(len(first), np.int64)
        table.chosen[of_event] = logged - first[of_event]
        at = first + table.chosen
        self._log(batch, table, [], at=at)
        return table

    # -- outcomes --------------------------------------------------------------------------------------

    def _label(self, batch: Any, table: EventTable) -> NDArray[np.float32] | None:
        if self._columns.label is None:
            return None
        labels = numbers_of(column_at(batch, self._columns.label))
        self._refuse(table, np.isinf(labels), ProblemCode.LABEL_NOT_FINITE, labels)
        return np.where(np.isnan(labels), UNLABELLED, labels)

    def _log(
        self,
        batch: Any,
        table: EventTable,
        chosen: Sequence[str] | NDArray[np.float32],
        *,
        at: NDArray[np.int64] | None = None,
    ) -> None:
        """Add the logged costs and probabilities, from the rows `at`; `chosen` is for messages."""
        if self._columns.cost_column is None or table.chosen is None:
            return
        costs = self._column(batch, self._columns.cost_column, at)
        if self._columns.reward is not None:
            costs = 0 - costs  # -costs would contain -0
        logged = ~np.isnan(costs)
        self._refuse(table, logged & np.isinf(costs), ProblemCode.COST_NOT_FINITE, costs)
        self._refuse(table, logged & (table.chosen < 0), ProblemCode.JSON_LABEL_INDEX, chosen)
        table.cost = np.where(logged, costs, UNLABELLED).astype(np.float32)
        if self._columns.probability is None:
            table.probability = np.zeros(len(table), np.float32)
            return
        p = self._column(batch, self._columns.probability, at)
        missing = logged & np.isnan(p)
        if self._uniform:
            self._note(table, missing & table.good, ProblemCode.TAKEN_AS_UNIFORM, ["null"])
            p = np.where(missing, np.float32(0), p)
        else:
            self._refuse(table, missing, ProblemCode.NO_PROBABILITY, ["null"])
        wrong = logged & ~missing
        self._refuse(table, wrong & (p == 0), ProblemCode.PROBABILITY_ZERO, p)
        self._refuse(table, wrong & (p < 0), ProblemCode.PROBABILITY_NEGATIVE, p)
        self._refuse(table, wrong & (p > 1), ProblemCode.PROBABILITY_ABOVE_ONE, p)
        table.probability = p

    def _column(self, batch: Any, name: str, at: NDArray[np.int64] | None) -> NDArray[np.float32]:
        values = numbers_of(column_at(batch, name))
        return values if at is None else values[at]

    def _weights(
        self, batch: Any, table: EventTable, at: NDArray[np.int64] | None
    ) -> NDArray[np.float32] | None:
        if self._columns.weight is None:
            return None
        weights = self._column(batch, self._columns.weight, at)
        self._refuse(table, ~np.isfinite(weights), ProblemCode.WEIGHT_NOT_FINITE, weights)
        self._refuse(table, weights < 0, ProblemCode.WEIGHT_NEGATIVE, weights)
        return weights

    def _tags(
        self, batch: Any, at: NDArray[np.int64] | None
    ) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]] | None:
        if self._columns.tag is None:
            return None
        texts = texts_of(as_texts(column_at(batch, self._columns.tag)))
        data, start = texts.bytes_of()
        code = texts.code if at is None else texts.code[at]
        begin, end = np.append(start[:-1], 0)[code], np.append(start[1:], 0)[code]
        return data, begin, end

    # -- problems --------------------------------------------------------------------------------------

    def _refuse_infinite(
        self,
        table: EventTable,
        features: Sequence[ColumnFeatures],
        start: NDArray[np.int64] | None,
        *,
        of_rows: bool = False,
    ) -> None:
        """Leave out the events that have an infinite feature, or a list with too many elements."""
        groups = self._columns.context if start is None else self._columns.actions
        for each, column in zip(features, chain.from_iterable(groups.values()), strict=True):
            too_long = np.flatnonzero(() if each.too_long is None else each.too_long)
            for rows, code, text in (
                (each.infinite_rows(), ProblemCode.VALUE_NOT_FINITE, "inf"),
                (too_long, ProblemCode.LIST_TOO_LONG, column),
            ):
                if not len(rows):
                    continue
                if start is not None:
                    rows = np.searchsorted(start, rows, side="right") - 1
                elif of_rows:
                    rows = np.searchsorted(table.context_row, rows, side="right") - 1
                bad = np.zeros(len(table), bool)
                bad[rows] = True
                self._refuse(table, bad, code, [text])

    def _refuse(
        self,
        table: EventTable,
        bad: NDArray[np.bool_],
        code: ProblemCode,
        texts: Sequence[str] | NDArray[np.float32],
    ) -> None:
        """Leave out events and count the reason, except for events that are left out already."""
        bad = bad & table.good
        if bad.any():
            self._note(table, bad, code, texts)
            table.good &= ~bad

    def _note(
        self,
        table: EventTable,
        bad: NDArray[np.bool_],
        code: ProblemCode,
        texts: Sequence[str] | NDArray[np.float32],
    ) -> None:
        """Count a problem of events; `texts` has one text for each event, or one for all events."""
        at = np.flatnonzero(bad)
        if len(at):
            first = at[:100].tolist()
            spelled = [texts[i] if len(texts) > 1 else texts[0] for i in first]
            self._report(
                code, table.row[at], [each if isinstance(each, str) else _text_of(each) for each in spelled]
            )


class _Texts(Sequence[str]):
    """The texts of a column, looked up only when a message needs them."""

    def __init__(self, code: NDArray[np.int32], values: Sequence[str]) -> None:
        self._code, self._values = code, values

    def __len__(self) -> int:
        return len(self._code)

    def __getitem__(self, row: Any) -> Any:
        return self._values[self._code[row]]


def _text_of(value: float) -> str:
    return "null" if value != value else f"{value:g}"
