"""Vectors: regularised least squares on all numbers of the vectors of a context, such as embeddings.

Each action has a separate regression of its costs, less the mean of all costs, on the standardised numbers.
The numbers of a vector are divided by the square root of its length, so that long vectors are regularised
more. The other members see only a projection of vectors. Nothing is forgotten.

Source: Hoerl and Kennard, *Ridge regression*, 1970.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from onlineauto.engine.ensemble.branches import merge_mean
from onlineauto.engine.ensemble.least_squares_kernels import Prepared, Regression
from onlineauto.engine.ensemble.member import Kernels, Lesson, Needs, Part, Work
from onlineauto.engine.ensemble.members.ridge import RidgeScratch, learn_from_mean, score_from_mean
from onlineauto.engine.ensemble.regression import RegressionMember, make_regression, price_of_inputs
from onlineauto.engine.records.ensemble import MOST_ACTIONS, MOST_IN_VECTORS, InVectors
from onlineauto.jit import call_at, entry_kernel
from onlineauto.state.schema import field, finite, jointly, nested, record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from onlineauto.engine.ensemble.branches import Branch
    from onlineauto.engine.ensemble.member import Sizes
    from onlineauto.engine.records.ensemble import Inputs
    from onlineauto.engine.records.loop import Actions, Context
    from onlineauto.features.records import Stream


UNSURE = 0.3
"""Variance of the weight of a number before the first event; 1 / UNSURE is the penalty."""


@record
class VectorsState(NamedTuple):
    """State of the member."""

    regression: Regression = nested(Regression)
    mean: NDArray[np.float64] = field(1, read=finite, merge=jointly, predicts=True)  # of the costs


@entry_kernel
def score_vectors(
    context: Context, stream: Stream, actions: Actions, part: Part, state: VectorsState, scratch: RidgeScratch
) -> None:
    """Score the actions of an event."""
    values = context.buffers.members.taken.vectors[0, : state.regression.prepared[Prepared.INPUTS]]
    score_from_mean(context, part, state.regression, state.mean[0], values)


@entry_kernel
def learn_vectors(
    context: Context,
    stream: Stream,
    actions: Actions,
    lesson: Lesson,
    state: VectorsState,
    scratch: RidgeScratch,
) -> None:
    """Learn an event."""
    values = context.buffers.members.taken.vectors[0, : state.regression.prepared[Prepared.INPUTS]]
    learn_from_mean(context, lesson, state.regression, state.mean, values, UNSURE)


@entry_kernel
def grow_vectors(context: Context, state: VectorsState) -> None:
    """Prepare for new vectors and actions."""
    inputs = context.live.ensemble.members.inputs
    n = 1 + inputs.vectors.vectors[InVectors.NUMBERS]
    call_at(context.units.grow_regression, (state.regression, inputs, n))


class Vectors(RegressionMember):
    """Regularised least squares on all numbers of vectors."""

    name = "vectors"
    record = VectorsState
    least_squares = (UNSURE, 1.0)
    needs = (Needs(most_actions=MOST_ACTIONS, vectors=True, inputs=True),)

    def kernels(self) -> Kernels:
        """Return the member's kernels."""
        return Kernels(score_vectors, learn_vectors, grow_vectors)

    def make_state(self, sizes: Sizes) -> VectorsState:
        """Return the state before the first event."""
        return VectorsState(make_regression(sizes.actions, 1 + MOST_IN_VECTORS), np.zeros(1))

    def make_scratch(self) -> RidgeScratch:
        """Return scratch without room, since the numbers of vectors are read where they are."""
        return RidgeScratch(np.zeros(0, np.float32))

    def prices(self, work: Work) -> tuple[float]:
        """Return the work for the numbers of vectors."""
        return (price_of_inputs(work, 1 + work.in_vectors),)

    def width(self, inputs: Inputs) -> int:
        """Return the number of numbers in vectors, and the constant."""
        return 1 + int(inputs.vectors.vectors[InVectors.NUMBERS])

    def merged_inputs(self, branch: Branch, inputs: Inputs) -> NDArray[np.int64]:
        """Return the merged index of each number in a branch's vectors."""
        del inputs
        return np.concatenate([[0], np.where(branch.in_vectors < 0, -1, branch.in_vectors + 1)])

    def merge(self, base: Branch, branches: Sequence[Branch], inputs: Inputs) -> VectorsState:
        """Return the merged regressions, and the mean of the costs."""
        state: VectorsState = super().merge(base, branches, inputs)
        return state._replace(mean=merge_mean(base, branches))


MEMBER = Vectors()
