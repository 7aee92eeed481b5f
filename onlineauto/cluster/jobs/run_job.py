"""``RunJob``: a stream that one learner learns, be it a search with all its live configs: one worker."""

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
"""Events between two looks at whether it is to wait."""


class RunJob:
    """Learns a stream in a thread while it has a worker. Live configs are learnt together, so one is enough.

    The run is learnt in this process, whatever the backend of the cluster is. While the job works, the run
    belongs to its thread; `Run.workspace` may be asked for predictions.

    With a `model`, the job survives a crash: the run is saved there every so many events, whenever it has to
    wait, when it is stopped, and at its end. A job of ``Run.resume(model, source)`` goes on behind the last
    save, with the same result as if nothing had happened.

    Parameters
    ----------
    run : Run
        The stream, and the workspace that learns it.
    events : int, optional
        How many there are; not known if None, and then some more are expected until the stream ends.
    worker : mapping, optional
        What the learner takes of the cluster: one CPU by default.
    kind : str
        Learners of one kind have about the same speed.
    model : path, optional
        The file to save the run in; it is replaced in one step.
    save_every : int
        Events from one save to the next, while the job works.

    Raises
    ------
    OptionError
        `save_every` is not positive.
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
    def held(self) -> tuple[int, int]:
        """One worker as long as it learns, and no servers."""
        return int(self._works.is_set() or self._steps), 0

    def progress(self) -> tuple[float, float]:
        """Return the events that were learnt, and how many there are.

        Raises
        ------
        Exception
            What has ended the run.
        """
        if self._error is not None:
            raise self._error
        ended, done = self._ended, self._learnt
        if ended:
            return done, done
        return done, max(self._events or 0, done + _STEP)

    def resize(self, workers: int, servers: int) -> None:
        """Learn, or wait after the events that are being learnt."""
        del servers
        if workers and self._stops:  # the cluster is run again
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
        """Stop learning after the events that are being learnt."""
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
                    self._save(ended=events == 0)
                self._ended = events == 0
            self._save()
        except InputError as error:  # all before it is learnt, and need not be learnt again
            self._error = error
            self._save()
        except BaseException as error:
            self._error = error
        finally:
            self._steps = False
            self._works.clear()

    def _save(self, *, ended: bool = False) -> None:
        """Save the run, if there is a file for it and anything new."""
        if self._model is not None and (ended or self._learnt != self._saved):
            self.run.checkpoint(self._model)
            self._saved = self._learnt
