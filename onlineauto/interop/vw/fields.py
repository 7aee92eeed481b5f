"""``Fields``: the fields of Vowpal Wabbit's binary files, for reading and for writing.

The layout of a file is one function of a `Fields` and a value, for both directions. With a `FieldReader` each
field is read from the file and returned. With a `FieldWriter` each field of the value is written and
returned.
"""

from __future__ import annotations

import struct
from itertools import islice, repeat
from typing import TYPE_CHECKING, Protocol, TypeVar

import numpy as np

from onlineauto.errors import InputError
from onlineauto.features.hash_kernels import murmur3

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

N = TypeVar("N", int, float, bytes)
T = TypeVar("T")


class Fields(Protocol):
    """The operations that a layout uses."""

    def number(self, kind: str, value: N) -> N:
        """Read or write one value, of a `kind` of `struct`: ``Q`` is a uint64, ``3s`` has three bytes."""

    def bytes_(self, value: bytes) -> bytes:
        """Read or write bytes, after a uint32 with their number."""

    def items(self, values: Sequence[T], convert: Callable[[T], T], *, empty: T) -> tuple[T, ...]:
        """Read or write items, each with `convert`, after a uint32 with their number."""

    def constant(self, kind: str, value: int) -> None:
        """Read or write a constant number."""

    def begin_checksum(self) -> None:
        """Begin the checksum here."""

    def checksum(self) -> None:
        """Check or write the checksum of the fields since `summed`."""


def checksum_of(parts: Iterable[bytes]) -> int:
    """Return the hash (uint32) of fields, where each field's hash seeds the next."""
    hash_ = 0
    for part in parts:
        hash_ = int(murmur3(np.frombuffer(part, np.uint8), 0, len(part), np.uint32(hash_)))
    return hash_


class FieldReader:
    """Reads fields from bytes."""

    def __init__(self, data: bytes, *, name: str) -> None:
        self._data, self._name = data, name
        self._parts: list[bytes] | None = None
        self.at = 0

    def fail(self, reason: str) -> InputError:
        """Return the error that reports a problem of the file."""
        return InputError(f"{self._name} is not a whole model file of Vowpal Wabbit: {reason}")

    def _read_bytes(self, size: int) -> bytes:
        part = self._data[self.at : self.at + size]
        if len(part) < size:
            raise self.fail("it was cut off")
        self.at += size
        if self._parts is not None and size:
            self._parts.append(part)
        return part

    def number(self, kind: str, value: N) -> N:  # noqa: ARG002 - only the writer uses it
        """Read one number."""
        (taken,) = struct.unpack("<" + kind, self._read_bytes(struct.calcsize("<" + kind)))
        return taken  # type: ignore[no-any-return]

    def bytes_(self, value: bytes) -> bytes:  # noqa: ARG002 - only the writer uses it
        """Read bytes, after their number."""
        return self._read_bytes(self.number("I", 0))

    def items(self, values: Sequence[T], convert: Callable[[T], T], *, empty: T) -> tuple[T, ...]:  # noqa: ARG002
        """Read items, after their number."""
        return tuple(convert(item) for item in islice(repeat(empty), self.number("I", 0)))

    def constant(self, kind: str, value: int) -> None:
        """Check that a number is `value`."""
        at = self.at
        if (number := self.number(kind, 0)) != value:
            raise self.fail(f"{number} is at byte {at}, where {value} was expected")

    def begin_checksum(self) -> None:
        """Begin the checksum here."""
        self._parts = []

    def checksum(self) -> None:
        """Check the checksum of the fields since `summed`."""
        parts, self._parts = self._parts or [], None
        self.constant("I", 4)  # the size of the checksum
        if self.number("I", 0) != checksum_of(parts):
            raise self.fail("its checksum is not that of its options")


class FieldWriter:
    """Writes fields."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self._summed = 0

    def number(self, kind: str, value: N) -> N:
        """Write one number."""
        self.parts.append(struct.pack("<" + kind, value))
        return value

    def bytes_(self, value: bytes) -> bytes:
        """Write bytes, after their number."""
        self.number("I", len(value))
        self.parts.append(value)
        return value

    def items(self, values: Sequence[T], convert: Callable[[T], T], *, empty: T) -> tuple[T, ...]:  # noqa: ARG002
        """Write items, after their number."""
        self.number("I", len(values))
        return tuple(convert(item) for item in values)

    def constant(self, kind: str, value: int) -> None:
        """Write one number."""
        self.number(kind, value)

    def begin_checksum(self) -> None:
        """Begin the checksum here."""
        self._summed = len(self.parts)

    def checksum(self) -> None:
        """Write the checksum of the fields since `summed`."""
        checksum = checksum_of(filter(None, self.parts[self._summed :]))
        self.number("I", 4)  # the size of the checksum
        self.number("I", checksum)
