"""``Follower``: the ensemble on a thread of its own, while the live configs run ahead on the caller's.

Both run in sub-blocks of events. No result depends on where these end: see `follow_kernels`. When the live
configs stop for a decision, the ensemble first catches up with them. A verdict on the ensemble changes
nothing for the live configs, which may be ahead then. So it is decided at once, and the ensemble catches up
afterwards.
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
from onlineauto.engine.records.task import Shape
from onlineauto.estimators.scale_kernels import SCALE_SIZE
from onlineauto.jit import Sealed
from onlineauto.learners.cost_kernels import DR

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from onlineauto.engine.loop.semantics import Loop
    from onlineauto.engine.loop.working_memory import Parts, WorkingMemory
    from onlineauto.engine.records.loop import Context, Results
    from onlineauto.engine.records.search import Live
    from onlineauto.features.records import Stream

_FIRST, _MOST = 16, 64
"""Numbers of events of the first sub-block after a stop, and of the longest. The ensemble is about one
sub-block behind, so short ones lose less time at the next stop; long ones need fewer calls."""
FEWEST = 128
"""Number of events of a block from which a thread is worth its start."""
_CHANGES_CHAMPION = (LoopSignal.BOUND_CROSSED, LoopSignal.LOSS_CROSSED, LoopSignal.PROVED_WORSE)


class _Copies(NamedTuple):
    """The arrays that live configs change and the ensemble reads, as they were at the ensemble's event."""

    shared: NDArray[np.float64]
    tally: NDArray[np.int64]
    scale: NDArray[np.float64]
    logged: NDArray[np.float64]
    draws: NDArray[np.float64]


class _Job(NamedTuple):
    """Events for the ensemble to follow: those before `stop`."""

    context: Sealed[Context]
    stream: Sealed[Stream]
    results: Sealed[Results]
    stop: int


def can_follow(parts: Parts, mode: int) -> bool:
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


class Follower:
    """Runs the live configs on the caller's thread, and the ensemble behind them on another.

    Parameters
    ----------
    memory : WorkingMemory
        The caller's; the ensemble gets working arrays of the same sizes.

    Attributes
    ----------
    cursor : int64[4]
        The cursor of the ensemble. Its signal is that of a verdict on the ensemble to be decided, else
        `LoopSignal.BLOCK_END`.
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
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._done: SimpleQueue[Exception | None] = SimpleQueue()

    def open_block(self, stream: Stream, results: Results, slots: int) -> None:
        """Prepare for a block of events, for up to `slots` live configs."""
        handed, score, numbers = self._ahead
        n, n_actions = len(results.rows), len(results.action)
        if n > len(handed):
            handed, numbers = np.zeros(n, HANDED), np.empty((n, NUMBERS))
        if n_actions > len(score):
            score = np.empty((n_actions, slots), np.float32)
        self._ahead = Ahead(handed, score, numbers)
        self._block = Sealed(stream), Sealed(results._replace(ahead=self._ahead))
        self.cursor[:] = 0

    def run(self, loop: Loop, context: Sealed[Context], cursor: NDArray[np.int64], stop: int) -> None:
        """Run the live configs from their cursor to `stop`, or until a decision is due; the ensemble follows.

        The ensemble catches up with the live configs, unless there is a verdict on it to be decided.
        """
        stream, results = self._opened
        job = _Job(self._context_for(context), stream, results, 0)
        self.cursor[:] = cursor[Cursor.EVENT], 0, LoopSignal.BLOCK_END, 0
        self._start()
        events, waiting = _FIRST, 0
        try:
            while True:
                end = min(int(cursor[Cursor.EVENT]) + events, stop)
                loop(context.record, job.stream.record, job.results.record, cursor, end, int(EventMode.LEARN))
                self._jobs.put(job._replace(stop=int(cursor[Cursor.EVENT])))
                waiting, events = waiting + 1, min(2 * events, _MOST)
                ended = cursor[Cursor.SIGNAL] != LoopSignal.BLOCK_END or cursor[Cursor.EVENT] == stop
                if ended or self.cursor[Cursor.SIGNAL] != LoopSignal.BLOCK_END:
                    break
        finally:
            errors = [self._done.get() for _ in range(waiting)]
        for error in filter(None, errors):
            raise error
        self._leave_to_champion(cursor)

    def catch_up(self, context: Sealed[Context], cursor: NDArray[np.int64]) -> None:
        """Let the ensemble follow up to the cursor of the live configs, or to the next verdict on it."""
        self._follow(_Job(self._context_for(context), *self._opened, int(cursor[Cursor.EVENT])))
        self._leave_to_champion(cursor)

    def is_behind(self, cursor: NDArray[np.int64]) -> bool:
        """Return whether the ensemble is behind the cursor of the live configs."""
        return bool(self.cursor[Cursor.EVENT] < cursor[Cursor.EVENT])

    @property
    def has_verdict(self) -> bool:
        """True if a verdict on the ensemble is to be decided."""
        return bool(self.cursor[Cursor.SIGNAL] != LoopSignal.BLOCK_END)

    @contextmanager
    def decision(self, live: Live, cursor: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
        """Return the ensemble's cursor for a decision on its verdict.

        Meanwhile the range of rewards is that at this cursor, although the live configs may be ahead.
        """
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

    @property
    def _opened(self) -> tuple[Sealed[Stream], Sealed[Results]]:
        """The stream of the block and its results, with the arrays for what is handed over."""
        assert self._block is not None
        return self._block

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

    def _start(self) -> None:
        """Start the thread unless it runs."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="onlineauto-ensemble", daemon=True)
            self._thread.start()

    def _work(self) -> None:
        """Follow the live configs, job by job."""
        while (job := self._jobs.get()) is not None:
            error = None
            try:
                if not self.has_verdict:
                    self._follow(job)
            except Exception as raised:  # It is raised in the thread that waits for the job.
                error = raised
            self._done.put(error)

    def _follow(self, job: _Job) -> None:
        """Run the ensemble's kernel over a job."""
        sealed = job.context.record, job.stream.record, job.results.record
        follow_events(*sealed, self.cursor, job.stop, int(EventMode.LEARN))
