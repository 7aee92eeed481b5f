"""Holdout: the events that several passes hold out, and the decision to stop by their loss."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.engine.stream.counters import Counters, total

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.engine.event.outcomes import Outcomes
    from onlineauto.engine.options.registry import RunOptions
    from onlineauto.features.block import Block

_FLOAT_MAX = np.finfo(np.float32).max


class Holdout(Counters):
    """Marks held-out events and compares their loss from pass to pass.

    With several passes one event in ``--holdout_period`` is held out. ``--holdout_after`` holds out all
    events after that number instead, and ``--holdout_off`` holds out none.
    """

    counted = ("_count", "_loss", "_weight", "_best", "_no_win")

    def __init__(self, options: RunOptions) -> None:
        self._options = options
        self.active = not options.holdout_off and (options.passes > 1 or options.holdout_after is not None)
        self._count = 0
        self._loss = 0.0
        self._weight = 0.0
        self._best = np.float32(_FLOAT_MAX)
        self._no_win = 0

    def mark(self, block: Block, *, by_line: bool = False, from_zero: bool = False) -> NDArray[np.bool_]:
        """Return which events of the next block are held out: bool[n_events].

        VW numbers events `by_line` in the file, empty lines included, or `from_zero` for ``--holdout_after``.
        """
        n = len(block)
        if not self.active:
            return np.zeros(n, bool)
        number = block.line_number[block.event_start[:-1]] if by_line else self._count + np.arange(1, n + 1)
        self._count += n
        after = self._options.holdout_after
        late = number - 1 if from_zero else number
        marked: NDArray[np.bool_] = late > after if after else number % self._options.holdout_period == 0
        return marked

    def add(self, outcomes: Outcomes) -> None:
        """Count the losses of the held-out events of a block."""
        held_out = outcomes.holdout & outcomes.labelled
        if held_out.any():
            self._loss = total(self._loss, outcomes.loss[held_out])
            self._weight = total(self._weight, outcomes.weight[held_out])

    def end_pass(self) -> bool:
        """Close a pass; return true if the held-out loss did not improve in ``--early_terminate`` passes."""
        if not self.active:
            return False
        loss = np.float32(self._loss / self._weight) if self._weight > 0 else np.float32(_FLOAT_MAX * 0.5)
        self._count, self._loss, self._weight = 0, 0.0, 0.0
        if loss < self._best:
            self._best, self._no_win = loss, 0
            return False
        self._no_win += 1
        return self._no_win == self._options.early_terminate
