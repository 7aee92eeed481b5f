"""The verb ``worker``: run jobs of a study in a database, together with any other workers."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from onlineauto.cli.study_progress import only_name, resource_text, return_jobs_on_exit
from onlineauto.cli.verb import Verb, VerbOptions
from onlineauto.errors import OptionError
from onlineauto.options import Registry, option
from onlineauto.tune.store.open_store import retry_call
from onlineauto.tune.workers.hooks import Callback
from onlineauto.tune.workers.running import EXECUTORS

if TYPE_CHECKING:
    from onlineauto.options import Configuration
    from onlineauto.tune.trial import Job

_PATIENCE: Final = 60
"""Seconds for which a starting worker waits for a server, which may be restarting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOptions(VerbOptions):
    """Options of the verb ``worker``."""

    study: str = option("", "The store: sqlite:///FILE or postgresql://USER@HOST/DATABASE.", metavar="URL")
    name: str = option("", "Name of the study; may be left out if the store has one.", metavar="NAME")
    trainable: str = option(
        "",
        "The function or class that trials run. Not supplied: the one recorded in the study.",
        metavar="MODULE:NAME",
    )
    workers: int = option(0, "Processes; 0 runs jobs in this one.", metavar="N", minimum=0)
    jobs: int = option(0, "Stop after this number of jobs; 0 for no limit.", metavar="N", minimum=0)
    lease: float | None = option(
        None,
        "Seconds after which the job of a dead worker is assigned to another one. Not supplied: the study's.",
        above=0,
        metavar="SECONDS",
    )
    checkpoints: str = option(
        "",
        "Folder of checkpoints, which all workers need; by default beside SQLite's file, or in PostgreSQL.",
        metavar="FOLDER",
    )
    checkpoint_every: int = option(1, "Steps between two checkpoints.", metavar="N", minimum=1)
    executor: str = option(
        "processes", "What workers are: processes, or actors of a Ray cluster.", choices=EXECUTORS
    )
    quiet: bool = option(False, "Print nothing but errors.")


def run(configuration: Configuration) -> int:
    """Run jobs and return 0, or 1 if jobs failed and no trial of the study has a value."""
    options = configuration[WorkerOptions]
    if not options.study:
        raise OptionError("worker takes a store: onlineauto worker --study sqlite:///study.db")
    from onlineauto.tune.study import Study

    def open_study() -> Study:
        name = options.name or only_name(options.study)
        return Study.load(name, storage=options.study, lease=options.lease)

    study = retry_call(open_study, 0 if options.study.startswith("sqlite") else _PATIENCE)
    with return_jobs_on_exit():
        study.run(
            options.trainable or None,
            workers=options.workers,
            jobs=options.jobs or None,
            checkpoint_every=options.checkpoint_every,
            checkpoints=options.checkpoints or None,
            executor=options.executor,
            callbacks=[] if options.quiet else [_Printer()],
        )
    study.refresh()
    return int(study.best is None and any(trial.error for trial in study.trials))


class _Printer(Callback):
    """Prints results on standard error."""

    def on_result(self, job: Job, value: float) -> None:
        print(f"trial {job.trial} at {resource_text(job.resource)}: {value:.6g}", file=sys.stderr)


VERB: Final = Verb(
    Registry((WorkerOptions,)),
    run,
    "Usage: onlineauto worker --study URL [--name NAME] [--trainable MODULE:NAME]",
    "Run jobs of a study until it is done, or its scheduler has completed one more round. Start any number "
    "of workers, on any machines that can reach the store: each job has one owner, and another worker "
    "continues the job of a dead one.",
    """\
Examples:
  onlineauto worker --study sqlite:///study.db
  onlineauto worker --study postgresql://me@host/studies --name rates --trainable train:Model --workers 8""",
)
