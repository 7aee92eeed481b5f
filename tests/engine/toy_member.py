"""A member from outside of the package, as small as one can be: the mean cost of each action."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from onlineauto.engine.ensemble.member import Kernels, Lesson, Member, Part, Sizes, Work
from onlineauto.engine.ensemble.need_kernels import works
from onlineauto.jit import entry_kernel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from onlineauto.engine.ensemble.branches import Branch
    from onlineauto.engine.records.ensemble import Inputs
    from onlineauto.engine.records.loop import Actions, Context
    from onlineauto.features.records import Stream
    from onlineauto.state.stored import Stored


class State(NamedTuple):
    sums: NDArray[np.float64]  # [actions, 2]: of weights, and of weighted costs


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

    def kernels(self) -> Kernels:
        return Kernels(score, learn, grow)

    def make_state(self, sizes: Sizes) -> State:
        return State(np.zeros((sizes.actions, 2)))

    def make_scratch(self) -> Scratch:
        return Scratch(np.zeros(0))

    def prices(self, work: Work) -> tuple[float]:
        return (work.visits,)

    def state(self, state: State, inputs: Inputs, *, working: Sequence[bool]) -> dict[str, Any]:
        return {"sums": state.sums}

    def restore(self, stored: Stored, state: State, inputs: Inputs) -> None:
        state.sums[:] = stored["sums"].finite(np.float64, state.sums.shape)

    def merge(self, base: Branch, branches: Sequence[Branch], inputs: Inputs) -> State:
        sums = np.zeros_like(base.state.sums)
        for each, times in ((base, 1 - len(branches)), *((branch, 1) for branch in branches)):
            known = each.actions >= 0
            sums[each.actions[known]] += times * each.state.sums[: len(each.actions)][known]
        return State(sums)


TOY = Toy()
