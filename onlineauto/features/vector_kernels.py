"""Vectors: spans of at least `LEAST_VECTOR` features with consecutive hashes, which keep their zeros."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.features.records import LEAST_VECTOR
from onlineauto.jit import kernel

if TYPE_CHECKING:
    from onlineauto.features.records import Records

_NEXT, _ZERO = np.uint32(1), np.float32(0)


@kernel
def is_vector(features: Records, begin: int, end: int) -> bool:
    """Return whether ``features[begin:end]`` are a vector."""
    if end - begin < LEAST_VECTOR:
        return False
    for i in range(begin + 1, end):
        if features[i].hash != np.uint32(features[i - 1].hash + _NEXT):
            return False
    return True


@kernel
def settle_zeros(features: Records, begin: int, end: int) -> int:
    """Remove the zeros of ``features[begin:end]`` unless these are a vector; return the new end."""
    if is_vector(features, begin, end):
        return end
    n = begin
    for i in range(begin, end):
        if features[i].value != _ZERO:
            features[n].hash = features[i].hash
            features[n].value = features[i].value
            n += 1
    return n
