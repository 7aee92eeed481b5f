"""``StudyJob``: a study in which each parallel trial is a worker."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, Final

from onlineauto.cluster.jobs.job import Demand, check_demand
from onlineauto.errors import OnlineautoError, OptionError
from onlineauto.tune.searchers import SEARCHERS
from onlineauto.tune.workers.resources import Headcount, RayWorkers, Workers
from onlineauto.work.thread import Background

if TYPE_CHECKING:
    from collections.abc import Mapping

    from onlineauto.tune.settings import StudySettings
    from onlineauto.tune.study import Study
    from onlineauto.tune.workers.trainable import AnyTrainable

_MOST: Final = 10_000
"""Maximum number of simulated jobs."""


def expected_budget(settings: StudySettings, *, rounds: int | None = None) -> int:
    """Return the total units of resource that the scheduler of a study will allocate.

    The scheduler is simulated with random losses, which takes milliseconds. The answer is exact for
    Hyperband, whose allocations do not depend on losses. It is too high for schedulers that end trials early.

    >>> from onlineauto.tune import Float, Study
    >>> expected_budget(Study({"x": Float(0, 1)}, "fifo", max_resource=9, max_trials=5).settings)
    45
    """
    scheduler = settings.scheduler[2]()
    # A searcher that learns would be slow, and the number of configs depends only on the space.
    searcher = settings.searcher[2]() if settings.searcher[0] == "grid" else SEARCHERS["random"]()
    searcher.begin(settings.setting.space, seed=0)
    searcher.limit = settings.max_trials
    scheduler.begin(settings.setting)
    draw, reached, units = random.Random(0), dict[int, int](), 0
    for _ in range(_MOST):
        if scheduler.is_done or (rounds is not None and (scheduler.rounds or 0) >= rounds):
            break
        job = scheduler.suggest(searcher)
        if job is None:
            break
        number, resource = job.trial, job.resource
        before = reached.get(number, 0 if job.resume_from is None else job.resume_from.resource)
        units += max(resource - before, 0)
        reached[number] = resource
        scheduler.on_result(number, resource, draw.random())
    return units


def used_resource(study: Study) -> int:
    """Return the units of resource of all trials of a study so far, without those of copied checkpoints."""
    units = 0
    for trial in study.trials:
        came_from = trial.resume_from
        copied = came_from.resource if came_from is not None and came_from.trial != trial.number else 0
        units += max(trial.step - copied, 0)
    return units


class StudyJob:
    """Runs a study in a thread, with the number of workers that the cluster allocates.

    A removed worker first ends its current job; an added worker begins at once. Work is measured in units of
    resource.

    Parameters
    ----------
    study : Study
        The study.
    trainable : function, class or str, optional
        As for `Study.run`. It runs in other processes, which must be able to import it.
    worker : mapping, optional
        Resources of a trial; 1 CPU by default.
    most_workers : int
        Maximum number of parallel trials.
    executor : str
        ``processes`` or ``ray``; by default that of the cluster's backend.
    **options
        Other options of `Study.run`: ``rounds``, ``checkpoint_every``, ``checkpoints``, ``stoppers``,
        ``callbacks``. Rounds are counted from the beginning of the study; without them and without
        `max_trials`, the job is one round. A job whose study is complete does not run.
    """

    def __init__(
        self,
        study: Study,
        trainable: AnyTrainable | str | None = None,
        *,
        worker: Mapping[str, float] | None = None,
        most_workers: int = 16,
        executor: str | None = None,
        **options: Any,
    ) -> None:
        if extra := {"workers", "jobs"} & options.keys():
            raise OptionError(
                f"{min(extra)} cannot be passed: the cluster sets the number of workers of its jobs"
            )
        self.study = study
        self.demand = check_demand(Demand(worker or {"CPU": 1.0}, most_workers=most_workers))
        self.executor = executor
        self._trainable, self._options = trainable, options
        self._headcount = Headcount(0)
        self._thread = Background(self._run, "onlineauto study")
        study.refresh()
        rounds = options.get("rounds")
        if rounds is None and study.rounds is not None and study.settings.max_trials is None:
            rounds = options["rounds"] = 1
        self._ended = study.is_done or (rounds is not None and (study.rounds or 0) >= rounds)
        self._expected = expected_budget(study.settings, rounds=rounds)

    @property
    def kind(self) -> str:
        """The scheduler and the trainable, because studies that share them have about the same speeds."""
        name = getattr(self._trainable, "__name__", self._trainable or "study")
        return f"study-{self.study.settings.scheduler[0]}-{name}"

    @property
    def resources_in_use(self) -> tuple[int, int]:
        """The number of running trials, and no servers."""
        if self._ended or self._thread.error or (self._headcount.is_closed and not self._thread.is_alive):
            return 0, 0
        return max(self._headcount.busy, self._headcount.now), 0

    def progress(self) -> tuple[float, float]:
        """Return the units of resource of all trials so far, and the expected total."""
        self._thread.check()
        ended, done = self._ended or self.study.is_done, used_resource(self.study)
        if ended:
            self._check_value()
        return done, done if ended else max(self._expected, done + 1)

    def _check_value(self) -> None:
        """Raise an error if the study has ended without a value, because all its trials failed."""
        trials = [trial for trial in self.study.trials if trial.attempt >= 0]
        if trials and self.study.best is None and all(trial.error for trial in trials):
            first = trials[0]
            raise OnlineautoError(f"all {len(trials)} trials failed, trial {first.number}: {first.error}")

    def resize(self, workers: int, servers: int) -> None:
        """Set the number of parallel trials; a study has no servers."""
        del servers
        if workers and self._headcount.is_closed:  # the cluster runs again after a stop
            self._thread.renew()
            self._headcount = Headcount(workers)
        self._headcount.now = workers
        if workers:
            self._thread.start()

    def stop(self) -> None:
        """End the run at once and release its jobs; trials can later continue from their checkpoints."""
        self._headcount.close()
        self._thread.join()

    def _run(self) -> None:
        executor = self.executor or "processes"
        workers: Workers | RayWorkers
        if executor == "ray":
            workers = RayWorkers(self._headcount, needs=self.demand.worker)
        else:
            workers = Workers(self._headcount)
        self.study.run(self._trainable, workers=workers, executor=executor, **self._options)
        self._ended = not self._headcount.is_closed
