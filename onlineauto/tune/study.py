"""``Study``: ask for a job, tell its value, and read the best trial.

>>> from onlineauto.tune import Categorical, Float, Study
>>> space = {"rate": Float(1e-4, 1, log=True), "loss": Categorical(["squared", "logistic"])}
>>> study = Study(space, max_trials=9)
>>> while (job := study.ask()) is not None:
...     study.tell(job, abs(job.config["rate"] - 0.1) + 1 / job.resource)
>>> study.is_done, len(study.trials), study.best.resource
(True, 9, 81)
"""

from __future__ import annotations

import gc
import logging
import os
import time
import weakref
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from math import inf
from typing import TYPE_CHECKING, Any

from onlineauto.errors import OptionError, install_hint, short_repr
from onlineauto.tune.active_trial import OptimizeRun
from onlineauto.tune.leases import free_jobs_of_dead
from onlineauto.tune.plain import as_json, count, number
from onlineauto.tune.replica import Replica
from onlineauto.tune.schedulers import State
from onlineauto.tune.searchers.open_searcher import OpenSearcher
from onlineauto.tune.settings import StudySettings, seconds_of
from onlineauto.tune.spaces.space import OpenSpace
from onlineauto.tune.store import open_store
from onlineauto.tune.store.open_store import open_existing, without_password
from onlineauto.tune.study_view import StudyDirection, StudyState, StudyView
from onlineauto.tune.trial import claim_of
from onlineauto.tune.warm_start import added_trials, signs_of
from onlineauto.tune.workers.hooks import Callback, RoundLimit, Stopper
from onlineauto.tune.workers.trainable import OF_STREAM, about_stream, import_trainable, name_of_trainable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from onlineauto.tune.active_trial import ActiveTrial
    from onlineauto.tune.schedulers import Decision, Scheduler
    from onlineauto.tune.searchers import Searcher
    from onlineauto.tune.spaces import Parameter, Space
    from onlineauto.tune.store import Store
    from onlineauto.tune.trial import Job, Trial
    from onlineauto.tune.workers.resources import RayWorkers, Workers
    from onlineauto.tune.workers.trainable import AnyTrainable

__all__ = ["Study", "StudyDirection"]

_LOG = logging.getLogger("onlineauto")
_MAX_RESOURCE = 81
_LEASE = 60.0
"""Default lease of a study in a store, in seconds."""
_PAUSES = 0.02, 1.0
"""Seconds between two reads of the store while `wait` waits: at first, and at most."""


class Study(StudyView):
    """A search for the best config of a space, alone or together with other processes.

    All processes that pass the same `name` and `storage` work on the same study. All methods may be called
    from several threads.

    Parameters
    ----------
    space : mapping, Space or None
        The parameters by their names. None if objectives suggest them while they run: see `optimize`.
    scheduler : str or Scheduler, optional
        A name in `onlineauto.tune.SCHEDULERS`, or a `Scheduler` object. The default is ``hyperband``; with
        several objectives it is ``fifo``, and no other is accepted.
    searcher : str or Searcher, optional
        A name in `onlineauto.tune.SEARCHERS`, or a `Searcher` object. The default is ``auto``; with ``dehb``
        it is ``random``, which proposes uniform vectors.
    min_resource, max_resource : int
        The minimum and maximum resource of a trial, in any unit: epochs, events, … The default maximum is 81.
    eta : int
        The factor between one rung and the next.
    mode : str, sequence or mapping
        ``min`` if lower values are better, ``max`` if higher ones are. A list of these, or a mapping of names
        to these, for several objectives: `best_trials` are then those that no other trial dominates.
    seed : int
        The same seed and the same values give the same study.
    name : str
        The name of the study in its store.
    storage : str, Store or None
        The URL of a store; None to keep the study in memory.
    max_trials : int, optional
        Maximum number of trials; None for no limit other than those of the space and the scheduler. An
        existing study is extended if this number, or `max_resource`, has grown; see `extend`.
    lease : float, optional
        Seconds after which another process may claim a job whose process has ended. While a process runs, a
        thread renews its leases. The default is the lease of the existing study, or 60 for a new one. A
        different number applies to the claims of this process only. In memory, leases do not expire by
        default.
    retries : int
        How often a failed job is tried again. Jobs that were lost with their worker do not count.

    Raises
    ------
    OptionError
        If a parameter is out of range, or `storage` has a study of this name with other settings.
    """

    _run: OptimizeRun | None = None

    def __init__(
        self,
        space: Mapping[str, Parameter | Mapping[str, Any]] | Space | None,
        scheduler: str | Scheduler | None = None,
        searcher: str | Searcher | None = None,
        *,
        min_resource: int = 1,
        max_resource: int | None = None,
        eta: int = 3,
        mode: str | Sequence[str] | Mapping[str, str] = "min",
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
        first = store.begin({"kind": "study", "settings": settings.described()})
        limits = {"max_trials": max_trials, "max_resource": max_resource}
        settings.check_same(first["settings"], name, free=[key for key in limits if limits[key] is not None])
        self._open(store, settings.of_study(first["settings"]), name, lease=lease, storage=storage)
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
        """Return an existing study of a store, in its current state.

        Parameters
        ----------
        name, storage, lease
            As for `Study`.
        scheduler, searcher : optional
            Objects of the same kind as those of the study, if it was created with custom objects.

        Raises
        ------
        OptionError
            If there is no study of this name.
        """
        store = open_existing(storage, name)
        records = store.load()
        if not records:
            where = without_password(str(storage))
            copied = ". If the file was copied: FILE-wal belongs to it" if where.startswith("sqlite") else ""
            raise OptionError(f"there is no study {name!r} in {where}{copied}")
        settings = StudySettings.read(records[0]["settings"], scheduler=scheduler, searcher=searcher)
        kind = cls._class_for(settings)
        study = kind.__new__(kind)
        study._open(store, settings, name, lease=lease, storage=storage)  # noqa: SLF001 - its other constructor
        return study

    @classmethod
    def _class_for(cls, settings: StudySettings) -> type[Study]:  # noqa: ARG003 - a subclass uses it
        """Return the class of a study with these settings."""
        return cls

    def _open(self, store: Store, settings: StudySettings, name: str, *, lease: Any, storage: Any) -> None:
        default = settings.lease or (inf if storage is None else _LEASE)
        super().__init__(Replica(store, settings, name, default if lease is None else seconds_of(lease)))
        self.mode = settings.mode
        weakref.finalize(self, self._replica.heartbeat.stop)  # claims end with this object, or its process

    def ask(self, *, wait: bool = False) -> Job | None:
        """Claim the next job and return it; its lease is renewed while this process runs.

        Parameters
        ----------
        wait : bool
            True to wait for a job: None then means that the study is done. False to return at once: None
            then means that there is no job now; `wait` waits until there may be one.

        Raises
        ------
        OptionError
            If the searcher, or the scheduler, proposes a config that is not in the space.
        """
        while True:
            job = self._replica.ask()
            if job is not None or not wait or not self.wait():
                return job

    @property
    def state(self) -> StudyState:
        """The state for a process that asks for a job: "open", "needs resources", "busy" or "done"."""
        with self._replica.lock:
            progress = self._replica.progress
            if progress.is_done:
                return StudyState.DONE
            if any(trial.state is State.PENDING for trial in progress.trials.values()):
                return StudyState.NEEDS_RESOURCES
            return StudyState.BUSY if self._replica.found_no_job else StudyState.OPEN

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until there may be a job and return True; return False if the study is done or time is over.

        There may be a job if the study has changed since `ask` returned None: another process has finished,
        failed or lost a job, or has added a config. If the last `ask` returned a job, this returns at once.

        Parameters
        ----------
        timeout : float, optional
            Maximum number of seconds to wait.
        """
        for _ in _pauses(timeout):
            if self._replica.changes():
                return not self.is_done
        return False

    def report(self, job: Job, step: int, value: float, details: Mapping[str, Any] | None = None) -> Decision:
        """Record an intermediate value, renew the job's lease, and return whether the job continues.

        If the answer is STOP, `tell` the study this value. A step beyond the job's resource counts as its
        resource. Details describe the value as plain JSON; `history` contains them, and a scheduler may read
        them.

        Raises
        ------
        LeaseLost
            If the job no longer belongs to its owner.
        OptionError
            If the step is not a whole number of at least 0, or a detail cannot be stored. Nothing is written.
        """
        return self._replica.report(job, step, value, details)

    def tell(self, job: Job, value: Any, details: Mapping[str, Any] | None = None) -> None:
        """Record the final value of a job. NaN, or a value that is not a number, fails the trial finally.

        With several objectives, the value is a sequence, or a mapping of their names. With constraints, it is
        a mapping, as in ``{"value": 0.3, "constraints": {"memory": -1.5}}``: one above 0 is violated.
        Details are the same as for `report`. A value is accepted until another process claims the job, even
        after the lease has expired.

        Raises
        ------
        LeaseLost
            If the job no longer belongs to its owner. Nothing is written; ask for another job.
        OptionError
            If there is not a value for each objective, or a detail cannot be stored. Nothing is written.
        """
        self._replica.tell(job, value, details)

    def fail(self, job: Job, why: str) -> None:
        """Record that a job failed; it is tried again up to `retries` times.

        Raises
        ------
        LeaseLost
            If the job no longer belongs to its owner.
        """
        self._replica.fail(job, why)

    def release(self, job: Job, *, early: bool = False) -> None:
        """Give a job back: its trial becomes PENDING, and the next process that asks gets it without delay.

        Parameters
        ----------
        job : Job
            A job of this process.
        early : bool
            True if the job has not begun.

        Raises
        ------
        LeaseLost
            If the job no longer belongs to its owner.
        """
        self._replica.release(job, early=early)

    def extend(self, *, max_trials: int | None = None, max_resource: int | None = None) -> None:
        """Raise the limits of the study; a study that is done continues.

        The change is a record of the log, so all processes follow it.

        Parameters
        ----------
        max_trials, max_resource : int, optional
            As for `Study`, and not less than now; None leaves a limit unchanged.

        Raises
        ------
        OptionError
            If a number is less than now, the scheduler cannot change its resource, or the study is done and
            would have no job. A larger resource applies only to trials that begin later.
        """
        with self._replica.lock:
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
                    f"the study {self.name!r} exists already with max_trials = {now.max_trials} and "
                    f"max_resource = {now.setting.max_resource}, not {max_trials} and {max_resource}: "
                    "these limits may only grow; give another name, or open the study with Study.load"
                )
            now.check_growth(resource)
            record = {"kind": "extended", "max_trials": trials, "max_resource": resource}
            if self.is_done and not self._replica.leads_to_job(record):
                raise OptionError(
                    f"the study {self.name!r} is done, and has no job with max_trials = {trials} and "
                    f"max_resource = {resource}: trials that have ended are given no more. Let max_trials be "
                    "larger than the number of trials, or enqueue a config first"
                )
            self._replica.append(record)

    def enqueue(self, config: Mapping[str, Any], *, user_attrs: Mapping[str, Any] | None = None) -> None:
        """Try a config before those that the searcher proposes; a study that is done continues with it.

        Until it begins, the config is a PENDING trial of `trials`. `Scheduler.choose` may change the order.
        Its trial will have the attributes `user_attrs`.

        Raises
        ------
        OptionError
            If the config is not in the space, or if the study is done and cannot continue: it has had its
            `max_trials`, or its scheduler accepts no more trials.
        """
        with self._replica.lock:
            record = {"kind": "enqueued", "config": self._replica.settings.setting.space.check(config)}
            if user_attrs is not None:
                record["user_attrs"] = as_json(user_attrs, "user_attrs")
            self.refresh()
            progress = self._replica.progress
            if progress.searcher.left < 1:
                most = f"the study {self.name!r} has max_trials = {progress.searcher.limit}"
                if progress.is_done:
                    raise OptionError(f"{most}, and is done: Study.extend(max_trials=…) continues it")
                _LOG.warning("%s: the config that was enqueued is tried only if it is extended", most)
            elif progress.is_done and not self._replica.leads_to_job(record):
                scheduler = progress.scheduler.name
                raise OptionError(
                    f"the study {self.name!r} is done, and its scheduler {scheduler!r} takes no more"
                )
            self._replica.append(record)

    def enqueue_trial(
        self,
        params: Mapping[str, Any],
        user_attrs: Mapping[str, Any] | None = None,
        skip_if_exists: bool = False,
    ) -> None:
        """Try a config before those that the searcher proposes; the same as `enqueue`.

        With `skip_if_exists`, a config that was enqueued before, or is that of a trial, is left out.
        """
        config = self._replica.settings.setting.space.check(params)
        self.refresh()
        enqueued = (record["config"] for record in self._replica.records() if record["kind"] == "enqueued")
        if not skip_if_exists or config not in [*(trial.config for trial in self.trials), *enqueued]:
            self.enqueue(config, user_attrs=user_attrs)

    def set_user_attr(self, key: str, value: Any) -> None:
        """Store an attribute of the study, which JSON can represent; see `user_attrs`."""
        self._replica.note({"user_attrs": {key: value}})

    def add_trials(self, trials: Any) -> None:
        """Add finished trials of elsewhere: the searcher learns from them, and the best may be among them.

        They do not count for `max_trials`, and no scheduler compares them with its own.

        Parameters
        ----------
        trials : Study, sequence, DataFrame, str or Path
            A study of this library or of Optuna, its trials, a list of dicts, a frame, or a CSV file. Rows
            have ``value``, parameters as ``params_NAME``, ``config_NAME`` or ``config/NAME``, and optionally
            ``resource``. Trials without a value are left out.

        Raises
        ------
        OptionError
            If a config is not in the space, a value of a table is infinite, or no trial has a value; nothing
            is added. A parameter that is suggested later is checked then.
        """
        if len(self.objectives) > 1:
            raise OptionError("add_trials takes trials of one objective; enqueue their configs instead")
        if signs_of(trials) not in ([], signs_of(self)):
            raise OptionError(
                f"add_trials: the mode of these trials is not that of the study, {self.settings.mode}"
            )
        setting = self.settings.setting
        with self._replica.lock:
            searcher = self._replica.progress.searcher
            declared = searcher.parameters if isinstance(searcher, OpenSearcher) else {}
            added = added_trials(trials, setting.space, setting.max_resource, declared)
            self._replica.append({"kind": "added", "trials": added})

    def heartbeat(self, jobs: Sequence[Job]) -> list[Job]:
        """Renew the leases of jobs and return the jobs that no longer belong to their owners."""
        lost = set(self._replica.store.heartbeat([claim_of(job) for job in jobs], self._replica.lease))
        return [job for job in jobs if claim_of(job) in lost]

    def run(
        self,
        trainable: AnyTrainable | str | None = None,
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
        """Run jobs until none is left, in parallel with any other workers, and return `best`.

        Without `max_trials`, `jobs`, `rounds` and `stoppers`, the scheduler runs one more round.

        Parameters
        ----------
        trainable : function, class or str, optional
            A function that takes a config, and optionally a resource and a report function, and returns the
            value at this resource; or a `Trainable` class; or the name of either, as ``MODULE:NAME``. An
            exception fails the job. The study records an importable trainable; None uses the last recorded.
        workers : int, Workers or RayWorkers
            Number of processes, which must be able to import the trainable; 0 to run in this process.
            `Workers` also defines the resources that they share and the demand of a trial.
        executor : str
            ``processes`` of this machine, or ``ray`` for actors of a cluster.
        jobs : int, optional
            Maximum number of jobs to run.
        rounds : int, optional
            Number of rounds of the scheduler, counted from the beginning of the study.
        checkpoint_every : int
            Steps between two checkpoints.
        checkpoints : str or Path, optional
            A folder for checkpoints that all workers can reach. By default next to the SQLite file, in
            PostgreSQL itself, or in memory.
        stoppers, callbacks : sequence
            Rules that end trials or the run, and objects that are notified of each step.

        Raises
        ------
        OptionError
            If nothing limits the run, or the trainable is not valid.
        """
        from onlineauto.tune.workers.running import run_study

        if isinstance(self.settings.setting.space, OpenSpace):
            raise OptionError(f"the space of the study {self.name!r} is not declared: call Study.optimize")
        if executor == "ray" and len(self.objectives) > 1:
            raise OptionError("several objectives do not run on Ray: run with processes")
        jobs = None if jobs is None else count("jobs", jobs, 0)
        rounds = None if rounds is None else count("rounds", rounds, 0)
        checkpoint_every = count("checkpoint_every", checkpoint_every, 1)
        for name, plugins, kind in (("stoppers", stoppers, Stopper), ("callbacks", callbacks, Callback)):
            if not isinstance(plugins, list | tuple) or not all(
                isinstance(plugin, kind) for plugin in plugins
            ):
                raise OptionError(f"{name} = {plugins!r}: give a list of {kind.__name__} objects")
        self.refresh()
        ends = self.settings.max_trials is not None or jobs is not None or stoppers
        progress = self._replica.progress
        scheduler, searcher = progress.scheduler, progress.searcher
        if scheduler.rounds is not None and (rounds is not None or not ends):
            until = scheduler.rounds + 1 if rounds is None else rounds
            stoppers = [*stoppers, RoundLimit(until, lambda: self.rounds)]
        elif not (ends or scheduler.ends or searcher.ends):
            raise OptionError(
                f"scheduler = {scheduler.name!r} never ends: give max_trials, or jobs; a Tuner takes "
                "num_samples above 0, or time_budget_s"
            )
        for callback in callbacks:
            callback.on_begin(self)
        for stopper in stoppers:
            stopper.on_begin(self)
        resolved = self._trainable(trainable)
        free_jobs_of_dead(self._replica.store, [*self._replica.progress.trials.values()])
        attempts = self._n_attempts()
        run_study(
            self._replica,
            resolved,
            workers=workers,
            executor=executor,
            jobs=jobs,
            every=checkpoint_every,
            folder=checkpoints,
            stoppers=stoppers,
            callbacks=callbacks,
        )
        if self.is_done and self._n_attempts() == attempts:
            n_trials = len(self._replica.progress.trials)
            most = self.settings.max_trials
            _LOG.warning(
                "the study %r is done, and runs no job: it has had %d trials%s; %s continues it",
                self.name,
                n_trials,
                "" if most is None else f" of {most}",
                "Study.extend(max_trials=…)" if most == n_trials else "Study.enqueue(config)",
            )
        best = self.best
        if best is None:
            _LOG.warning("no trial of the study %r has a value; %s", self.name, self._why_no_value())
        return best

    def _n_attempts(self) -> int:
        """Return the number of jobs so far; trials of other studies, which were added, had none here."""
        return sum(trial.attempt + 1 for trial in self.trials if trial.number >= 0)

    def optimize(
        self,
        func: Callable[[ActiveTrial], Any],
        n_trials: int | None = None,
        timeout: float | None = None,
        n_jobs: int = 1,
        catch: type[Exception] | Iterable[type[Exception]] = (),
        callbacks: Iterable[Callable[[Any, Trial], None]] | None = None,
        gc_after_trial: bool = False,
        show_progress_bar: bool = False,
    ) -> None:
        """Call an objective with one trial after the other.

        A trial that was interrupted comes first, with the same values. An error in the objective fails its
        trial and is raised. NaN fails the trial, and the next one begins.

        Parameters
        ----------
        func : callable
            The objective, which takes an `ActiveTrial` and returns a number, or one for each objective.
        n_trials : int, optional
            Number of trials of this call; None for no limit. A trial that its scheduler resumes does not
            count; the objective is then called with the same values again.
        timeout : float, optional
            Seconds after which no further trial begins.
        n_jobs : int
            Number of threads; -1 for one per processor.
        catch : type or iterable of types
            Errors that fail their trial without ending the call.
        callbacks : iterable of callable, optional
            Called with the study and the trial after each trial. `stop` ends the call.
        gc_after_trial, show_progress_bar : bool
            True to collect garbage after each trial, and to display a bar (extra ``progress``).

        Raises
        ------
        OptionError
            If an argument is not valid, the objective returns None or anything else that is not a number, or
            it suggests a parameter with another range than before; with `n_trials`, also if the study is
            done. Without `n_trials`, a call for a study that is done returns at once.
        """
        if not callable(func):
            raise OptionError(f"func = {func!r}: give a function of a trial")
        limit = inf if n_trials is None else count("n_trials", n_trials, 1)
        seconds = inf if timeout is None else number(timeout)
        if not seconds > 0:
            raise OptionError(f"timeout = {short_repr(timeout)}: give a number of seconds above 0")
        threads = os.cpu_count() or 1 if n_jobs == -1 else count("n_jobs", n_jobs, 1)
        errors, called = _several(catch), _several(callbacks)
        if not all(isinstance(kind, type) and issubclass(kind, Exception) for kind in errors):
            raise OptionError(f"catch = {short_repr(catch)}: give types of exceptions")
        if not all(map(callable, called)):
            raise OptionError(f"callbacks = {short_repr(callbacks)}: give functions of a study and a trial")
        if gc_after_trial:
            called.insert(0, lambda *_: gc.collect())
        self.refresh()
        if self.is_done and n_trials is not None:
            raise OptionError(f"the study {self.name!r} is done: Study.extend(max_trials=…) continues it")
        free_jobs_of_dead(self._replica.store, [*self._replica.progress.trials.values()])
        end = time.monotonic() + seconds
        with _progress_bar(n_trials, show=show_progress_bar) as bars:
            called += bars
            run = self._run = OptimizeRun(self, self._replica, func, limit, end, tuple(errors), called)
            if threads == 1:
                run.work()
                return
            with ThreadPoolExecutor(threads) as pool:
                futures = [pool.submit(run.work) for _ in range(threads)]
                try:
                    for future in futures:
                        future.result()
                finally:
                    run.stops = True

    def stop(self) -> None:
        """Let no further trial of `optimize` begin; a callback or an objective may call this."""
        if self._run is not None:
            self._run.stops = True

    def _trainable(self, requested: AnyTrainable | str | None) -> AnyTrainable:
        """Return the trainable of the study, and record its name if other processes can import it."""
        stored = self._replica.progress.trainable
        if requested is None and (stored is None or stored.startswith(OF_STREAM)):
            raise OptionError(
                f"the study {self.name!r} has no trainable: pass one; or, if its trials learn a stream, "
                "start it the same way as before"
            )
        trainable: AnyTrainable = (
            import_trainable(requested or stored or "")
            if requested is None or isinstance(requested, str)
            else requested
        )
        about = about_stream(trainable, stored, self.name)
        name = about or (requested if isinstance(requested, str) else name_of_trainable(trainable))
        if name is not None and name != stored:
            with self._replica.lock:
                self._replica.append({"kind": "named", "trainable": name})
        return trainable


@contextmanager
def _progress_bar(total: int | None, *, show: bool) -> Iterator[list[Callable[[Any, Trial], None]]]:
    """Display a bar of trials, and yield the callbacks that advance it: one, or none."""
    if not show:
        yield []
        return
    try:
        from tqdm.auto import tqdm
    except ModuleNotFoundError:
        raise OptionError(f"a progress bar needs a package: {install_hint('progress')}") from None
    with tqdm(total=total, unit=" trials") as bar:
        yield [lambda *_: bar.update()]


def _several(argument: Any) -> list[Any]:
    """Return an argument that may be None, one object or several, as a list."""
    return [] if argument is None else [*argument] if isinstance(argument, Iterable) else [argument]


def _pauses(timeout: float | None) -> Iterator[None]:
    """Yield at once and then after growing pauses, until the timeout."""
    yield
    end = None if timeout is None else time.monotonic() + timeout
    pause = _PAUSES[0]
    while end is None or time.monotonic() < end:
        time.sleep(pause if end is None else max(min(pause, end - time.monotonic()), 0))
        pause = min(2 * pause, _PAUSES[1])
        yield
