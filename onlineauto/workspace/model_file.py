r"""Model files: a tree of numbers, texts, bytes and arrays in one file. An incomplete file is rejected.

::

    file = MAGIC  HEAD  description  array ...  SHA-256 of all before it

The head has the version of this layout and the sizes of the description and of the file. Description and
arrays are those of `onlineauto.state.codec`.

A file is written to a temporary name, flushed to the disk, and then renamed. So a reader always sees the old
file or the complete new one. ``docs/reference/formats/model-file.md`` describes the tree of a model.
"""

from __future__ import annotations

import mmap
import os
import re
import stat
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
import numpy as np

from onlineauto.errors import InputError, OutputError, short_repr
from onlineauto.formats.blocks.file import BEGIN
from onlineauto.formats.sources.replaced_file import replacing
from onlineauto.state.codec import align, describe, restore_tree

if TYPE_CHECKING:
    import hashlib
    from collections.abc import Iterable, Iterator, Mapping

    from onlineauto.formats.sources.replaced_file import Alone

State: TypeAlias = dict[str, Any]
"""A tree: maps and lists of numbers, texts, bytes, arrays, and other values that msgspec can encode."""

MAGIC = b"\x89oam\r\n\x1a\n"
"""The first bytes of a file. Like in PNG, a transfer of the file as text changes them."""
VERSION = 1
"""Version of this layout and of the tree; it increases with every change that older programs cannot read.

Sections of the tree have separate versions, so that a change of one section leaves the others unchanged.
"""
HEAD = np.dtype(
    [("version", "<u4"), ("reserved", "<u4"), ("description_bytes", "<u8"), ("file_bytes", "<u8")]
)
"""The head, which follows the magic: 24 bytes."""

VW_BEGIN = re.compile(rb"(?s)[\x06-\x0c]\0\0\0(\d+\.\d+\.\d+)\0")
"""The beginning of a model file of Vowpal Wabbit, version 7 or later."""
_HEAD_BYTES = 24
_DIGEST = 32
_BEGIN = len(MAGIC) + HEAD.itemsize


def _sha256() -> hashlib._Hash:
    """Return a digest of OpenSSL, which takes 3 MB of memory and a fifth of the time of Python's."""
    from hashlib import sha256

    return sha256()


def encode_tree(tree: Mapping[str, Any]) -> Iterator[bytes | memoryview]:
    """Yield the bytes of a tree's file, in parts; arrays are not copied."""
    described = describe(tree, owner="a model")
    head = np.zeros((), HEAD)
    head["version"], head["description_bytes"] = VERSION, len(described.description)
    head["file_bytes"] = align(_BEGIN + len(described.description)) + described.size + _DIGEST
    digest = _sha256()
    for part in described.parts(MAGIC + head.tobytes()):
        digest.update(part)
        yield part
    yield digest.digest()


def decode_tree(data: bytes | mmap.mmap, *, name: str) -> State:
    """Return the tree of a file; its arrays are read-only views of the same memory."""
    if data[: len(MAGIC)] != MAGIC:
        raise InputError(_foreign(data[:_HEAD_BYTES], name))
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
    digest = _sha256()
    with memoryview(data) as view:
        digest.update(view[:-_DIGEST])
    if digest.digest() != data[-_DIGEST:]:
        raise InputError(f"{name} is damaged: its checksum does not match its content")
    end = _BEGIN + int(head["description_bytes"])
    try:
        tree = restore_tree(data, _BEGIN, end, limit=len(data) - _DIGEST)
        return dict(tree.items())
    except (msgspec.DecodeError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(f"{name} is not a model file that this program understands: {error}") from None


def _foreign(head: bytes, name: str) -> str:
    """Return the message about a file, with these first bytes, that is no model of onlineauto."""
    if vw := VW_BEGIN.match(head):
        return (
            f"{name} is a model of Vowpal Wabbit {vw[1].decode()}: to search with it or serve it, save "
            "AutoML(names=…).warm_start(…, namespaces=[…]); to continue it unchanged, read it with "
            "onlineauto.interop.read_vw_model, or convert it with `onlineauto convert`"
        )
    kind = "it is a file of blocks" if head.startswith(BEGIN) else f"it begins with {short_repr(head)}"
    return f"{name} is not a model file of onlineauto: {kind if head else 'it is empty'}"


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


def replace_file(
    path: str | os.PathLike[str],
    parts: Iterable[bytes | memoryview],
    *,
    alone: Alone = nullcontext,
    private: bool = False,
) -> None:
    """Write a file atomically: at any instant, the path has the old file or the complete new one."""
    check_target(path)
    if _is_device(path):
        try:
            with Path(path).open("wb") as device:
                device.writelines(parts)
        except OSError as error:
            raise OutputError(f"cannot write {path}: {error.strerror}") from None
        return
    with replacing(path, alone=alone, private=private) as file:
        file.writelines(parts)
