"""``Follower``: the ensemble on a thread of its own, while the live configs run ahead on the caller's.

Both run in sub-blocks of events. No result depends on where these end: see `follow_kernels`. When the live
configs stop for a decision, the ensemble first catches up with them. A verdict on the ensemble changes
nothing for the live configs, so it is decided at once, and the ensemble catches up afterwards.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from queue import SimpleQueue
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from onlineauto.engine.loop.buffers import NO_AHEAD
from onlineauto.engine.loop.follow_kernels import NUMBERS, SCALE, follow_events
from onlineauto.engine.records.loop import HANDED, Ahead, Cursor, EventMode, LoopSignal
from onlineauto.engine.records.search import Due, Tally
from onlineauto.engine.records.task import Shape
from onlineauto.estimators.scale_kernels import SCALE_SIZE
from onlineauto.jit import Bound, Sealed
from onlineauto.learners.loss_kernels import DR

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from onlineauto.engine.loop.semantics import Loop
    from onlineauto.engine.loop.working_memory import LoopParts, WorkingMemory
    from onlineauto.engine.records.loop import Context, Results
    from onlineauto.engine.records.search import Live
    from onlineauto.features.records import Stream

_LEAST, _MOST = 8, 64
"""Numbers of events of the shortest sub-blocks, and of the longest. At first the ensemble waits for the first
sub-block, and in the end the live configs for the last one, so these are short; long ones need fewer calls.
"""
_FEWEST = 128
"""Number of events of a block from which a thread is worth its start."""
_SHORTEST = 32
"""Number of events to the next stop from which the thread is worth its preparations."""
_CAUGHT_UP = -1
"""In place of an event: the live configs wait until the ensemble has caught up."""
_CHANGES_CHAMPION = (LoopSignal.BOUND_CROSSED, LoopSignal.LOSS_CROSSED, LoopSignal.PROVED_WORSE)


class _Copies(NamedTuple):
    """The arrays that live configs change and the ensemble reads, as they were at the ensemble's event."""

    shared: NDArray[np.float64]
    tally: NDArray[np.int64]
    scale: NDArray[np.float64]
    logged: NDArray[np.float64]
    draws: NDArray[np.float64]


def can_follow(parts: LoopParts, mode: int) -> bool:
    """Return whether the ensemble can follow: its events are learnt, and no live config depends on it."""
    task, live, exploration = parts.task, parts.live, parts.task.exploration
    return bool(
        mode == EventMode.LEARN
        and task.training
        and task.shape != Shape.SIMPLE
        and not task.slots
        and task.thinning.share == 1.0
        and live.searching
        and live.ensemble.on
        and live.tests.paired
        and exploration.policies == 0
        and not exploration.bounds
        and parts.model.settings[0]["cb_type"] != DR
    )


def _events_to_stop(live: Live) -> int:
    """Return how many events must be learnt until the next review or the end of a lease."""
    schedule, n = live.schedule, live.n
    lease = int((schedule.lease[:n] - schedule.updates[:n]).min())
    review = int(schedule.due[Due.REVIEW] - live.tally[Tally.LEARNT])
    return 0 if schedule.due[Due.FILL] else min(lease, review)


def is_worth_following(parts: LoopParts, mode: int) -> bool:
    """Return whether the ensemble can follow, for long enough to be worth the preparations."""
    return can_follow(parts, mode) and _events_to_stop(parts.live) >= _SHORTEST


class Follower:
    """Runs the live configs on the caller's thread, and the ensemble behind them on another.

    `cursor`, int64[4], is the ensemble's; its signal is an undecided verdict on it, else `BLOCK_END`.
    """

    def __init__(self, memory: WorkingMemory) -> None:
        self._memory = memory
        self.cursor = np.zeros(4, np.int64)
        self._ahead = NO_AHEAD
        self._block: tuple[Sealed[Stream], Sealed[Results]] | None = None
        self._led: Sealed[Context] | None = None
        self._context: Sealed[Context] | None = None
        self._copies: _Copies | None = None
        self._thread: threading.Thread | None = None
        self._jobs: SimpleQueue[Sealed[Context] | int | None] = SimpleQueue()
        self._done: SimpleQueue[Exception | None] = SimpleQueue()

    def open_block(self, stream: Stream, results: Results, slots: int) -> bool:
        """Prepare for a block of events, for up to `slots` live configs; return False if it has too few."""
        handed, score, numbers = self._ahead
        n, n_actions = len(results.rows), len(results.action)
        if n < _FEWEST:
            return False
        if n > len(handed):
            handed, numbers = np.zeros(n, HANDED), np.empty((n, NUMBERS))
        if n_actions > len(score):
            score = np.empty((n_actions, slots + 1), np.float32)
        self._ahead = Ahead(handed, score, numbers)
        self._block = Sealed(stream), Sealed(results._replace(ahead=self._ahead))
        self.cursor[:] = 0
        return True

    def run(
        self,
        loop: Loop,
        context: Sealed[Context],
        cursor: NDArray[np.int64],
        stop: int,
        *,
        is_due: Callable[[NDArray[np.int64]], bool],
    ) -> None:
        """Run the live configs to `stop` or a signal that `is_due`, and the ensemble to its next verdict."""
        self.cursor[:] = cursor[Cursor.EVENT], 0, LoopSignal.BLOCK_END, 0
        if self._thread is None:
            thread = threading.Thread(target=self._work, name="onlineauto-ensemble", daemon=True)
            thread.start()
            self._thread = thread
        self._jobs.put(context)
        lead, live = self._bound(loop, context, cursor), context.value.live
        event_of, signal_of, none = int(Cursor.EVENT), int(Cursor.SIGNAL), int(LoopSignal.BLOCK_END)
        events, event, due, ended = _LEAST, int(cursor[Cursor.EVENT]), 0, False
        try:
            while not ended and self.cursor.item(signal_of) == none:
                lead(min(event + events, stop))
                event = cursor.item(event_of)
                self._jobs.put(event)
                ended = event == stop if cursor.item(signal_of) == none else is_due(cursor)
                if event >= due and not ended:
                    due = event + _events_to_stop(live)
                events = max(min(2 * events, (due - event) // 2, _MOST), _LEAST)
        finally:
            self._jobs.put(cursor.item(event_of))  # also what an interrupt has left
            self._jobs.put(_CAUGHT_UP)
            error = self._done.get()
        if error is not None:
            raise error
        self._leave_to_champion(cursor)

    def catch_up(self, context: Sealed[Context], cursor: NDArray[np.int64]) -> None:
        """Let the ensemble follow up to the cursor of the live configs, or to the next verdict on it."""
        self._bound(follow_events, self._context_for(context), self.cursor)(int(cursor[Cursor.EVENT]))
        self._leave_to_champion(cursor)

    def is_behind(self, cursor: NDArray[np.int64]) -> bool:
        """Return whether the ensemble is behind the cursor of the live configs."""
        return bool(self.cursor[Cursor.EVENT] < cursor[Cursor.EVENT])

    @property
    def has_verdict(self) -> bool:
        """True if a verdict on the ensemble is to be decided."""
        return self.cursor.item(int(Cursor.SIGNAL)) != int(LoopSignal.BLOCK_END)

    @contextmanager
    def decision(self, live: Live, cursor: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
        """Return the ensemble's cursor for a decision on its verdict, with the range of rewards there."""
        scale = live.statistics.scale
        now = scale.copy()
        if self.is_behind(cursor):
            scale[:] = self._ahead.numbers[self.cursor[Cursor.EVENT], SCALE : SCALE + SCALE_SIZE]
        try:
            yield self.cursor
        finally:
            scale[:] = now
            self.cursor[Cursor.SIGNAL] = LoopSignal.BLOCK_END

    def end(self) -> None:
        """End the thread; it starts again when it is needed."""
        if self._thread is not None:
            self._jobs.put(None)
            self._thread.join()
            self._thread, self._block = None, None
            self._jobs, self._done = SimpleQueue(), SimpleQueue()  # an interrupted run may have left some

    def _bound(self, loop: Loop, context: Sealed[Context], cursor: NDArray[np.int64]) -> Bound:
        """Return a loop over the block, to be called with the event to stop at."""
        assert self._block is not None
        stream, results = self._block
        arguments = context, stream, results, cursor, 0, int(EventMode.LEARN)
        return Bound(loop, *arguments, varying=4)

    def _leave_to_champion(self, cursor: NDArray[np.int64]) -> None:
        """Drop a verdict on the ensemble if the same event has one on a challenger, which comes first."""
        if not self.is_behind(cursor) and cursor[Cursor.SIGNAL] in _CHANGES_CHAMPION:
            self.cursor[Cursor.SIGNAL] = LoopSignal.BLOCK_END

    def _context_for(self, context: Sealed[Context]) -> Sealed[Context]:
        """Return the ensemble's context: that of the live configs, with copies and its own buffers."""
        if self._context is not None and self._led is context:
            return self._context
        value, live, last = context.value, context.value.live, self._context
        statistics = live.statistics
        if self._copies is None:
            self._copies = _Copies(
                value.model.shared.copy(),
                live.tally.copy(),
                statistics.scale.copy(),
                statistics.logged.copy(),
                statistics.draws.copy(),
            )
        copies = self._copies
        statistics = statistics._replace(scale=copies.scale, logged=copies.logged, draws=copies.draws)
        buffers = None if last is None else last.value.buffers
        if buffers is None or len(buffers.score) < len(value.buffers.score):
            buffers = self._memory.make_buffers(live, actions=len(value.buffers.score))
        self._context = Sealed(
            value._replace(
                model=value.model._replace(shared=copies.shared),
                live=live._replace(tally=copies.tally, statistics=statistics),
                buffers=buffers,
            ),
            like=context,
        )
        self._led = context
        return self._context

    def _work(self) -> None:
        """Follow the live configs, from one event to the next that they have reached."""
        follow: Bound | None = None
        error: Exception | None = None
        while (job := self._jobs.get()) is not None:
            try:
                if isinstance(job, Sealed):  # sealing another one takes time, while the live configs run
                    follow = self._bound(follow_events, self._context_for(job), self.cursor)
                elif job == _CAUGHT_UP:
                    self._done.put(error)
                    error = None
                elif follow is not None and error is None and not self.has_verdict:
                    follow(job)
            except Exception as raised:  # It is raised in the thread that waits.
                error = raised
