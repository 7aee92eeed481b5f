"""Jobs of a cluster: studies, streams, and any object with the three methods of `ClusterJob`."""

from __future__ import annotations

from onlineauto.cluster.jobs.job import ClusterJob, Demand
from onlineauto.cluster.jobs.stream_jobs import RunJob, StreamJob
from onlineauto.cluster.jobs.study_job import StudyJob

__all__ = ["ClusterJob", "Demand", "RunJob", "StreamJob", "StudyJob"]
