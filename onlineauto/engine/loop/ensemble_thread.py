"""The ensemble's thread: it runs the ensemble while the caller's thread runs the live configs."""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from onlineauto.engine.loop.relay_kernels import Progress, RealNumber
from onlineauto.engine.options.registry import RunOptions
from onlineauto.engine.records.loop import Cursor, EventMode, LoopSignal
from onlineauto.jit import PURE, Bound, Sealed

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from numpy.typing import NDArray

    from onlineauto.engine.loop.semantics import Loop
    from onlineauto.engine.loop.working_memory import Parts
    from onlineauto.engine.records.loop import Buffers, Context, Results
    from onlineauto.features.records import Stream
    from onlineauto.options import Configuration

FEW = 64
"""Number of events below which a second thread does not pay."""
_NAP, _LONG_NAP = 250e-6, 1e-3
"""Seconds until the ensemble, and the live configs, look again if they have nothing to do. To wake up takes
as long as several events, and the other thread has up to `RING` events to work on."""


def has_two_threads(configuration: Configuration) -> bool:
    """Return whether the options allow a second thread, and the process has a second processor for it."""
    if PURE or configuration[RunOptions].threads < 2:
        return False
    found = getattr(os, "sched_getaffinity", None)
    return len(found(0)) > 1 if found is not None else (os.cpu_count() or 1) > 1


def can_divide(parts: Parts) -> bool:
    """Return whether the live configs learn, and depend on nothing that the ensemble decides.

    A slot depends on the actions that are chosen for earlier slots.
    """
    return parts.live.searching and parts.live.ensemble.on and parts.task.training and not parts.task.slots


class EnsembleThread:
    """Runs the ensemble on a second thread, and the live configs on the caller's; a context manager.

    Predictions and decisions are those of a single thread, to the bit.

    Parameters
    ----------
    loop : callable
        The loop over the events of a block.

    Attributes
    ----------
    cursor : int64[4]
        The cursor of the ensemble, like that of the live configs.
    """

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self.cursor = np.zeros(4, np.int64)
        self._begins, self._ends, self._gate = threading.Lock(), threading.Lock(), threading.Lock()
        self._job: tuple[Callable[[], Any], NDArray[np.int64]] | None = None
        self._error: BaseException | None = None
        self._of: Sealed[Context] | None = None
        self._context: Sealed[Context] | None = None
        self._lent: tuple[Buffers, Buffers] | None = None
        self._arrays: tuple[NDArray[Any], ...] | None = None

    def __enter__(self) -> Self:
        """Start the thread."""
        self.cursor[:] = 0
        for lock in (self._begins, self._ends, self._gate):
            lock.acquire()
        threading.Thread(target=self._work, name="onlineauto-ensemble", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        """End the thread."""
        self._job = None
        self._begins.release()
        self._wait()
        for lock in (self._begins, self._ends, self._gate):
            lock.release()

    def run(
        self,
        context: Sealed[Context],
        given: tuple[Sealed[Stream], Sealed[Results], NDArray[np.int64]],
        stop: int,
    ) -> None:
        """Run both parts of the loop over a stream, from its cursor to `stop`, or until a decision is due.

        `given` is a stream, its results and the cursor of the live configs. The ensemble ends at the same
        event, unless its own cursor has the signal of a decision; see `catch_up`.
        """
        stream, results, cursor = given
        begin, progress = int(cursor[Cursor.EVENT]), context.value.buffers.relay.progress
        progress[Progress.HANDED] = progress[Progress.TAKEN] = self.cursor[Cursor.EVENT] = begin
        progress[Progress.ENDED] = 0
        self._job = self._bound(context, (stream, results), stop), progress
        run: Callable[[], Any] = Bound(
            self._loop, context, stream, results, cursor, stop, int(EventMode.LEARN_LIVE_CONFIGS)
        )
        self._begins.release()
        try:
            run()
            while (
                cursor[Cursor.SIGNAL] == LoopSignal.BLOCK_END
                and cursor[Cursor.EVENT] < stop
                and not progress[Progress.ENDED]
            ):
                time.sleep(_LONG_NAP)
                run()
        finally:
            self._gate.release()
            try:
                self._wait()
            finally:
                self._gate.acquire()

    @property
    def decides(self) -> bool:
        """True if the ensemble has stopped for a decision; the live configs may have learnt later events."""
        return bool(self.cursor[Cursor.SIGNAL] != LoopSignal.BLOCK_END)

    def range_then(self, context: Sealed[Context]) -> NDArray[np.float64]:
        """Return the range of rewards, [low, high], after the event before the ensemble's cursor."""
        real = context.value.buffers.relay.real
        last = (int(self.cursor[Cursor.EVENT]) - 1) % len(real)
        return np.array(real[last, [RealNumber.LOW, RealNumber.HIGH]])

    def catch_up(
        self, context: Sealed[Context], given: tuple[Sealed[Stream], Sealed[Results]], stop: int
    ) -> None:
        """Run the ensemble to `stop`, where the live configs are, or until it must decide again."""
        self._bound(context, given, stop)()

    def _wait(self) -> None:
        """Wait until the thread has ended its job; an interrupt is raised after that."""
        error: BaseException | None = None
        while True:
            try:
                self._ends.acquire()
                break
            except BaseException as interrupt:
                error = interrupt
        error, self._error = error or self._error, None
        if error is not None:
            raise error

    def _work(self) -> None:
        """Run one job after the other, until there is none."""
        while True:
            self._begins.acquire()
            job = self._job
            if job is not None:
                try:
                    self._combine(*job)
                except BaseException as error:
                    self._error, job[1][Progress.ENDED] = error, 1
            self._ends.release()
            if job is None:
                return

    def _combine(self, combine: Callable[[], Any], progress: NDArray[np.int64]) -> None:
        """Run the ensemble until a decision is due, or until it has all events of the live configs."""
        has_all = False  # the gate is open once the live configs have stopped
        while not (has_all and self.cursor[Cursor.EVENT] == progress[Progress.HANDED]):
            combine()
            if self.decides:
                progress[Progress.ENDED] = 1
                return
            if not has_all and self._gate.acquire(timeout=_NAP):
                self._gate.release()
                has_all = True

    def _bound(
        self, context: Sealed[Context], given: tuple[Sealed[Stream], Sealed[Results]], stop: int
    ) -> Callable[[], Any]:
        """Return the loop of the ensemble with its arguments."""
        if self._context is None or context is not self._of:
            self._context = Sealed(self._own(context.value), like=self._context)
            self._of = context
        self._context.value.model.shared[:] = context.value.model.shared
        return Bound(self._loop, self._context, *given, self.cursor, stop, int(EventMode.LEARN_ENSEMBLE))

    def _own(self, context: Context) -> Context:
        """Return a context with other arrays for what live configs change, which `take_over` fills."""
        buffers, live, statistics = context.buffers, context.live, context.live.statistics
        if self._lent is None or self._lent[0] is not buffers:
            self._lent = buffers, buffers._replace(score=np.zeros_like(buffers.score))
        if self._arrays is None:
            of_search = statistics.scale, statistics.logged, statistics.draws
            self._arrays = tuple(
                array.copy() for array in (context.model.shared, live.tally, live.mix, *of_search)
            )
        shared, tally, mix, scale, logged, draws = self._arrays
        return context._replace(
            model=context.model._replace(shared=shared),
            live=live._replace(
                tally=tally,
                mix=mix,
                statistics=statistics._replace(scale=scale, logged=logged, draws=draws),
            ),
            buffers=self._lent[1],
        )
