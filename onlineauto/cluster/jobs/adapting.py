"""``job_of``: make a job of what is given to `Cluster.submit`."""

from __future__ import annotations

from typing import Any

from onlineauto.cluster.jobs.run_job import RunJob
from onlineauto.cluster.jobs.study_job import StudyJob
from onlineauto.errors import OptionError
from onlineauto.tune.study import Study
from onlineauto.workspace.run import Run


def job_of(given: Any, **options: Any) -> Any:
    """Return a job as it is; a study as a `StudyJob`, and a run as a `RunJob`, with these options.

    Raises
    ------
    OptionError
        It is no job, or one that takes no options.
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
