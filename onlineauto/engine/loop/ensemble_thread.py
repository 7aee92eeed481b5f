"""The ensemble's thread: it runs the ensemble while the caller's thread runs the live configs."""

from __future__ import annotations

import os
import threading
import time
from functools import partial
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
_NAP = 250e-6
"""Seconds until a thread that has nothing to do looks again. To wake up takes as long as several events, and
the other thread has up to `RING` events to work on."""


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


class _Worker:
    """A thread that runs a step whenever it can; where it gets no processor, its caller runs the steps."""

    def __init__(self) -> None:
        self._step: Callable[[], Any] | None = None
        self._turn, self._begins, self._over = threading.Lock(), threading.Lock(), False
        self._begins.acquire()
        self.error: Exception | None = None
        threading.Thread(target=self._work, name="onlineauto-ensemble", daemon=True).start()

    def open(self, step: Callable[[], Any]) -> None:
        """Run a step again and again from now on."""
        self._step = step
        self._wake()

    def help(self) -> None:
        """Run the step once on the caller's thread."""
        with self._turn:
            self._try()

    def close(self) -> None:
        """Run the step for the last time, and raise its error; an interrupt is raised after that."""
        interrupt: BaseException | None = None
        while self._step is not None:
            try:
                with self._turn:
                    self._try()
                    self._step = None
            except BaseException as error:
                interrupt = error
        raised = interrupt or self.error
        if raised is not None:
            raise raised

    def end(self) -> None:
        """Let the thread end."""
        self._over = True
        self._wake()

    def _wake(self) -> None:
        if self._begins.locked():
            self._begins.release()

    def _try(self) -> None:
        if self._step is not None and self.error is None:
            try:
                self._step()
            except Exception as error:  # raised by the caller's thread
                self.error = error

    def _work(self) -> None:
        while not self._over:
            self._begins.acquire()
            while self._step is not None:
                self.help()
                time.sleep(_NAP)


class EnsembleThread:
    """Runs the ensemble on a second thread, and the live configs on the caller's; a context manager.

    Predictions and decisions are those of a single thread, to the bit. A copy is a new object: it has no
    thread and no addresses.

    Attributes
    ----------
    cursor : int64[4]
        The cursor of the ensemble, like that of the live configs.
    """

    def __init__(self) -> None:
        self.cursor = np.zeros(4, np.int64)
        self._worker: _Worker | None = None
        self._of: Sealed[Context] | None = None
        self._context: Sealed[Context] | None = None
        self._lent: tuple[Buffers, Buffers] | None = None
        self._arrays: tuple[NDArray[Any], ...] | None = None

    def __reduce__(self) -> tuple[type[EnsembleThread], tuple[()]]:
        """Return the recipe of a copy."""
        return EnsembleThread, ()

    def __enter__(self) -> Self:
        """Start the thread."""
        self.cursor[:] = 0
        self._worker = _Worker()
        return self

    def __exit__(self, *_: object) -> None:
        """Let the thread end."""
        assert self._worker is not None
        self._worker.end()

    def run(
        self,
        loop: Loop,
        context: Sealed[Context],
        given: tuple[Sealed[Stream], Sealed[Results], NDArray[np.int64]],
        stop: int,
    ) -> None:
        """Run both parts of the loop over a stream, from its cursor to `stop`, or until a decision is due.

        `given` is a stream, its results and the cursor of the live configs. The ensemble ends at the same
        event, unless its own cursor has the signal of a decision; see `catch_up`.
        """
        assert self._worker is not None
        (stream, results, cursor), worker = given, self._worker
        begin, progress = int(cursor[Cursor.EVENT]), context.value.buffers.relay.progress
        progress[Progress.HANDED] = progress[Progress.TAKEN] = self.cursor[Cursor.EVENT] = begin
        progress[Progress.ENDED] = 0
        run: Callable[[], Any] = Bound(
            loop, context, stream, results, cursor, stop, int(EventMode.LEARN_LIVE_CONFIGS)
        )
        step = partial(self._combine, self._bound(loop, context, (stream, results), stop), progress)
        try:
            worker.open(step)
            run()
            while (
                cursor[Cursor.SIGNAL] == LoopSignal.BLOCK_END
                and cursor[Cursor.EVENT] < stop
                and not (progress[Progress.ENDED] or worker.error)
            ):  # the ring is full, because the ensemble is slower or its thread gets no processor
                taken = progress[Progress.TAKEN]
                time.sleep(_NAP)
                if progress[Progress.TAKEN] == taken:
                    worker.help()
                run()
        finally:
            worker.close()

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
        self, loop: Loop, context: Sealed[Context], given: tuple[Sealed[Stream], Sealed[Results]], stop: int
    ) -> None:
        """Run the ensemble to `stop`, where the live configs are, or until it must decide again."""
        self._bound(loop, context, given, stop)()

    def _combine(self, combine: Callable[[], Any], progress: NDArray[np.int64]) -> None:
        """Run the ensemble over all events that were handed over, or until a decision is due."""
        if not self.decides:
            combine()
            progress[Progress.ENDED] = self.decides

    def _bound(
        self, loop: Loop, context: Sealed[Context], given: tuple[Sealed[Stream], Sealed[Results]], stop: int
    ) -> Callable[[], Any]:
        """Return the loop of the ensemble with its arguments."""
        if self._context is None or context is not self._of:
            self._context = Sealed(self._own(context.value), like=self._context)
            self._of = context
        self._context.value.model.shared[:] = context.value.model.shared
        return Bound(loop, self._context, *given, self.cursor, stop, int(EventMode.LEARN_ENSEMBLE))

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
