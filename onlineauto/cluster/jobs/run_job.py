"""``RunJob``: a stream that one learner or one search learns in this process, with one worker."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from onlineauto.cluster.jobs.job import Demand, check_demand, check_stopped
from onlineauto.engine.options.registry import RunOptions
from onlineauto.errors import InputError, OptionError

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from onlineauto.workspace.run import Run

_STEP: Final = 1000
"""Number of events between two checks whether the job must pause."""


class RunJob:
    """Learns a stream in a thread while it has a worker. One worker learns all live configs together.

    The run is in this process with any backend of the cluster. While the job works, only its thread may use
    the run, except for predictions of `Run.workspace`.

    With a `model`, the job survives a crash: the run is saved every `save_every` events, at each pause, when
    it is stopped, and at its end. A job of ``Run.resume(model, source)`` continues after the last save, with
    the same result as an uninterrupted run.

    Parameters
    ----------
    run : Run
        The stream, and the workspace that learns it.
    events : int, optional
        Number of events of the stream; None if unknown, in which case more events are expected until the end.
    worker : mapping, optional
        Resources of the learner; 1 CPU by default.
    kind : str
        Learners of one kind have about the same speed.
    model : path, optional
        The file for the run, which is replaced atomically.
    save_every : int
        Number of events between two saves, while the job works.
    """

    def __init__(
        self,
        run: Run,
        *,
        events: int | None = None,
        worker: Mapping[str, float] | None = None,
        kind: str = "stream",
        model: str | os.PathLike[str] | None = None,
        save_every: int = 100_000,
    ) -> None:
        if save_every < 1:
            raise OptionError(f"save_every = {save_every}: give 1 event or more")
        self.run, self.kind = run, kind
        self.demand = check_demand(Demand(worker or {"CPU": 1.0}, most_workers=1))
        self._events = events
        self._model, self._save_every = model, save_every
        self._learnt = max(run.position.events, run.progress.example_number)
        self._saved = self._learnt
        self._works = threading.Event()
        self._steps = False
        self._stops = False
        self._ended = run.position.passes >= run.workspace.configuration[RunOptions].passes
        self._error: BaseException | None = None
        self._thread: threading.Thread | None = None

    @property
    def resources_in_use(self) -> tuple[int, int]:
        """One worker while the job learns, and no servers."""
        return int(self._works.is_set() or self._steps), 0

    def progress(self) -> tuple[float, float]:
        """Return the number of learned events, and the total number."""
        if self._error is not None:
            raise self._error
        ended, done = self._ended, self._learnt
        if ended:
            return done, done
        return done, max(self._events or 0, done + _STEP)

    def resize(self, workers: int, servers: int) -> None:
        """Learn, or pause after the current step of 1000 events."""
        del servers
        if workers and self._stops:  # the cluster runs again after a stop
            check_stopped(self._thread)
            self._stops, self._thread = False, None
        if workers and not self._ended:
            self._works.set()
        else:
            self._works.clear()
        if workers and self._thread is None:
            self._thread = threading.Thread(target=self._learn, name="onlineauto run", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Stop learning after the current step of 1000 events."""
        self._stops = True
        self._works.set()
        if self._thread is not None:
            self._thread.join(60)
        self._works.clear()

    def _learn(self) -> None:
        try:
            while not self._stops and not self._ended:
                if not self._works.is_set():
                    self._save()
                    self._steps = False
                    self._works.wait()
                    continue
                self._steps = True
                events = self.run.step(_STEP)
                self._learnt += events
                if events == 0 or self._learnt - self._saved >= self._save_every:
                    self._save(is_final=events == 0)
                self._ended = events == 0
            self._save()
        except InputError as error:  # saves the events before the error
            self._error = error
            self._save()
        except BaseException as error:
            self._error = error
        finally:
            self._steps = False
            self._works.clear()

    def _save(self, *, is_final: bool = False) -> None:
        """Save the run if it has a file and has learned more events since the last save."""
        if self._model is not None and (is_final or self._learnt != self._saved):
            self.run.checkpoint(self._model)
            self._saved = self._learnt
