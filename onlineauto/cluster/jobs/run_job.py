"""``RunJob``: a stream that one learner learns, be it a search with all its live configs: one worker."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from onlineauto.cluster.jobs.job import Demand, check_demand

if TYPE_CHECKING:
    from collections.abc import Mapping

    from onlineauto.workspace.run import Run

__all__ = ["RunJob"]

_STEP: Final = 1000
"""Events between two looks at whether it is to wait."""


class RunJob:
    """Learns a stream in a thread while it has a worker. Live configs are learnt together, so one is enough.

    The run is learnt in this process, whatever the backend of the cluster is. While the job works, the run
    belongs to its thread; `Run.workspace` may be asked for predictions.

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
    """

    def __init__(
        self,
        run: Run,
        *,
        events: int | None = None,
        worker: Mapping[str, float] | None = None,
        kind: str = "stream",
    ) -> None:
        self.run, self.kind = run, kind
        self.demand = check_demand(Demand(worker or {"CPU": 1.0}, most_workers=1))
        self._events = events
        self._learnt = 0
        self._works = threading.Event()
        self._steps = False
        self._stops = False
        self._ended = False
        self._error: BaseException | None = None
        self._thread: threading.Thread | None = None

    @property
    def held(self) -> tuple[int, int]:
        """One worker as long as it learns, and no servers."""
        return int(self._works.is_set() or self._steps), 0

    def progress(self) -> tuple[float, float]:
        """Return the events that were learnt here, and how many there are.

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
            while self._works.wait() and not self._stops:
                self._steps = True
                events = self.run.step(_STEP)
                self._learnt += events
                self._steps = False
                if events == 0:
                    self._ended = True
                    break
        except BaseException as error:
            self._error = error
        finally:
            self._steps = False
            self._works.clear()
