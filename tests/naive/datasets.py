"""Events of the rows of a dataset: dictionaries, one row after the other."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.naive.hashing import hash_name
from tests.naive.lines import Feature, Line

if TYPE_CHECKING:
    from onlineauto.formats.datasets.columns import DatasetColumns

Row = dict[Any, Any]
Named = list[tuple[str, list[tuple[str, float]]]]


def naive_events(rows: Sequence[Row], columns: DatasetColumns) -> list[list[Line]]:
    """Return the events of rows, all of which are valid."""
    return [[hashed(line) for line in event] for event in named_events(rows, columns)]


def text_of_events(rows: Sequence[Row], columns: DatasetColumns) -> bytes:
    """Return the events as text, if no name has a blank, a bar or a colon."""
    events = [
        "".join(text_of_line(line, columns) + "\n" for line in each) for each in named_events(rows, columns)
    ]
    return ("\n" if columns.decides else "").join(events).encode()


class NamedLine:
    def __init__(self, number: int, spans: Named, *, shared: bool = False) -> None:
        self.number, self.spans, self.shared = number, [each for each in spans if each[1]], shared
        self.label: float | None = None
        self.weight = 1.0
        self.cost: tuple[float, float] | None = None
        self.tag = ""


def named_events(rows: Sequence[Row], columns: DatasetColumns) -> list[list[NamedLine]]:
    if columns.rows == "actions":
        return events_of_actions(rows, columns)
    return [event_of_row(number, row, columns) for number, row in enumerate(rows, 1)]


def event_of_row(number: int, row: Row, columns: DatasetColumns) -> list[NamedLine]:
    context = NamedLine(number, spans_of(row, columns.context, columns.categories), shared=columns.decides)
    if not columns.decides:
        label = row[columns.label] if columns.label else None
        context.label = None if missing(label) else float(np.float32(label))
        lines = [context]
    elif columns.rows == "lists":
        actions = [
            NamedLine(number, spans_of(each, columns.actions, columns.categories))
            for each in row[columns.list]
        ]
        lines = [context] * bool(columns.context) + actions
        log(row, columns, actions, row[columns.chosen] if columns.chosen else None)
    else:
        name, choices = columns.action, tuple(columns.choices or ())
        actions = [NamedLine(number, [(str(name), [(f"{name}={choice}", 1.0)])]) for choice in choices]
        lines = [context] * bool(columns.context) + actions
        taken = row[name]
        log(row, columns, actions, None if taken is None else choices.index(str(taken)))
    return finished(lines, row, columns)


def events_of_actions(rows: Sequence[Row], columns: DatasetColumns) -> list[list[NamedLine]]:
    events: list[list[tuple[int, Row]]] = []
    for number, row in enumerate(rows, 1):
        if not events or events[-1][-1][1][columns.event] != row[columns.event]:
            events.append([])
        events[-1].append((number, row))
    found = []
    for event in events:
        number, first = event[0]
        actions = [NamedLine(number, spans_of(row, columns.actions, columns.categories)) for _, row in event]
        for place, (_, row) in enumerate(event):
            log(row, columns, actions, place)
        context = NamedLine(number, spans_of(first, columns.context, columns.categories), shared=True)
        found.append(finished([context] * bool(columns.context) + actions, first, columns))
    return found


def finished(lines: list[NamedLine], row: Row, columns: DatasetColumns) -> list[NamedLine]:
    for line in lines:
        if columns.weight:
            line.weight = float(np.float32(row[columns.weight]))
    if columns.tag:
        lines[0].tag = row[columns.tag] or ""
    return lines


def log(row: Row, columns: DatasetColumns, actions: list[NamedLine], chosen: int | None) -> None:
    name = columns.cost_column
    if name is None or missing(row[name]):
        return
    assert chosen is not None
    cost = np.float32(row[name]) if columns.reward is None else 0 - np.float32(row[name])
    actions[chosen].cost = float(cost), float(np.float32(row[columns.probability]))


def missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def spelled(value: Any, is_category: bool) -> Any:
    return str(value) if is_category and value is not None else value


def spans_of(row: Row, groups: Mapping[str, Sequence[str]], categories: Sequence[str]) -> Named:
    """Return the features by namespace; lists and structs are separate namespaces, as in dicts."""
    spans: dict[str, list[tuple[str, float]]] = {}
    for name, columns in groups.items():
        for column in columns:
            value = spelled(value_at(row, column), column in categories)
            *structs, leaf = [column] if column in row else column.split(".")
            of_list = leaf == "tags" or leaf == "vector"
            namespace = leaf if of_list else structs[-1] if structs else name
            spans.setdefault(namespace, []).extend(features_of(leaf, value))
    return list(spans.items())


def value_at(row: Row, column: str) -> Any:
    if column in row:
        return row[column]
    head, _, rest = column.partition(".")
    return None if row[head] is None else value_at(row[head], rest)


def features_of(column: str, value: Any) -> list[tuple[str, float]]:
    if missing(value):
        return []
    if isinstance(value, str):
        return [(f"{column}={value}", 1.0)]
    if isinstance(value, list):
        words = [(each, 1.0) for each in value if isinstance(each, str)]
        numbers = [(i, each) for i, each in enumerate(value) if not isinstance(each, str)]
        return words + [feature for i, each in numbers for feature in features_of(str(i), each)]
    number = float(np.float32(value))
    return [(column, number)] if number else []


def hashed(line: NamedLine) -> Line:
    spans: list[tuple[bytes, list[Feature]]] = []
    for name, features in line.spans:
        seed = hash_name(name.encode(), 0, False)
        spans.append((name.encode(), [(hash_name(each.encode(), seed, False), x) for each, x in features]))
    made = Line(
        number=line.number, shared=line.shared, weight=line.weight, spans=spans, tag=line.tag.encode()
    )
    if line.label is not None:
        made.label = line.label
    if line.cost is not None:
        made.costs = [(0, *line.cost)]
    return made


def text_of_line(line: NamedLine, columns: DatasetColumns) -> str:
    spans = " ".join(
        " ".join([f"|{name}", *(each if x == 1 else f"{each}:{x!r}" for each, x in features)])
        for name, features in line.spans
    )
    head = "shared " if line.shared else ""
    if line.label is not None:
        head = f"{line.label!r} {line.weight!r} " if columns.weight else f"{line.label!r} "
    if line.cost is not None:
        head = f"0:{line.cost[0]!r}:{line.cost[1]!r} "
    return f"{head}{spans or '|'}"
