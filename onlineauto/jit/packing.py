"""Pack the arguments of a kernel into consecutive 64-bit words, the calling convention of all machine code.

A number is one word. An array is its size, item size, address, shape and strides. A record (a NamedTuple) is
its fields, one after the other. Kernels read each field in place, so unused fields cost nothing. The format
is the same for code compiled in this process, loaded from the cache, or built into a wheel.
"""

from __future__ import annotations

import ctypes
from struct import Struct
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeAlias, TypeVar, cast

import numpy as np

from onlineauto.jit.sha256 import sha256

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

T = TypeVar("T")


class Number(NamedTuple):
    """The kind of a number: `code` is its character in `struct`, "n" for None."""

    code: str

    @property
    def format(self) -> str:
        """Return the words of it, as `struct` writes them."""
        return _FORMATS[self.code]


class ArrayKind(NamedTuple):
    """The kind of an array."""

    dtype: np.dtype[Any]
    ndim: int
    contiguous: bool
    writeable: bool

    @property
    def format(self) -> str:
        """Return the words of it, as `struct` writes them."""
        return f"{3 + 2 * self.ndim}q"


class TupleKind(NamedTuple):
    """The kind of a tuple without names, which kernels take by value."""

    items: tuple[Kind, ...]

    @property
    def format(self) -> str:
        """Return the words of it, as `struct` writes them."""
        return "".join(item.format for item in self.items)


class RecordKind(NamedTuple):
    """The kind of a record: passed by its address or, if it has only numbers and is not sealed, by value."""

    record: type[Any]
    items: tuple[Kind, ...]
    sealed: bool = False  # the word is the address of the fields

    @property
    def format(self) -> str:
        """Return the words of it, as `struct` writes them."""
        return "q" if self.sealed else "".join(item.format for item in self.items)

    @property
    def by_value(self) -> bool:
        """Return whether kernels take the record by value."""
        return not self.sealed and all(isinstance(item, Number) for item in self.items)


Kind: TypeAlias = Number | ArrayKind | TupleKind | RecordKind
"""The kind of a value: values of different kinds need different machine code."""

_FORMATS = {
    "?": "?7x", "b": "b7x", "B": "B7x", "h": "h6x", "H": "H6x", "i": "i4x", "I": "I4x", "q": "q", "Q": "Q",
    "f": "f4x", "d": "d", "n": "",
}  # fmt: skip
_CODES: dict[type[Any], str] = {
    bool: "?", float: "d", type(None): "n", np.bool_: "?", np.int8: "b", np.uint8: "B", np.int16: "h",
    np.uint16: "H", np.int32: "i", np.uint32: "I", np.int64: "q", np.uint64: "Q", np.float32: "f",
    np.float64: "d",
}  # fmt: skip
_LARGEST = 2**63


_HEAD = object.__basicsize__
"""Offset of the data pointer in an array object: it is the first field of NumPy's documented C structure."""
_pointer_at = ctypes.c_void_p.from_address
# The attribute `ctypes.data` has the same value, but takes three times as long to read.


class Packed:
    """The layout of arguments of certain kinds, and a name for it."""

    __slots__ = ("kinds", "name", "struct")

    def __init__(self, kinds: tuple[Kind, ...]) -> None:
        self.kinds = kinds
        self.struct = Struct("=" + "".join(kind.format for kind in kinds))
        self.name = sha256(_text(TupleKind(kinds)).encode()).hexdigest()[:16]


def _text(kind: Kind) -> str:
    """Return a text that describes a kind completely."""
    if isinstance(kind, Number):
        return kind.code
    if isinstance(kind, ArrayKind):
        dtype = kind.dtype.descr if kind.dtype.names else kind.dtype.str
        return f"[{dtype} {kind.ndim} {kind.contiguous} {kind.writeable}]"
    items = ",".join(map(_text, kind.items))
    if isinstance(kind, TupleKind):
        return f"({items})"
    record = kind.record
    names = ",".join(record._fields)
    return f"{record.__module__}.{record.__qualname__}{'&' * kind.sealed}({names})({items})"


_MOST_DTYPES = 4096
"""Number of dtype objects whose kinds are cached; each unpickled array may have a separate dtype object."""
# The objects below are identified by their addresses. So there must be only one of each kind, and it must
# never be deleted: `setdefault` is atomic, stores the first one, and returns it to all threads.
_known: dict[tuple[Any, ...], Packed] = {}
_same: dict[ArrayKind, ArrayKind] = {}
_array_kinds: dict[tuple[int, int, int], tuple[ArrayKind, np.dtype[Any]]] = {}
"""Kinds by the address of a dtype; the dtype is stored, too, so that no other object can have its address."""


Flat = dict[int, tuple[tuple[Any, ...], list[Any], list[Any]]]
"""Tuples by address, each with its key and words from `_flatten`; storing a tuple reserves its address."""


def pack(
    values: tuple[Any, ...], before: Flat | None = None, after: Flat | None = None
) -> tuple[Packed, list[Any]]:
    """Return the `Packed` layout for arguments of these kinds, and their words for its `struct`.

    Tuples in `before` are not packed again; all tuples are added to `after`.
    """
    key: list[Any] = []
    words: list[Any] = []
    for value in values:
        _flatten(value, key, words, {} if before is None else before, after)
    known = _known.get(tuple(key))
    if known is None:
        known = _known.setdefault(tuple(key), Packed(tuple(map(_kind_of, values))))
    return known, words


def _flatten(value: Any, key: list[Any], words: list[Any], before: Flat, after: Flat | None) -> None:
    """Append the identity of a value's kind to `key`, and its words to `words`."""
    kind = type(value)
    if kind is np.ndarray:
        key.append(id(_array_kind(value)))
        words += (
            value.size,
            value.itemsize,
            _pointer_at(id(value) + _HEAD).value or 0,
            *value.shape,
            *value.strides,
        )
    elif kind is int:
        key.append("q" if value < _LARGEST else "Q")
        words.append(value)
    elif kind is Sealed:
        key.append(id(value.kind))
        words.append(value.address)
    elif isinstance(value, tuple):
        entry, first, start = before.get(id(value)), len(key), len(words)
        if entry is not None:
            key += entry[1]
            words += entry[2]
        else:
            key.append(kind)
            for item in value:
                _flatten(item, key, words, before, after)
            key.append(")")
        if after is not None:
            after[id(value)] = entry or (value, key[first:], words[start:])
    elif isinstance(value, SealedRecords):
        _flatten(value.addresses, key, words, before, after)
    elif kind in _CODES:
        key.append(_CODES[kind])
        if value is not None:
            words.append(value)
    else:
        raise TypeError(f"a kernel takes numbers, arrays and tuples of these, not {kind.__name__}")


def _array_kind(value: np.ndarray[Any, Any]) -> ArrayKind:
    dtype, flags = value.dtype, value.flags
    key = id(dtype), value.ndim, flags.num
    entry = _array_kinds.get(key)
    if entry is None:
        if len(_array_kinds) >= _MOST_DTYPES:
            _array_kinds.clear()
        kind = ArrayKind(dtype, value.ndim, flags.c_contiguous, flags.writeable)
        entry = _array_kinds[key] = _same.setdefault(kind, kind), dtype
    return entry[0]


def _kind_of(value: Any) -> Kind:
    if isinstance(value, np.ndarray):
        return _array_kind(value)
    if isinstance(value, Sealed):
        return value.kind
    if isinstance(value, SealedRecords):
        return _array_kind(value.addresses)
    if isinstance(value, tuple):
        items = tuple(map(_kind_of, value))
        return RecordKind(type(value), items) if hasattr(value, "_fields") else TupleKind(items)
    if type(value) is int:
        return Number("q" if value < _LARGEST else "Q")
    return Number(_CODES[type(value)])


class Sealed(Generic[T]):
    """A record that is packed once, for many calls of kernels.

    Its words are in memory that is never written again. So a kernel may keep a field in a register, and a
    record can be replaced only by sealing another one.
    """

    __slots__ = ("_words", "address", "flat", "kind", "value")

    def __init__(self, value: T, like: Sealed[T] | None = None) -> None:
        self.flat: Flat = {}
        known, words = pack((value,), None if like is None else like.flat, self.flat)
        self.value = value
        self._words = known.struct.pack(*words)
        self.address: int = ctypes.cast(ctypes.c_char_p(self._words), ctypes.c_void_p).value or 0
        self.kind = _sealed_kind(known)

    @property
    def record(self) -> T:
        """Return this object, typed as the record that kernels see."""
        return cast("T", self)

    def __reduce__(self) -> tuple[type[Sealed[T]], tuple[T]]:
        """Return the recipe of a copy, which is sealed again: the address belongs to this object's memory."""
        return Sealed, (self.value,)


class SealedRecords:
    """Records of any kinds, each packed once, which kernels take as an array of their addresses.

    A kernel passes an address by `call_at` to a kernel compiled for a sealed record of that kind. So it needs
    to know neither the kinds nor the number of the records. A copy has separate records and addresses.

    Attributes
    ----------
    records : tuple of NamedTuple
        The records. The content of their arrays may change, the arrays may not.
    addresses : int64[n]
        Address of the words of each record.
    """

    __slots__ = ("_sealed", "addresses", "records")

    def __init__(self, records: Iterable[Any]) -> None:
        self.records = tuple(records)
        self._sealed = tuple(map(Sealed, self.records))
        self.addresses = np.array([each.address for each in self._sealed], np.int64)

    @property
    def array(self) -> NDArray[np.int64]:
        """Return this object; its type is the array of addresses that kernels receive."""
        return cast("NDArray[np.int64]", self)

    def __reduce__(self) -> tuple[type[SealedRecords], tuple[tuple[Any, ...]]]:
        """Return the recipe of a copy: the addresses belong to this object's memory."""
        return SealedRecords, (self.records,)


_sealed_kinds: dict[Packed, RecordKind] = {}


def _sealed_kind(known: Packed) -> RecordKind:
    """Return the kind of a sealed record, which is passed by its address, from the layout of its words."""
    kind = _sealed_kinds.get(known)
    if kind is None:
        record = known.kinds[0]
        if not isinstance(record, RecordKind):
            raise TypeError("only a NamedTuple can be sealed")
        kind = _sealed_kinds.setdefault(known, record._replace(sealed=True))
    return kind
