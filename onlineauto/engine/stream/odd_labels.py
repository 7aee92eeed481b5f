"""``OddLabels``: labels that can be read and that a model cannot use, or that would ruin it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from onlineauto.features.block import UNLABELLED
from onlineauto.formats.lines.diagnostics import Code, Diagnostics, make_diagnostic

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.features.block import Block

__all__ = ["OddLabels", "is_far_out"]

_FAR: Final = 1e6
"""A label is far out if it is so many times the largest before, in size."""
_FEW: Final = 10
"""Of fewer labels, nobody knows what is usual."""


def is_far_out(label: float, *, largest: float, n: int) -> bool:
    """Return whether a label, or a cost, is far from the `n` labels before, the largest of which is given.

    >>> is_far_out(-1e30, largest=1.0, n=500), is_far_out(-1e5, largest=1.0, n=500)
    (True, False)
    """
    return n >= _FEW and abs(label) > _FAR * largest > 0


class OddLabels:
    """Looks at the labels of a stream. They are counted and located as problems, and used as they are.

    Parameters
    ----------
    simple : bool
        Whether events have labels, and not costs of actions.
    actions : int or None
        How many actions there are, if each event is one line and its label names the action.
    """

    def __init__(self, *, simple: bool, actions: int | None) -> None:
        self._simple, self._actions = simple, actions
        self._n, self._largest = 0, 0.0

    def look(self, block: Block, found: Diagnostics) -> None:
        """Add the odd labels of the next block, which may be part of larger records, to the problems."""
        begin, end = int(block.event_start[0]), int(block.event_start[-1])
        if self._simple:
            self._look_at_sizes(block, block.label[begin:end], begin, found)
            return
        begin, end = block.cost_start[[begin, end]].tolist()
        self._look_at_sizes(block, block.cost[begin:end], begin, found)
        if self._actions is not None:
            action, known = block.cost_action[begin:end], block.cost[begin:end] != UNLABELLED
            for at in np.flatnonzero(known & ((action < 1) | (action > self._actions))).tolist():
                self._add(found, Code.ACTION_OUT_OF_RANGE, block, begin + at, str(int(action[at])))

    def _look_at_sizes(
        self, block: Block, labels: NDArray[np.float32], begin: int, found: Diagnostics
    ) -> None:
        known = labels != UNLABELLED
        sizes = np.abs(labels[known])
        if not len(sizes):
            return
        top = float(sizes.max())
        if top > _FAR * self._largest:
            sizes = sizes.astype(np.float64)
            largest = np.maximum.accumulate(np.append(self._largest, sizes))[:-1]
            enough = np.arange(self._n, self._n + len(sizes)) >= _FEW
            odd = enough & (largest > 0) & (sizes > _FAR * largest)
            for at in np.flatnonzero(known)[odd].tolist():
                self._add(found, Code.LABEL_FAR_OUT, block, begin + at, f"{labels[at]:g}")
        self._n += len(sizes)
        self._largest = max(self._largest, top)

    def _add(self, found: Diagnostics, code: Code, block: Block, at: int, text: str) -> None:
        """Count a problem with a label or with a cost, given by its place in the block, and keep it."""
        line = at if self._simple else int(np.searchsorted(block.cost_start, at, "right")) - 1
        number = int(block.line_number[line])
        found.count(code, 1)
        found.keep(
            make_diagnostic(code, file=found.reading, line=number, column=1, text=text.encode(), unit="line")
        )
