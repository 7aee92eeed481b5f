"""Stored: values read from a model file, accepted only if they are valid.

A checksum detects damage, not forgery. So a value reaches a kernel only if its type and shape are right and,
for a count, a position or an index, its range.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeVar, cast

import msgspec
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import DTypeLike, NDArray

T = TypeVar("T")

_LARGEST = float(np.finfo(np.float32).max)

MOST = 2**62 - 1
"""Largest count: counting can continue from it without overflow."""


class Stored:
    """A value in the tree of a file, with its position for messages.

    Each method returns the value as the type in the method's name, or raises a `ValueError` that says where
    the value is and what is wrong.

    Examples
    --------
    >>> stored = Stored({"events": 3, "drift": {"most": -1.5}})
    >>> stored["events"].count(), stored["drift"]["most"].number()
    (3, -1.5)
    >>> stored["drift"]["most"].count()
    Traceback (most recent call last):
        ...
    ValueError: drift.most is -1.5, and not a whole number from 0 to 4611686018427387903
    """

    def __init__(self, value: object, name: str = "") -> None:
        self._value, self._name = value, name

    def __getitem__(self, key: str) -> Stored:
        """Return the value of a key of a map."""
        if key not in self:
            raise ValueError(f"{self._child(key)} is missing")
        return Stored(self._map()[key], self._child(key))

    def __contains__(self, key: str) -> bool:
        """Return whether a map has a key."""
        return key in self._map()

    def _map(self) -> dict[str, Any]:
        if not isinstance(self._value, dict):
            raise self.fail("a map")
        return self._value

    def _child(self, key: str) -> str:
        return f"{self._name}.{key}" if self._name else key

    def apply(self, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Stored:
        """Return the result of a function of a map, under the same name in messages."""
        return Stored(change(self._map()), self._name)

    def fail(self, expected: str) -> ValueError:
        """Return the error for a value that is not `expected`."""
        value = self._value
        text = f"{value.dtype}{list(value.shape)}" if isinstance(value, np.ndarray) else repr(value)
        return ValueError(f"{self._name} is {text[:80]}, and not {expected}")

    def is_none(self) -> bool:
        """Return whether the value is None."""
        return self._value is None

    def truth(self) -> bool:
        """Return a truth value."""
        if not isinstance(self._value, bool):
            raise self.fail("a truth value")
        return self._value

    def count(self, most: int = MOST) -> int:
        """Return a whole number from 0 to `most`."""
        if not isinstance(self._value, int) or isinstance(self._value, bool) or not 0 <= self._value <= most:
            raise self.fail(f"a whole number from 0 to {most}")
        return self._value

    def number(self) -> float:
        """Return a finite number."""
        if not isinstance(self._value, float | np.floating) or not np.isfinite(self._value):
            raise self.fail("a finite number")
        return float(self._value)

    def single(self) -> np.float32:
        """Return a finite float32."""
        if abs(number := self.number()) > _LARGEST:
            raise self.fail("a number that single precision has")
        return np.float32(number)

    def name_list(self) -> list[bytes]:
        """Return names of namespaces, which must be non-empty, ascending and distinct."""
        names = self.convert(list[bytes])
        if not all(names) or any(one >= other for one, other in pairwise(names)):
            raise self.fail("names in ascending order")
        return names

    def items(self) -> list[Stored]:
        """Return the items of a list."""
        if not isinstance(self._value, list | tuple):
            raise self.fail("a list")
        return [Stored(item, f"{self._name}[{index}]") for index, item in enumerate(self._value)]

    def convert(self, kind: type[T]) -> T:
        """Return the value as a type that msgspec can convert to."""
        try:
            return msgspec.convert(self._value, kind)
        except (msgspec.ValidationError, AttributeError) as error:  # AttributeError: an array is no map
            message, _, path = str(error).partition(" - at `$")
            raise ValueError(f"{self._name}{path.rstrip('`')}: {message}") from None

    def array(self, dtype: DTypeLike, *shapes: Sequence[int]) -> NDArray[Any]:
        """Return an array of a type and of one of several shapes, in which -1 matches any size."""
        expected = np.dtype(dtype)
        if not isinstance(self._value, np.ndarray) or self._value.dtype != expected:
            raise self.fail(" or ".join(f"{expected}{list(shape)}" for shape in shapes))
        result = cast("NDArray[Any]", self._value)
        if not any(_fits(result.shape, shape) for shape in shapes):
            raise self.fail(" or ".join(f"{expected}{list(shape)}" for shape in shapes))
        if expected == np.bool_ and result.size and int(result.view(np.uint8).max()) > 1:
            raise self.fail("truth values, which are 0 or 1")
        return result

    def counts(self, shape: Sequence[int], *, most: int = MOST) -> NDArray[np.int64]:
        """Return an int64 array of whole numbers from 0 to `most`."""
        result: NDArray[np.int64] = self.array(np.int64, shape)
        if result.size and not (result.min() >= 0 and result.max() <= most):
            raise ValueError(f"{self._name} has a number that is not from 0 to {most}")
        return result

    def indices(self, n: int) -> NDArray[Any]:
        """Return the ascending indices of entries, of `n`, that `pack_indices` has packed."""
        if isinstance(self._value, np.ndarray) and self._value.dtype == np.uint8:
            return np.flatnonzero(np.unpackbits(self.array(np.uint8, (-(-n // 8),)), count=n))
        indices = self.array(np.uint32, (-1,))
        if len(indices) and not (indices[-1] < n and (indices[1:] > indices[:-1]).all()):
            raise self.fail(f"numbers below {n} in ascending order")
        return indices

    def finite(self, dtype: DTypeLike, *shapes: Sequence[int], most: float = math.inf) -> NDArray[Any]:
        """Return an array like `array`, whose numbers must be finite and from `-most` to `most`."""
        result = self.array(dtype, *shapes)
        largest = max(-float(result.min()), float(result.max())) if result.size else 0.0
        if not math.isfinite(largest):
            raise ValueError(f"{self._name} has a number that is not finite")
        if largest > most:
            raise ValueError(f"{self._name} has a number that is not from {-most:g} to {most:g}")
        return result

    def array_between(self, array: NDArray[Any], low: float, high: float) -> NDArray[Any]:
        """Return an array of the type and shape of `array`, with all numbers from `low` to `high`."""
        result = self.array_like(array)
        if result.size and not (result.min() >= low and result.max() <= high):
            raise ValueError(f"{self._name} has a number that is not from {low:g} to {high:g}")
        return result

    def array_like(self, array: NDArray[Any]) -> NDArray[Any]:
        """Return an array of the same type and shape as `array`."""
        return self.array(array.dtype, array.shape)


def pack_indices(indices: NDArray[Any], n: int) -> NDArray[Any]:
    """Return ascending indices of entries, of `n`, as uint32; or a bit for each entry, if that is smaller."""
    if 32 * len(indices) <= n:
        return indices.astype(np.uint32)
    used = np.zeros(n, np.bool_)
    used[indices] = True
    return np.packbits(used)


def _fits(shape: tuple[int, ...], expected: Sequence[int]) -> bool:
    """Return whether a shape equals `expected`, in which -1 matches any size."""
    return len(shape) == len(expected) and all(
        length == size or size < 0 for length, size in zip(shape, expected, strict=True)
    )
