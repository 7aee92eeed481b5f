"""Lanes: the weights of the live configs in the table, copied and swapped when live configs move."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.jit import prepare
from onlineauto.learners.gradient_kernels import materialize
from onlineauto.learners.lane_kernels import copy_lane, swap_lanes

if TYPE_CHECKING:
    from onlineauto.automl.control import Control
    from onlineauto.learners.gradient_kernels import Model
    from onlineauto.learners.model import TableShape


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
        """Compile or load the machine code that moves weights and penalties."""
        touched = np.zeros(0, np.int64)
        prepare(copy_lane, model, touched, 0, 0)
        prepare(swap_lanes, model, touched, 0, 0)
        if self._control.moves_sums:
            prepare(materialize, model, 0)

    def lanes_of(self, live: int, model: Model) -> list[int]:
        """Return the lanes that move together with a live config."""
        parts = len(model.lanes) // self._max_live if self._control.moves_whole_table else self._shape.parts
        return [part * self._max_live + live for part in range(parts)]

    def swap(self, live: int, model: Model) -> None:
        """Swap the weights of the champion and of challenger `live`."""
        touched = np.flatnonzero(model.touched)
        for one, other in zip(self.lanes_of(0, model), self.lanes_of(live, model), strict=True):
            swap_lanes(model, touched, one, other)
            if self._control.moves_sums:
                model.lanes[[one, other]] = model.lanes[[other, one]]
        if self._control.moves_sums:
            model.sums[[0, live]] = model.sums[[live, 0]]

    def copy(self, source: int, target: int, model: Model) -> None:
        """Copy the weights of live config `source` to live config `target`."""
        touched = np.flatnonzero(model.touched)
        for one, other in zip(self.lanes_of(source, model), self.lanes_of(target, model), strict=True):
            copy_lane(model, touched, one, other)
            if self._control.moves_sums:
                model.lanes[other] = model.lanes[one]
        if self._control.moves_sums:
            model.sums[target] = model.sums[source]
            for lane in self.lanes_of(target, model):
                materialize(model, lane)  # the target may learn with other penalties
