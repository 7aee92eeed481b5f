"""Merge servers: the same model for any number of them, whatever happens to them."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from functools import partial
from random import Random

import pytest

from onlineauto.cluster.partitions.local import ProcessPool
from onlineauto.cluster.partitions.run import PartitionedRun
from tests.cluster.partitions.servers import Kill, NodePool, expected, killing, resized, run_of, saved

SECONDS = 0.4


def victims(run: PartitionedRun) -> list[Kill]:
    """Return what kills each worker and server that runs."""
    assert isinstance(run.pool, ProcessPool)
    with suppress(RuntimeError):  # the pool starts or ends processes at this moment
        pids = [*run.pool.pids, *(process.pid for process in run.pool.servers.nodes())]
        return [partial(_kill, pid) for pid in pids]
    return []


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


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
    with run_of(3, workers=workers, servers=servers) as run:
        run.step()
        assert isinstance(run.pool, ProcessPool)
        assert run.pool.servers.numbers == list(range(servers))
        assert saved(run) == expected(3)


@pytest.mark.ci
def test_a_run_goes_on_without_servers_and_with_others() -> None:
    """The coordinator has all blocks, so it merges alone, and gives blocks to later servers."""
    with run_of(9, workers=2, servers=2) as run:
        for servers in (2, 0, 0, 3, 3):
            run.resize(2, servers=servers)
            assert run.learn_round()
        run.step()
        assert saved(run) == expected(9)


@pytest.mark.ci
def test_killed_processes_do_not_change_the_model() -> None:
    with run_of(16, workers=2, servers=2) as run, killing(3, lambda: victims(run), 1, SECONDS) as deaths:
        run.step()
        assert deaths
        assert saved(run) == expected(16)


@pytest.mark.chaos
@pytest.mark.parametrize("kills", [0, 20])
def test_twenty_resizes_and_kills_of_processes_do_not_change_the_model(kills: int) -> None:
    with run_of(100, workers=2, servers=2) as run:
        with killing(kills, lambda: victims(run), 2, SECONDS) as deaths:
            model, changes = resized(run, 20, seed=3)
        assert len(deaths) == kills
    assert changes > 5
    assert model == expected(100)


@pytest.mark.chaos
def test_hundreds_of_deaths_at_any_call_do_not_change_the_model() -> None:
    whole, killed = expected(40), 0
    for seed in range(10):
        run = run_of(40)
        run.pool = pool = NodePool(run, 2, 2, deaths=Random(seed).uniform(0.0, 0.04), seed=seed)
        assert resized(run, 20, seed=seed)[0] == whole
        killed += pool.killed
    assert killed > 100
