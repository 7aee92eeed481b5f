"""A cluster whose backend is Ray: its capacity is that of the nodes, and trials are actors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from onlineauto.cluster import Cluster
from onlineauto.tune import Choice, Float, Study
from tests.tune.on_ray.trainables_on_ray import Placed, noted

if TYPE_CHECKING:
    from pathlib import Path

    from tests.tune.on_ray.conftest import Nodes

pytestmark = [pytest.mark.ray, pytest.mark.filterwarnings("default")]


def test_two_studies_share_the_nodes(nodes: Nodes, tmp_path: Path) -> None:
    cluster, notes = Cluster("fair", slot=1.0, backend="ray"), tmp_path / "notes"
    space = {"rate": Float(0, 1), "notes": Choice([str(notes)]), "seconds": Choice([0.05])}
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
