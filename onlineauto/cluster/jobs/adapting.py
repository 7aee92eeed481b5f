"""``job_of``: convert the argument of `Cluster.submit` to a job."""

from __future__ import annotations

from typing import Any

from onlineauto.cluster.jobs.run_job import RunJob
from onlineauto.cluster.jobs.study_job import StudyJob
from onlineauto.errors import OptionError
from onlineauto.tune.study import Study
from onlineauto.workspace.run import Run


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
