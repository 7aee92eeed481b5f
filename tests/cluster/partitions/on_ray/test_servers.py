"""Merge servers as actors of Ray: the same model for any number of them, whatever happens to them."""

from __future__ import annotations

from functools import partial

import pytest

from onlineauto.cluster.partitions.on_ray import RayPool
from onlineauto.cluster.partitions.run import PartitionedRun
from tests.cluster.partitions.servers import Kill, expected, killing, resized, run_of, saved
from tests.tune.on_ray.conftest import Nodes

pytestmark = [pytest.mark.ray, pytest.mark.filterwarnings("default")]

CPU = {"CPU": 0.4}


def victims(run: PartitionedRun) -> list[Kill]:
    """Return what kills each actor that runs."""
    import ray

    assert isinstance(run.pool, RayPool)
    actors = [*run.pool.actors, *run.pool.servers.nodes()]
    return [partial(ray.kill, actor.handle) for actor in actors]


@pytest.mark.parametrize(("workers", "servers"), [(2, 1), (2, 3)])
def test_model_does_not_depend_on_servers(nodes: Nodes, workers: int, servers: int) -> None:
    with run_of(3, workers=workers, servers=servers, backend="ray", worker=CPU) as run:
        run.step()
        assert isinstance(run.pool, RayPool)
        assert run.pool.servers.numbers == list(range(servers))
        assert saved(run) == expected(3)


@pytest.mark.parametrize("kills", [0, 20])
def test_twenty_resizes_and_kills_do_not_change_the_model(nodes: Nodes, kills: int) -> None:
    with run_of(60, workers=2, servers=2, backend="ray", worker=CPU) as run:
        with killing(kills, lambda: victims(run), 2, 2.0) as deaths:
            model, changes = resized(run, 20, seed=3)
        assert len(deaths) == kills
    assert changes > 5
    assert model == expected(60)
