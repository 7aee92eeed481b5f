"""``Cluster``: allocates workers and servers to jobs, slot by slot; ``make_policy``: policies by name."""

from __future__ import annotations

import logging
import math
import os
import threading
import time
from collections import ChainMap
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, cast

from onlineauto.cluster.history import Head, History, HistoryFile, Record
from onlineauto.cluster.jobs.job import check_demand, check_progress, check_resources_in_use
from onlineauto.cluster.jobs.stream_jobs import RunJob, StreamJob
from onlineauto.cluster.jobs.study_job import StudyJob
from onlineauto.cluster.learned import Guarded, Learned
from onlineauto.cluster.policies import POLICIES, ClusterPolicy, Fair, Row, Situation, allocate
from onlineauto.cluster.policies.marginal_gain import UntilKnown
from onlineauto.cluster.policies.situation import LEAST_REMAINING, demand_of
from onlineauto.errors import OptionError
from onlineauto.tune.study import Study
from onlineauto.tune.workers.resources import is_amount
from onlineauto.workspace.run import Run

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from onlineauto.cluster.jobs.job import ClusterJob, Demand

_LOG: Final = logging.getLogger("onlineauto")
_POLLS: Final = 20
"""Minimum number of times per slot that all jobs are polled."""

_LONGEST: Final = 0.25
"""Maximum number of seconds between two polls."""

_MOST_PLACES: Final = 10_000
"""Maximum of `places`: a policy scores all jobs that have a row after each worker."""
_ROUNDING: Final = 1e-9
"""Relative error by which a sum of demands may exceed the capacity through rounding."""

BACKENDS = ("local", "ray")
"""Kinds of workers: processes and threads of this machine, or actors of Ray."""
_OF_RAY_ITSELF = ("node:", "object_store_memory", "memory", "accelerator_type:")


def make_policy(name: str, *, policy_file: str | os.PathLike[str] | None = None) -> ClusterPolicy:
    """Return the policy with a name.

    >>> make_policy("learned")  # Fair decides until Learned is proved to be faster
    Guarded(Learned of 3,210 weights, live, by=fair, trusted=False)
    """
    if name not in NAMED:
        valid = ", ".join({**NAMED, **dict.fromkeys(POLICIES.names())})
        raise OptionError(f"policy = {name!r} is unknown; valid are {valid}, or your own ClusterPolicy")
    if policy_file is None:
        return NAMED[name]()
    if name != Learned.name:
        raise OptionError(f"learned = {str(policy_file)!r} needs policy = 'learned', but policy = {name!r}")
    return _guarded_policy(Learned.load(policy_file))


def _guarded_policy(policy: Learned | None = None) -> Guarded:
    return Guarded((Learned.load() if policy is None else policy).live(), by=Fair(), aside=True)


NAMED: Mapping[str, Callable[[], ClusterPolicy]] = ChainMap(
    {UntilKnown.name: UntilKnown, Learned.name: _guarded_policy},
    cast("dict[str, Callable[[], ClusterPolicy]]", POLICIES),
)
"""Policies by name, also registered ones; called without arguments, each begins without knowledge of jobs."""


@dataclass(eq=False)
class Submitted:
    """A job in a cluster."""

    name: str  # Name of the job, and name of a group of jobs with about the same speeds.
    kind: str
    job: ClusterJob
    demand: Demand  # The demand of one worker and of one server.
    arrived: float  # Time of submission, in slots.
    endless: bool = False  # True for a stream without end.
    workers: int = 0  # The current numbers.
    servers: int = 0
    # The numbers that the job gets in this slot, as soon as the resources are free.
    wanted: tuple[int, int] = (0, 0)
    done: float = 0.0  # Units of work.
    total: float = 1.0
    ended: bool = False  # True once the job is done, has failed or is cancelled.
    error: str = ""  # Why the job failed, or empty.
    cancelled: bool = False  # True once `Cluster.cancel` was called before the job ended.
    was_seen: bool = field(default=False, repr=False)
    is_buried: bool = field(default=False, repr=False)
    before: float = field(default=0.0, repr=False)
    changed_at: float = field(default=0.0, repr=False)
    ended_at: float = field(default=0.0, repr=False)

    @property
    def state(self) -> str:
        """``running``, ``waiting``, ``failed``, ``cancelled`` or ``done``."""
        if self.ended:
            return "failed" if self.error else "cancelled" if self.cancelled else "done"
        return "running" if self.workers else "waiting"

    def poll(self, now: float) -> None:
        """Update the progress of the job, and end the job if it is done, cancelled or raises an error."""
        if self.ended:
            return
        self.was_seen = True
        try:
            self.done, self.total = check_progress(self.job.progress())
        except BaseException as error:
            self._fail(error, now)
            return
        if self.cancelled or (not self.endless and self.done >= self.total):
            self.cancelled = self.endless or self.done < self.total
            self._end(now)

    def resize(self, workers: int, servers: int, now: float) -> None:
        """Change the numbers of workers and servers of the job."""
        self.workers, self.servers, self.changed_at = workers, servers, now
        try:
            self.job.resize(workers, servers)
        except BaseException as error:
            self._fail(error, now)

    def resources_in_use(self, now: float) -> tuple[int, int]:
        """Return the workers and servers that the job still occupies; an error of the job ends it."""
        workers = servers = 0
        try:
            workers, servers = check_resources_in_use(getattr(self.job, "resources_in_use", (0, 0)))
        except BaseException as error:
            self._fail(error, now)
        return (workers, servers) if self.ended else (max(workers, self.workers), max(servers, self.servers))

    def stop(self) -> None:
        """Release all resources of the job. An error of this step becomes the error of the job."""
        try:
            stop: Any = getattr(self.job, "stop", None)
            if stop is None:
                self.job.resize(0, 0)
            else:
                stop()
        except BaseException as error:
            _pass_on(error)
            self.error = self.error or f"it could not be stopped: {_text(error)}"

    def row(self, now: float) -> Row:
        """Return the row of the job for a policy."""
        return Row(
            kind=self.kind,
            age=max(now - self.arrived, 0.0),
            done=self.done,
            remaining=max(self.total - self.done, LEAST_REMAINING),
            **demand_of(self.demand),
        )

    def record(self, slot: int, *, end: float, seconds: float, size: tuple[int, int]) -> Record:
        """Return the record of the slot that has ended."""
        until = self.ended_at if self.ended else end
        return Record(
            slot=slot,
            job=self.name,
            kind=self.kind,
            arrived=self.arrived,
            workers=size[0],
            servers=size[1],
            before=self.before,
            done=self.done,
            total=max(self.total, self.done + bool(self.error or self.cancelled)),
            used=min(max((until - self.changed_at) / seconds, 0.0), 1.0),
            endless=self.endless,
            **demand_of(self.demand),
        )

    def _end(self, now: float) -> None:
        self.ended, self.ended_at = True, now

    def _fail(self, error: BaseException, now: float) -> None:
        """End the job by its own error. Other jobs continue."""
        _pass_on(error)
        self.error = self.error or _text(error)
        if not self.ended:
            self._end(now)


def _pass_on(error: BaseException) -> None:
    """Raise an interrupt (Ctrl-C or SIGTERM) again: it is meant for the cluster and not for one job."""
    if isinstance(error, KeyboardInterrupt):
        raise error


def _text(error: BaseException) -> str:
    """Return an error as text."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # str() of a foreign exception may raise
        return type(error).__name__


def capacity_of(backend: str) -> dict[str, float]:
    """Return the amount of each resource of a backend; for ``ray``, this process must be connected."""
    if backend == "local":
        n_cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        return {"CPU": float(n_cores or 1)}
    import ray

    capacity: Mapping[str, float] = ray.cluster_resources()
    return {name: float(amount) for name, amount in capacity.items() if not name.startswith(_OF_RAY_ITSELF)}


def check_capacity(capacity: Mapping[str, float]) -> dict[str, float]:
    """Return a capacity with amounts as floats."""
    for name, amount in capacity.items():
        if not is_amount(amount) or not 0 < amount < math.inf:
            raise OptionError(f"capacity {name} = {amount!r}: give a number, more than 0")
    if not capacity:
        raise OptionError("the capacity is empty: give one, such as {'CPU': 8}")
    return {name: float(amount) for name, amount in capacity.items()}


def job_of(job: Any, **options: Any) -> Any:
    """Return a `StudyJob` for a study, a `RunJob` for a run, and any other job unchanged."""
    if isinstance(job, Study):
        return StudyJob(job, **options)
    if isinstance(job, Run):
        return RunJob(job, **options)
    missing = [name for name in ("progress", "resize", "demand") if not hasattr(job, name)]
    if missing:
        raise OptionError(
            f"{job!r} cannot be a job of a cluster, because it has no {', '.join(missing)}: give a "
            "Study, a Run, or an object with progress(), resize(workers, servers) and demand"
        )
    if options:
        raise OptionError(f"{', '.join(options)}: options are for a Study or a Run")
    return job


class Cluster:
    """Several jobs on one machine or one Ray cluster; a policy divides its workers again in each slot.

    Parameters
    ----------
    policy : Policy or str
        A `ClusterPolicy` object, a name in `onlineauto.cluster.POLICIES`, or ``learned``. `MarginalGain`
        learns the speeds of jobs; while there are jobs without observations, `Fair` decides. ``learned`` is
        the network of this package, which improves by each slot (`Learned.live`). It decides only while its
        shadow is proved to be faster than the shadow of `Fair` (`Learned.guarded`).
    slot : float
        Seconds between two decisions.
    backend : str
        ``local`` for processes and threads of this machine; ``ray`` for actors of the Ray cluster at
        `address`, or of the cluster that this process is connected to.
    capacity : mapping, optional
        Total amount of each resource, by name. By default the processors of this machine, or all resources
        of Ray's nodes.
    history : path, optional
        A file to which the history is appended; without it, the history is in memory.
    policy_state : path, optional
        A file in which the policy ``learned`` keeps its networks, its optimizers and its replay. The file is
        replaced atomically in each slot, and another cluster continues with it. By default it has the name of
        the history with `.policy` appended; without a history, there is none.
    places : int
        Maximum number of jobs that have workers at once; later jobs wait.
    address : str, optional
        Address of the Ray cluster, as for `ray.init`.

    Raises
    ------
    OptionError
        There is no such policy or backend, or a number is out of range.

    Examples
    --------
    >>> from onlineauto.cluster import Demand
    >>> class Bricks:
    ...     demand, workers, laid = Demand({"CPU": 1}), 0, 0
    ...
    ...     def resize(self, workers, servers):
    ...         self.workers = workers
    ...
    ...     def progress(self):
    ...         self.laid = min(self.laid + self.workers, 5)
    ...         return self.laid, 5
    >>> cluster = Cluster("fair", slot=0.1, capacity={"CPU": 2})
    >>> cluster.submit(Bricks(), name="wall")
    'wall'
    >>> cluster.run()
    >>> [(job.name, job.state, job.done) for job in cluster.jobs]
    [('wall', 'done', 5.0)]
    >>> record = cluster.history().records[0]
    >>> record.workers, record.finished
    (2, True)
    """

    def __init__(
        self,
        policy: ClusterPolicy | str = "marginal-gain",
        *,
        slot: float = 30.0,
        backend: str = "local",
        capacity: Mapping[str, float] | None = None,
        history: str | os.PathLike[str] | None = None,
        policy_state: str | os.PathLike[str] | None = None,
        places: int = 12,
        address: str | None = None,
    ) -> None:
        if backend not in BACKENDS:
            raise OptionError(f"backend = {backend!r} is unknown; valid are {', '.join(BACKENDS)}")
        if not is_amount(slot) or not 0 < slot < math.inf:
            raise OptionError(f"slot = {slot!r}: give a number of seconds above 0")
        most: Any = places
        if type(most) is not int or not 1 <= most <= _MOST_PLACES:
            raise OptionError(f"places = {places!r}: give a whole number from 1 to {_MOST_PLACES:,}")
        self.policy = policy if isinstance(policy, ClusterPolicy) else make_policy(policy)
        self.slot, self.backend = float(slot), backend
        self._capacity = None if capacity is None else check_capacity(capacity)
        if self._capacity is None and backend == "local":
            self._capacity = capacity_of("local")
        self._path, self._places, self._address = history, places, address
        self._policy_state = (
            f"{os.fspath(history)}.policy" if history and policy_state is None else policy_state
        )
        self._jobs: list[Submitted] = []
        self._lock = threading.Lock()
        self._history: History | None = None
        self._slots = 0
        self._began: float | None = None
        self._arrivals: dict[str, float] = {}
        self._stops = threading.Event()

    @property
    def jobs(self) -> Sequence[Submitted]:
        """All jobs, in the order in which they were submitted."""
        with self._lock:
            return tuple(self._jobs)

    @property
    def at(self) -> float:
        """The current time, in slots."""
        return self._slots + (0 if self._began is None else (time.monotonic() - self._began) / self.slot)

    def submit(
        self,
        job: Any,
        *,
        name: str | None = None,
        kind: str | None = None,
        endless: bool = False,
        **options: Any,
    ) -> str:
        """Add a job, before `run` or from another thread during it, and return its name.

        Parameters
        ----------
        job : Job, Study, or Run
            An object with the three methods of a `Job`; a study becomes a `StudyJob`, and a `Run` a `RunJob`.
        name : str, optional
            The default is the kind with a number.
        kind : str, optional
            Jobs of one kind have about the same speeds, and share what is learned about speeds.
        endless : bool
            True for a stream without end: its total is the number of events that have arrived.
        **options
            Options of `StudyJob` or `RunJob`, if the job becomes one.

        Raises
        ------
        OptionError
            There is a job of this name, it is not a job, it needs more than the cluster has, or it needs
            merge servers without Ray.
        """
        job = job_of(job, **options)
        if isinstance(job, StudyJob) and job.executor is None:
            job.executor = "ray" if self.backend == "ray" else "processes"
        if isinstance(job, StreamJob):
            job.backend = job.backend or self.backend
            if job.demand.server and job.backend != "ray":
                raise OptionError("server: merge servers need the backend ray")
        demand = check_demand(job.demand)
        kind = str(kind or getattr(job, "kind", None) or type(job).__name__.lower())
        with self._lock:
            taken = {entry.name for entry in self._jobs}
            name = name or next(
                unused for n in range(1, 2 + len(taken)) if (unused := f"{kind}-{n}") not in taken
            )
            if not isinstance(name, str):
                raise OptionError(f"name = {name!r}: give a text")
            if any("\ud800" <= letter <= "\udfff" for letter in name + kind):
                raise OptionError(f"name = {name!r}, kind = {kind!r}: UTF-8 cannot represent this text")
            if name in taken:
                raise OptionError(f"there is a job {name!r} already")
            arrived = self._arrivals.get(name, self.at)
            entry = Submitted(name, kind, job, demand, arrived, endless)
            if self._capacity is not None:
                _check_fits(entry, self._capacity)
            self._jobs.append(entry)
        return name

    def cancel(self, name: str) -> None:
        """End a job that has not ended, before `run` or from another thread during it.

        Raises
        ------
        OptionError
            There is no such job, or it has ended.
        """
        entry = next((entry for entry in self.jobs if entry.name == name), None)
        if entry is None or entry.ended:
            why = "there is no such job" if entry is None else f"the job has ended: {entry.state}"
            raise OptionError(f"{name!r} cannot be cancelled: {why}")
        entry.cancelled = True

    def stop(self) -> None:
        """End `run` from another thread, or from `watch`. All jobs stop in good order."""
        self._stops.set()

    def run(
        self,
        *,
        slots: int | None = None,
        watch: Callable[[Cluster], object] | None = None,
        wait: bool = False,
    ) -> None:
        """Allocate workers until all jobs have ended. An interrupt stops all jobs in good order.

        Parameters
        ----------
        slots : int, optional
            Maximum number of slots.
        watch : callable, optional
            Called with the cluster several times in each slot.
        wait : bool
            Wait for more jobs when all have ended, until `stop` is called.

        Raises
        ------
        OptionError
            A job needs more than the cluster has, or Ray is not available.
        InputError
            The file of the history is not a history, or another process writes it.
        OutputError
            All jobs have ended, but the last records could not be written to the file of the history.
        """
        with ExitStack() as stack:
            file = self._open(stack)
            stack.callback(self._stop_all)
            until = None if slots is None else self._slots + slots
            stack.callback(self._stops.clear)
            while (until is None or self._slots < until) and not self._stops.is_set():
                if not self._unfinished():
                    if not wait:
                        break
                    self._wait_for_jobs(watch)
                    continue
                records = self.history().take(self._run_slot(watch))
                if file is not None:
                    file.append(records)
                self.policy.observe(records)

    def history(self) -> History:
        """Return the history of the cluster, including earlier records of the file."""
        if self._history is None:
            return History(self._head)
        return self._history

    @property
    def _head(self) -> Head:
        return Head(capacity=self._capacity or {}, slot=self.slot, policy=self.policy.name)

    def _open(self, stack: ExitStack) -> HistoryFile | None:
        """Connect to the backend, check the jobs, and open the history and continue it."""
        if self.backend == "ray":
            from onlineauto.work.on_ray import ray_connection

            stack.enter_context(ray_connection(self._address))
            available = capacity_of("ray")
            if self._capacity is None:
                self._capacity = available
            for name, amount in self._capacity.items():
                if name in available and amount > available[name]:
                    _LOG.warning(
                        "the capacity is %s = %g, but Ray has %g now: jobs that do not fit wait",
                        *(name, amount, available[name]),
                    )
        assert self._capacity is not None
        for entry in self.jobs:
            _check_fits(entry, self._capacity)
        if self._slots == 0 and self._policy_state is not None:
            self.policy.keep(self._policy_state)
        if self._path is None:
            self._history = self._history or History(self._head)
            return None
        file = HistoryFile(self._path, self._head)
        stack.callback(file.close)
        self._history = file.found
        if self._slots == 0:
            self._continue(file.found)
        return file

    def _continue(self, earlier: History) -> None:
        """Continue the slot numbers and arrivals of an earlier history, and let the policy observe it."""
        self._slots = max((record.slot for record in earlier.records), default=-1) + 1
        arrived = {record.job: record.arrived for record in earlier.records}
        over = {record.job for record in earlier.records if record.finished}
        self._arrivals = {name: slot for name, slot in arrived.items() if name not in over}
        for entry in self.jobs:
            entry.poll(time.monotonic())
            self._release_ended(entry)
            entry.arrived = self._arrivals.get(entry.name, entry.arrived + self._slots)
            number = 2
            while entry.name in over and not entry.ended:  # names in a history are unique
                entry.name, number = f"{entry.name.removesuffix(f'-{number - 1}')}-{number}", number + 1
        self.policy.observe(earlier.records)

    def _wait_for_jobs(self, watch: Callable[[Cluster], object] | None) -> None:
        """Wait until a job is submitted or `stop` is called. The time counts in whole slots, rounded up."""
        self._began = began = time.monotonic()
        while not self._stops.is_set() and not self._unfinished():
            if watch is not None:
                watch(self)
            time.sleep(0 if self._unfinished() else _LONGEST)
        self._began = None
        self._slots += math.ceil((time.monotonic() - began) / self.slot)

    def _unfinished(self) -> list[Submitted]:
        return [entry for entry in self.jobs if not entry.ended]

    def _run_slot(self, watch: Callable[[Cluster], object] | None) -> list[Any]:
        """Divide the cluster, let jobs work for a slot, and return a record for each of them."""
        assert self._capacity is not None
        began = self._began = time.monotonic()
        end = began + self.slot
        for entry in self._unfinished():
            if not entry.was_seen:  # other jobs were polled at the end of the last slot
                entry.poll(began)
                self._release_ended(entry)
        entries = self._unfinished()
        self._decide(entries)
        for entry in entries:
            entry.before, entry.changed_at = entry.done, began
            workers, servers = min(entry.workers, entry.wanted[0]), min(entry.servers, entry.wanted[1])
            if (workers, servers) != (entry.workers, entry.servers):
                entry.resize(workers, servers, began)
        sizes = {entry.name: (0, 0) for entry in entries}
        while entries:
            now = time.monotonic()
            for entry in entries:
                if not entry.ended:
                    self._grow(entry, entries, now)
                    sizes[entry.name] = entry.workers, entry.servers
                    entry.poll(now)
                self._release_ended(entry)
            if watch is not None:
                watch(self)
            if now >= end or self._stops.is_set() or all(entry.ended for entry in entries):
                break
            time.sleep(min(self.slot / _POLLS, _LONGEST, max(end - now, 0.001)))
        self._began, slot = None, self._slots
        self._slots += bool(entries)
        return [entry.record(slot, end=end, seconds=self.slot, size=sizes[entry.name]) for entry in entries]

    def _decide(self, entries: Sequence[Submitted]) -> None:
        """Call the policy, and set the workers and servers that each job is to have."""
        assert self._capacity is not None
        if not entries:
            return
        rows = [entry.row(self._slots) for entry in entries]
        answer = allocate(self.policy, Situation.of(rows, self._capacity, places=self._places))
        for row, entry in enumerate(entries):
            has_row = row < self._places
            workers = int(answer.workers[0, row]) if has_row else 0
            entry.wanted = workers, int(answer.servers[0, row]) if has_row else 0

    def _grow(self, entry: Submitted, entries: Sequence[Submitted], now: float) -> None:
        """Grow a job towards its allocation, as far as resources are free."""
        size = entry.workers, entry.servers
        while True:
            more = size[0] + (size[0] < entry.wanted[0]), size[1] + (size[1] < entry.wanted[1])
            if more == size or not self._fits(entry, more, entries, now):
                break
            size = more
        if size != (entry.workers, entry.servers) and not entry.ended:
            entry.resize(*size, now)

    def _fits(
        self, entry: Submitted, size: tuple[int, int], entries: Sequence[Submitted], now: float
    ) -> bool:
        """Return whether a job of this size fits beside the resources that all other jobs still hold."""
        assert self._capacity is not None
        free = dict(self._capacity)
        for other in entries:
            workers, servers = other.resources_in_use(now)
            if other is entry:
                workers, servers = max(workers, size[0]), max(servers, size[1])
            for takes, count in ((other.demand.worker, workers), (other.demand.server, servers)):
                for name, amount in takes.items():
                    free[name] -= amount * count
        return all(amount >= -_ROUNDING * self._capacity[name] for name, amount in free.items())

    def _release_ended(self, entry: Submitted) -> None:
        """Release the resources of a job that has ended."""
        if not entry.ended or entry.is_buried:
            return
        entry.is_buried, had_resources = True, bool(entry.workers or entry.servers or entry.error)
        entry.workers = entry.servers = 0
        entry.wanted = 0, 0
        if had_resources:
            entry.stop()
        if entry.error:
            _LOG.warning("the job %s failed: %s", entry.name, entry.error)

    def _stop_all(self) -> None:
        self._began = None
        for entry in self._unfinished():
            entry.stop()
            entry.workers = entry.servers = 0


def _check_fits(entry: Submitted, capacity: Mapping[str, float]) -> None:
    """Reject a job that can never begin."""
    needs = dict(entry.demand.worker)
    for name, amount in entry.demand.server.items():
        needs[name] = needs.get(name, 0) + amount
    for name, amount in needs.items():
        if amount > capacity.get(name, 0) * (1 + _ROUNDING):
            available = f"only {capacity[name]:g}" if name in capacity else "none"
            raise OptionError(
                f"the job {entry.name!r} needs at least {name} = {amount:g}, but the cluster has {available}"
            )
