"""Fields of Vowpal Wabbit's binary files, one after the other: read from bytes, or written to them.

The layout of a file is a function of a `Fields` and of a value: a `FieldReader` takes each field from the
file and gives it back, a `FieldWriter` writes that of the value and gives this back. So it is said once.
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

__all__ = ["FieldReader", "FieldWriter", "Fields", "checksum_of"]

N = TypeVar("N", int, float)
T = TypeVar("T")


class Fields(Protocol):
    """What a layout asks for."""

    def number(self, kind: str, value: N) -> N:
        """One number, of a `kind` that `struct` knows: ``Q`` is a uint64, ``f`` a float32."""

    def bytes_(self, value: bytes) -> bytes:
        """Bytes, with a uint32 that says how many before them."""

    def items(self, values: Sequence[T], each: Callable[[T], T], *, empty: T) -> tuple[T, ...]:
        """Items that `each` lays out, with a uint32 that says how many before them."""

    def constant(self, kind: str, value: int) -> None:
        """A number that is always the same."""

    def summed(self) -> None:
        """Let the checksum begin here."""

    def checksum(self) -> None:
        """The checksum of the fields since, each by itself."""


def checksum_of(parts: Iterable[bytes]) -> int:
    """Hash (uint32) of fields, the one before being the seed of the next."""
    hash_ = np.uint32(0)
    for part in parts:
        hash_ = murmur3(np.frombuffer(part, np.uint8), 0, len(part), hash_)
    return int(hash_)


class FieldReader:
    """Takes fields from bytes.

    Parameters
    ----------
    data : bytes
        All of a file.
    name : str
        What to call it in messages.

    Attributes
    ----------
    at : int
        Where the next field begins.
    """

    def __init__(self, data: bytes, *, name: str) -> None:
        self._data, self._name = data, name
        self._parts: list[bytes] | None = None
        self.at = 0

    def fail(self, why: str) -> InputError:
        """Make the error that says what is wrong with the file."""
        return InputError(f"{self._name} is not a whole model file of Vowpal Wabbit: {why}")

    def _take(self, size: int) -> bytes:
        part = self._data[self.at : self.at + size]
        if len(part) < size:
            raise self.fail("it was cut off")
        self.at += size
        if self._parts is not None and size:
            self._parts.append(part)
        return part

    def number(self, kind: str, value: N) -> N:  # noqa: ARG002 - it is the writer's
        """Take one number."""
        (taken,) = struct.unpack("<" + kind, self._take(struct.calcsize("<" + kind)))
        return taken  # type: ignore[no-any-return]

    def bytes_(self, value: bytes) -> bytes:  # noqa: ARG002 - it is the writer's
        """Take bytes, and how many before them."""
        return self._take(self.number("I", 0))

    def items(self, values: Sequence[T], each: Callable[[T], T], *, empty: T) -> tuple[T, ...]:  # noqa: ARG002
        """Take items, and how many before them."""
        return tuple(each(item) for item in islice(repeat(empty), self.number("I", 0)))

    def constant(self, kind: str, value: int) -> None:
        """Hold one number to what it has to be.

        Raises
        ------
        InputError
            It is another one.
        """
        at = self.at
        if (found := self.number(kind, 0)) != value:
            raise self.fail(f"{found} is at byte {at}, and {value} should be")

    def summed(self) -> None:
        """Let the checksum begin here."""
        self._parts = []

    def checksum(self) -> None:
        """Hold the fields since to their checksum.

        Raises
        ------
        InputError
            They have another one.
        """
        parts, self._parts = self._parts or [], None
        self.constant("I", 4)  # its size
        if self.number("I", 0) != checksum_of(parts):
            raise self.fail("its checksum is not that of its options")


class FieldWriter:
    """Writes fields.

    Attributes
    ----------
    parts : list of bytes
        What is written.
    """

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self._summed = 0

    def number(self, kind: str, value: N) -> N:
        """Write one number."""
        self.parts.append(struct.pack("<" + kind, value))
        return value

    def bytes_(self, value: bytes) -> bytes:
        """Write bytes, and how many before them."""
        self.number("I", len(value))
        self.parts.append(value)
        return value

    def items(self, values: Sequence[T], each: Callable[[T], T], *, empty: T) -> tuple[T, ...]:  # noqa: ARG002
        """Write items, and how many before them."""
        self.number("I", len(values))
        return tuple(each(item) for item in values)

    def constant(self, kind: str, value: int) -> None:
        """Write one number."""
        self.number(kind, value)

    def summed(self) -> None:
        """Let the checksum begin here."""
        self._summed = len(self.parts)

    def checksum(self) -> None:
        """Write the checksum of what is written since."""
        checksum = checksum_of(filter(None, self.parts[self._summed :]))
        self.number("I", 4)  # its size
        self.number("I", checksum)
