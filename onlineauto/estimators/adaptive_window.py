"""Adaptive windows in Python: made empty, or restored from the arrays in a model file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from onlineauto.estimators.adaptive_window_kernels import LARGEST_ROW, ROWS, SPREAD, WIDTH, Window

if TYPE_CHECKING:
    from collections.abc import Mapping

_SIZES = 2 ** np.arange(ROWS)


def make_window() -> Window:
    """Make an empty window, see `onlineauto.estimators.adaptive_window_kernels`."""
    shape = (ROWS, LARGEST_ROW + 1)
    return Window(
        counts=np.zeros(ROWS, np.int64),
        sums=np.zeros(shape),
        spreads=np.zeros(shape),
        whole=np.zeros(SPREAD + 1),
    )


def window_of(arrays: Mapping[str, Any]) -> Window:
    """Make a window from copies of its arrays, by name."""
    window = make_window()
    if set(arrays) != set(window._fields):
        raise ValueError(f"a window has the arrays {', '.join(window._fields)}, not {', '.join(arrays)}")
    for name, field in window._asdict().items():
        array = np.asarray(arrays[name])
        if array.dtype != field.dtype or array.shape != field.shape:
            raise ValueError(
                f"{name} of a window is {field.dtype}{list(field.shape)}, "
                f"not {array.dtype}{list(array.shape)}"
            )
        field[...] = array
    _check(window)
    return window


def _check(window: Window) -> None:
    """Reject contents that would make kernels exceed the arrays or compute invalid numbers."""
    counts = window.counts
    if counts.min() < 0 or counts.max() > LARGEST_ROW:
        raise ValueError(f"a row of a window has 0 to {LARGEST_ROW} buckets, not {counts.tolist()}")
    width = int((counts * _SIZES).sum())
    if window.whole[WIDTH] != width:
        raise ValueError(f"the buckets of a window have {width} numbers, not {window.whole[WIDTH]:g}")
    if counts[-1]:
        raise ValueError(f"no stream fills a window of {width} numbers")
    if not all((np.abs(each) <= 2 * width + 1).all() for each in window[1:]):
        raise ValueError("a sum of a window is larger than its number of numbers allows")
