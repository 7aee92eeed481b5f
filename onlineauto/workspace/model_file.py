r"""Model files: a tree of numbers, texts, bytes and arrays in one file. An incomplete file is rejected.

::

    file = MAGIC  HEAD  description  array ...  SHA-256 of all before it

The head has the version of this layout and the sizes of the description and of the file. The description is
the tree as one MessagePack map. In it, an array is a map of three entries: ``dtype`` (as NumPy spells it,
little-endian), ``shape``, and ``at``, the offset of its first byte from the first array of the file. Each
array begins at a multiple of 64 bytes of the file, after padding with zeros; its items are in C order.

A file is written to a temporary name, flushed to the disk, and then renamed. So a reader always sees the old
file or the complete new one. ``docs/reference/formats/model-file.md`` describes the tree of a model.
"""

from __future__ import annotations

import hashlib
import math
import mmap
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
import numpy as np

from onlineauto.errors import InputError, OutputError
from onlineauto.formats.sources.replaced_file import replacing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from numpy.typing import NDArray

State: TypeAlias = dict[str, Any]
"""A tree: maps and lists of numbers, texts, bytes, arrays, and other values that msgspec can encode."""

MAGIC = b"\x89oam\r\n\x1a\n"
"""The first bytes of a file. Like in PNG, a transfer of the file as text changes them."""
VERSION = 3
"""Version of this layout and of the tree; it increases with every change that older programs cannot read.

Sections of the tree have separate versions, so that a change of one section leaves the others unchanged.
"""
HEAD = np.dtype(
    [("version", "<u4"), ("reserved", "<u4"), ("description_bytes", "<u8"), ("file_bytes", "<u8")]
)
"""The head, which follows the magic: 24 bytes."""

_ALIGNMENT = 64
_DIGEST = hashlib.sha256().digest_size
_BEGIN = len(MAGIC) + HEAD.itemsize
_ARRAY = {"dtype", "shape", "at"}
_DTYPES = {"<f4", "<f8", "<i8", "<u4", "<u8", "|u1", "|b1"}
"""The types of arrays, in NumPy's spelling."""


def encode_tree(tree: Mapping[str, Any]) -> Iterator[bytes | memoryview]:
    """Yield the bytes of a tree's file, in parts; arrays are not copied.

    The same tree gives the same bytes.
    """
    arrays: list[NDArray[Any]] = []
    end = 0

    def describe(value: object) -> object:
        nonlocal end
        if isinstance(value, np.generic):
            return value.item()
        if not isinstance(value, np.ndarray):
            raise TypeError(f"a model cannot hold {type(value).__name__}")
        array = np.ascontiguousarray(value, value.dtype.newbyteorder("<"))
        arrays.append(array)
        at, end = end, _align(end + array.nbytes)
        return {"dtype": array.dtype.str, "shape": array.shape, "at": at}

    description = msgspec.msgpack.encode(tree, enc_hook=describe, order="deterministic")
    head = np.zeros((), HEAD)
    head["version"], head["description_bytes"] = VERSION, len(description)
    begin = _BEGIN + len(description)
    head["file_bytes"] = _align(begin) + end + _DIGEST
    digest = hashlib.sha256()
    for part in _parts(head.tobytes(), description + bytes(_align(begin) - begin), arrays):
        digest.update(part)
        yield part
    yield digest.digest()


def _parts(head: bytes, description: bytes, arrays: Iterable[NDArray[Any]]) -> Iterator[bytes | memoryview]:
    yield MAGIC
    yield head
    yield description
    for array in arrays:
        if array.nbytes:
            yield array.reshape(-1).view(np.uint8).data
        yield bytes(_align(array.nbytes) - array.nbytes)


def _align(size: int) -> int:
    """Return a size rounded up to the alignment of arrays."""
    return -(-size // _ALIGNMENT) * _ALIGNMENT


def decode_tree(data: bytes | mmap.mmap, *, name: str) -> State:
    """Return the tree of a file; its arrays are read-only views of the same memory."""
    if data[: len(MAGIC)] != MAGIC:
        raise InputError(
            f"{name} is not a model file of onlineauto; if it is one of Vowpal Wabbit, "
            "onlineauto.interop.read_vw_model reads it, and `onlineauto convert` converts it"
        )
    if len(data) < _BEGIN + _DIGEST:
        raise InputError(f"{name} is a model file that was cut off")
    head = np.frombuffer(data, HEAD, count=1, offset=len(MAGIC))[0]
    if head["version"] > VERSION:
        raise InputError(
            f"{name} is a model file of version {head['version']}, but this onlineauto reads versions "
            f"up to {VERSION}: load it with a later onlineauto, or the file is damaged"
        )
    if int(head["file_bytes"]) != len(data):
        raise InputError(
            f"{name} has {len(data)} bytes, but its header says {head['file_bytes']}: it was cut off or "
            "changed"
        )
    with memoryview(data) as view:
        digest = hashlib.sha256(view[:-_DIGEST]).digest()
    if digest != data[-_DIGEST:]:
        raise InputError(f"{name} is damaged: its checksum does not match its content")
    end = _BEGIN + int(head["description_bytes"])
    try:
        tree = msgspec.msgpack.decode(data[_BEGIN:end])
        return {key: _with_arrays(value, data, _align(end)) for key, value in tree.items()}
    except (msgspec.DecodeError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(f"{name} is not a model file that this program understands: {error}") from None


def _with_arrays(value: Any, data: bytes | mmap.mmap, begin: int) -> Any:
    """Return a tree whose descriptions of arrays are replaced by views; the first array is at `begin`."""
    if isinstance(value, list):
        return [_with_arrays(each, data, begin) for each in value]
    if not isinstance(value, dict):
        return value
    if value.keys() != _ARRAY:
        return {key: _with_arrays(each, data, begin) for key, each in value.items()}
    kind, shape, at = value["dtype"], value["shape"], value["at"]
    if not (isinstance(kind, str) and kind in _DTYPES and isinstance(shape, list)):
        raise ValueError(f"there is no array of {kind!r} of the shape {shape!r}")
    if not all(isinstance(size, int) and size >= 0 for size in (*shape, at)):
        raise ValueError(f"there is no array of the shape {shape!r} at {at!r}")
    dtype, count, first = np.dtype(kind), math.prod(shape), begin + at
    if first + count * dtype.itemsize > len(data) - _DIGEST:
        raise ValueError("one of its arrays ends beyond the end of the file")
    return np.frombuffer(data, dtype, count=count, offset=first).reshape(shape)


def read_file(path: str | os.PathLike[str]) -> State:
    """Return the tree of a file, which is memory-mapped and not copied."""
    try:
        with Path(path).open("rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                return decode_tree(file.read(), name=os.fspath(path))
            if not status.st_size:
                raise InputError(f"{os.fspath(path)} is empty, so it is not a model file")
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise InputError(f"cannot read the model {os.fspath(path)}: {error.strerror}") from None
    return decode_tree(data, name=os.fspath(path))


def check_target(path: str | os.PathLike[str]) -> None:
    """Check that a file can be written to `path`, so that a long run does not fail at its end."""
    if _is_device(path):
        return
    target = Path(path).resolve()
    if target.is_dir():
        raise OutputError(f"cannot write {path}: it is a directory")
    if not target.parent.is_dir():
        raise OutputError(f"cannot write {path}: the folder {target.parent} does not exist, make it first")
    if not os.access(target.parent, os.W_OK | os.X_OK):
        raise OutputError(f"cannot write {path}: the folder {target.parent} is not writable")


def _is_device(path: str | os.PathLike[str]) -> bool:
    """Return whether `path` exists and is neither a file nor a directory: a pipe, or ``/dev/null``."""
    return Path(path).exists() and not Path(path).is_file() and not Path(path).is_dir()


def replace_file(path: str | os.PathLike[str], parts: Iterable[bytes | memoryview]) -> None:
    """Write a file atomically: at any instant, the path has the old file or the complete new one.

    A device or a pipe, such as ``/dev/null``, is written to directly.
    """
    check_target(path)
    if _is_device(path):
        try:
            with Path(path).open("wb") as device:
                device.writelines(parts)
        except OSError as error:
            raise OutputError(f"cannot write {path}: {error.strerror}") from None
        return
    with replacing(path) as file:
        file.writelines(parts)
