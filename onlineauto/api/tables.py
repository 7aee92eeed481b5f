"""Tables as events: rows of frames and matrices, with labels in scikit-learn's form."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from onlineauto.errors import EventTypeError, InputError, short_repr
from onlineauto.formats.datasets.arrow_arrays import arrow_errors
from onlineauto.formats.datasets.frame import FrameColumns
from onlineauto.formats.mappings.identities import identity
from onlineauto.formats.mappings.values import is_sequence

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


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


@dataclass
class LearntColumns:
    """The columns of the frames that a model has learnt; a model file does not have them."""

    features: frozenset[str] = frozenset()
    targets: frozenset[str] = frozenset()  # Columns of labels and weights.
    has_warned: bool = False

    def learn(self, frame: Any, *, without: Iterable[str | None] = ()) -> None:
        """Add the columns of a frame; those of labels and weights are `without`."""
        targets = frozenset(str(name) for name in without if name is not None)
        features = frozenset(names_of_columns(frame)) - targets
        self.features = (self.features | features) - targets
        self.targets = (self.targets | targets) - features

    def rows(self, source: Any) -> list[Any]:
        """Return the rows of a source without labels and weights; warn once of columns that differ."""
        rows = list(rows_of(source))
        if not self.features or not is_frame(source):
            return rows
        names = frozenset(names_of_columns(source))
        others = names - self.features - self.targets
        absent = self.features - names
        if (others or absent) and not self.has_warned:
            self.has_warned = True
            parts = [f"{', '.join(sorted(absent))} is missing"] * bool(absent)
            parts += [f"{', '.join(sorted(others))} was in no frame of fit"] * bool(others)
            warnings.warn(f"columns of the frame: {'; '.join(parts)}", UserWarning, stacklevel=4)
        for name in names & self.targets:
            for row in rows:
                del row[name]
        return rows


def labelled_rows(
    source: Any, y: Any, sample_weight: Any, *, columns: Mapping[str, str | None]
) -> list[TableEvent]:
    """Return the events of ``fit(X, y, sample_weight=…)``."""
    for name, column in columns.items():
        if column is not None:
            raise InputError(
                f"{name} names a column of a frame; give either fit(frame, label=…) or fit(X, y)"
            )
    if y is None:
        raise InputError(
            "sample_weight goes with y: fit(X, y, sample_weight=…); a frame has weight=…, the name of a "
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
        hint = f"; to name a column: fit(frame, {named}={values!r})"
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


def frame_rows(frame: Any, *, label: str | None, weight: str | None) -> Iterator[TableEvent]:
    """Yield the rows of a frame."""
    columns = names_of_columns(frame)
    for name, column in (("label", label), ("weight", weight)):
        if str(column) not in columns and (column is not None or name == "label"):
            raise InputError(
                f"fit(frame, {name}=…) names one of its columns: {', '.join(columns)}; or fit(X, y) has "
                "separate labels"
            )
    for values in FrameColumns(frame).rows():
        y = values.pop(str(label))
        yield TableEvent(values, y, values.pop(str(weight)) if weight is not None else 1.0)
