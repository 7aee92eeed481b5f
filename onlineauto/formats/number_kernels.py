"""Whether a word is a number, for native mode."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from onlineauto.formats.float_kernels import parse_decimal, parse_vw_float
from onlineauto.jit import inline_kernel, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["DECIMAL", "NOT_FINITE", "PARTLY", "WORD", "read_number"]

DECIMAL, NOT_FINITE, PARTLY, WORD = range(4)
"""A finite decimal number; infinity, NaN or a number too large; a number and more; no number at all."""

_ZERO = np.float32(0)


@kernel
def _may_be_infinity_or_nan(data: NDArray[np.uint8], p: int, end: int) -> bool:
    if p < end and (data[p] == 43 or data[p] == 45):
        p += 1
    return p < end and (data[p] | 32 == 105 or data[p] | 32 == 110)


@inline_kernel
def read_number(data: NDArray[np.uint8], start: int, end: int) -> tuple[np.float32, int]:
    """Value of the word ``data[start:end]``, 0 unless it is a finite decimal number, and its kind."""
    value, after = parse_decimal(data, start, end)
    if after == end and after > start:
        if math.isfinite(value):
            return np.float32(value), DECIMAL
        return _ZERO, NOT_FINITE
    if after > start:
        return _ZERO, PARTLY
    if _may_be_infinity_or_nan(data, start, end):
        value, after = parse_vw_float(data, start, end)
        if after == end and not math.isfinite(value):
            return _ZERO, NOT_FINITE
    return _ZERO, WORD
