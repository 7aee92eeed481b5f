"""``ClusterFolder``: jobs for a running cluster, which it takes from a folder.

The files of the folder::

jobs/NAME.json      a submitted job: the text of its file, and its number there
jobs/NAME.cancel    a request to cancel the job
stop                a request to end the cluster
status.json         what became of the jobs; written by the cluster only
history.jsonl       the history of the cluster that `onlineauto cluster serve` runs
lock                locked while a cluster runs
"""

from __future__ import annotations

import importlib
import logging
import os
import secrets
import time
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final
from urllib.parse import quote, unquote

import msgspec

from onlineauto.errors import InputError, OnlineautoError, OptionError
from onlineauto.formats.sources.replaced_file import replacing

try:
    import fcntl
except ImportError:  # this system has no flock()
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from collections.abc import Callable

    from onlineauto.cluster.cluster import Cluster, Submitted

_LOG: Final = logging.getLogger("onlineauto")
_EVERY: Final = 0.5
"""Seconds between two looks at the folder."""
_PATIENCE: Final = 10.0
_LOCKING: Final = 1.0
"""Seconds for which a cluster tries to lock its folder."""
_ENDED: Final = ("done", "failed", "cancelled", "rejected")


class JobStatus(msgspec.Struct, frozen=True):
    """The state of a job that was submitted to a folder.

    Attributes
    ----------
    name : str
        The name of the job.
    state : str
        ``submitted`` until a cluster has taken up the job; then ``waiting``, ``running``, ``done``,
        ``failed``, ``cancelled``, or ``rejected`` if the cluster cannot take it up.
    workers, servers : int
        The current numbers.
    done : float
        Units of work that are done.
    total : float or None
        Expected total; None if it is unknown, as for a stream without `events`.
    seconds_left : float or None
        Estimated time until the end of the job, from its mean speed in this cluster.
    error : str
        Why the job has failed or was rejected.
    """

    name: str
    state: str = "submitted"
    workers: int = 0
    servers: int = 0
    done: float = 0.0
    total: float | None = None
    seconds_left: float | None = None
    error: str = ""

    @property
    def is_ended(self) -> bool:
        """True if the job will not continue."""
        return self.state in _ENDED


class _Submission(msgspec.Struct, frozen=True):
    """The content of ``jobs/NAME.json``."""

    name: str
    path: str  # The file of jobs, to whose folder its paths are relative.
    text: str  # The content of that file.
    number: int  # The number of the job in that file, from 1.
    time: float  # Seconds since 1970: jobs are taken up in this order.


class ClusterFolder:
    r"""A folder through which jobs reach a running cluster: no network, no token, and jobs survive restarts.

    One process runs the cluster, with `serve`; any others submit, list and cancel jobs, also from other
    machines that share the folder. Whoever may write to the folder can run code as the user of the cluster.

    Parameters
    ----------
    path : path
        The folder. `serve` and `submit` create it.

    Examples
    --------
    >>> import tempfile
    >>> folder = ClusterFolder(tempfile.mkdtemp())
    >>> file = folder.path / "jobs.toml"
    >>> _ = file.write_text("[[jobs]]\nstream = 'jobs.toml'\nname = 'clicks'\n")
    >>> [(job.name, job.state) for job in folder.submit(file)]
    [('clicks', 'submitted')]
    >>> folder.cancel("clicks").state  # once a cluster runs there, the job is cancelled
    'submitted'
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    @property
    def is_running(self) -> bool:
        """True while a cluster runs on this folder."""
        with suppress(FileNotFoundError), (self.path / "lock").open("rb") as file:
            return not _is_locked(file, fcntl.LOCK_SH)
        return False

    def jobs(self) -> list[JobStatus]:
        """Return the status of all jobs, in the order in which they were submitted.

        Raises
        ------
        InputError
            There is no such folder, or its files cannot be read.
        """
        if not (self.path / "jobs").is_dir():
            raise InputError(f"{self.path}: no jobs have been submitted to this folder")
        found, is_running = _read_statuses(self.path), self.is_running
        jobs = [found.get(each.name, JobStatus(each.name)) for each in _read_submissions(self.path, set())]
        for index, job in enumerate(jobs):
            if job.state == "running" and not is_running:  # its cluster was killed
                jobs[index] = JobStatus(job.name, "waiting", done=job.done, total=job.total)
        return jobs

    def submit(self, file: str | os.PathLike[str], *, seconds: float = _PATIENCE) -> list[JobStatus]:
        """Submit all jobs of a file, and wait for a running cluster to take them up.

        A job gets a number behind its name if an earlier job of this name has ended.

        Parameters
        ----------
        file : path
            The jobs, as for ``onlineauto cluster run``. Its table ``cluster`` is ignored.
        seconds : float
            Maximum time to wait. Without a running cluster, the jobs wait for the next one.

        Raises
        ------
        OptionError, InputError
            A job is not valid, its name is in use, or the cluster has rejected it. The message has its line.
        """
        from onlineauto.cluster.job_file import JobFile

        jobs = JobFile(os.fspath(file))
        jobs.check()
        self._make()
        states = {job.name: job for job in self.jobs()}
        names = [_free_name(name, states) for name in jobs.names]
        for warning in jobs.warnings(is_submitted=True):
            _LOG.warning("%s", warning)
        path, now = os.fspath(Path(file).absolute()), time.time()
        for number, name in enumerate(names, 1):
            self._add(_Submission(name, path, jobs.text, number, now + number * 1e-6))

        def are_taken_up() -> bool:
            new = {job.name for job in self.jobs() if job.state == "submitted"}
            return not self.is_running or new.isdisjoint(names)

        _wait(are_taken_up, seconds)
        statuses = [self._status(name) for name in names]
        if rejected := [job.error for job in statuses if job.state == "rejected"]:
            others = [job.name for job in statuses if job.state != "rejected"]
            rest = f"; submitted without an error: {', '.join(others)}" if others else ""
            raise OptionError("; ".join(rejected) + rest)
        return statuses

    def cancel(self, name: str, *, seconds: float = _PATIENCE) -> JobStatus:
        """Request that a job is cancelled, wait until it has ended, and return its status.

        A cancelled study keeps its store and a cancelled stream its model, from which a job that is submitted
        later continues.

        Raises
        ------
        OptionError
            There is no such job, or it has ended.
        """
        if (job := self._status(name)).is_ended:
            raise OptionError(f"the job {name!r} has ended: {job.state}")
        _job_file(self.path, name, "cancel").touch()
        _wait(lambda: not self.is_running or self._status(name).is_ended, seconds)
        return self._status(name)

    def stop(self, *, seconds: float = 60.0) -> bool:
        """Request that the cluster ends, and return whether it has ended within this time.

        Its jobs stop in good order, and the next cluster on this folder continues them.

        Raises
        ------
        OptionError
            No cluster runs on this folder.
        """
        if not self.is_running:
            raise OptionError(f"no cluster runs on {self.path}")
        (self.path / "stop").touch()
        return _wait(lambda: not self.is_running, seconds)

    def serve(self, cluster: Cluster) -> None:
        """Run a cluster with the jobs of the folder until `stop` or an interrupt.

        Jobs that have not ended are continued: studies from their stores, streams from their models. A job
        that is not valid, or fails, does not affect the others.

        Parameters
        ----------
        cluster : Cluster
            The cluster. With a `history`, it continues the slots of the last one.

        Raises
        ------
        InputError
            Another cluster runs on this folder, or the folder cannot be used.
        """
        if fcntl is None:
            raise OptionError("a folder for jobs needs flock(), which this system does not have")
        self._make()
        begin = time.time() - 0.1  # clocks of files are coarser
        with (self.path / "lock").open("ab") as file:
            # is_running holds the lock for an instant
            if not _wait(lambda: _is_locked(file, fcntl.LOCK_EX), _LOCKING):
                raise InputError(f"another cluster runs on {self.path}: give each cluster its own folder")
            stop = self.path / "stop"
            with suppress(FileNotFoundError):
                if stop.stat().st_mtime < begin:  # a request to an earlier cluster
                    stop.unlink()
            serving = _Serving(self.path)
            try:
                cluster.run(watch=serving.look, wait=True)
            finally:
                serving.write_status()
                stop.unlink(missing_ok=True)

    def _make(self) -> None:
        try:
            (self.path / "jobs").mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"cannot use the folder {self.path}: {error.strerror}") from None

    def _status(self, name: str) -> JobStatus:
        found = {job.name: job for job in self.jobs()}
        if name not in found:
            raise OptionError(f"{self.path} has no job {name!r}; it has: {', '.join(found) or 'none'}")
        return found[name]

    def _add(self, submission: _Submission) -> None:
        """Write the file of a job, which must be new."""
        part = self.path / "jobs" / f".{secrets.token_hex(8)}.part"
        try:
            with replacing(part) as file:
                file.write(msgspec.json.encode(submission))
            os.link(part, _job_file(self.path, submission.name, "json"))  # fails if the file exists
        except OSError as error:
            raise InputError(
                f"cannot submit {submission.name!r} to {self.path}: {error.strerror}; submit it again"
            ) from None
        finally:
            part.unlink(missing_ok=True)


class _Serving:
    """The jobs of a folder in a cluster that runs there."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._statuses = {name: job for name, job in _read_statuses(folder).items() if job.is_ended}
        self._entries: dict[str, Submitted] = {}
        self._begun: dict[str, tuple[float, float]] = {}
        self._models: dict[int, str] = {}
        self._known: set[str] = set()
        self._written: list[JobStatus] = []
        self._looked = 0.0

    def look(self, cluster: Cluster) -> None:
        """Take up new jobs, apply requests and write the status, if the last look is long enough ago."""
        if time.monotonic() - self._looked < _EVERY:
            return
        self._looked = time.monotonic()
        for submission in _read_submissions(self._folder, self._known):
            if submission.name not in self._statuses:
                self._take_up(submission, cluster)
        for path in (self._folder / "jobs").glob("*.cancel"):
            self._cancel(path, cluster)
        if (self._folder / "stop").exists():
            cluster.stop()
        self.write_status()

    def _take_up(self, submission: _Submission, cluster: Cluster) -> None:
        """Submit a job to the cluster; an error becomes its status."""
        from onlineauto.cluster.job_file import JobFile

        name = submission.name
        if _job_file(self._folder, name, "cancel").exists():
            self._statuses[name] = JobStatus(name, "cancelled")
            return
        importlib.invalidate_caches()  # a trainable may have been written since the cluster began
        try:
            file = JobFile(submission.path, submission.text, models=self._models)
            file.submit_job(cluster, submission.number, name)
        except (Exception, SystemExit) as error:  # a trainable's module may raise anything
            text = f"{error}" if isinstance(error, OnlineautoError) else f"{type(error).__name__}: {error}"
            self._statuses[name] = JobStatus(name, "rejected", error=text)
            _LOG.warning("the job %s is rejected: %s", name, text)
        else:
            self._entries[name] = next(entry for entry in cluster.jobs if entry.name == name)
            self._statuses[name] = JobStatus(name, "waiting")

    def _cancel(self, path: Path, cluster: Cluster) -> None:
        """Apply a request to cancel a job, and remove it once the job has ended."""
        name = unquote(path.name.removesuffix(".cancel"))
        if name in self._statuses:
            if self._statuses[name].is_ended:
                path.unlink(missing_ok=True)
            elif not self._entries[name].ended:
                cluster.cancel(name)

    def write_status(self) -> None:
        """Write the status of all jobs, if it has changed."""
        for name, entry in self._entries.items():
            if not self._statuses[name].is_ended:
                self._statuses[name] = self._status_of(name, entry)
                if entry.ended:
                    self._models.pop(id(entry.job), None)
        statuses = [*self._statuses.values()]
        if statuses == self._written:
            return
        try:
            with replacing(self._folder / "status.json") as file:
                file.write(msgspec.json.encode(statuses))
            self._written = statuses
        except OSError as error:
            _LOG.warning("%s", error)

    def _status_of(self, name: str, entry: Submitted) -> JobStatus:
        done, now, left = entry.done, time.monotonic(), None
        total = None if entry.endless or getattr(entry.job, "is_open", False) else entry.total
        if entry.workers and total is not None:
            begin, before = self._begun.setdefault(name, (now, done))
            left = (total - done) * (now - begin) / (done - before) if done > before else None
        return JobStatus(name, entry.state, entry.workers, entry.servers, done, total, left, entry.error)


def _free_name(name: str, jobs: dict[str, JobStatus]) -> str:
    """Return a name that no job has; it has a number if all jobs of this name have ended."""
    free, number = name, 2
    while free in jobs:
        if not jobs[free].is_ended:
            raise OptionError(
                f"there is a job {free!r}, which is {jobs[free].state}: choose another name, or cancel it"
            )
        free, number = f"{name}-{number}", number + 1
    return free


def _is_locked(file: IO[bytes], kind: int) -> bool:
    """Lock an open file, and return whether that succeeded."""
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _wait(holds: Callable[[], bool], seconds: float) -> bool:
    """Wait until a condition holds, but not longer than this; return whether it holds."""
    end = time.monotonic() + seconds
    while not (ended := holds()) and time.monotonic() < end:
        time.sleep(0.05)
    return ended


def _job_file(folder: Path, name: str, suffix: str) -> Path:
    return folder / "jobs" / f"{quote(name, safe=' ')}.{suffix}"


def _read_statuses(folder: Path) -> dict[str, JobStatus]:
    """Return the jobs that a cluster has taken up, by name."""
    path = folder / "status.json"
    try:
        return {job.name: job for job in msgspec.json.decode(path.read_bytes(), type=list[JobStatus])}
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.MsgspecError) as error:
        raise InputError(f"{path} is not the status of a cluster: {error}") from None


def _read_submissions(folder: Path, known: set[str]) -> list[_Submission]:
    """Return the submitted jobs whose files are not in `known`, in their order; add their files to it."""
    found = []
    for path in (folder / "jobs").glob("*.json"):
        if path.name in known:
            continue
        known.add(path.name)
        try:
            found.append(msgspec.json.decode(path.read_bytes(), type=_Submission))
        except (OSError, msgspec.MsgspecError) as error:
            _LOG.warning("%s is not a submitted job: %s", path, error)
    return sorted(found, key=lambda each: (each.time, each.name))
