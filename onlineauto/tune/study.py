"""``Study``: ask for a job, tell its value, and see what is best.

>>> from onlineauto.tune import Choice, Float, Study
>>> study = Study({"rate": Float(1e-4, 1, log=True), "loss": Choice(["squared", "logistic"])}, max_trials=9)
>>> while (job := study.ask()) is not None:
...     study.tell(job, abs(job.config["rate"] - 0.1) + 1 / job.resource)
>>> study.is_done, len(study.trials), study.best.resource
(True, 9, 81)
"""

from __future__ import annotations

import logging
import weakref
from math import inf, isnan
from threading import RLock
from typing import TYPE_CHECKING, Any

from onlineauto.errors import OptionError
from onlineauto.formats.mappings.values import shown
from onlineauto.tune.claims import Claims, pauses
from onlineauto.tune.plain import count, number
from onlineauto.tune.replica import Replica
from onlineauto.tune.schedulers import State
from onlineauto.tune.settings import StudySettings, seconds_of
from onlineauto.tune.store import open_store
from onlineauto.tune.store.urls import without_password
from onlineauto.tune.study_view import StudyState, StudyView
from onlineauto.tune.workers.callbacks import Callback
from onlineauto.tune.workers.jobs import claim_of
from onlineauto.tune.workers.naming import OF_STREAM, about_stream, imported, name_of_trainable
from onlineauto.tune.workers.owners import free_jobs_of_dead
from onlineauto.tune.workers.stoppers import Rounds, Stopper

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from onlineauto.tune.progress import Progress
    from onlineauto.tune.schedulers import Decision, Scheduler
    from onlineauto.tune.searchers import Searcher
    from onlineauto.tune.spaces import Parameter, Space
    from onlineauto.tune.store import Store
    from onlineauto.tune.trial import Job, Trial
    from onlineauto.tune.workers.on_ray.ray_workers import RayWorkers
    from onlineauto.tune.workers.resources import Workers
    from onlineauto.tune.workers.trainable import What

_LOG = logging.getLogger("onlineauto")
_MAX_RESOURCE = 81
_LEASE = 60.0
"""Seconds of a lease, where a study in a store does not say."""


class Study(StudyView):
    """A search for the best config of a space, alone or together with other processes.

    Whoever gives the same `name` and `storage` works on the same study. All its methods may be called from
    several threads.

    Parameters
    ----------
    space : mapping or Space
        The parameters by their names.
    scheduler : str or Scheduler
        ``hyperband``, ``race``, ``dehb``, ``asha``, ``median``, ``pbt`` or ``fifo``, or one of your own.
    searcher : str or Searcher, optional
        ``random``, ``quasi``, ``grid`` or ``tpe``, or an object of one's own. By default ``tpe``; with
        ``dehb`` ``random``, whose configs are uniform vectors.
    min_resource, max_resource : int
        The least and the most that a trial is given, in any unit: epochs, events, … The most is 81 by
        default.
    eta : int
        The factor between one rung and the next.
    mode : str
        ``min`` if lower values are better, ``max`` if higher ones are.
    seed : int
        The same seed and the same values give the same study.
    name : str
        The name of the study in its store.
    storage : str, Store or None
        The URL of a store; None to keep the study in memory.
    max_trials : int, optional
        How many trials there are in all; as many as the space and the scheduler have if None. A study that
        exists is extended if this, or `max_resource`, is larger than it was; see `extend`.
    lease : float, optional
        Seconds after which a job may be claimed by another process, if its process is gone. A thread renews
        the leases of a process that lives. The lease is a setting of the study: by default 60, or that of
        the study that exists; another number is for the claims of this process. In memory, leases do not
        expire by default.
    retries : int
        How often a job that failed is tried again. Jobs that were lost with their worker do not count.

    Raises
    ------
    OptionError
        If a parameter is out of range, or `storage` has a study of this name that is about something else.
    """

    def __init__(
        self,
        space: Mapping[str, Parameter | Mapping[str, Any]] | Space,
        scheduler: str | Scheduler = "hyperband",
        searcher: str | Searcher | None = None,
        *,
        min_resource: int = 1,
        max_resource: int | None = None,
        eta: int = 3,
        mode: str = "min",
        seed: int = 0,
        name: str = "study",
        storage: str | Store | None = None,
        max_trials: int | None = None,
        lease: float | None = None,
        retries: int = 0,
    ) -> None:
        settings = StudySettings.of(
            space,
            scheduler,
            searcher,
            min_resource=min_resource,
            max_resource=_MAX_RESOURCE if max_resource is None else max_resource,
            eta=eta,
            mode=mode,
            seed=seed,
            max_trials=max_trials,
            retries=retries,
            lease=lease,
        )
        store = open_store(storage, name)
        found = store.begin({"kind": "study", "settings": settings.described()})
        grows = {"max_trials": max_trials, "max_resource": max_resource}
        settings.check_same(found["settings"], name, free=[key for key in grows if grows[key] is not None])
        self._open(store, settings.of_study(found["settings"]), name, lease=lease, storage=storage)
        self.extend(max_trials=max_trials, max_resource=max_resource)

    @classmethod
    def load(
        cls,
        name: str,
        *,
        storage: str | Store,
        scheduler: Scheduler | None = None,
        searcher: Searcher | None = None,
        lease: float | None = None,
    ) -> Study:
        """Return a study that is in a store, as far as it is.

        Parameters
        ----------
        name, storage, lease
            As for `Study`.
        scheduler, searcher : optional
            Objects like those that the study was made with, where these are one's own.

        Raises
        ------
        OptionError
            If there is no study of this name.
        """
        store = open_store(storage, name)
        records = store.load()
        if not records:
            where = without_password(str(storage))
            copied = ". If the file was copied: FILE-wal belongs to it" if where.startswith("sqlite") else ""
            raise OptionError(f"there is no study {name!r} in {where}{copied}")
        settings = StudySettings.read(records[0]["settings"], scheduler=scheduler, searcher=searcher)
        study = cls.__new__(cls)
        study._open(store, settings, name, lease=lease, storage=storage)  # noqa: SLF001 - its other constructor
        return study

    def _open(self, store: Store, settings: StudySettings, name: str, *, lease: Any, storage: Any) -> None:
        self.name, self.space, self.mode = name, settings.setting.space, settings.mode
        self._store, self._settings = store, settings
        self._lock = RLock()
        self._replica = Replica(store, settings, name)
        self._claims = Claims(store, self._replica, _lease(lease, settings.lease, storage))
        weakref.finalize(self, self._claims.heartbeat.stop)  # claims end with this object, or its process

    def _current(self) -> Progress:
        return self._replica.progress

    def ask(self, *, wait: bool = False) -> Job | None:
        """Claim the next job, and keep its lease as long as this process lives.

        Parameters
        ----------
        wait : bool
            True to wait until there is a job: then None says that the study is done. Otherwise None says
            that there is no job now; `is_done` says whether there will be one, and `wait` waits for it.

        Raises
        ------
        OptionError
            If the searcher, or the scheduler, proposes a config that is not in the space.
        """
        while True:
            with self._lock:
                job = self._claims.ask()
            if job is not None or not wait or not self.wait():
                return job

    @property
    def state(self) -> StudyState:
        """The state for a process that asks for a job: "open", "needs resources", "busy" or "done"."""
        with self._lock:
            progress = self._replica.progress
            if progress.is_done:
                return StudyState.DONE
            if any(trial.state is State.PENDING for trial in progress.trials.values()):
                return StudyState.NEEDS_RESOURCES
            return StudyState.BUSY if self._claims.found_no_job else StudyState.OPEN

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until there may be a job, and return True; return False if the study is done, or time is over.

        There may be one if the study has changed since `ask` returned None: another process has told, failed
        or lost a job, or has added something. If `ask` did not return None, nothing is waited for.

        Parameters
        ----------
        timeout : float, optional
            The most seconds to wait.
        """
        for _ in pauses(timeout):
            with self._lock:
                if self._claims.changes():
                    return not self.is_done
        return False

    def report(self, job: Job, step: int, value: float, details: Mapping[str, Any] | None = None) -> Decision:
        """Write down a value on the way and return whether the job goes on; this renews its lease.

        If the answer is STOP, tell the study this value. A step beyond the job's resource counts as its
        resource. Details say what the value is about, as plain JSON; they are in the `history`, and a
        scheduler may read them.

        Raises
        ------
        LeaseLost
            If the job is not its owner's any more.
        OptionError
            If the step is not a whole number, 0 or more, or a detail cannot be stored. Nothing is written.
        """
        with self._lock:
            return self._claims.report(job, step, value, details)

    def tell(self, job: Job, value: float, details: Mapping[str, Any] | None = None) -> None:
        """Write down the value with which a job ended. NaN, or no number, is a failure for good.

        Details are as those of `report`. A value is accepted as long as no other process has claimed the
        job, also after its lease.

        Raises
        ------
        LeaseLost
            If the job is not its owner's any more. Nothing is written; ask for another one.
        OptionError
            If a detail cannot be stored. Nothing is written.
        """
        with self._lock:
            loss = number(value)
            if isnan(loss):
                self._claims.fail(job, f"the value is {shown(value)}, which is no number", final=True)
            else:
                self._claims.tell(job, loss, details)

    def fail(self, job: Job, why: str) -> None:
        """Write down that a job failed; it is tried again as often as `retries` says.

        Raises
        ------
        LeaseLost
            If the job is not its owner's any more.
        """
        with self._lock:
            self._claims.fail(job, why, final=False)

    def release(self, job: Job, *, early: bool = False) -> None:
        """Give a job back: its trial is PENDING, and the next process that asks has it, without a delay.

        Parameters
        ----------
        job : Job
            A job of this process.
        early : bool
            True if the job has not begun.

        Raises
        ------
        LeaseLost
            If the job is not its owner's any more.
        """
        with self._lock:
            self._claims.release(job, early=early)

    def extend(self, *, max_trials: int | None = None, max_resource: int | None = None) -> None:
        """Let the study have more trials, or a larger resource, than it began with; it goes on after its end.

        The log keeps the change, and all processes follow it.

        Parameters
        ----------
        max_trials, max_resource : int, optional
            As for `Study`, and not less than now; what is None stays as it is.

        Raises
        ------
        OptionError
            If a number is less than now, the scheduler cannot change its resource, or the study is done and
            there would be no job: a larger resource alone is for trials that begin later.
        """
        with self._lock:
            self.refresh()
            now = self.settings
            trials, resource = now.max_trials, now.setting.max_resource
            if max_trials is not None:
                trials = count("max_trials", max_trials, 1)
            if max_resource is not None:
                resource = count("max_resource", max_resource, 1)
            if (trials, resource) == (now.max_trials, now.setting.max_resource):
                return
            before = inf if now.max_trials is None else now.max_trials
            if (inf if trials is None else trials) < before or resource < now.setting.max_resource:
                raise OptionError(
                    f"the study {self.name!r} is there already, with max_trials = {now.max_trials} and "
                    f"max_resource = {now.setting.max_resource}, and not {max_trials} and {max_resource}: "
                    "these may only grow; give it another name, or take it as it is by Study.load"
                )
            now.check_growth(resource)
            record = {"kind": "extended", "max_trials": trials, "max_resource": resource}
            if self.is_done and not self._replica.leads_to_job(record):
                raise OptionError(
                    f"the study {self.name!r} is done, and has no job with max_trials = {trials} and "
                    f"max_resource = {resource}: trials that have ended are given no more. Let max_trials be "
                    "larger than the number of trials, or enqueue a config first"
                )
            self._replica.follow(record, self._store.append(record))

    def enqueue(self, config: Mapping[str, Any]) -> None:
        """Let a config be tried before any that the searcher proposes; a study that is done goes on with it.

        Raises
        ------
        OptionError
            If the config is not in the space; the message says what would be. Or if the study is done, and
            has had its `max_trials` or a scheduler that takes no more.
        """
        with self._lock:
            record = {"kind": "enqueued", "config": self.space.check(config)}
            self.refresh()
            progress = self._current()
            if progress.searcher.left < 1:
                most = f"the study {self.name!r} has max_trials = {progress.searcher.limit}"
                if progress.is_done:
                    raise OptionError(f"{most}, and is done: Study.extend(max_trials=…) lets it go on")
                _LOG.warning("%s: the config that was enqueued is tried only if it is extended", most)
            elif progress.is_done and not self._replica.leads_to_job(record):
                scheduler = progress.scheduler.name
                raise OptionError(
                    f"the study {self.name!r} is done, and its scheduler {scheduler!r} takes no more"
                )
            self._replica.follow(record, self._store.append(record))

    def heartbeat(self, jobs: Sequence[Job]) -> list[Job]:
        """Renew the leases of jobs, and return those that are not their owner's any more."""
        lost = set(self._store.heartbeat([claim_of(job) for job in jobs], self._claims.lease))
        return [job for job in jobs if claim_of(job) in lost]

    def run(
        self,
        trainable: What | str | None = None,
        *,
        workers: int | Workers | RayWorkers = 0,
        executor: str = "processes",
        jobs: int | None = None,
        rounds: int | None = None,
        checkpoint_every: int = 1,
        checkpoints: str | Path | None = None,
        stoppers: Sequence[Stopper] = (),
        callbacks: Sequence[Callback] = (),
    ) -> Trial | None:
        """Run jobs until there are no more, together with any other workers, and return the best trial.

        Without `max_trials`, `jobs`, `rounds` and `stoppers`, the scheduler goes once more through all.

        Parameters
        ----------
        trainable : function, class or str, optional
            A function takes a config, if it wants a resource, and if it wants a report, and returns the value
            after so much; a class is a `Trainable`. An exception fails the job. Or the name of one, as
            ``MODULE:NAME``. What can be imported is noted in the study; None takes what was noted last.
        workers : int, Workers or RayWorkers
            Processes, which have to be able to import the trainable; 0 for this one. `Workers` also says
            what they share, and how much of it a trial needs.
        executor : str
            ``processes`` of this machine, or actors of a cluster: ``ray``.
        jobs : int, optional
            The most jobs to run.
        rounds : int, optional
            How often the scheduler goes through all it does, counted from the beginning of the study.
        checkpoint_every : int
            Steps between two checkpoints.
        checkpoints : str or Path, optional
            A folder for checkpoints, which all workers need. By default beside SQLite's file, in PostgreSQL
            itself, or in memory.
        stoppers, callbacks : sequence
            Rules that end trials or the run, and those who hear what happens.

        Raises
        ------
        OptionError
            If nothing says when to stop, or the trainable is none.
        """
        from onlineauto.tune.workers.running import run_study

        jobs = None if jobs is None else count("jobs", jobs, 0)
        rounds = None if rounds is None else count("rounds", rounds, 0)
        checkpoint_every = count("checkpoint_every", checkpoint_every, 1)
        for name, given, kind in (("stoppers", stoppers, Stopper), ("callbacks", callbacks, Callback)):
            if not isinstance(given, list | tuple) or not all(isinstance(each, kind) for each in given):
                raise OptionError(f"{name} = {given!r}: give a list of {kind.__name__} objects")
        self.refresh()
        ends = self.settings.max_trials is not None or jobs is not None or stoppers
        progress = self._current()
        scheduler, searcher = progress.scheduler, progress.searcher
        if scheduler.rounds is not None and (rounds is not None or not ends):
            until = scheduler.rounds + 1 if rounds is None else rounds
            stoppers = [*stoppers, Rounds(until, lambda: self.rounds)]
        elif not (ends or scheduler.ends or searcher.ends):
            raise OptionError(f"scheduler = {scheduler.name!r} never ends: give max_trials, or jobs")
        for callback in callbacks:
            callback.on_begin(self)
        what = self._trainable(trainable)
        free_jobs_of_dead(self._store, self.trials)
        attempts = sum(trial.attempt + 1 for trial in self.trials)
        run_study(
            self,
            self._store,
            what,
            workers=workers,
            executor=executor,
            heartbeat=self._claims.heartbeat,
            known=self._known_value,
            jobs=jobs,
            every=checkpoint_every,
            folder=checkpoints,
            stoppers=stoppers,
            callbacks=callbacks,
        )
        trials = self.trials
        if self.is_done and sum(trial.attempt + 1 for trial in trials) == attempts:
            most = self.settings.max_trials
            _LOG.warning(
                "the study %r is done, and runs no job: it has had %d trials%s; %s lets it go on",
                self.name,
                len(trials),
                "" if most is None else f" of {most}",
                "Study.extend(max_trials=…)" if most == len(trials) else "Study.enqueue(config)",
            )
        best = self.best
        if best is None:
            _LOG.warning("no trial of the study %r has a value; %s", self.name, self._why_none())
        return best

    def _why_none(self) -> str:
        failed = [trial for trial in self.trials if trial.error]
        if not failed:
            return "none has ended"
        first = failed[0]
        where = (
            f"Study.trials[{first.number}].traceback says where" if first.traceback else "without a traceback"
        )
        return f"{len(failed)} failed, the first with {first.error}; {where}"

    def _known_value(self, job: Any) -> float | None:
        """Return the value of the trial that a job resumes; None if it resumes none."""
        resumes = job.resume_from is not None and job.resume_from[0] == job.trial
        with self._lock:
            return self._current().trials[job.trial].value if resumes else None

    def _trainable(self, given: What | str | None) -> What:
        """Return what trials run, and note it if other processes can import it."""
        noted = self._current().trainable
        if given is None and (noted is None or noted.startswith(OF_STREAM)):
            raise OptionError(
                f"nobody has said what trials of {self.name!r} run: give a trainable; or, if they learn a "
                "stream, begin as it was begun"
            )
        what: What = imported(given or noted or "") if given is None or isinstance(given, str) else given
        about = about_stream(what, noted, self.name)
        name = about or (given if isinstance(given, str) else name_of_trainable(what))
        if name is not None and name != noted:
            with self._lock:
                record = {"kind": "named", "trainable": name}
                self._replica.follow(record, self._store.append(record))
        return what


def _lease(lease: Any, of_study: float | None, storage: object) -> float:
    """Return the seconds of the claims of this process: those it asks for, the study's, or the default."""
    if lease is None:
        return of_study or (inf if storage is None else _LEASE)
    return seconds_of(lease)
