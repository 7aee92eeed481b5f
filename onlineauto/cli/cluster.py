"""The verb ``cluster``: run jobs from a file or a folder on one machine or a Ray cluster."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from onlineauto.cli.terminal import progress_line, table_lines
from onlineauto.cli.verb import Verb, VerbOptions
from onlineauto.errors import OptionError
from onlineauto.options import Registry, option

if TYPE_CHECKING:
    from onlineauto.cluster import Cluster, ClusterFolder, JobStatus
    from onlineauto.cluster.cluster import Submitted
    from onlineauto.options import Configuration

_INTERRUPTED: Final = 130
_WORDS: Final = {"run": 1, "serve": 1, "submit": 2, "status": 1, "cancel": 2, "stop": 1}
"""Number of words behind each command."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterOptions(VerbOptions):
    """Options of the verb ``cluster``; they take precedence over the file."""

    file: tuple[str, ...] = option(
        (),
        "What to do, and with what: run FILE, serve FOLDER, submit FOLDER FILE, status FOLDER, cancel FOLDER "
        "NAME, or stop FOLDER. A FILE has jobs, as TOML. The flag may be left out.",
        metavar="WORDS",
        positional=True,
    )
    capacity: str = option(
        "",
        "The capacity, such as CPU=8,GPU=2. Not supplied: this machine's processors, or all of Ray's.",
        metavar="AMOUNTS",
    )
    slot: float | None = option(
        None, "Seconds between two decisions. Not supplied: 30.", above=0, metavar="SECONDS"
    )
    policy: str = option(
        "",
        "How workers are shared: marginal-gain (fair until the speeds of jobs are known), fair, fifo, srtf, "
        "tetris, or learned (fair until it is proved to be faster). Not supplied: marginal-gain.",
        metavar="NAME",
    )
    learned: str = option(
        "", "The file of --policy learned, which Learned.save wrote. [that of the package]", metavar="FILE"
    )
    backend: str = option(
        "", "local, or ray, which is the cluster of RAY_ADDRESS. Not supplied: local.", metavar="NAME"
    )
    history: str = option(
        "", "Append decisions and events to this file, which onlineauto simulate reads.", metavar="FILE"
    )
    json: bool = option(False, "Print the status as JSON.")
    quiet: bool = option(False, "Display no progress; in a pipe there is never any.")


_GOES_ON: Final = (
    "onlineauto: interrupted; the same command continues studies with a store and streams with a model"
)


def run(configuration: Configuration) -> int:
    """Do what the first word says, and return the exit code."""
    options = configuration[ClusterOptions]
    command, *words = options.file or ("",)
    if len(words) != _WORDS.get(command):
        raise OptionError("cluster needs a command and its words: onlineauto cluster run jobs.toml")
    if options.json and command != "status":
        raise OptionError("json: for onlineauto cluster status only")
    if command == "run":
        return _run_file(words[0], options)
    if command != "serve" and (given := _supplied_options(options)):
        raise OptionError(f"{', '.join(given)}: for onlineauto cluster run and serve only")
    from onlineauto.cluster import ClusterFolder

    folder = ClusterFolder(words[0])
    if command == "serve":
        return _serve(folder, options)
    if command == "status":
        _print_status(folder, as_json=options.json)
    elif command == "stop":
        ended = folder.stop()
        print(f"the cluster on {folder.path} {'has ended' if ended else 'is ending: its jobs are saved'}")
    else:
        jobs = folder.submit(words[1]) if command == "submit" else [folder.cancel(words[1])]
        print(*(f"{job.name}: {job.state}" for job in jobs), sep="\n")
        if not folder.is_running:
            print(f"onlineauto: no cluster runs on {folder.path}, so this waits for one", file=sys.stderr)
    return 0


def _serve(folder: ClusterFolder, options: ClusterOptions) -> int:
    """Run a cluster on a folder; return 0 after a stop, or 130 after an interruption."""
    from onlineauto.cli.study_progress import return_jobs_on_exit
    from onlineauto.cluster.job_file import make_cluster

    cluster = make_cluster(**{"history": str(folder.path / "history.jsonl")} | _supplied_options(options))
    print(f"jobs for this cluster: onlineauto cluster submit {folder.path} FILE", flush=True)
    try:
        with return_jobs_on_exit():
            folder.serve(cluster)
    except KeyboardInterrupt:
        print("onlineauto: interrupted; the same command continues the jobs", file=sys.stderr)
        return _INTERRUPTED
    return 0


def _print_status(folder: ClusterFolder, *, as_json: bool) -> None:
    """Print the jobs of a folder as a table, or as JSON."""
    jobs, is_running = folder.jobs(), folder.is_running
    if as_json:
        import msgspec

        status = {"folder": str(folder.path), "running": is_running, "jobs": jobs}
        print(msgspec.json.encode(status).decode())
        return
    head = ("job", "state", "workers", "servers", "done", "left", "")
    print(*table_lines([head, *map(_status_row, jobs)], right=False), sep="\n")
    if not is_running:
        print(f"no cluster runs on {folder.path}")


def _status_row(job: JobStatus) -> tuple[str, ...]:
    total = "" if job.total is None else f" of {job.total:,.0f}"
    left = "" if job.seconds_left is None else f"{job.seconds_left:,.0f} s"
    sizes = (f"{job.workers}", f"{job.servers}")
    return job.name, job.state, *sizes, f"{job.done:,.0f}{total}", left, job.error


def _run_file(path: str, options: ClusterOptions) -> int:
    """Run the jobs of a file; return 0, 1 if a job failed, or 130 after an interruption."""
    from onlineauto.cli.study_progress import return_jobs_on_exit
    from onlineauto.cluster.job_file import JobFile

    jobs, code = JobFile(path), 0
    cluster = jobs.cluster(**_supplied_options(options))
    with return_jobs_on_exit():
        jobs.submit(cluster)
        for warning in jobs.warnings():
            print(f"onlineauto: warning: {warning}", file=sys.stderr)
    try:
        with return_jobs_on_exit(), progress_line(quiet=options.quiet) as draw:
            cluster.run(watch=None if draw is None else lambda cluster: draw(partial(_line, cluster)))
    except KeyboardInterrupt:
        print(_GOES_ON, file=sys.stderr)
        code = _INTERRUPTED
    saved = jobs.save(cluster)
    for job in cluster.jobs:
        print(_outcome(job, cluster))
    print(*saved, sep="\n", end="\n" if saved else "")
    failed = sum(bool(job.error) for job in cluster.jobs)
    if failed == len(cluster.jobs):
        print(
            f"onlineauto: all {failed} jobs failed" if failed > 1 else "onlineauto: the job failed",
            file=sys.stderr,
        )
    return code or int(failed > 0)


def _supplied_options(options: ClusterOptions) -> dict[str, Any]:
    """Return the supplied options."""
    supplied: dict[str, Any] = {"capacity": _amounts(options.capacity), "slot": options.slot}
    supplied |= {name: getattr(options, name) or None for name in ("policy", "learned", "backend", "history")}
    return {name: value for name, value in supplied.items() if value is not None}


def _amounts(text: str) -> dict[str, float] | None:
    """Return amounts by name.

    >>> _amounts("CPU=8,GPU=0.5")
    {'CPU': 8.0, 'GPU': 0.5}
    """
    if not text:
        return None
    try:
        return {name: float(amount) for name, amount in (part.split("=") for part in text.split(","))}
    except ValueError:
        raise OptionError(f"--capacity {text}: give names and amounts, as in CPU=8,GPU=2") from None


def _line(cluster: Cluster) -> str:
    """Return the progress of a cluster as one line."""
    over = sum(job.ended for job in cluster.jobs)
    parts = [f"slot {cluster.at:.1f}: {over} of {len(cluster.jobs)} jobs ended"]
    for job in cluster.jobs:
        if not job.ended:
            size = f"{job.workers}+{job.servers}" if job.demand.server else f"{job.workers}"
            parts.append(f"{job.name} {job.done:,.0f}/{job.total:,.0f} on {size}")
    return "; ".join(parts)


def _outcome(job: Submitted, cluster: Cluster) -> str:
    """Return the outcome of a job as one line."""
    text = f"{job.name}: {job.state}, {job.done:,.0f} of {job.total:,.0f}"
    times = cluster.history().completion_times().get(job.name)
    if job.error:
        return f"{text}: {job.error}"
    return text if times is None else f"{text} in {times * cluster.slot:.1f} s"


VERB: Final = Verb(
    Registry((ClusterOptions,)),
    run,
    "Usage: onlineauto cluster run FILE [options]\n"
    "       onlineauto cluster serve FOLDER [options]\n"
    "       onlineauto cluster submit FOLDER FILE\n"
    "       onlineauto cluster status FOLDER [--json]\n"
    "       onlineauto cluster cancel FOLDER NAME\n"
    "       onlineauto cluster stop FOLDER",
    "Run jobs that share one machine, or one Ray cluster: studies and streams. In every slot a policy "
    "decides on the workers of each job. The command run ends when all jobs of a file have ended. The "
    "command serve takes up the jobs that are submitted to a folder, until it is stopped. After an "
    "interruption, the same command continues studies with a store and streams with a model.",
    """\
Examples:
  onlineauto cluster run jobs.toml
  onlineauto cluster run jobs.toml --capacity CPU=4 --slot 5 --history history.jsonl
  onlineauto cluster run jobs.toml --backend ray --policy fair
  onlineauto cluster serve shared --capacity CPU=8       # in another terminal:
  onlineauto cluster submit shared jobs.toml""",
)
