"""Rows with labels as events: frames, and ``fit(X, y)`` as scikit-learn has it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from onlineauto.api.tables import is_frame, names_of_columns
from onlineauto.errors import InputError
from onlineauto.formats.lines.diagnostics import Code, make_diagnostic
from onlineauto.formats.mappings.values import is_sequence
from onlineauto.interop.frame_columns import opened

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from onlineauto.formats.lines.diagnostics import Diagnostics

__all__ = ["Example", "add_missing_label", "frame_rows", "labelled_rows", "rows_of"]


class Example(NamedTuple):
    """An event of `fit`."""

    features: Mapping[Any, Any]
    label: Any
    weight: Any = 1.0


def add_missing_label(found: Diagnostics, label: object, place: int) -> None:
    """Count and locate a label that is missing; `place` is the number of the event, from 0."""
    found.count(Code.NO_LABEL, 1)
    found.keep(
        make_diagnostic(
            Code.NO_LABEL,
            file=found.reading,
            line=place + 1,
            column=1,
            text=repr(label).encode("utf-8", "replace"),
            unit="event",
        )
    )


def rows_of(rows: Any) -> Iterable[Any]:
    """Return the features of each row of a frame, a matrix or a sequence of mappings.

    Columns of a matrix are called x0, x1 and so on, as in scikit-learn.

    >>> list(rows_of(np.array([[1.5, 2.0]])))
    [{'x0': 1.5, 'x1': 2.0}]
    """
    if is_frame(rows):
        return opened(rows).iter_rows(named=True)
    if hasattr(rows, "tocsr") or getattr(rows, "ndim", 1) == 2:
        matrix = rows.toarray() if hasattr(rows, "toarray") else np.asarray(rows)
        if matrix.dtype.kind in "mM":
            raise InputError(
                "the matrix has dates or times, which are no features: give what matters of them as numbers, "
                "such as the weekday and the hour"
            )
        names = [f"x{i}" for i in range(matrix.shape[1])]
        return [dict(zip(names, row, strict=True)) for row in matrix.tolist()]
    return rows  # type: ignore[no-any-return]


def labelled_rows(
    source: Any, y: Any, sample_weight: Any, *, columns: Mapping[str, str | None]
) -> list[Example]:
    """Return the events of ``fit(X, y, sample_weight=…)``.

    Raises
    ------
    InputError
        They do not fit together; the message says what does.
    """
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
    if isinstance(y, str) or not is_sequence(y):
        hint = f"; to name a column: fit(frame, label={y!r})" if isinstance(y, str) else ""
        raise InputError(f"y is the labels of the rows, and not {type(y).__name__}{hint}")
    if isinstance(source, str | bytes) or not (is_frame(source) or hasattr(source, "__len__")):
        what = type(source).__name__
        raise InputError(f"with y, the rows are a frame, a matrix or a list of mappings, and not {what}")
    rows, labels = list(rows_of(source)), _listed(y)
    weights = [1.0] * len(rows) if sample_weight is None else _listed(sample_weight)
    for name, values in (("y", labels), ("sample_weight", weights)):
        if len(values) != len(rows):
            raise InputError(f"there are {len(rows)} rows, and {name} has {len(values)}: one for each")
    return [Example(*each) for each in zip(rows, labels, weights, strict=True)]


def _listed(values: Any) -> list[Any]:
    if hasattr(values, "to_pylist"):
        return list(values.to_pylist())
    return list(values.tolist() if hasattr(values, "tolist") else values)


def frame_rows(frame: Any, *, label: str | None, weight: str | None) -> Iterator[Example]:
    """Yield the rows of a frame.

    Raises
    ------
    InputError
        There is no such column, or no label is named; or two columns have the same name.
    """
    columns = names_of_columns(frame)
    for name, column in (("label", label), ("weight", weight)):
        if column not in columns and (column is not None or name == "label"):
            raise InputError(
                f"fit(frame, {name}=…) names one of its columns: {', '.join(columns)}; or fit(X, y) has the "
                "labels apart"
            )
    for row in opened(frame).iter_rows(named=True):
        of = {str(name): value for name, value in row.items()}
        y = of.pop(str(label))
        yield Example(of, y, of.pop(weight) if weight is not None else 1.0)
