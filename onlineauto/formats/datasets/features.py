"""Make the features of a column: hashes of texts, computed once per dictionary, and numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from onlineauto.formats.datasets.arrow_arrays import (
    as_texts,
    flatten,
    is_list,
    is_text,
    numbers_of,
    path_at,
    pyarrow,
    texts_of,
    type_at,
)
from onlineauto.formats.datasets.column_kernels import (
    count_codes,
    count_numbers,
    hash_texts,
    write_codes,
    write_numbers,
)
from onlineauto.formats.mappings.identities import identity

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from onlineauto.features.records import Records
    from onlineauto.formats.mappings.name_hashes import NameHashes


@dataclass(frozen=True, slots=True)
class ColumnFeatures:
    """The features that the rows of a column have in one namespace."""

    namespace: int  # Index of the namespace among those of the columns.
    # uint32[k]: hash of each distinct text; for numbers the hash of the column, or a hash for each element.
    hashes: NDArray[np.uint32]
    code: NDArray[np.int32] | None = None  # int32[n], optional: index of each element's hash, -1 for none.
    # float32[n], optional: numbers, if the elements are numbers; 0 is not a feature.
    value: NDArray[np.float32] | None = None
    # int64[n_rows + 1], optional: first element of each row, if a row has a list.
    start: NDArray[np.int64] | None = None
    # bool[n_rows], optional: which rows had a list with too many elements, which were left out.
    too_long: NDArray[np.bool_] | None = None

    def of_rows(self, begin: int, end: int) -> ColumnFeatures:
        """Return the features of the rows ``begin <= row < end``."""
        start = None if self.start is None else self.start[begin : end + 1]
        if start is not None:
            begin, end = int(start[0]), int(start[-1])
        of_each = self.value is not None and len(self.hashes) > 1
        return ColumnFeatures(
            self.namespace,
            self.hashes[begin:end] if of_each else self.hashes,
            None if self.code is None else self.code[begin:end],
            None if self.value is None else self.value[begin:end],
            start,
        )

    def infinite_rows(self) -> NDArray[np.int64]:
        """Return the rows with a number that is infinite or too large for a float32."""
        if self.value is None or np.isfinite(self.value).all():
            return np.zeros(0, np.int64)
        bad = np.flatnonzero(~np.isfinite(self.value))
        return bad if self.start is None else np.unique(np.searchsorted(self.start, bad, side="right") - 1)

    def _line_of_each(self, line: NDArray[np.int64]) -> NDArray[np.int64]:
        return line if self.start is None else np.repeat(line, np.diff(self.start))

    def count(self, line: NDArray[np.int64], counts: NDArray[np.int64]) -> None:
        """Add these features to the counts of lines; `line` has the line of each row, or -1."""
        line = self._line_of_each(line)
        if self.value is not None:
            count_numbers(self.value, line, self.namespace, counts)
        elif self.code is not None:
            count_codes(self.code, line, self.namespace, counts)

    def write(self, line: NDArray[np.int64], at: NDArray[np.int64], features: Records) -> None:
        """Write these features into the records of lines; see `write_codes`."""
        line = self._line_of_each(line)
        if self.value is not None:
            write_numbers(self.value, self.hashes, line, self.namespace, at, features)
        elif self.code is not None:
            write_codes(self.code, self.hashes, line, self.namespace, at, features)


@dataclass(frozen=True, slots=True)
class Repeated:
    """A feature of each action that is the same in all events; one element per event and action.

    A `value` of 0 is no feature; without values, all are 1.
    """

    namespace: int
    hashes: NDArray[np.uint32]
    value: NDArray[np.float32] | None = None

    def of_rows(self, begin: int, end: int) -> ColumnFeatures:
        """Return the features of the elements ``begin <= element < end`` of all events."""
        code = (np.arange(begin, end) % len(self.hashes)).astype(np.int32)
        if self.value is not None:
            return ColumnFeatures(self.namespace, self.hashes[code], value=self.value[code])
        return ColumnFeatures(self.namespace, self.hashes, code)


class ColumnName(NamedTuple):
    """The namespace of a column's features, and the name of the column in it.

    As in dicts, a list and a struct are namespaces of their own, wherever they are listed.
    """

    namespace: str
    name: str

    @property
    def identity(self) -> str:
        """The column as an identity."""
        return identity(self.namespace, self.name)

    @classmethod
    def of(cls, schema: Any, namespace: str, column: str) -> ColumnName:
        """Return the name of a column that is listed in a namespace; a struct has ``column.field``."""
        *structs, name = path_at(schema, column) or [column]
        if is_list(type_at(schema, column)):
            return cls(name, name)
        return cls(structs[-1] if structs else namespace, name)


class Encoder:
    """Makes features of columns, and hashes an unchanged dictionary only once."""

    def __init__(self, names: NameHashes, *, hash_all: bool, identities: Iterable[str] = ()) -> None:
        self.names, self._hash_all, self.identities = names, hash_all, frozenset(identities)
        self._namespaces: dict[tuple[str, str], int] = {}
        self._indices: dict[int, NDArray[np.uint32]] = {}
        self._hashed: dict[tuple[str, int], tuple[Any, NDArray[np.uint32]]] = {}

    @property
    def numbers(self) -> NDArray[np.int32]:
        """Number in the block of each namespace of the columns: int32[n]."""
        return np.array([self.names.namespace(name) for _, name in self._namespaces], np.int32)

    def namespace(self, owner: str, name: str) -> int:
        """Return the index of a namespace; `owner` tells namespaces of the context from those of actions."""
        return self._namespaces.setdefault((owner, name), len(self._namespaces))

    def encode(self, array: Any, column: ColumnName, owner: str) -> ColumnFeatures:
        """Return the features of an Arrow array; `owner` is as for `namespace`."""
        start: NDArray[np.int64] | None = None
        namespace, number = self.namespace(owner, column.namespace), self.names.namespace(column.namespace)
        if is_list(array.type):
            elements, start, too_long = flatten(array)
            if is_text(elements.type):
                code, hashes = self._texts(elements, "", number)
                return ColumnFeatures(namespace, hashes, code=code, start=start, too_long=too_long)
            value = _without_nan(numbers_of(elements))
            position = np.arange(len(value)) - np.repeat(start[:-1], np.diff(start))
            hashes = self._names_of_indices(int(np.diff(start).max(initial=0)), number)[position]
            return ColumnFeatures(namespace, hashes, value=value, start=start, too_long=too_long)
        if column.identity in self.identities:
            array = as_texts(array)
        if is_text(array.type):
            code, hashes = self._texts(array, f"{column.name}=", number)
            return ColumnFeatures(namespace, hashes, code=code)
        hashes = self.names.features([column.name], number)
        return ColumnFeatures(namespace, hashes, value=_without_nan(numbers_of(array)))

    def _names_of_indices(self, longest: int, number: int) -> NDArray[np.uint32]:
        """Return the hashes of the names ``0``, ``1``, … in a namespace, `longest` of them or more."""
        known = self._indices.get(number)
        if known is None or len(known) < longest:
            digits = np.arange(2 * longest).astype(np.bytes_).tolist()
            start = np.concatenate([[0], np.cumsum([*map(len, digits)])]).astype(np.int64)
            data = np.frombuffer(bytearray(b"".join(digits)), np.uint8)
            known = self._indices[number] = self.hashes(b"", data, start, number)
        return known

    def _texts(self, array: Any, prefix: str, number: int) -> tuple[NDArray[np.int32], NDArray[np.uint32]]:
        """Return the code of each text, and the hash of each text with a prefix."""
        texts = texts_of(array)
        key = prefix, number
        last, hashes = self._hashed.get(key, (None, None))
        if last is not None and hashes is not None and last.equals(texts.values):
            return texts.code, hashes
        hashes = self.hashes(prefix.encode(), *texts.bytes_of(), number)
        if pyarrow().types.is_dictionary(array.type):
            self._hashed[key] = texts.values, hashes
        return texts.code, hashes

    def hashes(
        self, prefix: bytes, data: NDArray[np.uint8], start: NDArray[np.int64], number: int
    ) -> NDArray[np.uint32]:
        """Return the hash of each text with a prefix before it; see `hash_texts`."""
        name = np.zeros(len(prefix) + int(np.diff(start).max(initial=0)) + 8, np.uint8)
        name[: len(prefix)] = np.frombuffer(prefix, np.uint8)
        seed = np.uint32(self.names.namespaces.hashes[number])
        hashes = np.zeros(len(start) - 1, np.uint32)
        hash_texts(data, start, name, len(prefix), seed, self._hash_all, hashes)
        return hashes


def _without_nan(value: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return numbers with NaN replaced by 0, which is not a feature."""
    missing = np.isnan(value)
    if missing.any():
        value = np.where(missing, np.float32(0), value)
    return value
