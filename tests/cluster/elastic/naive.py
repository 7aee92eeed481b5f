"""Putting parts together the slow and obvious way: one cell, one lane, one number at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

F = np.float32


def rescaled(weight: np.float32, scale: np.float32, largest: np.float32) -> np.float32:
    return weight * (scale / largest) if F(0) < scale < largest else weight


def combined_lane(
    before: tuple[np.float32, ...], parts: Sequence[tuple[np.float32, ...]], *, rescales: bool
) -> tuple[np.float32, ...]:
    """Return weight, evidence and scale after a tick, given those before and those of each part."""
    weight, evidence, scale = before
    largest = max([scale, *(part[2] for part in parts)])
    gains = [part[1] - evidence for part in parts]
    gained = F(0)
    for gain in gains:
        gained = gained + gain

    def scaled(value: np.float32, own: np.float32) -> np.float32:
        return rescaled(value, own, largest) if rescales else value

    base = scaled(weight, scale)
    moved = F(0)
    for part, gain in zip(parts, gains, strict=True):
        share = gain / gained if gained > F(0) else F(1) / F(len(parts))
        moved = moved + share * (scaled(part[0], part[2]) - base)
    return base + moved, evidence + gained, largest
