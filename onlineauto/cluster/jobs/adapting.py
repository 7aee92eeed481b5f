"""``job_of``: convert the argument of `Cluster.submit` to a job."""

from __future__ import annotations

from typing import Any

from onlineauto.cluster.jobs.run_job import RunJob
from onlineauto.cluster.jobs.study_job import StudyJob
from onlineauto.errors import OptionError
from onlineauto.tune.study import Study
from onlineauto.workspace.run import Run


def job_of(given: Any, **options: Any) -> Any:
    """Return a study as a `StudyJob` and a run as a `RunJob`, with these options; a job is unchanged.

    Raises
    ------
    OptionError
        The object is not a job, or is a job that takes no options.
    """
    if isinstance(given, Study):
        return StudyJob(given, **options)
    if isinstance(given, Run):
        return RunJob(given, **options)
    missing = [name for name in ("progress", "resize", "demand") if not hasattr(given, name)]
    if missing:
        raise OptionError(
            f"{given!r} is no job of a cluster, as it has no {', '.join(missing)}: give a Study, a Run, or "
            "anything with progress(), resize(workers, servers) and demand"
        )
    if options:
        raise OptionError(f"{', '.join(options)}: options are for a Study or a Run")
    return given
