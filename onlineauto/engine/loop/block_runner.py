"""Block runner: run the loop over a sequence of blocks; the search decides whenever the loop stops."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from onlineauto.engine.loop.buffers import make_outcomes, make_results
from onlineauto.engine.loop.follow_kernels import follow_events
from onlineauto.engine.loop.follower import Follower, can_follow, is_worth_following
from onlineauto.engine.loop.one_event import one_event
from onlineauto.engine.loop.wide_events import WideEvent, report
from onlineauto.engine.loop.working_memory import LoopParts, Predicting, WorkingMemory
from onlineauto.engine.records.loop import Cursor, EventMode, LoopSignal
from onlineauto.engine.records.task import Shape
from onlineauto.engine.stream.event_readers import SlotFinder
from onlineauto.features.records import make_stream
from onlineauto.learners.model import use_large_pages

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.engine.event.outcomes import Outcomes
    from onlineauto.engine.loop.learner import Learner
    from onlineauto.engine.loop.one_event import OneEvent
    from onlineauto.engine.loop.semantics import Semantics
    from onlineauto.engine.records.loop import Results
    from onlineauto.engine.records.search import Live, Screen
    from onlineauto.engine.stream.event_readers import ReadsOne
    from onlineauto.errors import ParseError
    from onlineauto.features.block import Block
    from onlineauto.features.layout import StreamLayout
    from onlineauto.features.records import Stream
    from onlineauto.features.slots import Slots
    from onlineauto.formats.lines.diagnostics import Diagnostics
    from onlineauto.learners.gradient_kernels import Model
    from onlineauto.options import Configuration
    from onlineauto.state.stored import Stored


class _HasArrays(Protocol):
    arrays: Live


class _HasScreen(Protocol):
    screen: Screen


class Decides(Protocol):
    """Decides whenever the loop stops: a search or a replay."""

    n_events: int
    """Number of completed events."""

    @property
    def live_configs(self) -> _HasArrays:
        """The live configs."""

    @property
    def screening(self) -> _HasScreen:
        """The estimated gains of interactions."""

    @property
    def replays(self) -> bool:
        """True if the decisions are those of a journal."""

    def prepare(self, model: Model) -> None:
        """Compile or load the machine code of all later decisions, so that no later event waits for it."""

    def open_block(self) -> None:
        """Prepare for a block."""

    def stop(self, begin: int, end: int) -> int:
        """Return the event before which the loop must stop, of the events [begin, end) of a block."""

    def begin_again(self) -> None:
        """Forget all evidence, because the model has been reset."""

    def is_due(self, cursor: NDArray[np.int64]) -> bool:
        """Return whether the signal needs an `answer`; the ensemble need not have caught up."""

    def answer(
        self,
        cursor: NDArray[np.int64],
        block: Block | None,
        model: Model,
        *,
        event: int,
        through: int,
        random: NDArray[np.uint64] | None = None,
    ) -> None:
        """Decide on the signal of the `cursor`, and apply the decisions to the `model`."""


class BlockRunner:
    """Runs the loop over the blocks of a stream."""

    def __init__(
        self,
        configuration: Configuration,
        *,
        layout: StreamLayout,
        learner: Learner,
        searching: Decides,
        semantics: Semantics,
    ) -> None:
        self._layout, self._learner, self._searching = layout, learner, searching
        self._semantics = semantics
        self.slot_finder = SlotFinder(configuration)
        self._decides = learner.task.training or semantics.notices_predicted
        self._prepared = not self._decides
        self._one: OneEvent | None = None
        self._wide: list[WideEvent] = []
        self._stopped = False
        self._predicting: Predicting | None = None
        self._memory = WorkingMemory(
            configuration,
            layout,
            semantics=semantics,
            live_configs=learner.shape.configs,
            decides=self._decides,
        )
        self.in_two = False  # whether the ensemble learns on a thread of its own; no result depends on it
        self._follower = Follower(self._memory)

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes of a copy, without those that contain addresses of arrays."""
        return {name: value for name, value in vars(self).items() if name != "_follower"} | {"_one": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a copy, with a thread of its own for the ensemble."""
        vars(self).update(state)
        self._follower = Follower(self._memory)

    def state(self) -> dict[str, Any]:
        """Return the state, for `restore`."""
        return self.slot_finder.state()

    def restore(self, stored: Stored) -> None:
        """Restore a state that was stored with the same options."""
        self.slot_finder.restore(stored)

    def predicting(self) -> Predicting:
        """Return the current model: the same object as before if its arrays are the same."""
        learner, layout, searching, last = self._learner, self._layout, self._searching, self._predicting
        live, screen = searching.live_configs.arrays, searching.screening.screen
        if last is not None:
            _, keys, interactions, parts, _ = last
            task, rule, model, last_live, last_screen = parts
            if (
                live is last_live
                and screen is last_screen
                and learner.model is model
                and learner.task is task
                and learner.rule is rule
                and layout.kernel_layout is keys
                and layout.interactions is interactions
            ):
                return last
        parts = self._parts()
        self._predicting = made = Predicting.of(layout, parts, self.slot_finder)
        return made

    def learn(
        self, block: Block, holdout: NDArray[np.bool_] | None, found: Diagnostics
    ) -> tuple[Block, Outcomes, list[ParseError]]:
        """Predict the events of a block, learn all but those held out, and count and locate wide events.

        Returns the block and its outcomes, up to a wide event that stops the stream, and errors (`report`).
        """
        outcomes = self._run(block, holdout, EventMode.LEARN)
        errors = report(self._wide, block, found, stopped=self._stopped, limit=self._memory.limit)
        return block.head(self._wide[-1].event) if self._stopped else block, outcomes, errors

    def notice(self, block: Block) -> Outcomes:
        """Predict the events of a block as VW does, learning only their namespaces (`notices_predicted`)."""
        searches = self._searching.live_configs.arrays.searching and not self._searching.replays
        return self._run(block, None, EventMode.PREDICT_AND_COUNT if searches else EventMode.PREDICT)

    def learn_one(self, event: Any, reader: ReadsOne, found: Diagnostics) -> OneEvent | None:
        """Predict and learn one event, and return the loop with its results; None if it needs a block."""
        one, model, searching = self._one, self.predicting(), self._searching
        bound = one is not None and one.model is model and one.records is reader.records
        if one is None or not bound or not one.read_and_run(event):
            if not reader.read(event):
                return None
            if one is None or not bound or one.records is not reader.records:
                self._one = one = self._bind(model, reader)
            if one is None or not one.run():
                return None
        searches, counted = one.searches and self._decides, 0
        while not one.ended:
            if not searches or searching.is_due(one.cursor):
                block = reader.make_block()
                self._answer(one.cursor, block, begin=counted, n=1, mode=EventMode.LEARN)
                if self.predicting() is not model:
                    self._finish_as_block(one, block, found)
                    return one
                counted = int(one.cursor[Cursor.EVENT])
            one.resume()
        if searches:
            searching.n_events += 1 - counted
        return one

    def _finish_as_block(self, one: OneEvent, block: Block, found: Diagnostics) -> None:
        """Finish a single event as a block, because the search has changed the arrays of the model."""
        self._wide, self._stopped = [], False
        holdout, simple = np.zeros(1, bool), self._learner.task.shape == Shape.SIMPLE
        self._loop(block, make_stream(block, holdout), one.results, one.cursor, mode=EventMode.LEARN)
        if errors := report(self._wide, block, found, stopped=self._stopped, limit=self._memory.limit):
            raise errors.pop()
        one.finish(make_outcomes(block, holdout, one.results, simple=simple).one_prediction())

    def prepare(self) -> None:
        """Compile or load the machine code for learning a block; `plan` lists the programs by this."""
        if self._decides:
            self._searching.prepare(self._learner.model)
        parts, loops = self._parts(), [self._semantics.run_events]
        if self._can_follow(parts, EventMode.LEARN):
            loops.append(follow_events)
        self._memory.prepare(loops, self._layout, parts)

    def _parts(self) -> LoopParts:
        """Return the current parts of the model and of the search that the loop uses."""
        learner, searching = self._learner, self._searching
        live, screen = searching.live_configs.arrays, searching.screening.screen
        return LoopParts(learner.task, learner.rule, learner.model, live, screen)

    def begin_again(self) -> None:
        """Reset the model and the evidence; the search continues."""
        self._learner.begin_again()
        self._searching.begin_again()

    def _bind(self, model: Predicting, reader: ReadsOne) -> OneEvent | None:
        """Return the loop over one event, bound to the model and a reader; None if that is impossible."""
        if self._searching.replays or (model.parts.live.searching and not self._prepared):
            return None
        context, loop = self._memory.kept(self._layout, model.parts), self._semantics.run_events
        return one_event(loop, context, model, self._layout, reader, EventMode.LEARN)

    def _run(self, block: Block, holdout: NDArray[np.bool_] | None, mode: int) -> Outcomes:
        """Run the loop over a block of this `mode`; the search ignores events of `EventMode.PREDICT`."""
        layout, searching, task = self._layout, self._searching, self._learner.task
        self._wide, self._stopped = [], False
        held_out = np.zeros(len(block), bool) if holdout is None else np.ascontiguousarray(holdout, bool)
        adds = mode == EventMode.LEARN  # with ``-t`` too: labels of a log are known once they are behind
        if layout.lags:
            block = layout.lags.expand(block, held_out if adds else None, layout.lags.latest)
        layout.update(block)
        block = layout.with_grams(block)
        slots = self.slot_finder.find(block, layout) if task.slots else None
        if slots is not None:
            held_out = held_out[slots.event]
        results = make_results(block, task, slots=slots, aside=mode != EventMode.LEARN)
        if self._lets_decide(mode):
            if not self._prepared:
                searching.prepare(self._learner.model)
                self._prepared = True
            searching.open_block()
        stream = make_stream(block, held_out, slots)
        self._memory.open_block(layout, block)
        cursor = np.zeros(4, np.int64)
        follows = self._can_follow(self._parts(), mode) and self._follower.open_block(
            stream, results, self._learner.shape.configs
        )
        try:
            self._loop(block, stream, results, cursor, slots=slots, mode=mode, follows=follows)
        finally:
            self._follower.end()
        if self._stopped:
            done = self._wide[-1].event
            slots = None if slots is None else slots.head(done)
            rows = done if slots is None else len(slots)
            block, held_out = block.head(done), held_out[:rows]
            results = results._replace(rows=results.rows[:rows])
        use_large_pages(self._learner.model)
        if layout.lags and adds:
            layout.lags.add(block, held_out)
        return make_outcomes(block, held_out, results, simple=task.shape == Shape.SIMPLE, slots=slots)

    def _lets_decide(self, mode: int) -> bool:
        """Return whether a search decides on events of this mode; not in a run that only predicts."""
        return bool(
            self._decides and self._searching.live_configs.arrays.searching and mode != EventMode.PREDICT
        )

    def _loop(
        self,
        block: Block,
        stream: Stream,
        results: Results,
        cursor: NDArray[np.int64],
        *,
        mode: int,
        slots: Slots | None = None,
        follows: bool = False,
    ) -> None:
        """Run the loop from the cursor to the end; if the ensemble `follows`, on a thread of its own."""
        searching, n, memory, follower = self._searching, len(stream.holdout), self._memory, self._follower
        decides, arguments = self._lets_decide(mode), (stream, results, cursor)
        begin = int(cursor[Cursor.EVENT])
        while True:
            parts = self.predicting().parts
            context, sizes = memory.context(self._layout, parts, block, stream, results)
            reached = int(cursor[Cursor.EVENT])
            stop = searching.stop(reached, n) if decides else n
            if follows and follower.is_behind(cursor):
                follower.catch_up(context, cursor)
            elif follows and sizes.next_odd(reached, stop) == stop and is_worth_following(parts, mode):
                follower.run(self._semantics.run_events, context, cursor, stop, is_due=searching.is_due)
            else:
                is_due = searching.is_due if decides else None
                memory.run(self._semantics.run_events, context, sizes, arguments, stop, mode, is_due)
                follower.cursor[Cursor.EVENT] = cursor[Cursor.EVENT]
            if follows and follower.has_verdict:
                with follower.decision(parts.live, cursor) as verdict:
                    self._answer(verdict, block, begin=begin, n=n, mode=mode)
                begin = int(verdict[Cursor.EVENT])
                if follower.is_behind(cursor) or cursor[Cursor.SIGNAL] == LoopSignal.BLOCK_END:
                    continue
            reached = int(cursor[Cursor.EVENT])
            self._stopped = mode == EventMode.LEARN and memory.limit.stops_at(sizes, reached)
            for row in sorted(row for row in sizes.wide if begin <= row < reached + self._stopped):
                event = row if slots is None else int(slots.event[row])
                if not self._wide or self._wide[-1].event < event:  # all slots of an event are one event
                    self._wide.append(WideEvent(event, sizes.wide[row]))
            if decides or cursor[Cursor.SIGNAL] == LoopSignal.BEGIN_AGAIN:
                self._answer(cursor, block, begin=begin, n=n, mode=mode, slots=slots)
            begin = reached
            if self._stopped or (cursor[Cursor.SIGNAL] == LoopSignal.BLOCK_END and cursor[Cursor.EVENT] == n):
                return

    def _can_follow(self, parts: LoopParts, mode: int) -> bool:
        """Return whether the ensemble can follow the live configs on a thread of its own."""
        return self.in_two and self._decides and not self._searching.replays and can_follow(parts, mode)

    def _answer(
        self,
        cursor: NDArray[np.int64],
        block: Block | None,
        *,
        begin: int,
        n: int,
        mode: int,
        slots: Slots | None = None,
    ) -> None:
        """Let the search decide on the signal with which the loop stopped, after events from `begin` on."""
        if cursor[Cursor.SIGNAL] == LoopSignal.BEGIN_AGAIN:
            self.begin_again()
            cursor[Cursor.SIGNAL] = LoopSignal.BLOCK_END
        if not self._lets_decide(mode):
            return
        event = int(cursor[Cursor.EVENT])
        through = event - begin if mode == EventMode.LEARN else 0
        event = event if slots is None or event == n else int(slots.event[event])
        draws = self._semantics.search_draws_with_explorer
        random = self._learner.task.exploration.random if draws else None
        self._searching.answer(
            cursor, block, self._learner.model, event=event, through=through, random=random
        )
