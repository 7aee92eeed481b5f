"""The codec of state: a tree of plain values and arrays as bytes, in files and in messages; no pickle.

The tree is one MessagePack map, the *description*, which the arrays follow. In it, an array is a map of three
entries: ``dtype`` (as NumPy spells it, little-endian, or the name of a record type), ``shape``, and ``at``,
the offset of its first byte from the first array. Each array begins at a multiple of 64 bytes, after padding
with zeros; its items are in C order. What stands before the description, and how the whole is checked, is up
to the file or the message. The same tree gives the same bytes.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

_ALIGNMENT = 64
_ARRAY = {"dtype", "shape", "at"}
_DTYPES = {"<f4", "<f8", "<i4", "<i8", "<u2", "<u4", "<u8", "|u1", "|b1"}
"""The types of numbers in arrays, in NumPy's spelling."""
_NO_RECORDS: dict[str, np.dtype[Any]] = {}


class Described(NamedTuple):
    """A tree as bytes: its description, and its arrays, which are not copied."""

    description: bytes
    arrays: list[NDArray[Any]]
    size: int  # bytes of the arrays, with their padding

    def parts(self, head: bytes) -> Iterator[bytes | memoryview]:
        """Yield the bytes of the tree after a `head`, padded so that the first array is aligned."""
        begin = len(head) + len(self.description)
        yield head + self.description + bytes(align(begin) - begin)
        for array in self.arrays:
            if array.nbytes:
                yield array.reshape(-1).view(np.uint8).data
            yield bytes(align(array.nbytes) - array.nbytes)


def align(size: int) -> int:
    """Return a size rounded up to the alignment of arrays."""
    return -(-size // _ALIGNMENT) * _ALIGNMENT


def describe(tree: Any, *, owner: str, record_types: Mapping[str, np.dtype[Any]] = _NO_RECORDS) -> Described:
    """Return a tree as bytes; `owner` names what holds it in errors, such as "a model"."""
    arrays: list[NDArray[Any]] = []
    end = 0

    def description_of(value: object) -> object:
        nonlocal end
        if isinstance(value, np.generic):
            return value.item()
        if not isinstance(value, np.ndarray):
            raise TypeError(f"{owner} cannot hold {type(value).__name__}")
        array = np.ascontiguousarray(value, value.dtype.newbyteorder("<"))
        arrays.append(array)
        offset, end = end, align(end + array.nbytes)
        name = next((name for name, dtype in record_types.items() if dtype == array.dtype), array.dtype.str)
        return {"dtype": name, "shape": array.shape, "at": offset}

    description = msgspec.msgpack.encode(tree, enc_hook=description_of, order="deterministic")
    return Described(description, arrays, end)


def restore_tree(
    data: Any,
    begin: int,
    end: int,
    *,
    limit: int,
    record_types: Mapping[str, np.dtype[Any]] = _NO_RECORDS,
) -> Any:
    """Return the tree whose description is in `data[begin:end]`; its arrays are views of `data`.

    No array may extend beyond `limit`. Bytes that are no such tree raise a ValueError, a TypeError, a
    RecursionError or msgspec's DecodeError.
    """

    def restored(value: Any) -> Any:
        if isinstance(value, list):
            return [restored(item) for item in value]
        if not isinstance(value, dict):
            return value
        if value.keys() != _ARRAY:
            return {key: restored(item) for key, item in value.items()}
        kind, shape, offset = value["dtype"], value["shape"], value["at"]
        if not (isinstance(kind, str) and (kind in _DTYPES or kind in record_types)) or not isinstance(
            shape, list
        ):
            raise ValueError(f"there is no array of {kind!r} of the shape {shape!r}")
        if not all(isinstance(size, int) and size >= 0 for size in (*shape, offset)):
            raise ValueError(f"there is no array of the shape {shape!r} at {offset!r}")
        dtype, count, first = record_types.get(kind) or np.dtype(kind), math.prod(shape), align(end) + offset
        if first + count * dtype.itemsize > limit:
            raise ValueError("one of its arrays ends beyond the end of the file")
        return np.frombuffer(data, dtype, count=count, offset=first).reshape(shape)

    return restored(msgspec.msgpack.decode(data[begin:end]))
