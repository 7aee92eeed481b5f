"""Parquet and Arrow datasets as sources of decisions, or of rows with labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from onlineauto.errors import InputError
from onlineauto.formats.datasets.arrow_arrays import as_texts, column_at, path_at, plain_values, type_at
from onlineauto.formats.datasets.columns import DatasetColumns
from onlineauto.formats.datasets.dataset_source import DatasetSource
from onlineauto.formats.datasets.features import ColumnName
from onlineauto.formats.datasets.files import is_dataset
from onlineauto.formats.datasets.inference import features_of
from onlineauto.formats.lines.event_source import EventRules
from onlineauto.formats.mappings.identities import spelling

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator

    from onlineauto.formats.lines.diagnostics import Diagnostics
    from onlineauto.formats.mappings.identities import Identities
    from onlineauto.interop.frames import Names

    Columns = str | os.PathLike[str] | Mapping[str, Any] | DatasetColumns | None


def is_arrow(source: object) -> bool:
    """Return whether a source is a dataset or a reader of pyarrow, or a path of Parquet, or several paths.

    >>> is_arrow("logs/*.parquet"), is_arrow("events.txt")
    (True, False)
    """
    if isinstance(source, list | tuple):
        return bool(source) and all(map(is_dataset, source))
    return hasattr(source, "get_fragments") or hasattr(source, "read_next_batch") or is_dataset(source)


def decisions_in(source: Any, columns: Columns, **named: Any) -> DatasetSource:
    """Return a source of logged decisions; `named` are columns, as for `AutoML.fit`."""
    named = {name: value for name, value in named.items() if value is not None}
    if not named:
        dataset = DatasetSource(source, columns)
        return dataset if columns is not None else dataset.with_columns(_like_dicts(dataset, decides=True))
    if columns is not None:
        raise InputError(f"columns and {next(iter(named))} both describe the columns: give only one")
    columns_of: dict[str, Any] = {
        name: named[name] for name in ("cost", "reward", "probability", "weight") if name in named
    }
    if "actions" not in named:
        raise InputError("actions names the column of the action, or the columns that describe one")
    if "event" in named:
        columns_of |= {"rows": "actions", "event": named["event"], "actions": _groups(named["actions"])}
    elif isinstance(named["actions"], str):
        choices = named.get("choices")
        columns_of |= {"rows": "events", "action": named["actions"]}
        if isinstance(choices, Mapping):
            choices = {str(spelling(each)): features for each, features in choices.items()}
        elif choices is not None:
            choices = tuple(str(spelling(each)) for each in choices)
        columns_of["choices"] = choices
    else:
        raise InputError(
            "rows are events if actions is one column; for rows that are actions, event names a column"
        )
    if "context" in named:
        context = _groups(named["context"])
    else:
        of_actions = [each for group in columns_of.get("actions", {}).values() for each in group]
        taken = {each for each in columns_of.values() if isinstance(each, str)}
        schema = DatasetSource(source).schema()
        context, columns_of["left_out"] = features_of(schema, taken | set(of_actions))
    return DatasetSource(source, DatasetColumns(context=context, **columns_of))


def _like_dicts(dataset: DatasetSource, *, decides: bool) -> DatasetColumns:
    """Return inferred columns whose ids are numbers, like in the dicts for `rank` and `predict`."""
    return replace(dataset.columns(decides=decides), categories=())


def _groups(names: str | Names) -> dict[str, tuple[str, ...]]:
    """Return columns by namespace; each column of a list is a namespace."""
    if isinstance(names, str):
        return {names: (names,)}
    if isinstance(names, Mapping):
        return {str(namespace): tuple(columns) for namespace, columns in names.items()}
    return {name: (name,) for name in names}


def dataset_rows(
    source: Any,
    columns: Columns,
    *,
    label: str | None,
    weight: str | None,
    problems: Diagnostics,
    identify: Callable[[Iterable[str]], Identities],
) -> Iterator[tuple[dict[str, Any], Any, float]]:
    """Yield features, label and weight of each row; problems are added to `problems`.

    `identify` records the identities of the columns, and returns all that the model has.
    """
    if columns is not None and (label is not None or weight is not None):
        raise InputError("give either columns or label and weight: columns names both, too")
    dataset = DatasetSource(source, columns)
    if label is None:
        roles = _like_dicts(dataset, decides=False) if columns is None else dataset.columns(decides=False)
    else:
        context, left_out = features_of(dataset.schema(), {label, weight or label})
        roles = DatasetColumns(rows="labels", context=context, label=label, weight=weight, left_out=left_out)
    if roles.label is None or roles.decides:
        raise InputError(f'{dataset.name}: rows = "labels" with a label is needed here')
    schema = dataset.schema()
    for name, column in (("label", roles.label), ("weight", roles.weight)):
        if column is not None and type_at(schema, column) is None:
            there = ", ".join(schema.names)
            raise InputError(f"{dataset.name}: there is no column {column!r} ({name}); there are {there}")
    # A label may be a text here, like a tag.
    read = dataset.with_columns(replace(roles, label=None, tag=roles.label))
    reader = read.open(EventRules("simple"), problems)
    identities = identify(reader.identities)
    for batch in reader.batches():
        labels = plain_values(column_at(batch, roles.label), strict=True)
        weights = [1.0] * len(labels) if roles.weight is None else column_at(batch, roles.weight).to_pylist()
        yield from zip(_features(batch, roles, identities), labels, weights, strict=True)


def _features(batch: Any, of: DatasetColumns, identities: Identities) -> Iterator[dict[str, Any]]:
    """Yield the features of each row of a batch as a dict has them."""
    paths, values = [], []
    for namespace, columns in of.context.items():
        for column in columns:
            array, path = column_at(batch, column), path_at(batch.schema, column)
            is_identity = ColumnName.of(batch.schema, namespace, column).identity in identities
            values.append(plain_values(as_texts(array) if is_identity else array))
            paths.append(path if len(path) > 1 or tuple(columns) == (namespace,) else [namespace, *path])
    for row in zip(*values, strict=True) if values else ({} for _ in range(batch.num_rows)):
        features: dict[str, Any] = {}
        for (*outer, name), value in zip(paths, row, strict=True):
            inner = features
            for each in outer:
                inner = inner.setdefault(each, {})
            inner[name] = value
        yield features
