"""Trees: boosted trees of the costs of actions, fitted again as events double, later every 16,384 events.

Trees of classes are fitted again when there are half as many events again, later every 8,192 events.

The columns are the numbers of the context as they are, and its words. All actions share the tests of a tree,
and each has a value in each leaf. A fit takes the last 8,192 events, and grows one tree an event, so that no
event takes long. Between fits the trees do not change. The ensemble learns their weight from events that they
have not seen yet.

Source: `onlineauto.learners.tree_kernels`.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from onlineauto.engine.ensemble.input_kernels import joins, take_inputs
from onlineauto.engine.ensemble.member import (
    TOGETHER,
    ClassKernels,
    ClassMember,
    Kernels,
    Lesson,
    Member,
    Needs,
    Part,
    Sizes,
    Work,
)
from onlineauto.engine.event.pass_kernels import run_on
from onlineauto.engine.records.ensemble import MOST_ACTIONS, MOST_FEATURES, InputKind, Known
from onlineauto.jit import entry_kernel, inline_kernel, short_loop
from onlineauto.learners.tree_kernels import add_input, begin_row, forget_inputs, learn_trees, score_trees
from onlineauto.learners.tree_records import (
    COLUMNS,
    DEPTH,
    FIRST_OF_COSTS,
    ROUNDS_OF_COSTS,
    Fit,
    Grown,
    LoggedOutput,
)
from onlineauto.learners.trees import (
    TreeBranch,
    forget_rows,
    make_fit,
    make_row,
    make_trees,
    merge_trees,
    restore_trees,
    trees_state,
    trees_to_predict,
)
from onlineauto.state.schema import widen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from onlineauto.engine.ensemble.branches import Branch
    from onlineauto.engine.ensemble.class_kernels import Classes, ClassEvent
    from onlineauto.engine.records.ensemble import Inputs, Taken
    from onlineauto.engine.records.loop import Actions, Context
    from onlineauto.features.records import Stream
    from onlineauto.learners.tree_records import TreeRow, Trees
    from onlineauto.state.stored import Stored


class TreesState(NamedTuple):
    """State of the member."""

    trees: Trees
    fit: Fit


class TreesScratch(NamedTuple):
    """Scratch of the member."""

    row: TreeRow
    score: NDArray[np.float64]  # [actions]


@inline_kernel
def _take_row(inputs: Inputs, taken: Taken, row: TreeRow) -> None:
    """Fill the row of an event: numbers as they are, and words without a number in their name."""
    begin_row(row)
    for k in range(inputs.tally[Known.NUMBERS]):
        short_loop()
        add_input(row, inputs.numbers.of_number[k], taken.raw[k])
    for at in range(1, inputs.tally[Known.FEATURES]):
        short_loop()
        if taken.values[at] != 0 and inputs.number[at] == InputKind.WORD and inputs.names[at] < 0:
            add_input(row, at, np.float64(taken.values[at]))


@entry_kernel
def score_trees_of_costs(
    context: Context, stream: Stream, actions: Actions, part: Part, state: TreesState, scratch: TreesScratch
) -> None:
    """Score the actions of an event; before the first fit, as in an older model, there is no score."""
    buffers, trees = context.buffers, state.trees
    k = trees.outputs[trees.tally[Grown.MODEL]]
    if k == 0:
        buffers.members.scored[part.score] = False
        return
    _take_row(context.live.ensemble.members.inputs, buffers.members.taken, scratch.row)
    score_trees(trees, scratch.row, k, scratch.score)
    for action in range(part.begin, part.end):
        short_loop()
        known = buffers.members.known[action]
        if 0 <= known < k:
            buffers.score[action, part.column] = scratch.score[known]


@entry_kernel
def learn_trees_of_costs(
    context: Context,
    stream: Stream,
    actions: Actions,
    lesson: Lesson,
    state: TreesState,
    scratch: TreesScratch,
) -> None:
    """Keep an event, also before there are enough for the first fit, and grow a tree if a fit has begun."""
    members, buffers = context.live.ensemble.members, context.buffers
    inputs = members.inputs
    if lesson.known < 0 or joins(inputs) or members.rests[lesson.score]:
        return
    if not (buffers.members.scored[lesson.score] or lesson.again):
        take_inputs(run_on(context, stream), actions, -1, buffers)
    _take_row(inputs, buffers.members.taken, scratch.row)
    k = min(inputs.tally[Known.ACTIONS], MOST_ACTIONS)
    logged = LoggedOutput(lesson.known, lesson.weight, lesson.cost)
    learn_trees(state.trees, state.fit, scratch.row, k, logged)


@entry_kernel
def grow_trees_of_costs(context: Context, state: TreesState) -> None:
    """Forget inputs that are now others; the next fit has the new features and actions."""
    inputs = context.live.ensemble.members.inputs
    forget_inputs(state.trees, state.fit, inputs.renewal.at, inputs.seen[MOST_ACTIONS])


@entry_kernel
def score_classes_by_trees(
    classes: Classes, event: ClassEvent, first: int, k: int, state: TreesState, scratch: TreesScratch
) -> None:
    """Score the classes of an event; before the first fit, all scores are 0."""
    _take_row(classes.inputs, event.taken, scratch.row)
    score_trees(state.trees, scratch.row, k, event.score[first])


@entry_kernel
def learn_classes_by_trees(
    classes: Classes, event: ClassEvent, lesson: Lesson, k: int, state: TreesState, scratch: TreesScratch
) -> None:
    """Keep an event, and grow a tree if a fit has begun."""
    model = state.trees.tally[Grown.MODEL]
    learn_trees(state.trees, state.fit, scratch.row, k, LoggedOutput(lesson.action, lesson.weight, 0.0))
    if state.trees.tally[Grown.MODEL] != model:
        event.renewed[0] = 1


class BoostedTrees(Member, ClassMember):
    """Boosted trees of the costs of actions, or of classes."""

    name = "trees"
    class_scores = MappingProxyType({"trees": 0.0})
    class_kernels = ClassKernels(score_classes_by_trees, learn_classes_by_trees)
    merges = "rows interleave; the trees are those of the branch that learnt most, until the next fit"
    needs = (Needs(most_actions=MOST_ACTIONS, events=FIRST_OF_COSTS + ROUNDS_OF_COSTS, inputs=True),)

    def kernels(self) -> Kernels:
        """Return the member's kernels."""
        return Kernels(score_trees_of_costs, learn_trees_of_costs, grow_trees_of_costs)

    def make_state(self, sizes: Sizes) -> TreesState:
        """Return trees before the first event."""
        costs, outputs = not sizes.classes, sizes.classes or sizes.actions
        return TreesState(
            make_trees(sizes.features, outputs, costs=costs), make_fit(sizes.features, outputs, costs=costs)
        )

    def widen(self, state: TreesState, wider: TreesState) -> None:
        """Copy the trees; new classes have the base score of those that are newer than the model."""
        widen(state.trees, wider.trees)
        n = state.trees.base.shape[1]
        wider.trees.base[:, n:] = state.trees.base[:, -1:]

    def forget(self, state: TreesState) -> None:
        """Forget the rows from before a drift but for the latest ones, and fit these."""
        forget_rows(state.trees, state.fit, FIRST_OF_COSTS)

    def make_scratch(self) -> TreesScratch:
        """Return scratch for the row of an event."""
        return TreesScratch(make_row(), np.zeros(MOST_ACTIONS))

    def prices(self, work: Work) -> tuple[float]:
        """Return the work: a fit adds up half of the columns of each row at each level of each tree."""
        fit = ROUNDS_OF_COSTS * DEPTH * min(work.unbinned, COLUMNS) / 2
        return ((fit + ROUNDS_OF_COSTS * (DEPTH + work.n_actions)) / TOGETHER,)

    def to_predict(self, state: TreesState) -> TreesState:
        """Return a state with the models only."""
        return TreesState(trees_to_predict(state.trees), make_fit(0, 0, costs=True, n_rows=0))

    def state(self, state: TreesState, inputs: Inputs, *, working: Sequence[bool]) -> dict[str, Any]:
        """Return the kept rows and the trees, unless there are too many actions."""
        joined = len(state.trees.cost) > 0 and inputs.tally[Known.ACTIONS] > MOST_ACTIONS
        predicts = len(state.trees.length) == 0
        return {"trees": None if joined or (predicts and not working[0]) else trees_state(state.trees)}

    def restore(self, stored: Stored, state: TreesState, inputs: Inputs) -> None:
        """Copy the stored rows and trees into the state."""
        if not stored["trees"].is_none():
            outputs = state.trees.base.shape[1] - 1
            restore_trees(stored["trees"], state.trees, n_inputs=MOST_FEATURES, outputs=outputs)

    def merge(self, base: Branch, branches: Sequence[Branch], inputs: Inputs) -> TreesState:
        """Return the rows of all branches, and the trees of the branch that learnt most."""
        fit = make_fit(MOST_FEATURES, MOST_ACTIONS, costs=True)
        if inputs.tally[Known.ACTIONS] > MOST_ACTIONS:
            return TreesState(make_trees(MOST_FEATURES, MOST_ACTIONS, costs=True), fit)
        first, *others = (
            TreeBranch(branch.state.trees, branch.inputs, branch.actions) for branch in (base, *branches)
        )
        return TreesState(merge_trees(first, others), fit)


MEMBER = BoostedTrees()
