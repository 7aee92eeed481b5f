"""Read and write a learned policy as an ``.npz`` file without pickle."""

from __future__ import annotations

import io
import json
import os
import struct
import tokenize
import zipfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from onlineauto.cluster.learned.net import shapes
from onlineauto.errors import InputError

if TYPE_CHECKING:
    from typing import IO

    from onlineauto.cluster.learned.net import Weights
    from onlineauto.cluster.policies.situation import Floats

_FORMAT: Final = 1
_MOST: Final = 1 << 22
"""Maximum size of an array of such a file, which has a small network."""
_MOST_BYTES: Final = 1 << 24
_MOST_KINDS: Final = 1000
_BROKEN: Final = (
    *(ValueError, TypeError, KeyError, EOFError, IndexError, SyntaxError, RuntimeError, MemoryError),
    *(OverflowError, OSError, zipfile.BadZipFile, zlib.error, struct.error, tokenize.TokenError),
)
"""Exceptions that a damaged archive or a damaged array may raise."""


def write_policy(
    path: str | os.PathLike[str], kinds: tuple[str, ...], scales: Floats, weights: Weights
) -> None:
    """Write a policy: float32 arrays, and the names of kinds as JSON."""
    about = json.dumps({"format": _FORMAT, "kinds": list(kinds)}).encode()
    arrays: dict[str, Any] = {name: each.astype(np.float32) for name, each in weights.items()}
    with Path(path).open("wb") as file:
        np.savez_compressed(
            file, about=np.frombuffer(about, np.uint8), scales=scales.astype(np.float32), **arrays
        )


def read_policy(path: str | os.PathLike[str]) -> tuple[tuple[str, ...], Floats, Weights]:
    """Return the names of kinds, their scales and the weights of a policy in a file."""
    with Path(path).open("rb") as file:
        text = file.read(_MOST_BYTES + 1)
    try:
        if len(text) > _MOST_BYTES:
            raise ValueError("it is too large")
        return _read(io.BytesIO(text))
    except _BROKEN as error:
        raise InputError(f"{os.fspath(path)}: not a policy that Learned.save wrote: {error}") from error


def _read(file: IO[bytes]) -> tuple[tuple[str, ...], Floats, Weights]:
    with zipfile.ZipFile(file) as archive:
        # The directory has the size of each array before it is decompressed.
        sizes = {each.filename: each.file_size for each in archive.infolist()}
    large = [name for name, size in sizes.items() if size > _MOST]
    if large:
        raise ValueError(f"{large[0]} is too large")
    file.seek(0)
    with np.load(file, allow_pickle=False) as arrays:
        about = json.loads(_array(arrays, "about", np.uint8).tobytes())
        if not isinstance(about, dict) or about.get("format") != _FORMAT:
            raise ValueError("its format is unknown")
        kinds = about.get("kinds")
        if not isinstance(kinds, list) or not all(isinstance(each, str) for each in kinds):
            raise ValueError("its list of kinds of jobs is missing or damaged")
        if len(kinds) > _MOST_KINDS or len({*kinds}) < len(kinds):
            raise ValueError("a kind of jobs is repeated, or there are too many kinds")
        scales = _array(arrays, "scales", np.float32, (len(kinds) + 1,))
        width = _array(arrays, "bias", np.float32).size
        weights = {
            name: _array(arrays, name, np.float32, shape)
            for name, shape in shapes(len(kinds), 3, width).items()
        }
    if scales.min() <= 0:
        raise ValueError("a scale is not above 0")
    return tuple(kinds), scales, weights


def _array(arrays: Any, name: str, kind: type, shape: tuple[int, ...] | None = None) -> Any:
    """Return an array after a check of its type, its shape and its numbers, which must be finite."""
    array = arrays[name]
    if array.dtype != kind or (shape is not None and array.shape != shape) or array.size > _MOST:
        raise ValueError(f"{name} is {array.dtype}{list(array.shape)}")
    if kind is np.uint8:
        return array
    if not np.isfinite(array).all():
        raise ValueError(f"{name} has a number that is not finite")
    return array.astype(np.float64)
