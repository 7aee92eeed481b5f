"""``FrameColumns``: the columns of a frame as Arrow arrays, or as values that are read one by one.

A frame is one of pandas, of polars, or any object with Arrow's PyCapsule interface. A column that Arrow can
type as numbers, texts, or lists and structs of these is an array, whose buffers are read as they are. The
values of every other column are read one by one, like those of mappings: columns of objects of several
kinds, of dates, bytes, maps, or lists of structs.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from onlineauto.errors import InputError, PackageError, install_hint, kind_of, short_repr
from onlineauto.formats.datasets.arrow_arrays import (
    arrow_errors,
    checked,
    checked_table,
    is_list,
    is_text,
    pyarrow,
    why_unsupported,
)
from onlineauto.formats.mappings.identities import spelling
from onlineauto.formats.mappings.values import plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

_TEXTS: Final = {"str", "str_"}
_LISTS: Final = {"list", "tuple", "ndarray"}
_MISSING: Final = {"NoneType", "float", "NAType", "NaTType"}
_NO_ARROW: Final = {"Object", "Int128", "UInt128"}
"""Types of polars whose export to Arrow has another meaning, or none."""


class FrameColumns:
    """The columns of a frame by name, each converted when it is used."""

    def __init__(self, frame: Any) -> None:
        try:
            pyarrow()
        except ModuleNotFoundError as error:
            raise PackageError(
                f"frames are read by pyarrow: {install_hint('frames')}", name=error.name
            ) from None
        protocols = ("iloc", "get_columns", "__arrow_c_stream__", "__arrow_c_array__")
        if hasattr(frame, "collect") or not any(hasattr(frame, name) for name in protocols):
            raise InputError(
                f"{kind_of(frame)} is not a frame of pandas, polars or arrow; collect it if it is lazy"
            )
        columns: Iterable[Any]
        with arrow_errors():
            if hasattr(frame, "iloc"):
                names = [str(name) for name in frame.columns]
                columns = [frame.iloc[:, i] for i in range(len(names))]
            elif hasattr(frame, "get_columns"):
                names, columns = frame.columns, frame.get_columns()
            else:
                # Tables of pyarrow are not exported, which reads buffers that are not checked yet.
                is_arrow = isinstance(frame, pyarrow().Table | pyarrow().RecordBatch)
                table = checked_table(frame if is_arrow else pyarrow().table(frame))
                names, columns = table.column_names, table.columns
        for name, times in Counter(names).items():
            if times > 1:
                raise InputError(
                    f"the frame has {times} columns with the name {name!r}: rename or drop all but one"
                )
        self._columns: Mapping[str, Any] = dict(zip(names, columns, strict=True))
        self._arrays: dict[str, Any] = {}
        self._n_rows = len(frame) if hasattr(frame, "__len__") else next(map(len, columns), 0)
        for name, column in self._columns.items():
            kind = getattr(column, "dtype", None)
            if hasattr(kind, "pyarrow_dtype") or getattr(kind, "storage", "") == "pyarrow":
                self.array(name)  # which validates the buffers

    @property
    def names(self) -> list[str]:
        """The names of all columns, as text."""
        return list(self._columns)

    def __len__(self) -> int:
        """Return the number of rows."""
        return self._n_rows

    def array(self, name: str) -> Any | None:
        """Return the Arrow array of a column, or None if its values are read one by one."""
        if name not in self._columns:
            raise InputError(f"there is no column {name!r}; there are {', '.join(self._columns)}")
        if name not in self._arrays:
            try:
                self._arrays[name] = _array(self._columns[name])
            except InputError as error:
                raise InputError(f"column {name!r}: {error}") from None
        return self._arrays[name]

    def values(self, name: str) -> Sequence[Any]:
        """Return the values of a column for Python."""
        column = self._columns[name]
        to_list = next(
            getattr(column, method)
            for method in ("to_pylist", "tolist", "to_list")
            if hasattr(column, method)
        )
        with arrow_errors():  # of dates that Python cannot have, for example
            values: Sequence[Any] = to_list()
        if str(getattr(column, "dtype", "")) == "category":
            for row, value in enumerate(values):
                if isinstance(value, tuple | frozenset):  # Only hashable values are categories.
                    raise InputError(f"row {row}: {name}: category {short_repr(value)} is no feature")
        return values

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield each row as a mapping of column to value."""
        columns = map(self.values, self._columns)
        for row in zip(*columns, strict=True) if self._columns else [()] * len(self):
            yield dict(zip(self._columns, row, strict=True))

    def schema(self, names: Iterable[str]) -> Any:
        """Return the Arrow schema of columns; the type of values that are read one by one is null."""
        arrays = {name: self.array(name) for name in names}
        null = pyarrow().null()
        return pyarrow().schema([(name, null if a is None else a.type) for name, a in arrays.items()])

    def role(self, name: str, purpose: str) -> Any:
        """Return the Arrow array of a column for its purpose, with values that are read one by one converted.

        If its purpose is features, it has nulls in place of such values.
        """
        array, pa = self.array(name), pyarrow()
        if array is not None:
            return array
        if purpose == "features":
            return pa.nulls(len(self))
        if purpose in ("action", "event"):
            return pa.array([spelling(value) for value in self.values(name)], pa.string())
        numbers = [_number(value, row, name) for row, value in enumerate(self.values(name))]
        return pa.array(numbers, pa.float64())

    def spelled_numbers(self, name: str) -> set[str]:
        """Return the texts of the numbers in a column whose values are read one by one."""
        values = () if self.array(name) is not None else map(plain, self.values(name))
        numbers = (value for value in values if type(value) in (int, float) and value == value)
        return {str(spelling(number)) for number in numbers}

    def is_categories(self, name: str) -> bool:
        """Return whether a column has categories, whose values are names."""
        array = self.array(name)
        return array is not None and bool(pyarrow().types.is_dictionary(array.type))

    def batch(self, arrays: Mapping[str, Any]) -> Any:
        """Return arrays of this frame as one batch with checked buffers."""
        pa = pyarrow()
        with arrow_errors():
            names = list(arrays)
            if not names:  # from_arrays() would return a batch of no rows
                return pa.RecordBatch.from_struct_array(pa.array([{}] * len(self), pa.struct([])))
            return checked(pa.RecordBatch.from_arrays(list(arrays.values()), names=names), names)


def _array(column: Any) -> Any | None:
    """Return a column of any library as an Arrow array, or None."""
    pa = pyarrow()
    if hasattr(column, "iloc"):
        column = _array_of_pandas(column)
    elif hasattr(column, "to_arrow"):
        column = None if str(column.dtype) in _NO_ARROW else column.to_arrow()
    if column is None:
        return None
    with arrow_errors():
        column.validate(full=True)
        if pa.types.is_string(column.type) and column.nbytes >= 1 << 31:  # too large for 32-bit offsets
            column = column.cast(pa.large_string())
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        if pa.types.is_run_end_encoded(column.type):
            import pyarrow.compute as pc

            column = pc.run_end_decode(column)
    return column if _is_typed(column.type) else None


def _array_of_pandas(series: Any) -> Any | None:
    """Return a column of pandas as an Arrow array, or None if Arrow cannot type its values."""
    pa = pyarrow()
    kinds = {type(value).__name__ for value in series} - _MISSING if series.dtype == object else set()
    if series.dtype == object and not (kinds and (kinds <= _TEXTS or kinds <= _LISTS)):
        return None
    try:
        array = pa.array(series, from_pandas=True)
    except Exception:
        return None
    if kinds and is_text(array.type) == (kinds <= _LISTS):
        return None
    return array


def _is_typed(kind: Any) -> bool:
    """Return whether columns of an Arrow type are read from their buffers."""
    pa = pyarrow()
    if pa.types.is_struct(kind):
        return all(_is_typed(kind.field(i).type) for i in range(kind.num_fields))
    inner = kind.value_type if is_list(kind) or pa.types.is_dictionary(kind) else kind
    is_bytes = is_text(inner) and "binary" in str(inner)
    return not is_bytes and not why_unsupported(kind)


def _number(value: Any, row: int, name: str) -> float:
    """Return a value of a column as a number, NaN if it is missing."""
    number = plain(value)
    if number is not None and not isinstance(number, int | float):
        raise InputError(f"row {row}: {name} is {short_repr(value)}, which is not a number")
    try:
        return math.nan if number is None else float(number)
    except OverflowError:  # an integer with hundreds of digits
        return math.inf
