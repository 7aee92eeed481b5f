"""Lanes: the weights of the live configs in the table, copied and swapped as these change places."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.engine.event.live_config_kernels import copy_lane, swap_lanes
from onlineauto.jit import prepare
from onlineauto.learners._kernels import materialize

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.automl.control import Control
    from onlineauto.learners._kernels import Model
    from onlineauto.learners.table import TableShape

__all__ = ["Lanes"]


class Lanes:
    """Moves the weights of live configs, and the sums that belong to them.

    Parameters
    ----------
    control : Control
        The choices in which native mode and VW differ.
    shape : TableShape
        Lays out the lanes.
    max_live : int
        The largest number of live configs.
    """

    def __init__(self, control: Control, shape: TableShape, *, max_live: int) -> None:
        self._control, self._shape, self._max_live = control, shape, max_live

    def prepare(self, model: Model) -> None:
        """Have the machine code ready that moves weights and penalties."""
        cells = np.zeros(0, np.int64)
        prepare(copy_lane, model.statistics, cells, 0, 0)
        prepare(swap_lanes, model.statistics, cells, 0, 0)
        if self._control.moves_sums:
            prepare(materialize, model, 0)

    def of(self, live: int, model: Model) -> list[int]:
        """Return the lanes that are moved with a live config."""
        parts = len(model.lanes) // self._max_live if self._control.moves_whole_table else self._shape.parts
        return [part * self._max_live + live for part in range(parts)]

    def swap(self, live: int, model: Model) -> None:
        """Swap the weights of the champion and of challenger `live`."""
        cells = np.flatnonzero(model.touched)
        for one, other in zip(self.of(0, model), self.of(live, model), strict=True):
            for numbers in _numbers(model):
                swap_lanes(numbers, cells, one, other)
            if self._control.moves_sums:
                model.lanes[[one, other]] = model.lanes[[other, one]]
        if self._control.moves_sums:
            model.sums[[0, live]] = model.sums[[live, 0]]

    def copy(self, source: int, target: int, model: Model) -> None:
        """Copy the weights of live config `source` to live config `target`."""
        cells = np.flatnonzero(model.touched)
        for one, other in zip(self.of(source, model), self.of(target, model), strict=True):
            for numbers in _numbers(model):
                copy_lane(numbers, cells, one, other)
            if self._control.moves_sums:
                model.lanes[other] = model.lanes[one]
        if self._control.moves_sums:
            model.sums[target] = model.sums[source]
            for lane in self.of(target, model):
                materialize(model, lane)  # The target may learn with other penalties.


def _numbers(model: Model) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the weights and the statistics of all cells, each as float32[cells, fields, lanes]."""
    return model.weights[:, None], model.statistics
