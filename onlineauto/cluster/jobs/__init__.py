"""Jobs of a cluster: studies, streams, and any object with the three methods of `Job`."""

from __future__ import annotations

from onlineauto.cluster.jobs.job import Demand, Job
from onlineauto.cluster.jobs.run_job import RunJob
from onlineauto.cluster.jobs.stream_job import StreamJob
from onlineauto.cluster.jobs.study_job import StudyJob

__all__ = ["Demand", "Job", "RunJob", "StreamJob", "StudyJob"]
