"""Tables as events: rows of frames and matrices, with labels in scikit-learn's form."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeAlias

import msgspec
import numpy as np

from onlineauto.errors import EventTypeError, InputError, kind_of, short_repr
from onlineauto.formats.datasets.arrow_arrays import arrow_errors, is_number, is_text
from onlineauto.formats.datasets.frame import FrameColumns
from onlineauto.formats.mappings.identities import identity
from onlineauto.formats.mappings.named_event import refuse_unknown
from onlineauto.formats.mappings.values import as_lists, is_missing, is_sequence
from onlineauto.workspace.names import is_utf8

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def is_frame(source: object) -> bool:
    """Return whether a source is a frame of pandas, polars or arrow.

    >>> is_frame([{"context": {}}]), is_frame("train.txt")
    (False, False)
    """
    with arrow_errors():  # of the names of columns
        return hasattr(source, "shape") and (hasattr(source, "columns") or hasattr(source, "column_names"))


def names_of_columns(frame: Any) -> list[str]:
    """Return the names of the columns of a frame."""
    with arrow_errors():
        names = frame.column_names if hasattr(frame, "column_names") else frame.columns
    return [str(name) for name in names]


def categories_of(frame: Any, *, without: str | None = None) -> list[str]:
    """Return the columns of categories of a frame, each as an identity."""
    columns = FrameColumns(frame)
    return [
        identity(name, name) for name in columns.names if name != str(without) and columns.is_categories(name)
    ]


class Shaped(Protocol):
    """A frame of pandas, polars or arrow, or a matrix."""

    @property
    def shape(self) -> Any:
        """The number of rows and columns."""


Rows: TypeAlias = "Sequence[Mapping[Any, Any]] | Shaped"
"""The features of several events."""


class TableEvent(NamedTuple):
    """An event of `fit`."""

    features: Mapping[Any, Any]
    label: Any
    weight: Any = 1.0


def rows_of(rows: Any) -> Iterable[Any]:
    """Return the features of each row of a frame, a matrix or a sequence of mappings.

    Columns of a matrix are named x0, x1 and so on, like in scikit-learn.

    >>> list(rows_of(np.array([[1.5, 2.0]])))
    [{'x0': 1.5, 'x1': 2.0}]
    """
    if is_frame(rows):
        return FrameColumns(rows).rows()
    if hasattr(rows, "tocsr") or getattr(rows, "ndim", 1) == 2:
        matrix = rows.toarray() if hasattr(rows, "toarray") else np.asarray(rows)
        if matrix.dtype.kind in "mM":
            raise InputError(
                "the matrix has dates or times, which cannot be features: pass the relevant parts as "
                "numbers, such as the weekday and the hour"
            )
        names = [f"x{i}" for i in range(matrix.shape[1])]
        return [dict(zip(names, row, strict=True)) for row in matrix.tolist()]
    if not isinstance(rows, Iterable):
        raise EventTypeError(
            f"{short_repr(rows)} has no features: give a mapping of name to value, or a list, frame or matrix"
        )
    return rows


def mapping_of(features: Any) -> Mapping[Any, Any] | None:
    """Return the features of one event, a mapping or a row of a pandas frame; None for other objects."""
    mapping: Mapping[Any, Any] | None = None
    if type(features) is dict or isinstance(features, Mapping):
        mapping = features
    elif hasattr(features, "to_frame") and hasattr(features, "index"):  # a Series
        for name in features.index:
            if not isinstance(name, str):
                raise InputError(
                    f"a Series is one event, and its index has the names of features: {short_repr(name)} is "
                    "no text; pass a column as frame[[name]], a row of numbered columns as row.rename(str)"
                )
        [mapping] = rows_of(features.to_frame().T)
    return mapping


def _kind_of_value(value: object) -> str:
    """Return ``"numbers"``, ``"text"``, or "" for other values."""
    if isinstance(value, str):
        return "text"
    return "numbers" if isinstance(value, int | float | np.number | np.bool_) else ""


def _kinds_of_columns(frame: Any, names: Iterable[str]) -> dict[str, str]:
    """Return the kind of the values of each column that has some; "" if it is mixed or of another kind."""
    columns, kinds = FrameColumns(frame), {}
    for name in names:
        array = columns.array(name)
        if array is None:  # objects of pandas
            found = {_kind_of_value(value) for value in columns.values(name) if not is_missing(value)}
            kinds[name] = found.pop() if len(found) == 1 else ""
        elif array.null_count < len(array):
            is_names = is_text(array.type) and not columns.is_categories(name)
            kinds[name] = "text" if is_names else "numbers" * is_number(array.type)
    return kinds


def _other_kinds(rows: Iterable[Mapping[Any, Any]], learnt: Mapping[str, str]) -> dict[str, str]:
    """Return the kind of each column of rows whose values all have another kind than the learnt one."""
    found = {}
    for name, kind in learnt.items():
        kinds = (_kind_of_value(row[name]) for row in rows if name in row and not is_missing(row[name]))
        first = next(kinds, kind)
        if kind and first not in ("", kind) and all(other == first for other in kinds):
            found[name] = first
    return found


SURE: Final = 100
"""Number of mappings with the same names after which other names are unusual."""
_MOST_WARNED: Final = 20
"""Maximum number of names of which a model warns."""


@dataclass
class LearntColumns:
    """The columns of the frames that a model has learnt, and the names that all its mappings have.

    `kind` names the features in a warning. `same` is the number of mappings that had these `names`, -1 once
    another one had others.
    """

    features: frozenset[str] = frozenset()
    targets: frozenset[str] = frozenset()  # Columns of labels and weights.
    names: frozenset[str] = frozenset()
    same: int = 0
    kinds: dict[str, str] = field(default_factory=dict)  # Of columns of frames, see `_kinds_of_columns`.
    warned: set[str] = field(default_factory=set)
    changed: set[str] = field(default_factory=set)  # Columns whose kind has been warned of.
    kind: str = "features"

    def learn(self, frame: Any, *, without: Iterable[str | None] = ()) -> None:
        """Add the columns of a frame; those of labels and weights are `without`."""
        targets = frozenset(str(name) for name in without if name is not None)
        features = frozenset(names_of_columns(frame)) - targets
        self.learn_names(features)
        self.features = (self.features | features) - targets
        self.targets = (self.targets | targets) - features
        kinds = _kinds_of_columns(frame, sorted(features))
        self._compare_kinds(kinds, 4)
        self.kinds |= {name: kind * (self.kinds.get(name, kind) == kind) for name, kind in kinds.items()}

    def learn_names(self, names: frozenset[str]) -> None:
        """Note the names that all rows of a learnt table have."""
        if self.same and self.names != names:
            self.forget_names()
        elif not self.same:
            self.names, self.same = names, SURE

    def learn_targets(self, *names: str | None, features: Iterable[str]) -> None:
        """Add the columns of labels and weights of a dataset with these features."""
        self.targets = (self.targets | {name for name in names if name is not None}) - set(features)

    def forget_names(self) -> None:
        """Note that learnt mappings have different names, so that no name is unusual."""
        self.names, self.same = frozenset(), -1

    def note(self, features: Mapping[Any, Any]) -> None:
        """Count a learnt mapping, given with or without its lists within mappings as separate names."""
        if self.same < 0:
            return
        if features.keys() != self.names and (features := as_lists(features)).keys() != self.names:
            if self.same or not all(isinstance(name, str) for name in features):
                self.forget_names()
                return
            self.names = frozenset(features)
        self.same += 1

    def state(self) -> dict[str, Any]:
        """Return the names that UTF-8 can encode, for a model file."""
        names: dict[str, Any] = {
            name: sorted(filter(is_utf8, getattr(self, name))) for name in ("features", "targets", "names")
        }
        kinds = {name: kind for name, kind in self.kinds.items() if is_utf8(name)}
        return names | {"same": self.same if all(map(is_utf8, self.names)) else -1, "kinds": kinds}

    def restore(self, state: object) -> None:
        """Restore the result of `state`; in files without it, the names of mappings are not known."""
        stored = msgspec.convert(state, dict[str, Any])
        self.same = msgspec.convert(stored.get("same", -1), int)
        self.kinds = msgspec.convert(stored.get("kinds", {}), dict[str, str])
        for name in ("features", "targets", "names"):
            setattr(self, name, msgspec.convert(stored.get(name, ()), frozenset[str]))

    def without_targets(self, features: Mapping[Any, Any]) -> Mapping[Any, Any]:
        """Return features without labels and weights."""
        if features.keys().isdisjoint(self.targets):
            return features
        return {name: value for name, value in features.items() if name not in self.targets}

    def event(self, features: Any, *, stacklevel: int = 5) -> Mapping[Any, Any] | None:
        """Return the features of one event, see `mapping_of`, like `one`; None for other objects."""
        mapping = mapping_of(features)
        if mapping is None:
            return None
        if mapping is not features:  # a Series
            self._compare_kinds(_other_kinds([mapping], self.kinds), stacklevel - 1)
        return self.one(mapping, stacklevel=stacklevel)

    def one(self, features: Mapping[Any, Any], *, stacklevel: int = 4) -> Mapping[Any, Any]:
        """Return the features of an event without labels and weights; warn of names that differ."""
        if features.keys() == self.names:
            return features
        features = self.without_targets(features)
        self._warn(self._differing(features), self.names, stacklevel)
        return features

    def _differing(self, features: Mapping[Any, Any]) -> frozenset[str]:
        """Return the names that either an event or the learnt mappings have, if these all have the same."""
        if not features or self.same < SURE:
            return frozenset()
        given = frozenset(map(str, features))
        listed = map(str, as_lists(features))  # learnt names may include lists within mappings
        return (given - self.names) | (self.names - given).difference(listed)

    def _warn(self, differing: Iterable[str], learnt: frozenset[str], stacklevel: int) -> None:
        """Warn of names that are missing, if they were `learnt`, or else new: once of each."""
        unusual = sorted({*differing} - self.warned)[: _MOST_WARNED - len(self.warned)]
        if not unusual:
            return
        self.warned.update(unusual)
        missing = [name for name in unusual if name in learnt]
        new = [name for name in unusual if name not in learnt]
        parts = [
            f"{', '.join(names)} {verb if len(names) == 1 else verbs} {what}"
            for names, verb, verbs, what in (
                (missing, "is", "are", "missing"),
                (new, "was", "were", "not learnt"),
            )
            if names
        ]
        warnings.warn(f"the names of {self.kind}: {'; '.join(parts)}", UserWarning, stacklevel=stacklevel)

    def _compare_kinds(self, kinds: Mapping[str, str], stacklevel: int) -> None:
        """Warn once of each column that was learnt as numbers and is now text, or the other way round."""
        for name, kind in kinds.items():
            learnt = self.kinds.get(name)
            if kind and learnt and kind != learnt and name not in self.changed:
                self.changed.add(name)
                text = f"{name} was learnt as {learnt}, and is now {kind}"
                warnings.warn(text, UserWarning, stacklevel=stacklevel)

    def rows(self, source: Any) -> list[Any]:
        """Return the rows of a source without labels and weights; warn of names that differ."""
        rows = list(rows_of(source))
        if not is_frame(source):
            differing: set[str] = set()
            for i, row in enumerate(rows):
                if isinstance(row, Mapping) and row.keys() != self.names:
                    rows[i] = self.without_targets(row)
                    differing |= self._differing(rows[i])
            self._warn(differing, self.names, 4)
            return rows
        names = frozenset(names_of_columns(source))
        if learnt := self.features or (self.names if self.same >= SURE else frozenset()):
            self._warn((names - self.targets) ^ learnt, learnt, 4)
        self._compare_kinds(_other_kinds(rows, self.kinds), 4)
        return list(map(self.without_targets, rows))

    def one_row(self, features: Any) -> Mapping[Any, Any]:
        """Return the features of an event, which may be a Series or a frame of one row."""
        if is_frame(features) and features.shape[0] == 1:
            [one] = rows_of(features)
            self._compare_kinds(_other_kinds([one], self.kinds), 4)
            return self.one(one, stacklevel=5)
        if (event := self.event(features, stacklevel=6)) is None:
            raise InputError(f"explain takes one event, not {kind_of(features)}: frame.iloc[0].to_dict()")
        return event


def labelled_rows(source: Any, y: Any, sample_weight: Any) -> list[TableEvent]:
    """Return the events of ``fit(X, y, sample_weight=…)``."""
    if y is None:
        raise InputError(
            "sample_weight goes with y: fit(X, y, sample_weight=…); fit_table(frame, weight=…) names a "
            "column, and an iterable has events of features, label and weight"
        )
    _check_column("y", y, "the labels of the rows", named="label")
    if sample_weight is not None:
        _check_column("sample_weight", sample_weight, "the weights of the rows", named="weight")
    if isinstance(source, str | bytes) or not (is_frame(source) or hasattr(source, "__len__")):
        type_name = type(source).__name__
        raise InputError(f"with y, the rows are a frame, a matrix or a list of mappings, and not {type_name}")
    rows, labels = list(rows_of(source)), _as_list(y)
    weights = [1.0] * len(rows) if sample_weight is None else _as_list(sample_weight)
    for name, values in (("y", labels), ("sample_weight", weights)):
        if len(values) != len(rows):
            raise InputError(f"there are {len(rows)} rows, and {name} has {len(values)}: one for each")
    return [TableEvent(*row) for row in zip(rows, labels, weights, strict=True)]


def _check_column(name: str, values: Any, noun: str, *, named: str) -> None:
    """Reject values that are not a sequence with one value for each row."""
    kind, shape, hint = type(values).__name__, getattr(values, "shape", ()), ""
    if isinstance(values, str):
        hint = f"; to name a column: fit_table(frame, {named}={values!r})"
    elif len(shape) > 1:
        kind, hint = f"{kind} of shape {tuple(shape)}", ": give one of its columns"
    elif is_sequence(values):
        return
    elif not shape and not hasattr(values, "__iter__"):
        kind = f"{kind}: {values!r}"
    raise InputError(f"{name} is {noun}, and not {kind}{hint}")


def _as_list(values: Any) -> list[Any]:
    with arrow_errors():
        if hasattr(values, "to_pylist"):
            values.validate(full=True)
            return list(values.to_pylist())
        return list(values.tolist() if hasattr(values, "tolist") else values)


def examples_or_blocks(source: Any) -> tuple[Iterator[Any], Any]:
    """Return the items of a source for `example_of` and (), or no items and the source for `Feed`."""
    if source is None or isinstance(source, str | bytes) or not isinstance(source, Iterable):
        return iter(()), source
    if hasattr(source, "read"):
        return iter(()), source
    items = iter(source)
    beginning = list(islice(items, 1))
    items, first = chain(beginning, items), beginning[0] if beginning else None
    if isinstance(first, Mapping) or (isinstance(first, tuple | list) and len(first) in (2, 3)):
        return items, ()
    return iter(()), items


def example_of(item: Any, where: str) -> TableEvent:
    """Return an item of an iterable as an event."""
    if isinstance(item, Mapping):
        refuse_unknown(item, ("context", "label", "weight", "tag"), where, "an event")
        return TableEvent(item.get("context", {}), item.get("label"), item.get("weight", 1.0))
    if isinstance(item, tuple | list) and len(item) in (2, 3):
        return TableEvent(*item)
    return TableEvent(item, 0)  # `_encode` rejects the features


def check_roles(label: Any, weight: Any) -> None:
    """Reject labels and weights where `fit_table` takes the names of their columns, and one name for both."""
    for role, value in (("label", label), ("weight", weight)):
        if getattr(value, "shape", ()) or (is_sequence(value) and not isinstance(value, tuple)):
            apart = "labels" if role == "label" else "weights"
            call = "fit(X, y)" if role == "label" else "fit(X, y, sample_weight=…)"
            raise InputError(
                f"{role} names a column, and is not {kind_of(value)}; {call} takes {apart} apart"
            )
    if label is not None and weight is not None and str(label) == str(weight):
        raise InputError(f"label and weight are both the column {str(label)!r}: name two columns")


def frame_rows(frame: Any, *, label: str | None, weight: str | None) -> Iterator[TableEvent]:
    """Check the columns of labels and weights of a frame, and return an iterator of its rows."""
    columns = names_of_columns(frame)
    for name, column in (("label", label), ("weight", weight)):
        if str(column) not in columns and (column is not None or name == "label"):
            missing = "" if column is None else f"there is no column {str(column)!r}: "
            raise InputError(
                f"{missing}fit_table(frame, {name}=…) names one of its columns: {', '.join(columns)}; or "
                "fit(X, y) has separate labels"
            )
    return (
        TableEvent(row, row.pop(str(label)), 1.0 if weight is None else row.pop(str(weight)))
        for row in FrameColumns(frame).rows()
    )
