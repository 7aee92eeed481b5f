"""Units: optional kernels, compiled and loaded when the options require them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from onlineauto.engine.ensemble.combiner_kernels import learn_ensemble, score_ensemble
from onlineauto.engine.ensemble.member import Lesson, Part
from onlineauto.engine.ensemble.regression import make_regression
from onlineauto.engine.ensemble.regression_kernels import grow_regression, learn_regression
from onlineauto.engine.ensemble.states import states_of
from onlineauto.engine.event.ccb_slot_kernels import settle_slot
from onlineauto.engine.event.cost_bound_kernels import bound_costs
from onlineauto.engine.loop.buffers import NO_AHEAD
from onlineauto.engine.loop.search_kernels import after_event, before_event
from onlineauto.engine.policies.visit_kernels import visit_policies
from onlineauto.engine.records.loop import ROW, Actions, Label, Results, Units
from onlineauto.explorers.exploration import pmf_address
from onlineauto.features.records import COST, FEATURE, LINE, NO_SLOTS, SPAN, Stream
from onlineauto.jit import Sealed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from onlineauto.engine.records.loop import Context
    from onlineauto.explorers.explorer import Explorer
    from onlineauto.jit import SealedRecords

_NONE = np.zeros(0, np.int64)
NO_UNITS = Units(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, _NONE, _NONE, _NONE)
"""The units of a run that needs none of them."""
NO_STREAM = Stream(
    events=np.zeros(1, np.int64),
    holdout=np.zeros(0, bool),
    lines=np.zeros(0, LINE),
    costs=np.zeros(0, COST),
    spans=np.zeros(0, SPAN),
    features=np.zeros(0, FEATURE),
    constant=0,
    room=0,
    slots=NO_SLOTS,
)
"""A stream without events, of the same kinds as all others."""
NO_RESULTS = Results(
    np.zeros(0, ROW),
    np.zeros(0, np.int32),
    np.zeros(0, np.float32),
    np.zeros(0, np.uint64),
    np.zeros(0, bool),
    NO_AHEAD,
)
"""The results of that stream."""
_CURSOR = np.zeros(4, np.int64)
_ACTIONS = Actions(0, 0, 0, 0, 0, 0, 0)
_ZERO = np.float32(0)
_PART, _LESSON = Part(0, 0, 0, 0), Lesson(0, 0, 0.0, 0.0, 0, 0, True, 1.0)
_LABEL = Label(np.int64(-1), _ZERO, _ZERO, _ZERO, _ZERO)


def make_units(
    explorer: Explorer, context: Context, stream: Stream, results: Results, *, decides: bool
) -> Units:
    """Return the addresses of the kernels that a task needs, compiled for the types of these arguments.

    Kernels of a search, and those that the ensemble learns with, are needed only if the loop `decides`.
    """
    task, exploration = context.task, context.task.exploration
    on, searching = (Sealed(context), Sealed(stream)), context.live.searching and decides
    event = results.rows[:1], _ACTIONS, _LABEL, True, True
    states, scratch = states_of(context.live.ensemble), cast("SealedRecords", context.buffers.members.scratch)
    kernels = [
        (member.kernels(), Sealed(state), Sealed(own))
        for member, state, own in zip(states.members, states.records, scratch.records, strict=True)
    ]
    learning = kernels if decides else []
    regression, inputs = Sealed(make_regression(0, 0)), Sealed(context.live.ensemble.members.inputs)
    return Units(
        explore=pmf_address(explorer, exploration),
        policies=_address(exploration.policies > 0, visit_policies, *on, *event),
        bounds=_address(exploration.bounds, bound_costs, *on, _ACTIONS, _ZERO),
        ccb_slot=_address(task.slots, settle_slot, *on, Sealed(results), 0, True, True),
        before_event=_address(searching, before_event, *on, _CURSOR, _ACTIONS, True),
        after_event=_address(searching, after_event, *on, _CURSOR, _ACTIONS, _LABEL, _ZERO),
        score_ensemble=_address(context.live.ensemble.on, score_ensemble, *on, _ACTIONS, _LABEL, True),
        learn_ensemble=_address(
            context.live.ensemble.on and decides, learn_ensemble, *on, _CURSOR, _ACTIONS, _LABEL, _ZERO
        ),
        learn_regression=_address(
            bool(learning), learn_regression, regression, _LESSON, np.zeros(1, np.float32), 0, 0.0, 0.0
        ),
        grow_regression=_address(bool(learning), grow_regression, regression, inputs, 0),
        score_members=_addresses(each.score.address(*on, _ACTIONS, _PART, *own) for each, *own in kernels),
        learn_members=_addresses(each.learn.address(*on, _ACTIONS, _LESSON, *own) for each, *own in learning),
        grow_members=_addresses(each.grow.address(on[0], own) for each, own, _ in learning),
    )


def _addresses(found: Iterable[int]) -> NDArray[np.int64]:
    return np.array(list(found), np.int64)


def _address(needed: bool, kernel: Any, *arguments: Any) -> int:
    return kernel.address(*arguments) if needed else 0
