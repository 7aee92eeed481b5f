"""``JobFile``: the jobs of a cluster as TOML. Errors have the line number."""

from __future__ import annotations

import re
import tomllib
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from onlineauto.cluster.cluster import Cluster, make_policy
from onlineauto.cluster.jobs import RunJob, StreamJob, StudyJob
from onlineauto.cluster.learned import Learned
from onlineauto.cluster.policies.marginal_gain import UntilKnown
from onlineauto.errors import InputError, OnlineautoError, OptionError, StoreError
from onlineauto.options.registry import read_settings
from onlineauto.tune import Space, Study
from onlineauto.tune.workers.trainable import import_trainable
from onlineauto.workspace.model_file import check_target
from onlineauto.workspace.options import parse_given_options
from onlineauto.workspace.run import Run, load_run
from onlineauto.workspace.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from onlineauto.options import Configuration


CLUSTER: Final = {
    *("capacity", "slot", "policy", "learned", "policy_state", "backend", "history", "places", "address"),
}
"""Keys of the table ``cluster``."""
STUDY_KEYS: Final = {
    "scheduler",
    "searcher",
    "min_resource",
    "max_resource",
    "eta",
    "mode",
    "seed",
    "max_trials",
}
"""Keys of a job that are options of its study."""
RUN_KEYS: Final = {"rounds", "checkpoint_every", "checkpoints", "most_workers"}
"""Keys of a job that are options of `Study.run`."""
_ANY: Final = {"name", "kind", "worker"}
_STUDY: Final = {"study", "space", "trainable", "retries", "lease", *STUDY_KEYS, *RUN_KEYS}
_STREAM: Final = {"stream", "flags", "model", "partitions", "server", "most_servers", "events", "save_every"}
_TEXTS: Final = {
    *("name", "kind", "study", "trainable", "stream", "flags", "model", "checkpoints"),
    *("scheduler", "searcher", "mode", "policy", "backend", "address"),
}
_PATHS: Final = {"history", "learned", "policy_state"}
_COUNTS: Final = {
    *("events", "save_every", "partitions", "most_servers"),
    *("rounds", "checkpoint_every", "most_workers", "places"),
}
_TABLES: Final = {"worker": "{CPU = 1}", "server": "{CPU = 1}", "capacity": "{CPU = 8}"}


def keys_of(job: Mapping[str, Any]) -> set[str]:
    """Return the keys that a job may have: those of a study, or of a stream."""
    return _ANY | (_STREAM if "stream" in job else _STUDY)


def first_invalid_key(table: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the first key of a table with a value of the wrong type, and its valid values, or None.

    >>> first_invalid_key({"slot": 5, "capacity": 8})
    ('capacity', 'capacity = 8: give names and amounts, as {CPU = 8}')
    """
    for key, value in table.items():
        if takes := _valid_values(key, value):
            return key, f"{key} = {value!r}: give {takes}"
    return None


def _valid_values(key: str, value: Any) -> str:
    """Return the valid values of a key if this value is not one of them."""
    if key in _TEXTS and not isinstance(value, str):
        return "a text"
    if key in _PATHS and not isinstance(value, str):
        return "the path of a file"
    if key in _COUNTS and (type(value) is not int or value < 1):
        return "a whole number, 1 or more"
    if key in _TABLES and not isinstance(value, dict):
        return f"names and amounts, as {_TABLES[key]}"
    if key == "space" and not isinstance(value, str | dict):
        return "the path of a file, or a table"
    return ""


class JobFile:
    """A file with the table ``cluster`` and the tables ``jobs``; `text` takes the place of its content.

    `models` has the model files that jobs write, by the `id` of the job.
    """

    def __init__(self, path: str, text: str | None = None, *, models: dict[int, str] | None = None) -> None:
        self._path = path
        try:
            self.text = read_settings(path) if text is None else text
            document = tomllib.loads(self.text)
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise InputError(f"{path}: not TOML: {error}") from None
        self._cluster: dict[str, Any] = document.pop("cluster", {})
        self._jobs: list[dict[str, Any]] = document.pop("jobs", [])
        self._models: dict[int, str] = {} if models is None else models
        if document:
            self._refuse(next(iter(document)), "the file has the tables [cluster] and [[jobs]]")
        if not isinstance(self._cluster, dict):
            self._refuse("cluster", "it is a table: [cluster]")
        if not isinstance(self._jobs, list):
            self._refuse("jobs", "there may be several jobs: write [[jobs]], in two brackets")
        if not self._jobs:
            raise OptionError(f"{path}: there is no job: add a table [[jobs]]")
        self._check_keys(self._cluster, CLUSTER)
        for number, job in enumerate(self._jobs, 1):
            self._check_job(job, number)

    def cluster(self, **options: Any) -> Cluster:
        """Return the cluster of the file; `options` take precedence."""
        described = {name: each for name, each in self._cluster.items() if name not in options}
        for name in {"history", "learned", "policy_state"} & described.keys():
            described[name] = self._relative_path(described[name])
        if "history" in described:
            self._check_target("history", described["history"])
        if options.get("policy", Learned.name) != Learned.name:
            described.pop("learned", None)  # `options` name another policy
        elif "learned" in described and not Path(described["learned"]).is_file():
            self._refuse("learned", f"learned = {self._cluster['learned']!r}: there is no such file")
        try:
            return make_cluster(**described | options)
        except OnlineautoError as error:
            if _first_key_in(error, [*self._cluster, *options]) in options:
                raise  # the error is about the command, not about the file
            raise self._error_at_line(error, 0, self._cluster) from None

    @property
    def names(self) -> list[str]:
        """The names of the jobs."""
        jobs = enumerate(self._jobs, 1)
        return [job.get("name") or Path(job.get("stream", f"job {number}")).stem for number, job in jobs]

    def submit(self, cluster: Cluster) -> None:
        """Submit all jobs."""
        for number, name in enumerate(self.names, 1):
            self.submit_job(cluster, number, name)

    def submit_job(self, cluster: Cluster, number: int, name: str) -> None:
        """Submit the job with a number, from 1, under a name."""
        described = self._jobs[number - 1]
        if "stream" in described:
            self._check_stream(described, number)
        try:
            make_job = self._stream if "stream" in described else self._study
            job = make_job(described)
            cluster.submit(job, name=name, kind=described.get("kind"))
        except OnlineautoError as error:
            raise self._error_at_line(error, number, described.keys()) from None
        if "model" in described:
            self._models[id(job)] = self._relative_path(described["model"])

    def check(self) -> None:
        """Reject jobs with an error that can be found without stores, models and trainables."""
        for number, described in enumerate(self._jobs, 1):
            if self.names.index(self.names[number - 1]) < number - 1:
                self._refuse("name", f"there is a job {self.names[number - 1]!r} above", number)
            if "stream" in described:
                self._check_stream(described, number)
            try:
                _stream_options(described)
                self._space(described)
            except OnlineautoError as error:
                raise self._error_at_line(error, number, described.keys()) from None

    def warnings(self, *, is_submitted: bool = False) -> list[str]:
        """Return a warning for each stream whose model is not saved, and for a table that has no effect."""
        lost = [n for n, job in enumerate(self._jobs, 1) if "stream" in job and "model" not in job]
        reason = "the model of this stream is not saved: add a model = FILE"
        warnings = [f"{self._path}:{self._line(number, 'stream')}: {reason}" for number in lost]
        if is_submitted and self._cluster:
            warnings.append(f"{self._path}:{self._line(0)}: [cluster] is ignored: the cluster runs already")
        return warnings

    def save(self, cluster: Cluster) -> list[str]:
        """Return a line for each model that is saved."""
        lines = []
        for job in cluster.jobs:
            path = self._models.get(id(job.job))
            if path is None:
                continue
            if job.state == "done":
                lines.append(f"the model of {job.name} is in {path}")
            elif Path(path).exists() and isinstance(job.job, RunJob | StreamJob):
                lines.append(f"{job.name} continues from {path}, where it is saved")
        return lines

    def _study(self, job: Mapping[str, Any]) -> Any:
        """Return a study, new or continued."""
        name, storage = job.get("name", "study"), job.get("study")
        if storage is not None:
            storage = self._store(storage)
        space = self._space(job)
        options = {key: job[key] for key in (*STUDY_KEYS, "retries", "lease") if key in job}
        try:
            if space is not None:
                study = Study(space, name=name, storage=storage, **options)
            else:
                study = Study.load(name, storage=str(storage), lease=job.get("lease"))
        except OnlineautoError as error:
            if storage is None or not (isinstance(error, StoreError) or storage in f"{error}"):
                raise
            raise InputError(f"study: {error}") from None
        options = {key: job[key] for key in (*RUN_KEYS, "worker") if key in job}
        if "checkpoints" in options:
            options["checkpoints"] = self._relative_path(options["checkpoints"])
        if "trainable" in job:
            _check_trainable(job["trainable"])
        elif storage is None:
            raise OptionError("space: the trials need a function to run: add a trainable = MODULE:NAME")
        return StudyJob(study, job.get("trainable"), **options)

    def _space(self, job: Mapping[str, Any]) -> Any:
        """Return the space of a study, or None."""
        with _name_key_in_errors("space"):
            table = job.get("space")
            if isinstance(table, str):
                return Space.from_toml(self._relative_path(table))
            return table and Space(table)

    def _stream(self, job: Mapping[str, Any]) -> Any:
        """Return a stream, from its beginning or from its checkpoint."""
        configuration = _stream_options(job)
        source = Path(self._relative_path(job["stream"]))
        options = {key: job[key] for key in ("worker", "events", "save_every") if key in job}
        if "model" in job:
            options["model"] = self._relative_path(job["model"])
        workspace, stored = _stored_run(options.get("model"), configuration)
        if "partitions" in job:
            options |= {key: job[key] for key in ("partitions", "server", "most_servers") if key in job}
            return StreamJob(workspace, source, stored=stored, **options)
        if "server" in job:
            raise OptionError("server: merge servers need a stream in partitions: add partitions = 4")
        return RunJob(Run(workspace, source, stored=stored), **options)

    def _check_stream(self, job: Mapping[str, Any], number: int) -> None:
        """Reject a missing stream, and a model that cannot be written or belongs to another job."""
        stream, model = job["stream"], job.get("model")
        if not Path(self._relative_path(stream)).exists():
            self._refuse("stream", f"stream = {stream!r}: there is no such file", number)
        if model is None:
            return
        path = self._relative_path(model)
        if path in self._models.values():
            self._refuse("model", f"model = {model!r} is that of another job", number)
        streams = [self._relative_path(each["stream"]) for each in self._jobs if "stream" in each]
        if Path(path).resolve() in [Path(path).resolve() for path in (self._path, *streams)]:
            self._refuse("model", f"model = {model!r} is a file that is read here: name another one", number)
        self._check_target("model", path, number)

    def _check_target(self, key: str, path: str, number: int = 0) -> None:
        try:
            check_target(path)
        except OSError as error:
            self._refuse(key, f"{error}", number)

    def _store(self, url: str) -> str:
        """Return the URL of a store; an SQLite file is relative to this file's folder."""
        before, scheme, path = url.partition("sqlite:///")
        if before or not scheme or not path or path.startswith(("/", ":")):
            return url
        return scheme + self._relative_path(path)

    def _relative_path(self, path: str) -> str:
        """Return a path, relative to this file's folder."""
        return str(Path(self._path).parent / path)

    def _check_job(self, job: Any, number: int) -> None:
        if not isinstance(job, dict):
            self._refuse("jobs", "it is a table for each job: [[jobs]]")
        is_study, is_stream = bool({"study", "space"} & job.keys()), "stream" in job
        if is_study == is_stream:
            raise OptionError(
                f"{self._path}:{self._line(number)}: a job has either a stream, or a study: the URL of its "
                "store, or a space"
            )
        self._check_keys(job, keys_of(job), number)

    def _check_keys(self, table: Mapping[str, Any], valid: set[str], number: int = 0) -> None:
        for key in table:
            if key not in valid:
                self._refuse(key, f"{key} is unknown here; valid are {', '.join(sorted(valid))}", number)
        if invalid := first_invalid_key(table):
            self._refuse(*invalid, number)

    def _refuse(self, key: str, reason: str, number: int = 0) -> None:
        raise OptionError(f"{self._path}:{self._line(number, key)}: {reason}")

    def _error_at_line(self, error: OnlineautoError, number: int, keys: Any) -> OnlineautoError:
        """Return an error with its line: that of a key that it names, or that of the table."""
        named = _first_key_in(error, keys)
        kind = type(error) if type(error) in (OptionError, InputError) else OptionError
        return kind(f"{self._path}:{self._line(number, named)}: {error}")

    def _line(self, number: int, key: str | None = None) -> int:
        """Return the line of a key in the table of a job or of the cluster; by default that of the table."""
        header = re.compile(r"\s*\[\[\s*jobs\s*\]\]" if number else r"\s*\[\s*cluster\s*\]")
        lines, n_lines, begin = self.text.splitlines(), 0, 0
        for at, line in enumerate(lines, 1):
            if header.match(line):
                n_lines += 1
                if n_lines == max(number, 1):
                    begin = at
                    break
        if key is not None:
            for at, line in enumerate(lines[begin:], begin + 1):
                if re.match(rf"\s*\[*\s*(cluster\.|jobs\.)?{re.escape(key)}\b", line):
                    return at
        return max(begin, 1)


@contextmanager
def _name_key_in_errors(key: str) -> Iterator[None]:
    """Add the key to errors within the context."""
    try:
        yield
    except (OnlineautoError, OSError) as error:
        kind = OptionError if isinstance(error, OptionError) else InputError
        raise kind(f"{key}: {error}") from None


def _stream_options(job: Mapping[str, Any]) -> Configuration:
    """Return the options of a stream."""
    with _name_key_in_errors("flags"):
        return parse_given_options(job.get("flags", ""))


def _check_trainable(name: str) -> None:
    """Reject a trainable that cannot be imported, before anything runs."""
    try:
        import_trainable(name)
    except OnlineautoError:
        raise
    except Exception as error:  # a module may raise anything
        reason = f"{type(error).__name__}: {error}"
        raise OptionError(f"trainable = {name!r} cannot be imported: {reason}") from error


def _stored_run(
    model: str | None, configuration: Configuration
) -> tuple[Workspace, Mapping[str, Any] | None]:
    """Return the workspace and the state of a run, from its checkpoint if there is one."""
    if model is None or not Path(model).exists():
        return Workspace(configuration=configuration), None
    try:
        return load_run(model, configuration)
    except (InputError, OptionError) as error:
        raise InputError(
            f"model = {model!r} exists already, and this stream cannot continue from it: {error}; name "
            "another file, or remove it"
        ) from None


def _first_key_in(error: OnlineautoError, keys: Iterable[str]) -> str | None:
    """Return the first key that an error names, or None."""
    matches = {key: re.search(rf"\b{re.escape(key)}\b", f"{error}") for key in keys}
    places = {key: match.start() for key, match in matches.items() if match is not None}
    return min(places, key=places.__getitem__, default=None)


def make_cluster(*, policy: str = "", learned: str | None = None, **options: Any) -> Cluster:
    """Return a cluster; with a file of a learned policy, the policy is ``learned``."""
    if learned is not None:
        try:
            options["policy"] = make_policy(policy or Learned.name, policy_file=learned)
        except InputError as error:
            raise InputError(f"learned = {error}") from None
        return Cluster(**options)
    return Cluster(policy or UntilKnown.name, **options)
