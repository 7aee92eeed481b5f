"""What members of ``--rnd`` guess, as VW has it: a normal number of each index, times the feature."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tests.naive.explorers import merand48

if TYPE_CHECKING:
    from tests.naive.blocks import Event
    from tests.naive.exploring import Exploring
    from tests.naive.features import Example

__all__ = ["guess", "normal", "unmasked"]

F = np.float32

_LOGF = ctypes.CDLL("libm.so.6").logf
_LOGF.restype, _LOGF.argtypes = ctypes.c_float, [ctypes.c_float]


def normal(state: int) -> tuple[np.float32, int]:
    """The next normal number of VW's generator, and its state behind it."""
    while True:
        first, state = merand48(state)
        second, state = merand48(state)
        x, y = F(2) * first - F(1), F(2) * second - F(1)
        size = x * x + y * y
        if 0 < size < 1:
            return x * np.sqrt(F(-2) * F(_LOGF(float(size))) / size), state


def unmasked(bandit: Exploring, event: Event, *, bits: int) -> list[Example]:
    """The examples of an event, their cells being all 64 bits of what VW computes of names of `bits` bits."""
    cut = tuple(
        replace(
            line,
            spans=tuple(
                (name, tuple((hash_ % 2**bits, x) for hash_, x in features)) for name, features in line.spans
            ),
        )
        for line in event
    )
    wide = replace(bandit, featurizer=replace(bandit.featurizer, cells=2**64))
    return wide.listed_again(cut)


def guess(example: Example, *, factor: int, offset: int, spread: np.float32) -> np.float32:
    """Guess of an example whose names are multiplied by `factor`, and moved by `offset`, to be an index."""
    squares = total = F(0)
    for name, x in example.features:
        number, _ = normal((name * factor + offset) % 2**64)
        squares, total = squares + x * x, total + x * number
    return F(spread * total / np.sqrt(F(2) * max(F(1e-12), squares)))
