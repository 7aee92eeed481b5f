"""Block predictor: predict blocks, with unknown namespaces added to a view of the model's layout only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from onlineauto.engine.loop.buffers import make_outcomes, make_results
from onlineauto.engine.loop.one_event import one_event
from onlineauto.engine.loop.working_memory import LoopParts, Predicting, WorkingMemory
from onlineauto.engine.records.loop import EventMode
from onlineauto.engine.records.search import Screen
from onlineauto.engine.records.task import Shape
from onlineauto.features.records import Interactions, make_stream

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.engine.event.outcomes import Outcomes
    from onlineauto.engine.loop.one_event import OneEvent
    from onlineauto.engine.loop.semantics import Semantics
    from onlineauto.engine.records.loop import Context
    from onlineauto.engine.records.task import Task
    from onlineauto.engine.stream.event_readers import ReadsOne
    from onlineauto.features.block import Block
    from onlineauto.features.layout import StreamLayout
    from onlineauto.options import Configuration

_FEW = 64
"""Number of unknown namespaces that a view retains for later blocks."""


def no_screen() -> Screen:
    """Return an empty screen for predictions: a screen of the search has the keys of another layout."""
    return Screen(
        many=0,
        interactions=Interactions(
            start=np.zeros(1, np.int64),
            factor=np.empty(0, np.int32),
            permutations=False,
            n_slots=1,
            holders=np.ones((1, 4), bool),
        ),
        inside=np.zeros(0, bool),
        gains=np.zeros(0),
        ends=np.zeros(0, np.int64),
        seen=np.zeros(1, np.int64),
        table=np.zeros((0, 3), np.float32),
    )


class BlockPredictor:
    """Predicts blocks with separate working memory; only one thread at a time may use it."""

    def __init__(
        self, configuration: Configuration, layout: StreamLayout, *, semantics: Semantics, live_configs: int
    ) -> None:
        self._semantics = semantics
        self._memory = WorkingMemory(
            configuration, layout, semantics=semantics, live_configs=live_configs, decides=False
        )
        self._view: StreamLayout | None = None
        self._base: tuple[StreamLayout, int, Interactions] | None = None
        self._task: Task | None = None
        self._own: Task | None = None
        self._one: OneEvent | None = None
        self._screen = no_screen()
        self._lags = layout.lags.frozen()

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes of a copy, without those that contain addresses of arrays."""
        return vars(self) | {"_one": None}

    def forget(self) -> None:
        """Release the model of the last prediction, so that it does not stay in memory."""
        self._one = None
        self._memory.forget()

    def predict(self, block: Block, model: Predicting) -> Outcomes:
        """Predict the events of a block with a model and return the outcomes."""
        if self._lags:
            block = self._lags.expand(block, None, model.layout.lags.latest)
        layout, parts = self._layout_for(block, model.layout), self._own_parts(model.parts)
        block = layout.with_grams(block)
        task = parts.task
        self._one = None  # the view may have other names now
        slots = model.slot_finder.found(block, layout) if task.slots else None
        held_out = np.zeros(len(block) if slots is None else len(slots), bool)
        results = make_results(block, task, slots=slots, aside=True)
        stream = make_stream(block, held_out, slots)
        self._memory.open_block(layout, block)
        context, sizes = self._memory.context(layout, parts, block, stream, results)
        arguments = stream, results, np.zeros(4, np.int64)
        self._memory.run(
            self._semantics.run_events, context, sizes, arguments, len(held_out), EventMode.PREDICT
        )
        return make_outcomes(block, held_out, results, simple=task.shape == Shape.SIMPLE, slots=slots)

    def last(self) -> tuple[Context, StreamLayout]:
        """Return the context of the loop and the layout with which the last block was predicted."""
        context, view = self._memory.last(), self._view
        assert view is not None
        return context, view

    def predict_one(self, event: Any, reader: ReadsOne, model: Predicting) -> NDArray[np.float32] | None:
        """Read an event and return its prediction; None if it is unusual or does not fit the bound arrays."""
        one = self._one
        bound = one is not None and one.model is model and one.records is reader.records
        if one is not None and bound and one.read_and_run(event):
            return one.prediction()
        if not reader.read(event):
            return None
        if one is None or not bound or one.records is not reader.records:
            self._one = one = self._bind(model, reader)
        return one.prediction() if one is not None and one.run() else None

    def _bind(self, model: Predicting, reader: ReadsOne) -> OneEvent | None:
        """Return the loop over one event, bound to a model and to a reader; None if that is impossible."""
        view = self._view
        if view is None or not self._is_of(model.layout):
            return None
        context, loop = self._memory.kept(view, self._own_parts(model.parts)), self._semantics.run_events
        return one_event(loop, context, model, view, reader, EventMode.PREDICT)

    def _is_of(self, layout: StreamLayout) -> bool:
        """Return whether the view was made from the current state of this layout."""
        if self._base is None:
            return False
        base, version, interactions = self._base
        return base is layout and version == layout.version and interactions is layout.interactions

    def _layout_for(self, block: Block, layout: StreamLayout) -> StreamLayout:
        """Return a view of `layout` with the namespaces of a block; the last view if that is not crowded."""
        view = self._view
        if view is not None and self._is_of(layout):
            view.update(block)
            if view.n_beyond(layout) <= _FEW and not view.leaves_out_more_than(layout):
                return view
        self._view, self._base = layout.view(), (layout, layout.version, layout.interactions)
        self._view.update(block)
        return self._view

    def _own_parts(self, parts: LoopParts) -> LoopParts:
        """Return the parts of a model with separate copies of the scratch of explorers."""
        task = parts.task
        if self._own is None or self._task is not task:
            exploration, decay = task.exploration, task.decay
            self._task = task
            self._own = task._replace(
                exploration=exploration._replace(
                    numbers=exploration.numbers.copy(),
                    times=exploration.times.copy(),
                    guesses=exploration.guesses.copy(),
                ),
                decay=decay._replace(epsilon=decay.epsilon.copy()),
            )
        return parts._replace(task=self._own, screen=self._screen)
