"""The verb ``cluster``: run jobs from a file on one machine or a Ray cluster."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from onlineauto.cli.terminal import progress_line
from onlineauto.cli.verb import Verb, VerbOptions
from onlineauto.errors import OptionError
from onlineauto.options import Registry, option

if TYPE_CHECKING:
    from onlineauto.cluster import Cluster
    from onlineauto.cluster.cluster import Submitted
    from onlineauto.options import Configuration

_INTERRUPTED: Final = 130


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterOptions(VerbOptions):
    """Options of the verb ``cluster``; they take precedence over the file."""

    file: tuple[str, ...] = option(
        (),
        "The jobs, as TOML, behind the word run. The flag may be left out.",
        metavar="FILE",
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
    quiet: bool = option(False, "Display no progress; in a pipe there is never any.")


_GOES_ON: Final = (
    "onlineauto: interrupted; the same command continues studies with a store and streams with a model"
)


def run(configuration: Configuration) -> int:
    """Run the jobs of a file; return 0, 1 if a job failed, or 130 after an interruption."""
    options = configuration[ClusterOptions]
    if len(options.file) != 2 or options.file[0] != "run":
        raise OptionError("cluster needs a command and a file of jobs: onlineauto cluster run jobs.toml")
    from onlineauto.cli.job_file import JobFile
    from onlineauto.cli.study_progress import return_jobs_on_exit

    jobs, code = JobFile(options.file[1]), 0
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
    "Usage: onlineauto cluster run FILE [options]",
    "Run jobs that share one machine, or one Ray cluster: studies and streams. In every slot a policy "
    "decides on the workers of each job. The command ends when all jobs have ended; after an interruption, "
    "the same command continues studies with a store and streams with a model.",
    """\
Examples:
  onlineauto cluster run jobs.toml
  onlineauto cluster run jobs.toml --capacity CPU=4 --slot 5 --history history.jsonl
  onlineauto cluster run jobs.toml --backend ray --policy fair""",
)
