"""Working memory: the scratch and buffers of one caller of the loop, and its context."""

from __future__ import annotations

from operator import is_not
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from onlineauto.engine.ensemble.states import states_of
from onlineauto.engine.loop.buffers import enough_room, enough_scratch, make_buffers
from onlineauto.engine.loop.units import NO_RESULTS, NO_STREAM, NO_UNITS, make_units
from onlineauto.engine.loop.wide_events import limit_of, measure, without_widest
from onlineauto.engine.records.loop import Context, Cursor, EventMode, LoopSignal
from onlineauto.explorers.choice import choose_explorer
from onlineauto.jit import Sealed, SealedRecords, prepare

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from onlineauto.engine.loop.semantics import Loop, Semantics
    from onlineauto.engine.loop.wide_events import EventSizes
    from onlineauto.engine.records.loop import Buffers, Results, Units
    from onlineauto.engine.records.search import Live, Screen
    from onlineauto.engine.records.task import Task
    from onlineauto.engine.stream.ccb_slots import SlotFinder
    from onlineauto.features.block import Block
    from onlineauto.features.layout import StreamLayout
    from onlineauto.features.records import Interactions, Scratch, Stream
    from onlineauto.features.records import Layout as KernelLayout
    from onlineauto.learners.gradient_kernels import Model, Rule
    from onlineauto.options import Configuration


class Parts(NamedTuple):
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
    parts: Parts
    slot_finder: SlotFinder

    @classmethod
    def of(cls, layout: StreamLayout, parts: Parts, slot_finder: SlotFinder) -> Predicting:
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
        self._block: tuple[Sealed[Stream], Sealed[Results]] | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes of a copy, without addresses of arrays and of this process's code."""
        return vars(self) | {"_context": None, "_units": None, "_sizes": None, "_block": None}

    def open_block(self, layout: StreamLayout, block: Block) -> None:
        """Enlarge the scratch to the needs of a block's events."""
        self._scratch = enough_scratch(self._scratch, layout, block)

    def last(self) -> Context:
        """Return the last context of the loop."""
        assert self._context is not None
        return self._context.value

    def kept(self, layout: StreamLayout, given: Parts) -> Sealed[Context] | None:
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
        self, layout: StreamLayout, given: Parts, block: Block, stream: Stream, results: Results
    ) -> tuple[Sealed[Context], EventSizes]:
        """Return the context of the loop for a block, and the sizes of its events.

        The last context is reused if none of its parts has changed.
        """
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
        of = stream, context.value.interactions, context.value.again, context.value.screen.interactions
        if self._sizes is None or any(map(is_not, of, self._sizes[0])):
            self._sizes = of, measure(context, layout, stream, self.limit)
            buffers = enough_room(self._buffers, context.value, stream, self._sizes[1].features)
            if buffers is not self._buffers:
                self._buffers = buffers
                context = Sealed(Context(*parts, self._units, buffers), like=context)
        self._context = context
        return context, self._sizes[1]

    def prepare(self, loops: Sequence[Loop], layout: StreamLayout, given: Parts) -> None:
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
    ) -> None:
        """Run the loop over a stream from its cursor to `stop`, or until a decision is due.

        `given` is a stream, its results and its cursor. Wide events are run one by one. If wide events stop
        the stream, it ends before the first one, as if that were `stop`.
        """
        stream, results, cursor = given
        block = self._block
        if block is None or block[0].value is not stream or block[1].value is not results:
            block = self._block = Sealed(stream), Sealed(results)
        sealed = block[0].record, block[1].record
        while True:
            begin = int(cursor[Cursor.EVENT])
            if self.limit.stops_at(sizes, begin) and mode == EventMode.LEARN:
                return
            now, end = context, sizes.next_odd(begin, stop)
            if end == begin < stop:
                now, end = without_widest(context, stream, begin, sizes, self.limit), begin + 1
            loop(now.record, *sealed, cursor, end, int(mode))
            if cursor[Cursor.SIGNAL] != LoopSignal.BLOCK_END or cursor[Cursor.EVENT] == stop:
                return

    def make_buffers(self, live: Live, *, actions: int = 16) -> Buffers:
        """Return buffers for live configs and the members of their ensemble, for events of `actions`."""
        members = SealedRecords(member.make_scratch() for member in states_of(live.ensemble).members)
        scores = len(live.ensemble.members.rests)
        return make_buffers(actions=actions, slots=self._live_configs, scores=scores, members=members)

    def _parts(
        self, layout: StreamLayout, given: Parts
    ) -> tuple[Task, Rule, KernelLayout, Interactions, Interactions, Scratch, Model, Live, Screen]:
        """Return the fields of a context without the units and the buffers."""
        task, rule, model, live, screen = given
        crossed, again = layout.interactions, layout.again
        return task, rule, layout.kernel_layout, crossed, again, self._scratch, model, live, screen
