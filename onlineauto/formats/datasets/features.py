"""Make the features of a column: hashes of texts, computed once per dictionary, and numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from onlineauto.features.records import LEAST_VECTOR
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
    without_zeros,
)
from onlineauto.formats.datasets.column_kernels import (
    count_codes,
    count_numbers,
    hash_texts,
    write_codes,
    write_numbers,
)
from onlineauto.formats.mappings.identities import identity, named, numbers_in
from onlineauto.formats.mappings.named_event import spans_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

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
    # float32[n], optional: numbers, if the elements are numbers; NaN is not a feature.
    value: NDArray[np.float32] | None = None
    # int64[n_rows + 1], optional: first element of each row, if a row has a list.
    start: NDArray[np.int64] | None = None
    # bool[n_rows], optional: which rows had a list with too many elements, which were left out.
    too_long: NDArray[np.bool_] | None = None
    # For messages: the name of the column, and its elements as they were given.
    column: str = ""
    given: Any = ()

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

    def infinite(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the elements that are infinite or too large for a float32, and the row of each."""
        bad = np.flatnonzero(() if self.value is None else np.isinf(self.value))
        return bad, bad if self.start is None else np.searchsorted(self.start, bad, side="right") - 1

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

    A `value` of NaN is no feature; without values, all are 1.
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


def repeated(rows: ColumnFeatures) -> list[Repeated]:
    """Return features of rows, each of which describes an action of all events, in layers.

    The first layer has the first feature of each action, and so on; NaN fills the layers of shorter rows.
    """
    assert rows.start is not None
    assert rows.value is not None
    layers, lengths = [], np.diff(rows.start)
    for index in range(int(lengths.max(initial=0))):
        feature = np.minimum(rows.start[:-1] + index, len(rows.value) - 1)
        value = np.where(index < lengths, rows.value[feature], np.float32(np.nan))
        layers.append(Repeated(rows.namespace, rows.hashes[feature], value))
    return layers


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
        self.value_numbers = set[str]()
        self._namespaces: dict[tuple[str, str], int] = {}
        self._hashed: dict[tuple[str, int], tuple[Any, NDArray[np.uint32]]] = {}

    @property
    def numbers(self) -> NDArray[np.int32]:
        """Number in the block of each namespace of the columns: int32[n]."""
        return np.array([self.names.namespace(name) for _, name in self._namespaces], np.int32)

    def namespace(self, owner: str, name: str) -> int:
        """Return the index of a namespace; `owner` tells namespaces of the context from those of actions."""
        return self._namespaces.setdefault((owner, name), len(self._namespaces))

    def encode(self, array: Any, column: ColumnName, owner: str, title: str) -> ColumnFeatures:
        """Return the features of an Arrow array; `owner` is as for `namespace`, `title` for messages."""
        namespace, number = self.namespace(owner, column.namespace), self.names.namespace(column.namespace)
        prefix, start, too_long = f"{column.name}=", None, None
        if is_list(array.type):
            array, start, too_long = flatten(array)
            prefix = ""
        elif column.identity in self.identities:
            array = as_texts(array)
        code = value = None
        if is_text(array.type):
            code, hashes = self._texts(array, prefix, number)
        else:
            value = numbers_of(array)
            if start is None:
                hashes = self.names.features([column.name], number)
                value = without_zeros(value)
            else:
                length = np.diff(start)
                position = np.arange(len(value)) - np.repeat(start[:-1], length)
                hashes = (position + self.names.namespaces.hashes[number]).astype(np.uint32)
                absent = (value == 0) | np.isnan(value)
                if absent.any():
                    in_vector = np.repeat(length >= LEAST_VECTOR, length)[absent]
                    value[absent] = np.where(in_vector, np.float32(0), np.float32(np.nan))
        return ColumnFeatures(namespace, hashes, code, value, start, too_long, title, array)

    def encode_values(
        self, values: Iterable[Any], namespace: str, column: str, owner: str
    ) -> list[ColumnFeatures]:
        """Return the features of values of any kinds, read one by one like those of a mapping."""
        rows = ((f"row {row}", {namespace: {column: value}}) for row, value in enumerate(values))
        return self.encode_mappings(rows, owner, column)

    def encode_mappings(
        self, rows: Iterable[tuple[str, Mapping[str, Any]]], owner: str, title: str
    ) -> list[ColumnFeatures]:
        """Return the features of mappings by namespace; each comes with its position for messages.

        The columns with numbers are added to `value_numbers`.
        """
        spans = []
        for where, mapping in rows:
            features = named(mapping, self.identities)
            self.value_numbers.update(numbers_in(features))
            spans.append(dict(spans_of(features, where)))
        encoded = []
        for namespace in dict.fromkeys(name for of_row in spans for name in of_row):
            parts = [of_row.get(namespace, ()) for of_row in spans]
            pairs = [pair for part in parts for pair in part]
            encoded.append(
                ColumnFeatures(
                    self.namespace(owner, namespace),
                    self.names.features([name for name, _ in pairs], self.names.namespace(namespace)),
                    value=np.array([value for _, value in pairs], np.float32),
                    start=np.concatenate([[0], np.cumsum([*map(len, parts)])]).astype(np.int64),
                    column=title,
                )
            )
        return encoded

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
