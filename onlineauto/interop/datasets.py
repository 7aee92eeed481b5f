"""Parquet and Arrow datasets as sources of decisions, or of rows with labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from onlineauto.errors import InputError, short_repr
from onlineauto.formats.datasets.arrow_arrays import as_texts, column_at, path_at, plain_values, type_at
from onlineauto.formats.datasets.columns import DatasetColumns
from onlineauto.formats.datasets.dataset_source import DatasetSource
from onlineauto.formats.datasets.features import ColumnName
from onlineauto.formats.datasets.files import is_dataset
from onlineauto.formats.datasets.inference import features_of, leaves
from onlineauto.formats.lines.event_source import EventRules
from onlineauto.formats.mappings.identities import spelling

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator

    from onlineauto.formats.lines.diagnostics import Diagnostics
    from onlineauto.formats.mappings.identities import Identities

    Columns = str | os.PathLike[str] | Mapping[str, Any] | DatasetColumns | None

Names = Sequence[str] | Mapping[str, Sequence[str]]
"""Columns, each a separate namespace, or a mapping of namespace to columns."""


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
    if "actions" not in named:
        raise InputError("actions names the column of the action, or the columns that describe one")
    schema, left_out = DatasetSource(source).schema(), tuple[str, ...]()
    if "context" not in named:
        taken = {name for name in named.values() if isinstance(name, str)}
        named["context"], left_out = features_of(schema, {*taken, *listed(named["actions"])})
    return DatasetSource(source, replace(named_columns(schema, **named), left_out=left_out))


def listed(names: str | Names | None) -> list[str]:
    """Return the columns that an argument names."""
    if names is None or isinstance(names, str):
        return [names] if names else []
    groups = names.values() if isinstance(names, Mapping) else [names]
    return [str(column) for group in groups for column in group]


def named_columns(
    schema: Any,
    *,
    context: Names,
    actions: str | Names | None,
    event: str | None = None,
    choices: Sequence[Any] | Mapping[Any, Mapping[str, Any]] | None = None,
    **roles: str | None,
) -> DatasetColumns:
    """Return the columns that the arguments of `AutoML.fit` and `from_frame` name, in frames and datasets."""
    if isinstance(context, str):
        raise InputError(
            f"context must be a list of columns or a dict of lists, not {context!r}: [{context!r}]"
        )
    described: dict[str, Any] = {"event": event, "choices": choices, "context": _groups(schema, context)}
    if actions is None:
        rows = "labels"
    elif event is not None:
        rows, described["actions"] = "actions", _groups(schema, actions)
    elif isinstance(actions, str):
        rows, described["action"] = "events", actions
    else:
        raise InputError(
            "rows are events if actions is one column, of the action taken; for rows that are actions, "
            "event names a column"
        )
    if choices is not None:
        spelled = [str(spelling(choice)) for choice in choices]
        if not spelled:
            raise InputError("there is no action: choices is empty")
        if len({*spelled}) < len(spelled):
            raise InputError(f"two of the choices have the same name: {short_repr(list(choices))}")
        described["choices"] = tuple(spelled)
        if isinstance(choices, Mapping):
            described["choices"] = dict(zip(spelled, choices.values(), strict=True))
    return DatasetColumns(rows=rows, **described | roles)


def _like_dicts(dataset: DatasetSource, *, decides: bool) -> DatasetColumns:
    """Return inferred columns whose ids are numbers, like in the dicts for `rank` and `predict`."""
    return replace(dataset.columns(decides=decides), categories=())


def _groups(schema: Any, names: str | Names) -> dict[str, tuple[str, ...]]:
    """Return columns by namespace, a struct by its fields; each column of a list is a namespace."""
    if isinstance(names, str):
        names = [names]
    groups = names if isinstance(names, Mapping) else {str(name): [name] for name in names}
    return {
        str(namespace): tuple(leaf for name in columns for leaf in leaves(schema, str(name)))
        for namespace, columns in groups.items()
    }


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
            columns = ", ".join(schema.names)
            raise InputError(f"{dataset.name}: there is no column {column!r} ({name}); there are {columns}")
    # A label may be a text here, like a tag.
    read = dataset.with_columns(replace(roles, label=None, tag=roles.label))
    reader = read.open(EventRules("simple"), problems)
    identities = identify(reader.identities)
    for batch in reader.batches():
        labels = plain_values(column_at(batch, roles.label), strict=True)
        weights = [1.0] * len(labels) if roles.weight is None else column_at(batch, roles.weight).to_pylist()
        yield from zip(_features(batch, roles, identities), labels, weights, strict=True)


def _features(batch: Any, roles: DatasetColumns, identities: Identities) -> Iterator[dict[str, Any]]:
    """Yield the features of each row of a batch as a dict has them."""
    paths, values = [], []
    for namespace, columns in roles.context.items():
        for column in columns:
            array, path = column_at(batch, column), path_at(batch.schema, column)
            is_identity = ColumnName.of(batch.schema, namespace, column).identity in identities
            values.append(plain_values(as_texts(array) if is_identity else array))
            paths.append(path if len(path) > 1 or tuple(columns) == (namespace,) else [namespace, *path])
    for row in zip(*values, strict=True) if values else ({} for _ in range(batch.num_rows)):
        features: dict[str, Any] = {}
        for (*outer, name), value in zip(paths, row, strict=True):
            inner = features
            for part in outer:
                inner = inner.setdefault(part, {})
            inner[name] = value
        yield features
