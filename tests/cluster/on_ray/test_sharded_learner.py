"""The sharded learner on actors of Ray: resized and killed, with the weights of a run that was not."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from onlineauto.cluster.elastic import ShardedLearner
from tests.cluster.elastic.streams import BANDIT, EXPLORING, FINE, same

if TYPE_CHECKING:
    from onlineauto.cluster.elastic import ShardedRun
    from tests.tune.on_ray.conftest import Nodes

pytestmark = [pytest.mark.ray, pytest.mark.filterwarnings("default")]

LONG = BANDIT * 12
ON_RAY: dict[str, Any] = {"backend": "ray", "worker": {"CPU": 0.1}, "server": {"CPU": 0.1}}


@pytest.fixture
def ray(nodes: Nodes) -> Any:
    """Return Ray, connected to two nodes."""
    return pytest.importorskip("ray")


def reach(run: ShardedRun, ticks: int) -> None:
    goal, end = len(run.times) + ticks, time.monotonic() + 120
    while not run.ended and len(run.times) < goal:
        assert time.monotonic() < end
        time.sleep(0.01)


def test_resized(ray: Any) -> None:
    learner = ShardedLearner(**FINE, **EXPLORING)
    run = learner.run(LONG, workers=1, servers=1, **ON_RAY).start()
    for size in [(2, 1), (2, 2), (1, 1), (3, 2)]:
        reach(run, 5)
        run.resize(*size)
    assert same(run.wait(300).snapshot(), learner.run(LONG).wait().snapshot())
    assert len(run.changes) >= 3


def test_nodes_that_die(ray: Any) -> None:
    """A worker's part is done by another one; a server's blocks come from the last snapshot."""
    learner = ShardedLearner(**FINE, **EXPLORING)
    run = learner.run(LONG, workers=2, servers=2, snapshot_every=20, **ON_RAY).start()
    reach(run, 30)
    backend: Any = run._hub._backend
    for kind in (0, 1):
        backend = run._hub._backend
        ray.kill(backend._actors[run._hub._target[kind][0]])
        reach(run, 30)
    assert same(run.wait(300).snapshot(), learner.run(LONG).wait().snapshot())
    assert run._hub._epoch == 1
