"""Linear: least squares on the features of single lines, numbers included, without bins.

Without bins there are few weights, so the regression is soon sure of them, and extrapolates where a number,
such as the last label, exceeds all earlier ones. Predictions remain within the range of the labels so far.

Source: Haykin, *Adaptive filter theory*, chapter on recursive least squares.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onlineauto.engine.ensemble.input_kernels import works
from onlineauto.engine.ensemble.member import Kernels, Lesson, Needs
from onlineauto.engine.ensemble.members.features import UNSURE
from onlineauto.engine.ensemble.members.ridge import (
    Ridge,
    RidgeScratch,
    RidgeState,
    grow_ridge,
    score_ridge,
    take_unbinned,
)
from onlineauto.engine.ensemble.regression_kernels import KEEPS
from onlineauto.jit import call_at, entry_kernel

if TYPE_CHECKING:
    from onlineauto.engine.records.loop import Actions, Context
    from onlineauto.features.records import Stream


@entry_kernel
def learn_linear(
    context: Context,
    stream: Stream,
    actions: Actions,
    lesson: Lesson,
    state: RidgeState,
    scratch: RidgeScratch,
) -> None:
    """Learn a line."""
    members = context.live.ensemble.members
    if lesson.known >= 0 and works(members, lesson.score):
        n = take_unbinned(state, context.buffers, scratch)
        call_at(
            context.units.learn_regression,
            (state.regression, lesson, scratch.values[:n], members.inputs.seen[lesson.known], UNSURE, KEEPS),
        )


class Linear(Ridge):
    """Least squares on the features of single lines, without bins."""

    name = "linear"
    first_weight = 0.0
    least_squares = (UNSURE, KEEPS)
    needs = (Needs(most_actions=1, inputs=True),)

    def kernels(self) -> Kernels:
        """Return the member's kernels."""
        return Kernels(score_ridge, learn_linear, grow_ridge)


MEMBER = Linear()
