"""``Columns``: the columns of a frame as features."""

from __future__ import annotations

import math
from collections import Counter
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from onlineauto.errors import InputError, PackageError, install_hint, kind_of, short_repr
from onlineauto.formats.datasets.guard import arrow_errors, checked_table
from onlineauto.formats.mappings.identities import identity, named, numbers_in, spelling
from onlineauto.formats.mappings.named_event import spans_of
from onlineauto.formats.mappings.values import invalid_feature_error, plain
from onlineauto.interop.rows import Rows, rows_of_matrix

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from onlineauto.formats.mappings.name_hashes import NameHashes


def as_narwhals_frame(frame: Any) -> Any:
    """Return a frame of any library as a narwhals frame."""
    try:
        import narwhals
    except ModuleNotFoundError as error:
        raise PackageError(
            f"frames are read through narwhals: {install_hint('frames')}", name=error.name
        ) from None
    if type(frame).__module__ == "pyarrow.lib":
        frame = checked_table(frame)
    lazy = hasattr(frame, "collect")  # the columns of a lazy frame are unknown
    names = Counter(() if lazy else map(str, getattr(frame, "column_names", getattr(frame, "columns", ()))))
    for name, times in names.items():
        if times > 1:
            raise InputError(
                f"the frame has {times} columns with the name {name!r}: rename or drop all but one"
            )
    try:
        _check_arrow_columns(frame)
        found = narwhals.from_native(frame, eager_only=True)
        with arrow_errors():
            found.schema  # noqa: B018 - an error if a type is not one of narwhals
        return found
    except TypeError:
        raise InputError(
            f"{kind_of(frame)} is not a frame of pandas, polars or arrow; collect it if it is lazy"
        ) from None


def _check_arrow_columns(frame: Any) -> None:
    """Validate the columns of a frame of pandas that Arrow stores."""
    kinds = frame.dtypes if type(frame).__module__.partition(".")[0] == "pandas" else ()
    for i, kind in enumerate(kinds):
        if hasattr(kind, "pyarrow_dtype") or getattr(kind, "storage", "") == "pyarrow":
            try:
                with arrow_errors():
                    frame.iloc[:, i].array.__arrow_array__().validate(full=True)
            except InputError as error:
                raise InputError(f"column {str(frame.columns[i])!r}: {error}") from None


class Columns:
    """The columns of a frame."""

    def __init__(self, frame: Any, names: NameHashes, identities: Iterable[str] = ()) -> None:
        self._frame = as_narwhals_frame(frame)
        import narwhals

        self._nw: Any = narwhals
        self.names = names
        self.identities, self.number_columns = set(identities), set[str]()
        self._native = {str(name): name for name in self._frame.columns}

    @property
    def all_names(self) -> list[str]:
        """The names of all columns, as text."""
        return list(self._native)

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self._frame)

    def _column(self, name: str) -> Any:
        native = self._native.get(str(name))
        if native is None:
            raise InputError(f"there is no column {name!r}; the columns are {', '.join(self._native)}")
        return self._frame.get_column(native)

    def is_there(self, name: str) -> NDArray[np.bool_]:
        """Return which rows have a value, neither null nor NaN: bool[n_rows]."""
        column = self._column(name)
        there = ~column.is_null().to_numpy().astype(bool)
        if column.dtype.is_float():
            there &= ~np.isnan(column.fill_null(0).to_numpy())
        return np.asarray(there, bool)

    def numbers(self, name: str) -> NDArray[np.generic]:
        """Return the numbers of a column, NaN for a missing one."""
        column = self._column(name)
        if column.dtype in (self._nw.Object, self._nw.Unknown):
            return _plain_numbers(name, column.to_list())
        there = self.is_there(name)
        if not there.any():  # the type of an empty column has no meaning
            return np.full(len(self), np.nan)
        if not column.dtype.is_numeric() and column.dtype != self._nw.Boolean:
            raise InputError(f"column {name!r} has the type {column.dtype}, not numbers")
        numbers: NDArray[np.generic] = _without_nulls(column, self._nw)
        return numbers if there.all() else np.where(there, numbers, np.nan)

    def rows(self, groups: Mapping[str, Sequence[str]]) -> list[Rows]:
        """Return the features of the columns of each namespace in `groups`.

        Mappings and lists in a column are separate namespaces, so a namespace may have several `Rows`.
        Columns of categories become identities.
        """
        for namespace, columns in groups.items():
            for name in columns:
                kind, column = self._column(name).dtype, identity(namespace, name)
                if kind in (self._nw.Categorical, self._nw.Enum):
                    self.identities.add(column)
                elif (kind.is_numeric() or kind == self._nw.Boolean) and column not in self.identities:
                    self.number_columns.add(column)
        return [rows for namespace, columns in groups.items() for rows in self._rows(namespace, columns)]

    def _rows(self, namespace: str, columns: Sequence[str]) -> list[Rows]:
        if not columns:
            return [self._usual_rows(namespace, columns)]
        parts: list[Rows] = []
        for mixed, names in groupby(columns, self._is_mixed):  # keeps the order of the columns
            if mixed:
                parts += [rows for name in names for rows in self._mixed_rows(namespace, name)]
            else:
                parts.append(self._usual_rows(namespace, list(names)))
        return parts

    def _is_mixed(self, name: str) -> bool:
        """Return whether a column may contain values of several or unknown kinds, lists, or mappings."""
        nw, kind = self._nw, self._column(name).dtype
        usual = (nw.Boolean, nw.String, nw.Categorical, nw.Enum, nw.Binary)
        return not (kind.is_numeric() or kind.is_temporal() or kind in usual)

    def _mixed_rows(self, namespace: str, name: str) -> list[Rows]:
        """Return the features of a column, value by value."""
        by_namespace: dict[str, list[tuple[int, tuple[tuple[str, float], ...]]]] = {}
        identities = frozenset(self.identities)
        for row, value in enumerate(self._column(name).to_list()):
            of_value = named({namespace: {name: value}}, identities)
            self.number_columns.update(numbers_in(of_value))
            for inner, features in spans_of(of_value, f"row {row}"):
                by_namespace.setdefault(inner, []).append((row, features))
        return [self._named_rows(inner, features) for inner, features in by_namespace.items()]

    def _named_rows(
        self, namespace: str, features: Sequence[tuple[int, Sequence[tuple[str, float]]]]
    ) -> Rows:
        """Return the rows of a namespace, from the row numbers and features of its nonempty rows."""
        number, counts = self.names.namespace(namespace), np.zeros(len(self), np.int64)
        for row, pairs in features:
            counts[row] = len(pairs)
        flat = [pair for _, pairs in features for pair in pairs]
        return Rows(
            namespace=number,
            start=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            hash=self.names.features([name for name, _ in flat], number),
            value=np.array([value for _, value in flat], np.float32),
        )

    def _usual_rows(self, namespace: str, columns: Sequence[str]) -> Rows:
        number = self.names.namespace(namespace)
        hashes = np.zeros((len(self), len(columns)), np.uint32)
        values = np.zeros((len(self), len(columns)), np.float32)
        for j, name in enumerate(columns):
            is_identity = identity(namespace, name) in self.identities
            hashes[:, j], values[:, j] = self._feature(name, number, is_identity=is_identity)
        return rows_of_matrix(number, hashes, values)

    def _feature(
        self, name: str, namespace: int, *, is_identity: bool
    ) -> tuple[NDArray[np.uint32], NDArray[np.float32]]:
        """Return hash and value of a column's feature in each row; the value is 0 for no feature."""
        column, there = self._column(name), self.is_there(name)
        if not there.any():  # the type of an empty column has no meaning
            return np.zeros(len(self), np.uint32), np.zeros(len(self), np.float32)
        if not is_identity and (column.dtype.is_numeric() or column.dtype == self._nw.Boolean):
            with np.errstate(over="ignore"):
                values = np.where(there, _without_nulls(column, self._nw).astype(np.float32), np.float32(0))
            if not np.isfinite(values).all():
                row = int(np.argmin(np.isfinite(values)))
                value = _without_nulls(column, self._nw)[row]
                raise InputError(
                    f"row {row}: {name} is {value}, which is infinite or too large for a float32"
                )
            hash_ = np.uint32(self.names.feature(name, namespace))
            return np.full(len(self), hash_, np.uint32), values.astype(np.float32)
        codes, words = self._words(name)
        hashes = self.names.features([f"{name}={word}" for word in words], namespace)
        return np.append(hashes, np.uint32(0))[codes], there.astype(np.float32)

    def _words(self, name: str) -> tuple[NDArray[np.int64], list[str]]:
        """Return the index of each row's string in the distinct strings (-1 if missing), and the latter."""
        column = self._column(name)
        if column.dtype.is_temporal() or column.dtype == self._nw.Binary:
            advice = "cast it to numbers or strings"
            if column.dtype.is_temporal():
                advice = "give what matters of it as numbers or strings, such as the weekday and the hour"
            raise InputError(
                f"column {name!r} has the type {column.dtype}, which cannot be a feature: {advice}"
            )
        index: dict[str, int] = {}
        codes = np.full(len(self), -1, np.int64)
        there = self.is_there(name)
        for row, word in enumerate(column.to_list()):
            if there[row]:
                if type(word) is not str and not isinstance(plain(word), str | int | float):
                    raise invalid_feature_error(word, f"row {row}: {name}")
                codes[row] = index.setdefault(word if type(word) is str else str(spelling(word)), len(index))
        return codes, list(index)

    def indices_of(
        self, name: str, valid: list[Any] | None, *, needed: bool
    ) -> tuple[NDArray[np.int64], list[Any]]:
        """Return each row's index in `valid`, -1 for no value, and `valid`, which defaults to all values."""
        there = self.is_there(name).tolist()
        values = self._column(name).to_list()
        names = [spelling(value) if is_there else None for value, is_there in zip(values, there, strict=True)]
        present = dict(zip(names, values, strict=True))
        present.pop(None, None)
        if valid is None:
            valid = sorted(present.values())
            if not needed:
                raise InputError(
                    f"without costs, list the actions in choices: column {name} may lack some of them"
                )
        if not valid:
            nothing = "choices is empty" if len(self) else "the frame has no rows, and choices lists none"
            raise InputError(f"there is no action: {nothing}")
        index = {spelling(value): i for i, value in enumerate(valid)}
        if len(index) < len(valid):
            raise InputError(f"two of the choices have the same name: {short_repr(valid)}")
        if stray := present.keys() - index.keys():
            row = next(i for i, each in enumerate(names) if each in stray)
            raise InputError(
                f"row {row}: {name} is {short_repr(values[row])}, which is not one of the choices"
            )
        return np.array([-1 if each is None else index[each] for each in names], np.int64), valid

    def first_rows(self, name: str) -> NDArray[np.int64]:
        """Return the first row of each run of equal values, and the number of rows."""
        if not self.is_there(name).all():
            raise InputError(f"row {int(np.argmin(self.is_there(name)))}: {name} is null")
        values = self._column(name).to_list()
        first = [row for row in range(len(values)) if row == 0 or values[row] != values[row - 1]]
        seen: set[Any] = set()
        for row in first:
            if values[row] in seen:
                raise InputError(
                    f"row {row}: event {short_repr(values[row])} occurs again after another event; "
                    "the rows of an event must be adjacent"
                )
            seen.add(values[row])
        return np.array([*first, len(values)], np.int64)


def _plain_numbers(name: str, values: Sequence[Any]) -> NDArray[np.float64]:
    """Return values of several kinds as numbers, NaN for a missing one."""
    numbers = np.empty(len(values))
    for row, value in enumerate(values):
        number = plain(value)
        if number is not None and not isinstance(number, int | float):
            raise InputError(f"row {row}: {name} is {short_repr(value)}, which is not a number")
        try:
            numbers[row] = math.nan if number is None else number
        except OverflowError:  # an integer with hundreds of digits
            numbers[row] = math.inf
    return numbers


def _without_nulls(column: Any, nw: Any) -> NDArray[np.generic]:
    """Return the numbers of a column, 0 where it is null."""
    if column.dtype == nw.Boolean:
        return np.asarray(column.fill_null(value=False).to_numpy(), bool)
    if column.dtype in (nw.Int128, nw.UInt128):  # which NumPy lacks
        column = column.cast(nw.Float64)
    values: NDArray[np.generic] = np.asarray(column.fill_null(0).to_numpy())
    return values
