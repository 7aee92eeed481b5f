"""A cluster whose backend is Ray: its capacity is that of the nodes; trials and workers are actors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from onlineauto.cluster import Cluster, ClusterPolicy, ShardedLearner, StreamJob
from onlineauto.cluster.policies.actions import NEVER, scores
from onlineauto.tune import Categorical, Float, Study
from tests.cluster.elastic.streams import BANDIT, EXPLORING, FINE, same
from tests.tune.on_ray.trainables_on_ray import Placed, noted

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from onlineauto.cluster import Record, Situation
    from onlineauto.cluster.policies.situation import Floats
    from tests.tune.on_ray.conftest import Nodes

pytestmark = [pytest.mark.ray, pytest.mark.filterwarnings("default")]


def test_two_studies_share_the_nodes(nodes: Nodes, tmp_path: Path) -> None:
    cluster, notes = Cluster("fair", slot=1.0, backend="ray"), tmp_path / "notes"
    space = {"rate": Float(0, 1), "notes": Categorical([str(notes)]), "seconds": Categorical([0.05])}
    for name in ("a", "b"):
        study = Study(space, "fifo", "random", max_resource=4, max_trials=4, seed=len(name))
        cluster.submit(study, trainable=Placed, name=name)
    cluster.run()
    assert [(each.state, each.error, each.done) for each in cluster.jobs] == 2 * [("done", "", 16)]
    history = cluster.history()
    assert history.head.capacity["CPU"] == 2
    assert {nodes.name(node) for _, node, *_ in noted(notes)} <= {"here", "there"}
    for slot in {each.slot for each in history.records}:
        assert sum(each.workers for each in history.records if each.slot == slot) <= 2


SIZES = ((2, 2), (1, 1), (2, 1))
"""Workers and servers that the policy gives, one after the other."""


class Steps(ClusterPolicy):
    """Gives the one job there is the next of `SIZES` when the one before is in force."""

    name = "steps"

    def __init__(self, job: StreamJob) -> None:
        self._job, self._at = job, 0

    def score(self, situation: Situation) -> Floats:
        workers, servers = SIZES[self._at]
        both = np.where((situation.workers < workers) & (situation.servers < servers), 2.0, NEVER)
        worker = np.where(situation.workers < workers, 1.0, NEVER)
        return scores(worker, np.full_like(worker, NEVER), both)

    def observe(self, records: Sequence[Record]) -> None:
        run = self._job._run
        is_in_force = run is not None and run.layout == SIZES[self._at] and records[-1].done > 0
        self._at = min(self._at + is_in_force, len(SIZES) - 1)


def test_a_sharded_stream_is_resized_by_the_policy_and_learns_the_same(nodes: Nodes, tmp_path: Path) -> None:
    events = tmp_path / "events.txt"  # each worker reads it by itself
    events.write_bytes(BANDIT * 40)
    learner = ShardedLearner(**FINE, **EXPLORING)
    job = StreamJob(learner, events, worker={"CPU": 0.3}, server={"CPU": 0.2})
    cluster = Cluster(Steps(job), slot=0.5, backend="ray", history=tmp_path / "history.jsonl")
    cluster.submit(job, name="stream")
    cluster.run()
    [entry] = cluster.jobs
    assert (entry.state, entry.error, entry.done) == ("done", "", 40 * 900)
    run = job._run
    assert run is not None
    assert tuple(dict.fromkeys((each.workers, each.servers) for each in run.changes)) == SIZES
    given = {(each.workers, each.servers) for each in cluster.history().records}
    assert given >= {*SIZES}
    assert same(run.snapshot(), learner.run(events).wait().snapshot())
