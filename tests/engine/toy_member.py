"""A member from outside of the package, as small as one can be: the mean cost of each action."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from onlineauto.engine.ensemble.input_kernels import works
from onlineauto.engine.ensemble.member import Kernels, Lesson, Member, Part, Work, add_by_action
from onlineauto.engine.records.loop import Actions, Context
from onlineauto.features.records import Stream
from onlineauto.jit import entry_kernel
from onlineauto.state.schema import field, finite, record


@record
class State(NamedTuple):
    # Of weights, and of weighted costs
    sums: NDArray[np.float64] = field("actions", 2, read=finite, merge=add_by_action, predicts=True)


class Scratch(NamedTuple):
    nothing: NDArray[np.float64]


@entry_kernel
def score(
    context: Context, stream: Stream, actions: Actions, part: Part, state: State, scratch: Scratch
) -> None:
    for action in range(part.begin, part.end):
        known = context.buffers.members.known[action]
        if known >= 0 and state.sums[known, 0] > 0.0:
            context.buffers.score[action, part.column] = state.sums[known, 1] / state.sums[known, 0]


@entry_kernel
def learn(
    context: Context, stream: Stream, actions: Actions, lesson: Lesson, state: State, scratch: Scratch
) -> None:
    if lesson.known >= 0 and works(context.live.ensemble.members, lesson.score):
        state.sums[lesson.known, 0] += lesson.weight
        state.sums[lesson.known, 1] += lesson.weight * lesson.cost


@entry_kernel
def grow(context: Context, state: State) -> None:
    pass


class Toy(Member):
    """Mean cost of each action."""

    name = "toy"
    record = State

    def kernels(self) -> Kernels:
        return Kernels(score, learn, grow)

    def make_scratch(self) -> Scratch:
        return Scratch(np.zeros(0))

    def prices(self, work: Work) -> tuple[float]:
        return (work.visits,)


TOY = Toy()
