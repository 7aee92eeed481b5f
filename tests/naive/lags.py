"""Lags of a stream of labels, one line at a time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def lagged(labels: Sequence[float | None], n: int) -> list[dict[str, float]]:
    """Return the lags of each line, without zeros; None is the label of a line that is not learnt."""
    known: list[float] = []
    lines = []
    for label in labels:
        lags = known[::-1][:n]
        line = {f"lag {k + 1}": lags[k] for k in range(len(lags))}
        line |= {f"change {k + 1}": lags[k] - lags[k + 1] for k in range(len(lags) - 1)}
        lines.append({name: float(np.float32(number)) for name, number in line.items() if number})
        if label is not None:
            known.append(float(np.float32(label)))
    return lines
