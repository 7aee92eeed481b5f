"""Working memory: the scratch and buffers of one caller of the loop, and its context."""

from __future__ import annotations

from operator import is_not
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from onlineauto.engine.ensemble.combiner_kernels import learn_ensemble, score_ensemble
from onlineauto.engine.ensemble.member import Lesson, Part
from onlineauto.engine.ensemble.regression import make_regression
from onlineauto.engine.ensemble.regression_kernels import grow_regression, learn_regression
from onlineauto.engine.ensemble.states import states_of
from onlineauto.engine.event.ccb_slot_kernels import finish_slot
from onlineauto.engine.event.cost_bound_kernels import bound_costs
from onlineauto.engine.loop.buffers import NO_AHEAD, enough_room, enough_scratch, make_buffers
from onlineauto.engine.loop.search_kernels import after_event, before_event
from onlineauto.engine.loop.wide_events import limit_of, measure, without_widest
from onlineauto.engine.policies.visit_kernels import visit_policies
from onlineauto.engine.records.loop import (
    ROW,
    Actions,
    Context,
    Cursor,
    EventMode,
    Label,
    LoopSignal,
    Results,
    Units,
)
from onlineauto.explorers.exploration import pmf_address
from onlineauto.explorers.options import choose_explorer
from onlineauto.features.records import COST, FEATURE, LINE, NO_SLOTS, SPAN, Stream
from onlineauto.jit import Sealed, SealedRecords, prepare

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from onlineauto.engine.loop.semantics import Loop, Semantics
    from onlineauto.engine.loop.wide_events import EventSizes
    from onlineauto.engine.records.loop import Buffers
    from onlineauto.engine.records.search import Live, Screen
    from onlineauto.engine.records.task import Task
    from onlineauto.engine.stream.event_readers import SlotFinder
    from onlineauto.explorers.explorer import Explorer
    from onlineauto.features.block import Block
    from onlineauto.features.layout import StreamLayout
    from onlineauto.features.records import Interactions, Scratch
    from onlineauto.features.records import Layout as KernelLayout
    from onlineauto.learners.gradient_kernels import Model, Rule
    from onlineauto.options import Configuration

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
_PART, _LESSON = Part(0, 0, 0, 0), Lesson(0, 0, 0.0, 0.0, 0, 0, True, 1.0, 1.0)
_LABEL = Label(np.int64(-1), _ZERO, _ZERO, _ZERO, _ZERO)


def make_units(
    explorer: Explorer, context: Context, stream: Stream, results: Results, *, decides: bool
) -> Units:
    """Return the addresses of the kernels that a task needs; those of decisions if the loop `decides`."""
    task, exploration = context.task, context.task.exploration
    on, searching = (Sealed(context), Sealed(stream)), context.live.searching and decides
    event = results.rows[:1], _ACTIONS, _LABEL, True, True
    states, scratch = states_of(context.live.ensemble), cast("SealedRecords", context.buffers.members.scratch)
    kernels = [
        (member.kernels(), Sealed(state), Sealed(memory))
        for member, state, memory in zip(states.members, states.records, scratch.records, strict=True)
    ]
    learning = kernels if decides else []
    regression, inputs = Sealed(make_regression(0, 0)), Sealed(context.live.ensemble.members.inputs)
    return Units(
        explore=pmf_address(explorer, exploration),
        policies=_address(exploration.policies > 0, visit_policies, *on, *event),
        bounds=_address(exploration.bounds, bound_costs, *on, _ACTIONS, _ZERO),
        ccb_slot=_address(task.slots, finish_slot, *on, Sealed(results), 0, True, True),
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
        score_members=_addresses(
            member.score.address(*on, _ACTIONS, _PART, *state) for member, *state in kernels
        ),
        learn_members=_addresses(
            member.learn.address(*on, _ACTIONS, _LESSON, *state) for member, *state in learning
        ),
        grow_members=_addresses(member.grow.address(on[0], state) for member, state, _ in learning),
    )


def _addresses(addresses: Iterable[int]) -> NDArray[np.int64]:
    return np.array(list(addresses), np.int64)


def _address(needed: bool, kernel: Any, *arguments: Any) -> int:
    return kernel.address(*arguments) if needed else 0


class LoopParts(NamedTuple):
    """Everything that the loop needs besides the working memory and the layout."""

    task: Task
    rule: Rule
    model: Model
    live: Live
    screen: Screen


class Predicting(NamedTuple):
    """A model as used by predictions, which do not change it. A model with other arrays is another object."""

    layout: StreamLayout
    keys: KernelLayout  # copied from `layout`, like `interactions`
    interactions: Interactions
    parts: LoopParts
    slot_finder: SlotFinder

    @classmethod
    def of(cls, layout: StreamLayout, parts: LoopParts, slot_finder: SlotFinder) -> Predicting:
        """Return a model with the current state of its layout."""
        return cls(layout, layout.kernel_layout, layout.interactions, parts, slot_finder)


class WorkingMemory:
    """Scratch and buffers, which grow when blocks need it; only one thread at a time may use them."""

    def __init__(
        self,
        configuration: Configuration,
        layout: StreamLayout,
        *,
        semantics: Semantics,
        live_configs: int,
        decides: bool,
    ) -> None:
        self.limit = limit_of(configuration, semantics)
        self._decides = decides
        self._explorer = choose_explorer(configuration)
        self._live_configs = live_configs
        self._buffers: Buffers | None = None
        self._scratch = layout.scratch(spans=8)
        self._context: Sealed[Context] | None = None
        self._units: Units | None = None
        self._sizes: tuple[tuple[Any, ...], EventSizes] | None = None
        self._used: tuple[Any, ...] = ()  # what the last context was made of
        self._block: tuple[Sealed[Stream], Sealed[Results]] | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes of a copy, without addresses of arrays and of this process's code."""
        return vars(self) | {"_context": None, "_units": None, "_sizes": None, "_block": None, "_used": ()}

    def forget(self) -> None:
        """Release the model and the block of the last context."""
        vars(self).update(self.__getstate__(), _units=self._units)

    def open_block(self, layout: StreamLayout, block: Block) -> None:
        """Enlarge the scratch to the needs of a block's events."""
        self._scratch = enough_scratch(self._scratch, layout, block)

    def last(self) -> Context:
        """Return the last context of the loop."""
        assert self._context is not None
        return self._context.value

    def kept(self, layout: StreamLayout, given: LoopParts) -> Sealed[Context] | None:
        """Return the last context of the loop, or None if any of its parts has changed."""
        context = self._context
        if context is None:
            return None
        task, rule, kernel_layout, crossed, again, scratch, model, live, screen, _, _ = context.value
        same = (
            given.model is model
            and given.live is live
            and given.task is task
            and given.rule is rule
            and given.screen is screen
            and layout.kernel_layout is kernel_layout
            and layout.interactions is crossed
            and layout.again is again
            and self._scratch is scratch
        )
        return context if same else None

    def context(
        self, layout: StreamLayout, given: LoopParts, block: Block, stream: Stream, results: Results
    ) -> tuple[Sealed[Context], EventSizes]:
        """Return the context of the loop for a block, reused if unchanged, and the sizes of its events."""
        used = given, stream, layout.kernel_layout, layout.interactions, self._scratch
        if self._context is not None and self._sizes is not None and not any(map(is_not, used, self._used)):
            return self._context, self._sizes[1]
        if len(self._scratch.factors) < layout.highest_order:
            self._scratch = enough_scratch(self._scratch, layout, block)
        parts = self._parts(layout, given)
        if self._buffers is None:
            self._buffers = self.make_buffers(given.live)
        if self._units is None:
            self._units = make_units(
                self._explorer,
                Context(*parts, NO_UNITS, self._buffers),
                stream,
                results,
                decides=self._decides,
            )
        context = self._context
        if context is None or any(map(is_not, parts, context.value)):
            context = Sealed(Context(*parts, self._units, self._buffers), like=context)
        measured = stream, context.value.interactions, context.value.again, context.value.screen.interactions
        if self._sizes is None or any(map(is_not, measured, self._sizes[0])):
            self._sizes = measured, measure(context, layout, stream, self.limit)
            buffers = enough_room(self._buffers, context.value, stream, self._sizes[1].features)
            if buffers is not self._buffers:
                self._buffers = buffers
                context = Sealed(Context(*parts, self._units, buffers), like=context)
        self._context, self._used = context, (*used[:-1], self._scratch)
        return context, self._sizes[1]

    def prepare(self, loops: Sequence[Loop], layout: StreamLayout, given: LoopParts) -> None:
        """Compile or load the machine code of loops and their units; `plan` lists them by this."""
        context = Context(*self._parts(layout, given), NO_UNITS, self.make_buffers(given.live))
        make_units(self._explorer, context, NO_STREAM, NO_RESULTS, decides=self._decides)
        sealed = Sealed(context).record, Sealed(NO_STREAM).record, Sealed(NO_RESULTS).record
        for loop in loops:
            prepare(loop, *sealed, np.zeros(4, np.int64), 0, 0)

    def run(
        self,
        loop: Loop,
        context: Sealed[Context],
        sizes: EventSizes,
        given: tuple[Stream, Results, NDArray[np.int64]],
        stop: int,
        mode: int,
        is_due: Callable[[NDArray[np.int64]], bool] | None = None,
    ) -> None:
        """Run the loop over a `given` stream, its results and cursor, to `stop` or until a decision is due.

        A decision is due at each signal or, with `is_due`, if this returns true for the cursor. Wide events
        are run one by one. If wide events stop the stream, it ends before the first one.
        """
        stream, results, cursor = given
        block = self._block
        if block is None or block[0].value is not stream or block[1].value is not results:
            block = self._block = Sealed(stream), Sealed(results)
        sealed = block[0].record, block[1].record
        event_of, signal_of, none = int(Cursor.EVENT), int(Cursor.SIGNAL), int(LoopSignal.BLOCK_END)
        while True:
            begin = cursor.item(event_of)
            if self.limit.stops_at(sizes, begin) and mode == EventMode.LEARN:
                return
            now, end = context, sizes.next_odd(begin, stop)
            if end == begin < stop:
                now, end = without_widest(context, stream, begin, sizes, self.limit), begin + 1
            loop(now.record, *sealed, cursor, end, int(mode))
            if cursor.item(signal_of) == none:
                if cursor.item(event_of) == stop:
                    return
            elif is_due is None or is_due(cursor):
                return

    def make_buffers(self, live: Live, *, actions: int = 16) -> Buffers:
        """Return buffers for live configs and the members of their ensemble, for events of `actions`."""
        members = SealedRecords(member.make_scratch() for member in states_of(live.ensemble).members)
        scores = len(live.ensemble.members.rests)
        return make_buffers(actions=actions, slots=self._live_configs, scores=scores, members=members)

    def _parts(
        self, layout: StreamLayout, given: LoopParts
    ) -> tuple[Task, Rule, KernelLayout, Interactions, Interactions, Scratch, Model, Live, Screen]:
        """Return the fields of a context without the units and the buffers."""
        task, rule, model, live, screen = given
        crossed, again = layout.interactions, layout.again
        return task, rule, layout.kernel_layout, crossed, again, self._scratch, model, live, screen
