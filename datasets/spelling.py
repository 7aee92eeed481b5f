"""Text of many events at once: a grid of bytes with one row an event, in which zero bytes do not count.

Parts of different lengths are padded to one width with zero bytes, so that NumPy writes whole columns; the
last step throws the zero bytes away. A table of words is indexed with the numbers that it spells.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["counting", "decimal", "decimals", "join", "side_by_side", "words"]


def words(entries: Sequence[bytes]) -> NDArray[np.uint8]:
    """Return `entries` as rows of bytes, uint8[entries, longest], padded with zero bytes.

    Examples
    --------
    >>> words([b"a", b"bc"]).tolist()
    [[97, 0], [98, 99]]
    """
    return np.array(entries, dtype=bytes)[:, np.newaxis].view(np.uint8)


@cache
def counting(stop: int) -> NDArray[np.uint8]:
    """Return the words ``0`` to ``stop - 1``."""
    return words([b"%d" % number for number in range(stop)])


@cache
def decimals(bound: int, places: int) -> NDArray[np.uint8]:
    """Return the words of the decimal fractions from ``-bound`` to ``bound``, counted in the last place.

    The word of the number ``k`` units above 0 has index ``bound + k``.

    Examples
    --------
    >>> [bytes(row).rstrip(bytes(1)) for row in decimals(2, 1)]
    [b'-0.2', b'-0.1', b'0', b'0.1', b'0.2']
    """
    return words([decimal(number, places=places) for number in range(-bound, bound + 1)])


def decimal(number: int, *, places: int) -> bytes:
    """Return `number` units of the last of `places` decimal places; zeros at the end are left out.

    Examples
    --------
    >>> decimal(-1250, places=3)
    b'-1.25'
    """
    whole, rest = divmod(abs(number), 10**places)
    fraction = f"{rest:0{places}d}".rstrip("0")
    return f"{'-' * (number < 0)}{whole}{'.' * bool(fraction)}{fraction}".encode()


def side_by_side(*parts: bytes | NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Join parts along their last axis; a bytes string stands beside every row.

    Examples
    --------
    >>> join(side_by_side(b"|a ", counting(3)[np.array([2, 0])], b" "))
    b'|a 2 |a 0 '
    """
    arrays = [np.frombuffer(part, np.uint8) if isinstance(part, bytes) else part for part in parts]
    leading = np.broadcast_shapes(*(array.shape[:-1] for array in arrays))
    joined = np.empty((*leading, sum(array.shape[-1] for array in arrays)), dtype=np.uint8)
    start = 0
    for array in arrays:
        joined[..., start : start + array.shape[-1]] = array
        start += array.shape[-1]
    return joined


def join(grid: NDArray[np.uint8]) -> bytes:
    """Return the text of a grid: its bytes in order, without the zero bytes."""
    return grid.tobytes().translate(None, delete=b"\0")
