"""``CellMember``: what members whose weights are cells of a hashed table have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from onlineauto.engine.ensemble.branches import (
    count_learnt,
    mean_retention,
    merge_cells,
    merge_moments,
    merge_statistic,
    shares,
)
from onlineauto.engine.ensemble.cost_kernels import LATEST, CostMoment
from onlineauto.engine.ensemble.member import Member
from onlineauto.engine.ensemble.product_kernels import KEEPS, SURE
from onlineauto.state.schema import Sparse, save

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from onlineauto.engine.ensemble.branches import Branch
    from onlineauto.engine.records.ensemble import Inputs
    from onlineauto.state.stored import Stored


CELLS = Sparse("cells")
"""The axis of the cells of a hashed table, few of which are learnt."""


class CellMember(Member):
    """A member whose state has the weights and the variances of cells, ``[orders, cells]``.

    A variance of 0 means that the cell was never learnt. A model file has the cells that were learnt.
    """

    cells = ("weights", "spread")
    merges = "cell by cell: precisions add up"
    any_order = False
    initial_variance: ClassVar[float]

    def state(self, state: Any, inputs: Inputs, *, working: Sequence[bool]) -> dict[str, Any]:
        """Return the cells that were learnt; to predict, those in which a working score has a weight."""
        del inputs
        learnt = state.spread
        if not learnt.size:
            learnt = np.where(np.array(working)[:, None], state.weights, np.float32(0))
            state = state._replace(weights=learnt)
        return save(state, {"cells": np.flatnonzero(learnt.any(axis=0))})

    def restore(self, stored: Stored, state: Any, inputs: Inputs) -> None:
        """Copy the stored cells into the state; all other cells count as never learnt."""
        state.weights[:] = state.spread[:] = 0.0
        super().restore(stored, state, inputs)

    def surest(self, *spreads: NDArray[np.float32]) -> float:
        """Return the largest precision of cells, given their variances in some tables; 0 without cells."""
        least = [
            float(np.where(spread > 0, spread, self.initial_variance).min(initial=np.inf))
            for spread in spreads
        ]
        return 1.0 / min(least)

    def merge(self, base: Branch, branches: Sequence[Branch], inputs: Inputs) -> Any:
        """Return the base with cells merged by their precisions.

        The result is not exact for actions and bins that branches have found in different orders since the
        base.
        """
        del inputs
        began, *ends = [(each.state.weights.T, each.state.spread.T) for each in (base, *branches)]
        weights, spread = merge_cells(
            began,
            ends,
            count_learnt(branches),
            keeps=KEEPS,
            surest=base.surest,
            ordered=base.ordered,
            bounds=(SURE, self.initial_variance),
        )
        planes = {"weights": np.ascontiguousarray(weights.T), "spread": np.ascontiguousarray(spread.T)}
        return base.state._replace(**planes)


def merge_costs(base: Branch, branches: Sequence[Branch]) -> NDArray[np.float64]:
    """Return the merged moments of the states' `costs`."""
    began, ends = base.state.costs, [branch.state.costs for branch in branches]
    parts = shares(count_learnt(branches), mean_retention(float(branches[0].seen[-1, 0]), LATEST))
    mean, variance = merge_moments(began, ends, parts)
    error = merge_statistic(began[CostMoment.ERROR], [end[CostMoment.ERROR] for end in ends], parts)
    return np.array([mean, variance, error])
