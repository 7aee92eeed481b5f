"""Merge servers: the same model for any number of them, whatever happens to them."""

from __future__ import annotations

from random import Random

import pytest

from onlineauto.cluster.partitions.state import resting_members
from onlineauto.engine.ensemble.ensemble import rest
from tests.cluster.partitions.servers import NodePool, expected, resized, run_of, saved


def test_model_does_not_depend_on_resizes_and_deaths_at_any_call() -> None:
    """Workers and servers are in this process, so that deaths before and after each call are cheap."""
    run = run_of(14)
    run.pool = pool = NodePool(run, 2, 2, deaths=0.02)
    model, changes = resized(run, 7, seed=1, fewest=1)
    assert changes > 1
    assert pool.killed > 1
    assert len(pool.servers.pauses) > 0
    assert model == expected(14)


@pytest.mark.ci
@pytest.mark.parametrize(("workers", "servers"), [(2, 1), (1, 2), (4, 2), (2, 3)])
def test_model_does_not_depend_on_servers(workers: int, servers: int) -> None:
    run = run_of(3)
    run.pool = pool = NodePool(run, workers, servers)
    run.step()
    assert pool.servers.numbers == list(range(servers))
    assert saved(run) == expected(3)


def test_members_that_rest_have_the_same_bits_with_servers() -> None:
    models = list[bytes]()
    for servers in (None, 0, 2):
        run = run_of(3)
        if servers is not None:
            run.pool = NodePool(run, 2, servers)
        ensemble = run.workspace.searching.live_configs.arrays.ensemble
        rest(ensemble, ("layer", "ridge", "features", "baseline", "trees"))
        run.step()
        assert resting_members(ensemble) == ["features", "layer", "baseline", "ridge", "trees"]
        models.append(saved(run))
    assert models[1:] == models[:1] * 2


@pytest.mark.ci
def test_a_run_goes_on_without_servers_and_with_others() -> None:
    """The coordinator has all blocks, so it merges alone, and gives blocks to later servers."""
    run = run_of(9)
    run.pool = NodePool(run, 2, 2)
    for servers in (2, 0, 0, 3, 3):
        run.pool.resize(2, servers)
        assert run.learn_round()
    run.step()
    assert saved(run) == expected(9)


@pytest.mark.chaos
def test_hundreds_of_deaths_at_any_call_do_not_change_the_model() -> None:
    whole, killed = expected(40), 0
    for seed in range(10):
        run = run_of(40)
        run.pool = pool = NodePool(run, 2, 2, deaths=Random(seed).uniform(0.0, 0.04), seed=seed)
        assert resized(run, 20, seed=seed)[0] == whole
        killed += pool.killed
    assert killed > 100
