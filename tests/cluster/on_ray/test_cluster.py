"""A cluster whose backend is Ray: its capacity is that of the nodes; trials and workers are actors."""

from __future__ import annotations

import io
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest

from datasets.generate import text
from onlineauto import Workspace
from onlineauto.cluster import Cluster, ClusterPolicy, PartitionedRun, Record, Situation, StreamJob
from onlineauto.cluster.partitions.coordinator import RoundSchedule
from onlineauto.cluster.policies.policy import NEVER, scores
from onlineauto.cluster.policies.situation import Floats
from onlineauto.tune import Categorical, Float, Study
from tests.tune.on_ray.conftest import Nodes
from tests.tune.on_ray.trainables_on_ray import Placed, noted

pytestmark = [pytest.mark.ray, pytest.mark.filterwarnings("default")]


def test_two_studies_share_the_nodes(nodes: Nodes, tmp_path: Path) -> None:
    cluster, notes = Cluster("fair", slot=1.0, backend="ray"), tmp_path / "notes"
    space = {"rate": Float(0, 1), "notes": Categorical([str(notes)]), "seconds": Categorical([0.05])}
    for name in ("a", "b"):
        study = Study(space, "fifo", "random", max_resource=4, max_trials=4, seed=len(name))
        cluster.submit(study, trainable=Placed, name=name)
    cluster.run()
    assert [(job.state, job.error, job.done) for job in cluster.jobs] == 2 * [("done", "", 16)]
    history = cluster.history()
    assert history.head.capacity["CPU"] == 2
    assert {nodes.name(node) for _, node, *_ in noted(notes)} <= {"here", "there"}
    for slot in {record.slot for record in history.records}:
        assert sum(record.workers for record in history.records if record.slot == slot) <= 2


SIZES = ((2, 1), (1, 2), (3, 1))
"""Numbers of workers and servers that the policy gives, in order."""
SHORT = RoundSchedule(alone=256, head=8, shortest=64, longest=16, growth=4)


class Steps(ClusterPolicy):
    """Gives the only job the next of `SIZES` once it has the previous one."""

    name = "steps"

    def __init__(self, job: StreamJob) -> None:
        self._job, self._at, self.learnt = job, 0, 0.0

    def score(self, situation: Situation) -> Floats:
        workers, servers = SIZES[self._at]
        worker = np.where(situation.workers < workers, 1.0, NEVER)
        server = np.where(situation.servers < servers, 1.0, NEVER)
        return scores(worker, server, np.where(situation.workers == 0, 2.0, NEVER))

    def observe(self, records: Sequence[Record]) -> None:
        done = records[-1].done if records else 0.0
        is_in_force = self._job.resources_in_use == SIZES[self._at] and done > max(self.learnt, 256)
        if is_in_force and self._at + 1 < len(SIZES):
            self._at, self.learnt = self._at + 1, done


def test_a_stream_is_resized_by_the_policy_and_learns_the_same(nodes: Nodes, tmp_path: Path) -> None:
    def searching() -> Workspace:
        return Workspace(cb_explore_adf=True, live_configs=3, bit_precision=14)

    events = text("planted", events=8000, seed=5)
    job = StreamJob(searching(), events, schedule=SHORT, worker={"CPU": 0.3}, server={"CPU": 0.2})
    cluster = Cluster(Steps(job), slot=0.5, backend="ray", history=tmp_path / "history.jsonl")
    cluster.submit(job, name="stream")
    cluster.run()
    [entry] = cluster.jobs
    assert (entry.state, entry.error, entry.done) == ("done", "", 8000)
    given = [(record.workers, record.servers) for record in cluster.history().records]
    assert [size for size, _ in groupby(given) if any(size)] == [*SIZES]
    with PartitionedRun(searching(), events, schedule=SHORT) as run:
        run.step()
        assert model_of(job.workspace) == model_of(run.workspace)


def model_of(workspace: Workspace) -> bytes:
    file = io.BytesIO()
    workspace.save(file)
    return file.getvalue()
