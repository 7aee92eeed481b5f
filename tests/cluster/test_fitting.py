"""A simulator that is fitted to a history: recovered parameters, and comparisons of policies."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np
import pytest

from onlineauto.cluster import ClusterPolicy, Fair, History, MarginalGain
from onlineauto.cluster.simulator import Workload, compare, draw_traces, fit_workload, record, simulate
from onlineauto.cluster.simulator.fitting import PAUSES
from onlineauto.errors import InputError

pytestmark = pytest.mark.lane("ci")

QUIET = Workload(rate=0.4, interference=0, noise=0.02)


def history(jobs: int = 60, seed: int = 9, workload: Workload = QUIET) -> History:
    return record(Fair(), draw_traces(workload, [seed], jobs=jobs))


def test_the_fit_recovers_speeds_and_arrivals() -> None:
    workload = fit_workload(history(200))
    assert workload.names == tuple(sorted(QUIET.names))
    for kind in QUIET.kinds:
        fitted, true = workload.speeds(), QUIET.speeds()
        for many in (2, 4):  # what fair sharing gives; more is a guess
            servers = many if kind.server else 0
            expected = true.time_per_unit(kind.name, many, servers)
            assert fitted.time_per_unit(kind.name, many, servers) == pytest.approx(expected, rel=0.15)
    assert workload.rate == pytest.approx(0.4, rel=0.35)
    assert workload.spread == pytest.approx(0.8, rel=0.2)
    assert workload.capacity == QUIET.capacity
    assert workload.noise < 0.1


def test_the_simulated_history_takes_the_recorded_time() -> None:
    simulated = simulate(history())
    assert simulated.policy == "fair"
    assert abs(simulated.error()) < 0.05


def test_the_comparison_finds_the_faster_policy() -> None:
    rows = {row.name: row for row in simulate(history()).compare(traces=8)}
    assert rows["fair"].ratio == 1
    policies: dict[str, ClusterPolicy] = {"fair": Fair(), "gain": MarginalGain(QUIET.speeds())}
    truth = compare(policies, draw_traces(QUIET, range(8)), by="fair")[1]
    assert rows["marginal-gain"].high < 1
    assert rows["marginal-gain"].ratio == pytest.approx(truth.ratio, abs=0.1)


def test_drawn_traces_resemble_the_history() -> None:
    simulated = simulate(history())
    drawn = simulated.traces([1, 2])
    assert drawn.work.shape == (2, 60)
    assert {*drawn.work.ravel()} <= {*simulated.replay.work[0]}
    assert not np.array_equal(drawn.work[0], drawn.work[1])
    again = simulated.traces([2])
    assert np.array_equal(again.arrival[0], drawn.arrival[1])
    run = simulated.replay.work[0].tolist()
    at = run.index(drawn.work[0, 0])
    assert drawn.work[0, : 60 - at][:8].tolist() == (run + run)[at : at + 8][: 60 - at]


def test_streams_reduce_the_capacity_and_are_not_jobs() -> None:
    log = history(20)
    stream = {"job": "s", "kind": "stream", "arrived": 0.0, "endless": True, "total": 5.0, "before": 0.0}
    slots = sorted({record.slot for record in log.records})
    more = [
        msgspec.structs.replace(log.records[0], slot=slot, workers=2, servers=0, done=5.0, **stream)
        for slot in slots
    ]
    workload = fit_workload(History(log.head, [*log.records, *more]))
    taken = 2 * log.records[0].worker["CPU"]
    assert workload.capacity["CPU"] == pytest.approx(24 - taken)
    assert "stream" not in workload.names


def test_work_before_the_history_is_not_simulated() -> None:
    log = history(10)
    known = simulate(log).replay.work[0]
    more = [
        msgspec.structs.replace(
            record, before=record.before + 5, done=record.done + 5, total=record.total + 5
        )
        for record in log.records
    ]
    assert simulate(History(log.head, more)).replay.work[0] == pytest.approx(known)


def test_the_simulated_cluster_has_capacity_for_each_job() -> None:
    """Otherwise no job would end under any policy."""
    log = history(20)
    log.head.capacity["CPU"] = 2.0
    stream = {"job": "s", "kind": "stream", "arrived": 0.0, "endless": True, "worker": {"CPU": 2.0}}
    more = [msgspec.structs.replace(record, workers=1, servers=0, **stream) for record in log.records]
    assert fit_workload(History(log.head, [*log.records, *more])).capacity["CPU"] == 2
    log.head.capacity["CPU"] = 0.5
    with pytest.raises(InputError, match=r"take . CPU, but the cluster of this history has 0\.5"):
        simulate(log)


def test_a_history_with_too_few_jobs_is_rejected() -> None:
    log = history(10)
    with pytest.raises(InputError, match="0 jobs of the history made progress, but a workload needs 3"):
        simulate(History(log.head))
    idle = [msgspec.structs.replace(record, done=record.before) for record in log.records]
    with pytest.raises(InputError, match="never made progress"):
        simulate(History(log.head, idle))


def test_a_kind_without_progress_is_omitted() -> None:
    log = history(20)
    waits = {"workers": 0, "servers": 0, "before": 0.0, "done": 0.0, "total": 7.0, "arrived": 2.0}
    more = [
        msgspec.structs.replace(log.records[0], job=job, kind="waiting", slot=slot, **waits)
        for job in ("w1", "w2")
        for slot in range(2, 9)
    ]
    both = sorted([*log.records, *more], key=lambda record: record.slot)
    simulated, without = simulate(History(log.head, both)), simulate(log)
    assert simulated.left_out == {"waiting": 2}
    assert without.left_out == {}
    assert np.array_equal(simulated.replay.work, without.replay.work)
    assert simulated.error() == without.error()


def test_the_fit_recovers_the_noise() -> None:
    noisy = replace(QUIET, noise=0.3)
    assert fit_workload(history(200, workload=noisy)).noise == pytest.approx(0.3, abs=0.06)


def test_pauses_of_a_history_do_not_make_its_jobs_slow() -> None:
    kinds = tuple(replace(kind, pause=0.5) for kind in QUIET.kinds)
    log = history(100, workload=replace(QUIET, kinds=kinds))
    log.head = msgspec.structs.replace(log.head, slot=30.0)
    fitted = fit_workload(log, pauses=dict.fromkeys(QUIET.names, 15.0))
    assert {kind.pause for kind in fitted.kinds} == {0.5}
    assert {kind.pause for kind in fit_workload(log).kinds} == {0.0}
    for kind in QUIET.kinds:
        servers = 3 if kind.server else 0
        true, found, blind = (
            workload.speeds().time_per_unit(kind.name, 3, servers)
            for workload in (QUIET, fitted, fit_workload(log))
        )
        assert found == pytest.approx(true, rel=0.15)
        assert blind > found
    assert abs(simulate(log, pauses=dict.fromkeys(QUIET.names, 15.0)).error()) < 0.1


def test_the_jobs_of_this_package_have_measured_pauses() -> None:
    log = history(10)
    log.head = msgspec.structs.replace(log.head, slot=10.0)
    log.records = [msgspec.structs.replace(record, kind="partitioned-stream") for record in log.records]
    [kind] = fit_workload(log).kinds
    assert kind.pause == PAUSES["partitioned-stream"] / 10 > 0
