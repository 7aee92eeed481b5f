"""``Columns``: the columns of a frame as features."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from onlineauto.errors import InputError, install_hint
from onlineauto.interop.rows import Rows, rows_of_matrix

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from onlineauto.formats.mappings.name_hashes import NameHashes

__all__ = ["Columns"]


class Columns:
    """The columns of a frame.

    Parameters
    ----------
    frame : DataFrame or Table
        A frame of any library that narwhals knows.
    names : NameHashes
        Hashes names and numbers the namespaces.

    Raises
    ------
    ModuleNotFoundError
        If narwhals is not installed.
    InputError
        If `frame` is not a frame.
    """

    def __init__(self, frame: Any, names: NameHashes) -> None:
        try:
            import narwhals
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                f"frames are read through narwhals: {install_hint('frames')}", name=error.name
            ) from None
        try:
            self._frame = narwhals.from_native(frame, eager_only=True)
        except TypeError:
            kind = type(frame).__name__
            raise InputError(
                f"a {kind} is no frame of pandas, polars or arrow; collect it if it is lazy"
            ) from None
        self._nw: Any = narwhals
        self.names = names

    @property
    def everything(self) -> list[str]:
        """The names of all columns, those that are no text left out."""
        return [name for name in self._frame.columns if isinstance(name, str)]

    def __len__(self) -> int:
        """Count the rows."""
        return len(self._frame)

    def _column(self, name: str) -> Any:
        if name not in self._frame.columns:
            raise InputError(
                f"there is no column {name!r}; there are {', '.join(map(str, self._frame.columns))}"
            )
        return self._frame[name]

    def is_there(self, name: str) -> NDArray[np.bool_]:
        """Return which rows have a value, neither null nor NaN: bool[n_rows]."""
        column = self._column(name)
        there = ~column.is_null().to_numpy().astype(bool)
        if column.dtype.is_float():
            there &= ~np.isnan(column.fill_null(0).to_numpy())
        return np.asarray(there, bool)

    def numbers(self, name: str) -> NDArray[np.generic]:
        """Return the numbers of a column, NaN where there is none.

        Raises
        ------
        InputError
            If the column does not hold numbers.
        """
        column = self._column(name)
        if not column.dtype.is_numeric() and column.dtype != self._nw.Boolean:
            raise InputError(f"column {name!r} is of {column.dtype}, not of numbers")
        there = self.is_there(name)
        found: NDArray[np.generic] = _filled(column, self._nw)
        return found if there.all() else np.where(there, found, np.nan)

    def rows(self, groups: Mapping[str, Sequence[str]]) -> list[Rows]:
        """Return the features of the columns of each namespace in `groups`."""
        return [self._rows(namespace, columns) for namespace, columns in groups.items()]

    def _rows(self, namespace: str, columns: Sequence[str]) -> Rows:
        number = self.names.namespace(namespace)
        hashes = np.zeros((len(self), len(columns)), np.uint32)
        values = np.zeros((len(self), len(columns)), np.float32)
        for j, name in enumerate(columns):
            hashes[:, j], values[:, j] = self._feature(name, number)
        return rows_of_matrix(number, hashes, values)

    def _feature(self, name: str, namespace: int) -> tuple[NDArray[np.uint32], NDArray[np.float32]]:
        """Return hash and value of a column's feature in each row; the value is 0 where there is none."""
        column, there = self._column(name), self.is_there(name)
        if column.dtype.is_numeric() or column.dtype == self._nw.Boolean:
            with np.errstate(over="ignore"):
                values = np.where(there, _filled(column, self._nw).astype(np.float32), np.float32(0))
            if not np.isfinite(values).all():
                row = int(np.argmin(np.isfinite(values)))
                raise InputError(f"row {row}: {name} is infinite, or too large for a float32")
            hash_ = np.uint32(self.names.feature(name, namespace))
            return np.full(len(self), hash_, np.uint32), values.astype(np.float32)
        codes, words = self._words(name)
        hashes = self.names.features([f"{name}={word}" for word in words], namespace)
        return np.append(hashes, np.uint32(0))[codes], there.astype(np.float32)

    def _words(self, name: str) -> tuple[NDArray[np.int64], list[str]]:
        """Return the index of each row's string among the distinct ones, -1 for none, and these strings."""
        column = self._column(name)
        kinds = self._nw.String, self._nw.Categorical, self._nw.Enum, self._nw.Object
        if column.dtype not in kinds:
            raise InputError(
                f"column {name!r} is of {column.dtype}, which has no features; cast it to numbers or strings"
            )
        if column.dtype in kinds[1:3]:
            column = column.cast(self._nw.String)
        place: dict[str, int] = {}
        codes = np.full(len(self), -1, np.int64)
        there = self.is_there(name)
        for row, word in enumerate(column.to_list()):
            if there[row]:
                if not isinstance(word, str):
                    raise InputError(
                        f"row {row}: {name} is a {type(word).__name__} among strings; cast the column"
                    )
                codes[row] = place.setdefault(word, len(place))
        return codes, list(place)

    def places(
        self, name: str, valid: list[Any] | None, *, needed: bool
    ) -> tuple[NDArray[np.int64], list[Any]]:
        """Return each row's index in `valid`, -1 for no value, and `valid`, which defaults to all values."""
        there = self.is_there(name)
        found = self._column(name).to_list()
        present = {value for value, is_there in zip(found, there.tolist(), strict=True) if is_there}
        if valid is None:
            valid = sorted(present)
            if not needed:
                raise InputError(
                    f"without costs, choices has to say which actions there are: not all need be in {name}"
                )
        if not valid:
            raise InputError("there is no action: choices is empty")
        place = {value: i for i, value in enumerate(valid)}
        if stray := present - place.keys():
            row = next(i for i, value in enumerate(found) if there[i] and value in stray)
            raise InputError(f"row {row}: {name} is {found[row]!r}, which is not one of the choices")
        rows = [
            place[value] if is_there else -1 for value, is_there in zip(found, there.tolist(), strict=True)
        ]
        return np.array(rows, np.int64), valid

    def first_rows(self, name: str) -> NDArray[np.int64]:
        """Return the first row of each run of equal values, and the number of rows.

        Raises
        ------
        InputError
            If a row has no value, or a value returns after another one.
        """
        if not self.is_there(name).all():
            raise InputError(f"row {int(np.argmin(self.is_there(name)))}: {name} is null")
        found = self._column(name).to_list()
        first = [row for row in range(len(found)) if row == 0 or found[row] != found[row - 1]]
        seen: set[Any] = set()
        for row in first:
            if found[row] in seen:
                raise InputError(
                    f"row {row}: event {found[row]!r} comes again; rows of one event have to be together"
                )
            seen.add(found[row])
        return np.array([*first, len(found)], np.int64)


def _filled(column: Any, nw: Any) -> NDArray[np.generic]:
    """Return the numbers of a column, 0 where it is null."""
    if column.dtype == nw.Boolean:
        return np.asarray(column.fill_null(value=False).to_numpy(), bool)
    values: NDArray[np.generic] = np.asarray(column.fill_null(0).to_numpy())
    return values
