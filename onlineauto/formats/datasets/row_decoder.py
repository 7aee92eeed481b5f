"""``RowDecoder``: turns Arrow batches into tables of events, and reports problems of their rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from onlineauto.formats.datasets.arrow_arrays import (
    MOST_ELEMENTS,
    as_texts,
    column_at,
    fields_of,
    flatten,
    numbers_of,
    plain_values,
    pyarrow,
    run_codes,
    texts_of,
)
from onlineauto.formats.datasets.event_table import EventTable, NumberColumn, spelled
from onlineauto.formats.datasets.features import ColumnName, Repeated, repeated
from onlineauto.formats.lines.problem_code_kernels import ProblemCode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from onlineauto.formats.datasets.columns import DatasetColumns
    from onlineauto.formats.datasets.event_table import RowProblems
    from onlineauto.formats.datasets.features import ColumnFeatures, Encoder


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
        values: Mapping[str, Iterable[Any]] | None = None,
    ) -> None:
        """Set up the decoder; `values` has the values of the columns that Arrow cannot type."""
        self._columns, self.encoder, self._uniform, self._report = columns, encoder, uniform, report
        self._values = values or {}
        self._place = {choice: i for i, choice in enumerate(choices)}
        self._choices_given, self._choices = choices, list[Repeated]()

    def _features_of_choices(self) -> list[Repeated]:
        """Return the features of the choices: those of a mapping, or ``action=choice``."""
        encoder, names, choices = self.encoder, self.encoder.names, self._choices_given
        action = self._columns.action or ""
        if not isinstance(choices, Mapping):
            hashes = names.features([f"{action}={choice}" for choice in choices], names.namespace(action))
            return [Repeated(encoder.namespace("actions", action), hashes)]
        rows = ((f"choices.{choice}", features) for choice, features in choices.items())
        by_namespace = encoder.encode_mappings(rows, "actions", action)
        return [layer for features in by_namespace for layer in repeated(features)]

    def first_rows(self, batch: Any) -> NDArray[np.int64]:
        """Return the first row of each event, if rows are actions."""
        codes = run_codes(column_at(batch, self._columns.event or ""))
        return np.concatenate([np.zeros(min(len(codes), 1), np.int64), np.flatnonzero(np.diff(codes)) + 1])

    def table(self, batch: Any, first_row: int) -> EventTable:
        """Return the events of a batch; `first_row` is the number of its first row in the file."""
        if self._columns.rows == "actions":
            return self._table_of_actions(batch, first_row)
        context = self._encode_columns(batch, "context", self._columns.context)
        table = EventTable.of_rows(context, first_row, batch.num_rows, self._report)
        table.tags = self._tags(batch)
        self._refuse_infinite(table, context, None)
        if self._columns.rows == "labels":
            if self._columns.label is not None:
                table.add_labels(_numbers(batch, self._columns.label))
        elif self._columns.rows == "events":
            if not self._choices:  # their namespaces come after those of the context
                self._choices = self._features_of_choices()
            table.elements = self._choices
            table.element_start = np.arange(len(table) + 1) * len(self._place)
            self._add_costs_of_choices(batch, table)
            if self._columns.cost_column is not None:
                self._add_chosen(batch, table)
        else:
            self._add_lists(batch, table)
        self._add_weights(batch, table)
        return table

    def _encode_columns(
        self, batch: Any, owner: str, groups: Mapping[str, Sequence[str]]
    ) -> list[ColumnFeatures]:
        features: list[ColumnFeatures] = []
        for namespace, columns in groups.items():
            for column in columns:
                if column in self._values:
                    features += self.encoder.encode_values(self._values[column], namespace, column, owner)
                else:
                    name = ColumnName.of(batch.schema, namespace, column)
                    features.append(self.encoder.encode(column_at(batch, column), name, owner, column))
        return features

    # -- actions ---------------------------------------------------------------------------------------

    def _add_lists(self, batch: Any, table: EventTable) -> None:
        """Add the actions of events with lists of actions."""
        name = self._columns.list or ""
        actions, table.element_start, too_long = flatten(column_at(batch, name))
        sizes = np.diff(table.element_start)
        fields = fields_of(actions)
        elements = self._encode_columns(fields, "actions", self._columns.actions)
        table.elements = elements
        table.refuse(too_long, ProblemCode.LIST_TOO_LONG, name, name)
        table.refuse(sizes == 0, ProblemCode.NO_ACTIONS, name, name)
        self._refuse_infinite(table, elements, table.element_start)
        self._add_action_costs(fields, table)
        if self._columns.chosen is None:
            return
        values = numbers_of(column_at(batch, self._columns.chosen))
        known = np.isfinite(values)
        table.chosen = np.where(known, values, -1).astype(np.int64)
        table.chosen[table.chosen >= sizes] = -1
        self._log(
            batch,
            table,
            (self._columns.chosen, lambda event: f"{values[event]:g}" if known[event] else "null"),
        )

    def _add_chosen(self, batch: Any, table: EventTable) -> None:
        """Add the index of each row's action among the choices, -1 for an unknown one, and its outcome."""
        name = self._columns.action or ""
        texts = texts_of(as_texts(column_at(batch, name)))
        values = [*plain_values(texts.values), "null"]
        table.chosen = np.array([*(self._place.get(value, -1) for value in values[:-1]), -1], np.int64)[
            texts.code
        ]
        action = name, lambda event: values[texts.code[event]]
        self._log(batch, table, action, no_action=texts.code < 0)

    def _table_of_actions(self, batch: Any, first_row: int) -> EventTable:
        first, event = self.first_rows(batch), self._columns.event or ""
        start = np.append(first, batch.num_rows)
        context = self._encode_columns(batch, "context", self._columns.context)
        elements = self._encode_columns(batch, "actions", self._columns.actions)
        table = EventTable(
            row=first + first_row,
            end=first_row + batch.num_rows,
            good=np.ones(len(first), bool),
            report=self._report,
            context=context,
            context_row=first,
            elements=elements,
            element_start=start,
            tags=self._tags(batch, first),
        )
        ids = run_codes(column_at(batch, event))[first]
        table.refuse(ids < 0, ProblemCode.EVENT_MISSING, event, event)
        table.refuse(np.diff(start) > MOST_ELEMENTS, ProblemCode.LIST_TOO_LONG, event, event)
        is_repeated = np.ones(len(ids), bool)
        is_repeated[np.unique(ids, return_index=True)[1]] = False
        table.refuse(is_repeated & (ids >= 0), ProblemCode.EVENT_AGAIN, event, event)
        self._refuse_infinite(table, elements, start)
        self._refuse_infinite(table, context, start)
        self._add_action_costs(batch, table)
        self._add_weights(batch, table, first)
        if self._columns.cost_column is None:
            return table
        logged = np.flatnonzero(~np.isnan(numbers_of(column_at(batch, self._columns.cost_column))))
        of_event = np.searchsorted(first, logged, side="right") - 1
        several = np.bincount(of_event, minlength=len(first)) > 1
        cost = self._columns.cost_column
        table.refuse(several, ProblemCode.SECOND_LABEL, cost, cost)
        table.chosen = np.zeros(len(first), np.int64)
        table.chosen[of_event] = logged - first[of_event]
        self._log(batch, table, (event, lambda _: ""), rows=first + table.chosen)
        return table

    # -- outcomes --------------------------------------------------------------------------------------

    def _log(
        self,
        batch: Any,
        table: EventTable,
        action: tuple[str, Callable[[int], str]],
        *,
        rows: NDArray[np.int64] | None = None,
        no_action: NDArray[np.bool_] | None = None,
    ) -> None:
        """Add the logged costs and probabilities in `rows`; see `EventTable.add_outcomes`."""
        if self._columns.cost_column is None:
            return
        cost, probability = _numbers(batch, self._columns.cost_column, rows), None
        if self._columns.reward is not None:
            cost = cost._replace(values=0 - cost.values)  # the negative would contain -0
        if self._columns.probability is not None:
            probability = _numbers(batch, self._columns.probability, rows)
        table.add_outcomes(cost, probability, action=action, no_action=no_action, uniform=self._uniform)

    def _add_action_costs(self, actions: Any, table: EventTable) -> None:
        """Add the costs that actions declare; `actions` is a batch with a row for each."""
        if (name := self._columns.action_costs) is not None:
            array = column_at(actions, name)
            table.add_action_costs(numbers_of(array), _is_given(array), name)

    def _add_costs_of_choices(self, batch: Any, table: EventTable) -> None:
        """Add the costs that actions declare, from a list in each row, in the order of the choices."""
        name, n = self._columns.action_costs, len(self._place)
        if name is None or pyarrow().types.is_null((lists := column_at(batch, name)).type):
            return
        array, start, _ = flatten(lists)
        sizes = np.diff(start)
        table.refuse(
            _is_given(lists) & (sizes != n),
            ProblemCode.COST_NOT_FINITE,
            lambda event: f"column {name!r} has {sizes[event]} costs for {n} actions",
            name,
        )
        complete, elements = np.repeat(sizes == n, n), np.repeat(sizes == n, sizes)
        costs, declared = np.zeros(len(complete), np.float32), np.zeros(len(complete), bool)
        costs[complete], declared[complete] = numbers_of(array)[elements], _is_given(array)[elements]
        table.add_action_costs(costs, declared, name)

    def _add_weights(self, batch: Any, table: EventTable, rows: NDArray[np.int64] | None = None) -> None:
        if self._columns.weight is not None:
            table.add_weights(_numbers(batch, self._columns.weight, rows))

    def _tags(
        self, batch: Any, rows: NDArray[np.int64] | slice = slice(None)
    ) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]] | None:
        if self._columns.tag is None:
            return None
        texts = texts_of(as_texts(column_at(batch, self._columns.tag)))
        data, start = texts.bytes_of()
        code = texts.code[rows]
        return data, np.append(start[:-1], 0)[code], np.append(start[1:], 0)[code]

    def _refuse_infinite(
        self, table: EventTable, features: Sequence[ColumnFeatures], start: NDArray[np.int64] | None
    ) -> None:
        """Leave out events with an infinite feature or a list with too many elements.

        `start` has the first row of each event, unless each row is an event.
        """
        for column in features:
            elements, rows = column.infinite()
            too_long = np.flatnonzero(() if column.too_long is None else column.too_long)
            if start is not None:
                rows = np.searchsorted(start, rows, side="right") - 1
                too_long = np.searchsorted(start, too_long, side="right") - 1
            element_of = dict(zip(rows.tolist(), elements.tolist(), strict=True))
            bad = np.zeros(len(table), bool)
            bad[rows] = True
            text = _text_by_event(column.given, element_of)
            table.refuse(bad, ProblemCode.VALUE_NOT_FINITE, text, column.column)
            bad[:] = False
            bad[too_long] = True
            table.refuse(bad, ProblemCode.LIST_TOO_LONG, column.column, column.column)


def _is_given(array: Any) -> NDArray[np.bool_]:
    """Return which values of a column are not null."""
    return np.asarray(array.is_valid().to_numpy(zero_copy_only=False), bool)


def _numbers(batch: Any, column: str, rows: NDArray[np.int64] | None = None) -> NumberColumn:
    array = column_at(batch, column)
    if rows is not None:
        array = array.take(pyarrow().array(rows))
    return NumberColumn(numbers_of(array), array, column)


def _text_by_event(given: Any, element_of: Mapping[int, int]) -> Callable[[int], str]:
    return lambda event: spelled(given[element_of[event]])
