"""The arrays that the loop fills, and the outcomes made from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np

from onlineauto.engine.ensemble.product_kernels import Crossed, Ends
from onlineauto.engine.event.event_kernels import name_events
from onlineauto.engine.event.outcomes import Outcomes
from onlineauto.engine.records.ensemble import (
    MOST_FEATURES,
    MOST_IN_VECTORS,
    MOST_KEYS,
    MOST_NUMBERS,
    MOST_PRODUCTS,
    Taken,
)
from onlineauto.engine.records.loop import HANDED, ROW, Ahead, Buffers, MemberBuffers, Outlier, Results
from onlineauto.engine.records.task import Shape
from onlineauto.errors import InputError
from onlineauto.explorers.ranking_kernels import ROWS
from onlineauto.features.block import UNLABELLED
from onlineauto.features.layout import most_groups
from onlineauto.features.records import FACTOR, RUN, largest
from onlineauto.jit import SealedRecords

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.engine.records.loop import Context
    from onlineauto.engine.records.task import Task
    from onlineauto.features.block import Block
    from onlineauto.features.layout import StreamLayout
    from onlineauto.features.records import Scratch, Stream
    from onlineauto.features.slots import Slots

_FEATURES = 1 << 16
_OF_ACTIONS = ("score", "target", "first_squares", "cost", "order", "explored")
NO_AHEAD = Ahead(np.zeros(0, HANDED), np.zeros((0, 0), np.float32), np.zeros((0, 0)))
"""The arrays for an ensemble that does not follow the live configs on another thread."""
_NO_MEMBERS = SealedRecords(())
_ONES, _NO_LABELS = np.ones(8, np.float32), np.full(8, UNLABELLED)
_ONES.flags.writeable = _NO_LABELS.flags.writeable = False


def make_buffers(
    *,
    actions: int,
    slots: int,
    features: int = _FEATURES,
    runs: int = 64,
    scores: int = 0,
    members: SealedRecords = _NO_MEMBERS,
) -> Buffers:
    """Return buffers for `actions` actions, `slots` live configs, and `features` and `runs` of an action."""
    return Buffers(
        cell=np.empty(features, np.uint32),
        name=np.empty(features, np.uint64),
        value=np.empty(features, np.float32),
        runs=np.zeros(runs, RUN),
        score=np.zeros((actions, slots + 4 + scores), np.float32),
        target=np.zeros(actions, np.float32),
        squares=np.zeros(slots, np.float32),
        first_squares=np.full(actions, np.nan, np.float32),
        total=np.zeros((2, slots + 3), np.float32),
        cost=np.zeros(actions, np.float32),
        order=np.zeros(actions, np.int32),
        members=MemberBuffers(
            taken=Taken(
                values=np.zeros(MOST_FEATURES, np.float32),
                raw=np.zeros(MOST_NUMBERS),
                words=np.zeros(MOST_FEATURES, np.uint32),
                n_words=np.zeros(1, np.int64),
                vectors=np.zeros((2, 1 + MOST_IN_VECTORS), np.float32),
            ),
            scored=np.zeros(scores, np.bool_),
            scratch=members.array,
            known=np.zeros(actions, np.int64),
            crossed=np.zeros((len(Crossed), MOST_PRODUCTS), np.uint64),
            ends=np.zeros(len(Ends), np.int64),
            keys=np.zeros((actions, MOST_KEYS + 1), np.uint64),
            n_keys=np.zeros(actions, np.int64),
            totals=np.zeros(slots + 4 + scores),
        ),
        explored=np.zeros((ROWS, actions), np.float32),
        parted=np.zeros(runs, np.int64),
    )


def enough_room(buffers: Buffers, context: Context, stream: Stream, features: int) -> Buffers:
    """Return the buffers or, if they are too small for a block, larger ones."""
    task, room = context.task, len(buffers.cell)
    runs = max(len(context.interactions.start), len(context.again.start))
    actions = task.n_actions if task.shape == Shape.CB else largest(stream.events)
    if features <= room and actions <= len(buffers.score) and runs <= len(buffers.runs):
        return buffers
    try:
        larger = make_buffers(
            features=max(room, features),
            actions=max(actions, len(buffers.score)),
            slots=buffers.score.shape[1] - 4 - len(buffers.members.scored),
            runs=2 * runs,
            scores=len(buffers.members.scored),
            members=cast("SealedRecords", buffers.members.scratch),
        )
    except MemoryError:
        raise InputError(
            f"a line has {features} features once its namespaces are crossed, which do not fit into memory: "
            "lower --max_crossed, or cross fewer namespaces"
        ) from None
    if actions > len(buffers.score):
        return larger
    preserved = {name: getattr(buffers, name) for name in _OF_ACTIONS}
    return larger._replace(members=larger.members._replace(known=buffers.members.known), **preserved)


def enough_scratch(scratch: Scratch, layout: StreamLayout, block: Block) -> Scratch:
    """Return the scratch, or a larger one that preserves the actions taken by earlier slots of an event."""
    spans = largest(block.line_start[block.event_start])
    lines = largest(block.event_start) if layout.slots else 0
    small = len(scratch.groups) < most_groups(spans) or len(scratch.lines) < lines
    if small or len(scratch.places) != layout.n_keys:
        return layout.scratch(spans=2 * spans, lines=2 * lines)
    if len(scratch.factors) < layout.highest_order:
        return scratch._replace(factors=np.zeros(layout.highest_order, FACTOR))
    return scratch


def make_results(block: Block, task: Task, *, slots: Slots | None = None, aside: bool = False) -> Results:
    """Return empty results for a block, with the names that seed the draws of actions.

    Draws of events that are `aside` of the stream are not counted, so their unnamed slots are numbered.
    """
    lines = block.event_start[:-1] if slots is None else slots.line
    n, draws = len(lines), task.exploration.samples and task.exploration.active
    name, named = np.zeros(n if draws else 0, np.uint64), np.zeros(n, bool)
    if draws:
        starts = np.ascontiguousarray(block.tag_start)
        name_events(block.tag, starts, lines, name, named, task.quirks.murmur_names)
        if slots is not None and aside:
            name[~named] = slots.number[~named]
    n_actions = _most_actions(block, task, slots)
    return Results(
        rows=np.zeros(n, ROW),
        action=np.empty(n_actions, np.int32),
        score=np.empty(n_actions, np.float32),
        name=name,
        named=named,
        ahead=NO_AHEAD,
    )


def _most_actions(block: Block, task: Task, slots: Slots | None) -> int:
    """Return an upper bound on the total number of actions of all events, or slots."""
    if task.shape == Shape.SIMPLE:
        return 0
    if slots is not None:
        return int((slots.line - slots.number - block.event_start[slots.event] - 1).sum())
    return len(block) * task.n_actions if task.shape == Shape.CB else block.n_lines


def make_outcomes(
    block: Block, holdout: NDArray[np.bool_], results: Results, *, simple: bool, slots: Slots | None = None
) -> Outcomes:
    """Return the outcomes of a block from the results that the loop has filled."""
    line, rows = block.event_start[:-1] if slots is None else slots.line, results.rows
    n = len(rows)
    n_actions = 0 if simple or n == 0 else int(rows["action_start"][-1] + rows["n_actions"][-1])
    weight = block.weight[line] if slots is None else slots.event_weight[slots.event]
    no_labels = _NO_LABELS[:n] if n <= len(_NO_LABELS) else _NO_LABELS[:1].repeat(n)
    label = block.label[line] if simple else no_labels
    if rows["outlier"].any():
        far = (rows["outlier"] > Outlier.NONE) & (rows["outlier"] < Outlier.BEGINS_AGAIN)
        label = np.where(far, UNLABELLED, label)
        weight = np.where(rows["outlier"] == Outlier.FAR_WEIGHT, np.float32(0), weight)
    return Outcomes(
        rows=rows,
        line=line,
        weight=weight,
        holdout=holdout,
        label=label,
        action=results.action[:n_actions],
        score=results.score[:n_actions],
        slots=slots,
    )
