"""``Study``: ask for a job, tell its value, and see what is best.

>>> from onlineauto.tune import Choice, Float, Study
>>> study = Study({"rate": Float(1e-4, 1, log=True), "loss": Choice(["squared", "logistic"])}, max_trials=9)
>>> while (job := study.ask()) is not None:
...     study.tell(job, abs(job.config["rate"] - 0.1) + 1 / job.resource)
>>> study.is_done, len(study.trials), study.best.resource
(True, 9, 81)
"""

from __future__ import annotations

from dataclasses import replace
from math import inf, isnan, nan
from threading import RLock
from typing import TYPE_CHECKING, Any

from onlineauto.errors import OptionError
from onlineauto.tune.history import rows
from onlineauto.tune.settings import StudySettings
from onlineauto.tune.store import Snapshot, open_store
from onlineauto.tune.trial import Job, Trial
from onlineauto.tune.workers.jobs import claim_of
from onlineauto.tune.workers.naming import OF_STREAM, about_stream, imported, name_of_trainable
from onlineauto.tune.workers.owners import free_jobs_of_dead, new_owner
from onlineauto.tune.workers.stoppers import Rounds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from onlineauto.tune.progress import Progress
    from onlineauto.tune.schedulers import Decision, Scheduler
    from onlineauto.tune.searchers import Searcher
    from onlineauto.tune.spaces import Parameter, Space
    from onlineauto.tune.store import Record, Store
    from onlineauto.tune.workers.callbacks import Callback
    from onlineauto.tune.workers.on_ray.ray_workers import RayWorkers
    from onlineauto.tune.workers.resources import Workers
    from onlineauto.tune.workers.stoppers import Stopper
    from onlineauto.tune.workers.trainable import What

__all__ = ["Study"]

_LEASE = 60.0
_SNAPSHOT_AFTER = 1000
"""So many records behind a snapshot, and a quarter of the log, and there is a new one."""


class Study:
    """A search for the best config of a space, alone or together with other processes.

    Whoever gives the same `name` and `storage` works on the same study. All its methods may be called from
    several threads.

    Parameters
    ----------
    space : mapping or Space
        The parameters by their names.
    scheduler : str or Scheduler
        ``hyperband``, ``race``, ``dehb``, ``asha``, ``median``, ``pbt`` or ``fifo``, or one of your own.
    searcher : str or Searcher
        ``random``, ``quasi``, ``grid`` or ``tpe``, or an object of one's own.
    min_resource, max_resource : int
        The least and the most that a trial is given, in any unit: epochs, events, …
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
        How many trials there are in all; as many as the space and the scheduler have if None.
    lease : float, optional
        Seconds after which a job is given to somebody else, if its owner neither reports nor sends a
        heartbeat. 60 by default; in memory jobs are never taken away by default.
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
        searcher: str | Searcher = "tpe",
        *,
        min_resource: int = 1,
        max_resource: int = 81,
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
            max_resource=max_resource,
            eta=eta,
            mode=mode,
            seed=seed,
            max_trials=max_trials,
            retries=retries,
        )
        store = open_store(storage, name)
        found = store.begin({"kind": "study", "settings": settings.described()})
        settings.check_same(found["settings"], name)
        self._open(store, settings, name, lease=_lease(lease, storage))

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
            raise OptionError(f"there is no study {name!r} in {storage}")
        settings = StudySettings.read(records[0]["settings"], scheduler=scheduler, searcher=searcher)
        study = cls.__new__(cls)
        study._open(store, settings, name, lease=_lease(lease, storage))  # noqa: SLF001 - its other constructor
        return study

    def _open(self, store: Store, settings: StudySettings, name: str, *, lease: float) -> None:
        self.name, self.space, self.mode = name, settings.setting.space, settings.mode
        self._store, self._settings, self._lease = store, settings, lease
        self._owner = new_owner()
        self._lock = RLock()
        self._progress: Progress | None = None
        self._saved = 0

    def _current(self) -> Progress:
        """Return the state; after a failed write, or at first, from the newest snapshot and the log."""
        if self._progress is None:
            progress = self._settings.progress()
            snapshot = self._store.snapshot()
            if snapshot is not None:
                progress.load_state_dict(snapshot.state)
                self._saved = snapshot.version
            for record in self._store.load(progress.version):
                progress.apply(record)
            self._progress = progress
        return self._progress

    def ask(self) -> Job | None:
        """Claim the next job; None if there is none now, or ever: see `is_done`."""
        with self._lock:
            progress = self._current()
            after = progress.version
            self._progress = None  # if this fails half-way, the state is read anew
            records = self._store.claim(
                self._owner, self._lease, after=after, decide=lambda new: self._decide(progress, new)
            )
            for record in records[progress.version - after :]:
                progress.apply(record)
            self._progress = progress
            self._save(progress)
            decided = records[-1] if records else None
            if decided is None or decided["kind"] != "asked" or decided["owner"] != self._owner:
                return None
            return Job.of(decided, progress.version, progress.goes_on_behind(decided["trial"]))

    def _decide(self, progress: Progress, new: Sequence[Record]) -> Record | None:
        for record in new:
            progress.apply(record)
        return progress.decide(self._owner)

    def _save(self, progress: Progress) -> None:
        """Save a snapshot now and then."""
        if progress.version - self._saved >= max(_SNAPSHOT_AFTER, progress.version // 4):
            self._store.save(Snapshot(progress.version, progress.state_dict()))
            self._saved = progress.version

    def report(self, job: Job, step: int, value: float, details: Mapping[str, Any] | None = None) -> Decision:
        """Write down a value on the way and return whether the job goes on; this renews its lease.

        If the answer is STOP, tell the study this value. Details say what the value is about, as plain JSON;
        they are in the `history`, and a scheduler may read them.

        Raises
        ------
        LeaseLost
            If the job is not its owner's any more.
        OptionError
            If the step is no positive whole number.
        """
        if not _is_whole(step):
            raise OptionError(f"step = {step!r}: the resource spent so far, a positive whole number")
        with self._lock:
            record = {"kind": "reported", **_key(job), "step": step, "value": _number(value)}
            record |= {"details": dict(details)} if details else {}
            self._follow(record, self._store.commit(claim_of(job), record))
            return self._current().decision(job.trial)

    def tell(self, job: Job, value: float, details: Mapping[str, Any] | None = None) -> None:
        """Write down the value with which a job ended. NaN, or no number, is a failure for good.

        Details are as those of `report`.

        Raises
        ------
        LeaseLost
            If the job is not its owner's any more. Nothing is written; ask for another one.
        """
        with self._lock:
            number = _number(value)
            if isnan(number):
                why = f"the value is {value!r}, which is no number"
                self._fail(job, why, final=True)
                return
            if job.owner != self._owner:  # another process may have reported where the job stopped
                self.refresh()
            resource = self._current().reached(job)
            record = {"kind": "told", **_key(job), "resource": resource, "value": number}
            record |= {"details": dict(details)} if details else {}
            self._follow(record, self._store.commit(claim_of(job), record))

    def fail(self, job: Job, why: str) -> None:
        """Write down that a job failed; it is tried again as often as `retries` says.

        Raises
        ------
        LeaseLost
            If the job is not its owner's any more.
        """
        with self._lock:
            self._fail(job, why, final=False)

    def _fail(self, job: Job, why: str, *, final: bool) -> None:
        record = {"kind": "failed", **_key(job), "why": str(why), "final": final}
        self._follow(record, self._store.fail(claim_of(job), record))

    def enqueue(self, config: Mapping[str, Any]) -> None:
        """Let a config be tried before any that the searcher proposes.

        Raises
        ------
        OptionError
            If the config is not in the space; the message says what would be.
        """
        with self._lock:
            record = {"kind": "enqueued", "config": self.space.check(config)}
            self._follow(record, self._store.append(record))

    def heartbeat(self, jobs: Sequence[Job]) -> list[Job]:
        """Renew the leases of jobs, and return those that are not their owner's any more."""
        lost = set(self._store.heartbeat([claim_of(job) for job in jobs], self._lease))
        return [job for job in jobs if claim_of(job) in lost]

    def _follow(self, record: Record, version: int) -> None:
        """Come to the state after a record that was written as this version."""
        progress = self._current()
        if version == progress.version + 1:
            progress.apply(record)
        elif version > progress.version:
            self.refresh()

    def refresh(self) -> None:
        """Read what other processes have written; asking and telling do so by themselves."""
        with self._lock:
            progress = self._current()
            for record in self._store.load(progress.version):
                progress.apply(record)

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

        self.refresh()
        ends = self._settings.max_trials is not None or jobs is not None or stoppers
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
        run_study(
            self,
            self._store,
            what,
            workers=workers,
            executor=executor,
            lease=self._lease,
            jobs=jobs,
            every=checkpoint_every,
            folder=checkpoints,
            stoppers=stoppers,
            callbacks=callbacks,
        )
        return self.best

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
                self._follow(record, self._store.append(record))
        return what

    @property
    def settings(self) -> StudySettings:
        """All that the study is about."""
        return self._settings

    @property
    def rounds(self) -> int | None:
        """Times that the scheduler has been through all it does; None if it has no such notion."""
        return self._current().scheduler.rounds

    @property
    def is_done(self) -> bool:
        """True if no job is running, and there will never be another one."""
        with self._lock:
            return self._current().is_done

    @property
    def trials(self) -> list[Trial]:
        """All trials, by their numbers; they do not change any more."""
        with self._lock:
            trials = self._current().trials
            return [_copied(trials[number]) for number in sorted(trials)]

    @property
    def best(self) -> Trial | None:
        """The incumbent: of the trials that were given most, the one with the best value. None at first."""
        with self._lock:
            progress = self._current()
            return None if progress.best is None else _copied(progress.trials[progress.best])

    def needed(self, trial: int) -> set[int]:
        """Return the resources at which a trial's checkpoints are needed, beside its newest ones."""
        with self._lock:
            return self._current().needed(trial)

    def disposable(self) -> list[int]:
        """Return trials, each once, that ended early and whose checkpoints nobody needs any more."""
        with self._lock:
            return self._current().disposable()

    def saved(self, trial: int, *, checkpoints: str | Path | None = None) -> Any:
        """Return what the last checkpoint of a trial has, as its trainable saved it; None if there is none.

        Parameters
        ----------
        trial : int
            Its number.
        checkpoints : str or Path, optional
            The folder that `run` was given.
        """
        from onlineauto.tune.store.checkpoints import unpacked
        from onlineauto.tune.workers.running import checkpoints_of

        self.refresh()
        with self._lock:
            most = self._current().trials[trial].job_resource
        found = checkpoints_of(self._store, checkpoints).newest(trial, most=most)
        return None if found is None else unpacked(found.saved)

    def history(self, job: Job | None = None) -> list[dict[str, Any]]:
        """Return a row for each value that was reported or told, in order, as for `pandas.DataFrame`.

        Parameters
        ----------
        job : Job, optional
            Return the history as it was when this job was claimed, the same for the job's whole life.

        Returns
        -------
        list of dict
            Keys: ``trial``, ``attempt``, ``resource``, ``value``, ``told`` (False if it was reported), and
            ``config_…`` for each parameter of the trial, and the details of the value, but for lists.
        """
        records = self._store.load()
        return rows(records if job is None else records[: job.version])


def _copied(trial: Trial) -> Trial:
    return replace(trial, values=dict(trial.values))


def _lease(lease: Any, storage: object) -> float:
    if lease is None:
        return inf if storage is None else _LEASE
    if isinstance(lease, bool) or not isinstance(lease, int | float) or not lease > 0:
        raise OptionError(f"lease = {lease!r}: seconds, more than 0")
    return float(lease)


def _is_whole(step: object) -> bool:
    return isinstance(step, int) and not isinstance(step, bool) and step > 0


def _number(value: object) -> float:
    """Return a value as a float; NaN if it is no number."""
    try:
        return nan if isinstance(value, str | bytes) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return nan


def _key(job: Job) -> dict[str, int]:
    return {"trial": job.trial, "attempt": job.attempt}
