"""Mark strings, lines and the bytes that VW replaces in a JSON text, in bitmaps.

The bitmaps have the format of `onlineauto.formats.lines.mark_kernels`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.jit import entry_kernel, inline_kernel, local_array
from onlineauto.jit.words import LANES, below, equal, store8

if TYPE_CHECKING:
    from numpy.typing import NDArray

_QUOTE, _BACKSLASH, _NEWLINE, _SPACE, _BAR, _COLON = 34, 92, 10, 32, 124, 58
_last = local_array(LANES, np.uint8)


@inline_kernel
def _mark(
    data: NDArray[np.uint8],
    i: int,
    marks: NDArray[np.uint8],
    breaks: NDArray[np.uint8],
    odd: NDArray[np.uint8],
    index: int,
) -> None:
    """Mark the 64 bytes from `i` on in the eight bytes from index `index` of each bitmap."""
    control = below(data, i, _SPACE)
    store8(marks, index, equal(data, i, _QUOTE) | equal(data, i, _BACKSLASH) | control)
    store8(breaks, index, equal(data, i, _NEWLINE))
    store8(odd, index, equal(data, i, _SPACE) | equal(data, i, _BAR) | equal(data, i, _COLON) | control)


@entry_kernel
def find_json_marks(
    data: NDArray[np.uint8],
    end: int,
    marks: NDArray[np.uint8],
    breaks: NDArray[np.uint8],
    odd: NDArray[np.uint8],
) -> None:
    """Fill the bitmaps of ``data[:end]``; the position `end` is marked in each.

    Parameters
    ----------
    data : uint8[:]
        The text.
    end : int
        End of the text.
    marks : uint8[:]
        Receives the bytes that end or interrupt a string: quotes, backslashes and control bytes.
    breaks : uint8[:]
        Receives newlines.
    odd : uint8[:]
        Receives the bytes that VW replaces in a string, or at which it splits a string: blanks, bars, colons,
        control bytes.
    """
    aligned_end = end // LANES * LANES
    for i in range(0, aligned_end, LANES):
        _mark(data, i, marks, breaks, odd, i // 8)
    last = _last()
    for i in range(LANES):
        last[i] = data[aligned_end + i] if aligned_end + i < end else _NEWLINE
    _mark(last, 0, marks, breaks, odd, aligned_end // 8)
