"""The schema of state: what a record's arrays are, and everything that is done with all of them.

A record is a NamedTuple. Its definition says of each array, in one line, what all operations need to know::

    @record
    class Crosses(NamedTuple):
        weights: NDArray[np.float32] = field("orders", "cells", merge=jointly, predicts=True)
        spread: NDArray[np.float32] = field("orders", "cells", read=between(0.0, 1.0), merge=jointly)
        mean: NDArray[np.float64] = field(1, read=finite, merge=largest, predicts=True)
        gains: NDArray[np.float64] = scratch("cells")

`record` takes the descriptions out of the class, so that every array must still be given to its constructor,
and kernels see the same class as without them. `declare` describes a class whose file should not change.
A new array of a state is one more such line: no operation has a list of names.

===============  ===========================================================================================
`make`           the record before the first event
`save`, `read`   a section of a model file: the used part of each array, checked when it is read
`send`           the used part of each array that merges, by path, for a message
`rebuild`        a record with such arrays in place of its own
`receive`        copy such arrays into a record
`copied`         a copy, whose arrays have memory only for their used part; `pack`, `unpack` for pickles
`merge`          one record from a base and the branches that continued from it, by the rule of each array
`copy`           the arrays of a record into another one
`widen`          the arrays of a record into one whose axes are longer
`take`, `put`    some entries of named axes, such as those of one live config
`to_predict`     a record that shares what predictions need; its other arrays are empty
===============  ===========================================================================================

Axes are names or numbers. The sizes of named axes are given to `make`. The *used* part of named axes is given
to `save`, `read` and `send`, or follows from the record by the function `used` that is declared with its
class; otherwise it is the whole axis. The used part of a `Sparse` axis is given to `save` as ascending
indices, which the section then has under the name of the axis. An array that `to_predict` has emptied is
neither saved nor read. Arrays of a nested record are saved beside those of its owner, under their own names;
in a message, a path has the names of all records around an array.
"""

from __future__ import annotations

import math
import mmap
import re
from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import numpy as np

from onlineauto.state.stored import MOST, Stored, pack_indices

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    Axis = int | str
    Used = Mapping[str, Any]  # the number of used entries of an axis; of a sparse one, their indices
    Reader = Callable[[Stored, NDArray[Any]], NDArray[Any]]
    Writer = Callable[[NDArray[Any]], NDArray[Any]]
    Rule = Callable[[NDArray[Any], Sequence[NDArray[Any]], Any], NDArray[Any]]
    RecordRule = Callable[[Any, Sequence[Any], Any], Mapping[str, NDArray[Any]]]


class Sparse(str):
    """The name of an axis of which few entries are used, such as the cells of a hashed table."""

    __slots__ = ()


T = TypeVar("T", bound=type[Any])
Record = TypeVar("Record", bound=tuple[Any, ...])

_LARGE = 1 << 22

_DTYPE = re.compile(r"NDArray\[np\.(\w+)\]")


def keep(base: NDArray[Any], ends: Sequence[NDArray[Any]], context: Any) -> NDArray[Any]:
    """Return the base's array: branches do not change it, or whoever merges decides on it."""
    del ends, context
    return base.copy()


def add(base: NDArray[Any], ends: Sequence[NDArray[Any]], context: Any) -> NDArray[Any]:
    """Return the base's array with the changes of all branches."""
    del context
    total: NDArray[Any] = base + sum(end - base for end in ends)
    return total


def latest(base: NDArray[Any], ends: Sequence[NDArray[Any]], context: Any) -> NDArray[Any]:
    """Return the array of the last branch."""
    del context
    return (ends[-1] if len(ends) else base).copy()


def largest(base: NDArray[Any], ends: Sequence[NDArray[Any]], context: Any) -> NDArray[Any]:
    """Return the largest numbers of the base and of all branches."""
    del context
    result: NDArray[Any] = np.maximum.reduce([base, *ends])
    return result


def smallest(base: NDArray[Any], ends: Sequence[NDArray[Any]], context: Any) -> NDArray[Any]:
    """Return the smallest numbers of the base and of all branches."""
    del context
    result: NDArray[Any] = np.minimum.reduce([base, *ends])
    return result


def by_entry(rule: Rule, others: Mapping[int, Rule]) -> Rule:
    """Return the rule of arrays that merge by `rule`, except for some entries of their last axis."""

    def merged(base: NDArray[Any], ends: Sequence[NDArray[Any]], context: Any) -> NDArray[Any]:
        result = rule(base, ends, context)
        for entry, other in others.items():
            result[..., entry] = other(base[..., entry], [end[..., entry] for end in ends], context)
        return result

    return merged


def jointly(base: NDArray[Any], ends: Sequence[NDArray[Any]], context: Any) -> NDArray[Any]:
    """Stand for an array that the rule of its record merges together with others; it is never called."""
    del base, ends, context
    raise AssertionError("an array that merges jointly has no rule of its own")


def unchecked(stored: Stored, array: NDArray[Any]) -> NDArray[Any]:
    """Return a stored array of the type and shape of `array`, with any numbers."""
    return stored.array_like(array)


def finite(stored: Stored, array: NDArray[Any]) -> NDArray[Any]:
    """Return a stored array like `array`, whose numbers are finite."""
    return stored.finite(array.dtype, array.shape)


def between(low: float, high: float) -> Reader:
    """Return the reader of arrays whose numbers are from `low` to `high`."""
    return lambda stored, array: stored.array_between(array, low, high)


def counts(most: int = MOST) -> Reader:
    """Return the reader of arrays of whole numbers from 0 to `most`."""
    return lambda stored, array: stored.counts(array.shape, most=most)


def _as_it_is(array: NDArray[Any]) -> NDArray[Any]:
    return array


def lower_triangle(array: NDArray[Any]) -> NDArray[Any]:
    """Return the lower triangles of symmetric matrices, row by row: the writer of covariances."""
    row, column = np.tril_indices(array.shape[-1])
    return array[..., row, column]


def symmetric(stored: Stored, array: NDArray[Any]) -> NDArray[Any]:
    """Return the matrices of stored lower triangles, in the shape of `array`, whose numbers are finite."""
    row, column = np.tril_indices(array.shape[-1])
    values = stored.finite(array.dtype, (*array.shape[:-2], len(row)))
    result = np.zeros(array.shape, array.dtype)
    result[..., row, column] = result[..., column, row] = values
    return result


@dataclass(frozen=True)
class Field:
    """The description of an array, for all operations."""

    axes: tuple[Axis, ...]
    initial: float = 0
    read: Reader = unchecked  # makes an array of the file valid, or raises a ValueError
    write: Writer = _as_it_is  # makes the used part an array of the file
    merge: Rule | None = None  # None: neither sent nor merged
    predicts: bool = False  # predictions need it
    saved: bool = True  # a model file has it
    forgets: bool = False  # it is evidence, which is dropped when learning restarts
    grows: bool = False  # most of it is unused at first, and takes no memory until it is written
    waits: bool = False  # its entry of a live config is kept while the config waits to be live again
    since: int = 1  # version of the section that has it first
    dtype: np.dtype[Any] | None = None  # from the annotation

    def used(self, array: NDArray[Any], used: Used) -> NDArray[Any]:
        """Return the used part of an array: a view, or a copy of the entries of a sparse axis."""
        if self.is_emptied(array):
            return array
        parts = [used.get(axis) if isinstance(axis, str) else None for axis in self.axes]
        return array[tuple([part if isinstance(part, np.ndarray) else slice(part) for part in parts])]

    def read_into(self, array: NDArray[Any], stored: Stored, name: str) -> None:
        """Copy a stored array into the used part of a record's, or into entries whose indices are stored."""
        entries = [
            stored[axis].indices(size) if isinstance(axis, Sparse) else slice(None)
            for axis, size in zip(self.axes, array.shape, strict=False)
        ]
        if all(isinstance(entry, slice) for entry in entries):
            array[...] = self.read(stored[name], array)
            return
        shape = [
            size if isinstance(entry, slice) else len(entry)
            for entry, size in zip(entries, array.shape, strict=True)
        ]
        array[tuple(entries)] = self.read(stored[name], np.broadcast_to(array.dtype.type(0), shape))

    def copied(self, array: NDArray[Any], part: NDArray[Any]) -> NDArray[Any]:
        """Return a copy of an array that has only memory for its used part if it grows."""
        is_whole = not self.grows and part.shape == array.shape
        return array.copy() if is_whole else _whole(self, array.shape, part)

    def is_emptied(self, array: NDArray[Any]) -> bool:
        """Return whether `to_predict` has emptied an array."""
        return not self.predicts and array.size == 0


@dataclass(frozen=True)
class _Nested:
    """A record in a record."""

    record: type[Any]


@dataclass(frozen=True)
class _Schema:
    """The descriptions of the arrays and records of a record, by name, and the rule that merges some."""

    fields: Mapping[str, Field | _Nested]
    merge: RecordRule | None
    used: Callable[[Any], Mapping[str, int]] | None


_schemas: dict[type[Any], _Schema] = {}


def _schema_of(record: Any) -> _Schema:
    """Return the schema of a record; in one of an undeclared class every array is sent, saved and needed."""
    if (schema := _schemas.get(type(record))) is not None:
        return schema
    fields: dict[str, Field | _Nested] = {}
    for name, value in zip(record._fields, record, strict=True):
        if isinstance(value, np.ndarray):
            fields[name] = Field((), merge=jointly, predicts=True, forgets=True)
        elif hasattr(value, "_fields"):
            fields[name] = _Nested(type(value))
    return _Schema(fields, None, None)


def field(*axes: Axis, **description: Any) -> Any:
    """Return the description of an array; see `Field`. The type of its numbers is that of the annotation."""
    return Field(axes, **description)


def scratch(*axes: Axis, initial: float = 0) -> Any:
    """Return the description of an array that is memory only, or derived from others."""
    return Field(axes, initial, saved=False)


def untouched() -> Any:
    """Return the description of a field that no operation touches."""
    return None


def nested(record: type[Any]) -> Any:
    """Return the description of a record in a record."""
    return _Nested(record)


def record(cls: T) -> T:
    """Describe a class by the default values of its fields, which it then no longer has."""
    _describe(cls, dict(cls._field_defaults))
    cls._field_defaults = {}
    cls.__new__.__defaults__ = None
    return cls


def declare(
    cls: type[Any],
    *,
    merge: RecordRule | None = None,
    used: Callable[[Any], Mapping[str, int]] | None = None,
    **fields: Any,
) -> None:
    """Describe a class from outside, or, without `fields`, only say how it merges and what is used.

    Without anything, no operation touches its records, if it has not been described before.

    `merge` returns the arrays that merge `jointly`, by name, from the records of the base and of the
    branches, and the context of the merge. `used` returns the used part of axes from a record.
    """
    before = _schemas.get(cls)
    _describe(cls, fields or (before.fields if before else {}), merge, used)


def _describe(
    cls: type[Any],
    fields: Mapping[str, Any],
    merge: RecordRule | None = None,
    used: Callable[[Any], Mapping[str, int]] | None = None,
) -> None:
    described: dict[str, Field | _Nested] = {}
    for name in cls._fields:
        item = fields.get(name)
        if isinstance(item, Field):
            annotation = cls.__annotations__[name]
            match = _DTYPE.search(getattr(annotation, "__forward_arg__", str(annotation)))
            if match:
                kind = {"bool_": "bool"}.get(match[1], match[1])
                item = Field(**{**vars(item), "dtype": np.dtype(kind)})
        if item is not None:
            described[name] = item
    _schemas[cls] = _Schema(described, merge, used)


def fields_of(cls: type[Any]) -> dict[str, Field]:
    """Return the description of each array of a record and of the records in it, by name."""
    result: dict[str, Field] = {}
    for name, item in _schemas[cls].fields.items():
        result |= {name: item} if isinstance(item, Field) else fields_of(item.record)
    return result


def arrays_of(record: Any) -> dict[str, NDArray[Any]]:
    """Return the arrays of a record and of the records in it, by name."""
    return {_name(path): array for path, _, array, _ in _walk(record)}


def _name(path: str) -> str:
    """Return the name of an array in its path."""
    return path.rpartition(".")[2]


def _walk(
    record: Any, used: Used | None = None, prefix: str = ""
) -> Iterator[tuple[str, Field, NDArray[Any], NDArray[Any]]]:
    """Yield the path, the description, the array and its used part, also of records in the record."""
    schema = _schema_of(record)
    if schema.used is not None:
        used = {**(used or {}), **schema.used(record)}
    for name, item in schema.fields.items():
        value = getattr(record, name)
        if isinstance(item, Field):
            yield prefix + name, item, value, item.used(value, used or {})
        else:
            yield from _walk(value, used, f"{prefix}{name}.")


def make(cls: type[Record], sizes: Mapping[str, int] | None = None, **values: Any) -> Record:
    """Return a record before the first event; `values` are its other fields, and arrays that begin unlike."""
    for name, item in _schemas[cls].fields.items():
        if name in values:
            continue
        if isinstance(item, _Nested):
            values[name] = make(item.record, sizes)
            continue
        shape = tuple((sizes or {})[axis] if isinstance(axis, str) else axis for axis in item.axes)
        values[name] = _filled(item, shape)
    return cls(**values)


def _filled(item: Field, shape: tuple[int, ...]) -> NDArray[Any]:
    """Return a new array; one that `grows` takes memory page by page, and not by 2 MB."""
    size = math.prod(shape) * np.dtype(item.dtype).itemsize
    if item.grows and size > _LARGE and hasattr(mmap, "MAP_ANONYMOUS"):
        memory = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        return np.frombuffer(memory, item.dtype).reshape(shape)
    return np.full(shape, item.initial, item.dtype) if item.initial else np.zeros(shape, item.dtype)


def _whole(item: Field, shape: tuple[int, ...], part: NDArray[Any]) -> NDArray[Any]:
    """Return a new array with its used part, and the initial number elsewhere."""
    array = _filled(item, shape)
    array[tuple(map(slice, part.shape))] = part
    return array


def save(record: Any, used: Used | None = None, *, predicts: bool = False) -> dict[str, NDArray[Any]]:
    """Return the section of a model file: the used part of each array; only what `predicts` if so."""
    section: dict[str, NDArray[Any]] = {}
    for path, item, array, part in _walk(record, used):
        if item.saved and not item.is_emptied(array) and (item.predicts or not predicts):
            name = _name(path)
            if name in section:
                raise ValueError(
                    f"{type(record).__name__} has two arrays {name}, which share a name in its section: "
                    "rename one of them"
                )
            section[name] = item.write(part)
            section |= {
                str(axis): pack_indices(used[axis], size)
                for axis, size in zip(item.axes, array.shape, strict=False)
                if used is not None and isinstance(axis, Sparse)
            }
    return section


def read(
    stored: Stored, record: Any, used: Mapping[str, int] | None = None, *, predicts: bool = False
) -> None:
    """Copy a section of a model file into a record of `make` or `to_predict`; each array is checked."""
    for path, item, array, part in _walk(record, used):
        if not item.saved or item.is_emptied(array) or (predicts and not item.predicts):
            continue
        name = _name(path)
        if name in stored or item.since == 1:
            item.read_into(part, stored, name)


def send(record: Any, prefix: str, used: Mapping[str, int] | None = None) -> dict[str, NDArray[Any]]:
    """Return the used part of each array that merges, by its path: prefix and name."""
    return {f"{prefix}.{name}": part for name, item, _, part in _walk(record, used) if item.merge is not None}


def rebuild(record: Record, prefix: str, arrays: Mapping[str, NDArray[Any]]) -> Record:
    """Return a record with the arrays that `send` made of another one; it shares all others."""
    changed: dict[str, Any] = {}
    for name, item in _schema_of(record).fields.items():
        path = f"{prefix}.{name}"
        if isinstance(item, _Nested):
            changed[name] = rebuild(getattr(record, name), path, arrays)
        elif path in arrays:
            changed[name] = arrays[path]
    return cast("Record", cast("Any", record)._replace(**changed))


def copied(value: Any, memo: dict[int, Any], used: Used | None = None) -> Any:
    """Return a copy of a record and of all in it, with the `memo` of `copy.deepcopy`, but faster."""
    if not hasattr(value, "_fields"):
        return deepcopy(value, memo)
    if id(value) in memo:
        return memo[id(value)]
    schema = _schemas.get(type(value))
    if schema is not None and schema.used is not None:
        used = {**(used or {}), **schema.used(value)}
    described = {} if schema is None else schema.fields
    copies = []
    for name, each in zip(value._fields, value, strict=True):
        item = described.get(name)
        if isinstance(item, Field):
            copies.append(item.copied(each, item.used(each, used or {})))
        else:
            copies.append(copied(each, memo, used))
    memo[id(value)] = result = type(value)(*copies)
    return result


class _UsedPart(NamedTuple):
    """The used part of an array, and what the rest of the array is."""

    grows: bool
    initial: float
    shape: tuple[int, ...]
    part: NDArray[Any]

    def whole(self) -> NDArray[Any]:
        item = Field((), self.initial, grows=self.grows, dtype=self.part.dtype)
        return _whole(item, self.shape, self.part)


def pack(record: Record) -> Record:
    """Return a record with only the used part of each array, for `unpack`: copies then take little memory."""
    parts: Any = {
        f".{path}": _UsedPart(item.grows, item.initial, array.shape, part)
        for path, item, array, part in _walk(record)
    }
    return rebuild(record, "", parts)


def unpack(record: Record) -> Record:
    """Return the record from which `pack` made another one."""
    whole: dict[str, Any] = {}
    for name, value in cast("Any", record)._asdict().items():
        if isinstance(value, _UsedPart):
            whole[name] = value.whole()
        elif hasattr(value, "_fields"):
            whole[name] = unpack(value)
    return cast("Record", cast("Any", record)._replace(**whole))


def receive(record: Any, prefix: str, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Copy arrays into a record, by path; what is used beyond their shape is as before the first event."""
    for path, item, array, part in list(_walk(record)):
        values = arrays.get(f"{prefix}.{path}")
        if values is None:
            continue
        if any(now > new for now, new in zip(part.shape, values.shape, strict=True)):
            part[...] = item.initial
        array[tuple(map(slice, values.shape))] = values


def merge(base: Record, ends: Sequence[Record], context: Any = None) -> Record:
    """Return the record of all events: each branch has continued from the base, on separate events."""
    schema = _schema_of(base)
    together = schema.merge(base, ends, context) if schema.merge is not None else {}
    merged: dict[str, Any] = {}
    for name, item in schema.fields.items():
        before, others = getattr(base, name), [getattr(end, name) for end in ends]
        if isinstance(item, _Nested):
            merged[name] = merge(before, others, context)
        elif name in together:
            merged[name] = together[name]
        elif item.merge is not None:
            merged[name] = item.merge(before, others, context)
    return cast("Record", cast("Any", base)._replace(**merged))


def copy(source: Any, target: Any, *, forgets: bool = False) -> None:
    """Copy what either record uses into another of the same shapes, or of these only what it `forgets`."""
    for (_, item, array, own), (_, _, values, others) in zip(_walk(source), _walk(target), strict=True):
        if item.forgets or not forgets:
            used = tuple(map(slice, map(max, own.shape, others.shape)))
            values[used] = array[used]


def _entries(
    record: Any, flag: str, entries: Mapping[str, Any]
) -> Iterator[tuple[str, Field, NDArray[Any], tuple[Any, ...]]]:
    """Yield the name, the description, the array and the index of each array that has one of the axes."""
    for path, item, array, _ in _walk(record):
        if getattr(item, flag) and not entries.keys().isdisjoint(item.axes):
            index = (
                entries.get(axis, slice(None)) if isinstance(axis, str) else slice(None) for axis in item.axes
            )
            yield _name(path), item, array, tuple(index)


def take(record: Any, flag: str, **entries: Sequence[int]) -> dict[str, NDArray[Any]]:
    """Return copies of entries of axes, by the name of the array, of arrays with a `flag` such as "waits"."""
    return {name: array[index].copy() for name, _, array, index in _entries(record, flag, entries)}


def put(record: Any, flag: str, arrays: Mapping[str, NDArray[Any]], **entries: Sequence[int]) -> None:
    """Write entries that `take` has returned into a record."""
    for name, _, array, index in _entries(record, flag, entries):
        array[index] = arrays[name]


def read_entries(stored: Stored, record: Any, flag: str, **entries: Sequence[int]) -> dict[str, NDArray[Any]]:
    """Return stored entries like those that `take` returns of a record, checked like a section."""
    return {
        name: item.read(stored[name], array[index])
        for name, item, array, index in _entries(record, flag, entries)
    }


def widen(source: Any, target: Any) -> None:
    """Copy the arrays of a record into a new one whose axes are longer, without touching unused memory."""
    for (_, item, array, _), (_, _, wider, _) in zip(_walk(source), _walk(target), strict=True):
        corner: list[Any] = [slice(size) for size in array.shape]
        for number, axis in enumerate(item.axes):
            if isinstance(axis, Sparse):
                others = tuple(other for other in range(array.ndim) if other != number)
                corner[number] = np.flatnonzero(array.any(axis=others))
        part = tuple(corner)
        wider[part] = array[part]


def to_predict(record: Record) -> Record:
    """Return a record that shares the arrays that predictions need; its other arrays are empty."""
    smaller: dict[str, Any] = {}
    for name, item in _schema_of(record).fields.items():
        value = getattr(record, name)
        if isinstance(item, _Nested):
            smaller[name] = to_predict(value)
        elif not item.predicts:
            smaller[name] = np.zeros((0,) * value.ndim, value.dtype)
    return cast("Record", cast("Any", record)._replace(**smaller))
