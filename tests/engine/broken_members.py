"""Members that make the mistakes that the conformance suite of members has to find."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onlineauto.engine.ensemble.branches import Branch
from onlineauto.engine.ensemble.input_kernels import works
from onlineauto.engine.ensemble.member import Kernels, Lesson, Part
from onlineauto.engine.records.ensemble import Inputs
from onlineauto.engine.records.loop import Actions, Context
from onlineauto.features.records import Stream
from onlineauto.jit import entry_kernel
from tests.engine.toy_member import Scratch, State, Toy, grow, learn, score


@entry_kernel
def score_and_count(
    context: Context, stream: Stream, actions: Actions, part: Part, state: State, scratch: Scratch
) -> None:
    for action in range(part.begin, part.end):
        known = context.buffers.members.known[action]
        if known >= 0 and state.sums[known, 0] > 0.0:
            context.buffers.score[action, part.column] = state.sums[known, 1] / state.sums[known, 0]
            state.sums[known, 0] += 0.01


@entry_kernel
def learn_always(
    context: Context, stream: Stream, actions: Actions, lesson: Lesson, state: State, scratch: Scratch
) -> None:
    if lesson.known >= 0:
        state.sums[lesson.known, 0] += lesson.weight
        state.sums[lesson.known, 1] += lesson.weight * lesson.cost


@entry_kernel
def learn_inputs(
    context: Context, stream: Stream, actions: Actions, lesson: Lesson, state: State, scratch: Scratch
) -> None:
    if lesson.known >= 0 and works(context.live.ensemble.members, lesson.score):
        state.sums[lesson.known, 0] += lesson.weight
        state.sums[lesson.known, 1] += lesson.weight * lesson.cost * context.buffers.members.taken.values[1]


class Writing(Toy):
    """A score kernel that writes the state."""

    name = "writing"

    def kernels(self) -> Kernels:
        return Kernels(score_and_count, learn, grow)


class Eager(Toy):
    """A learn kernel that does not ask whether the score works."""

    name = "eager"

    def kernels(self) -> Kernels:
        return Kernels(score, learn_always, grow)


class Undeclared(Toy):
    """A learn kernel that reads inputs without declaring it."""

    name = "undeclared"

    def kernels(self) -> Kernels:
        return Kernels(score, learn_inputs, grow)


class Unmapped(Toy):
    """A merge that takes the actions of all branches to be in one order."""

    name = "unmapped"

    def merge(self, base: Branch, branches: Sequence[Branch], inputs: Inputs) -> State:  # noqa: ARG002
        return State(
            base.state.sums + np.sum([each.state.sums - base.state.sums for each in branches], axis=0)
        )


BROKEN = [
    (Writing(), "its score kernel changes the state"),
    (Eager(), "its score eager learns while its needs are not true"),
    (Undeclared(), r"declare Needs\(inputs=True\)"),
    (Unmapped(), "map them with Branch.actions and Branch.inputs"),
]
