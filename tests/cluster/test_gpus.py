"""Clusters with several kinds of GPUs: the replay, its policies, and the readers of public traces."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.cluster.traces import Measured
from onlineauto.cluster import ClusterPolicy, Fair, Fifo, Learned, Row, Situation, allocate
from onlineauto.cluster.gpus import (
    GPU_POLICIES,
    SIA_CLUSTER,
    Gavel,
    Goodput,
    GpuCluster,
    GpuJob,
    GpuPolicy,
    KindBlind,
    TimedApplication,
    read_trace,
    replay,
    totals,
)
from onlineauto.cluster.policies.gavel import isolated_speed, time_shares
from onlineauto.cluster.policies.goodput import cheapest
from onlineauto.cluster.policies.gpu_policy import Allocation
from onlineauto.cluster.policies.marginal_gain import MarginalGain, UntilKnown
from onlineauto.cluster.simulator.trace_files import read_sia_application
from onlineauto.errors import InputError, OptionError

pytest.importorskip("scipy")

SMALL = GpuCluster({"slow": (2, 4), "fast": (1, 8)})
SPEED = {"slow": 1.0, "fast": 3.0}


@pytest.fixture
def sia(tmp_path: Path) -> tuple[Path, Path]:
    """Write a small trace in the form of Sia: one application, two kinds, four jobs."""
    folder = tmp_path / "traces" / "digits"
    folder.mkdir(parents=True)
    for kind, speed in SPEED.items():
        lines = ["local_bsz,step_time,sync_time,placement"]
        for placement in ("1", "2", "4", "8", "44"):
            gpus = sum(map(int, placement))
            sync = 0.01 * (gpus > 1) + 0.02 * (len(placement) > 1)
            lines += [f"{size},{size / 100 / speed + sync},{sync},{placement}" for size in (8, 16, 32)]
        (folder / f"placements-{kind}.csv").write_text("\n".join(lines))
        (folder / f"scalability-{kind}.csv").write_text(
            "local_bsz,step_time,sync_time,num_nodes,num_replicas\n"
            f"8,{0.08 / speed + 0.04},0.04,2,12\n32,{0.32 / speed + 0.04},0.04,2,12\n"
        )
    for size in (16, 64, 256):
        rows = [f"{1000 * epoch},{1000 * epoch * 16 // size},0.5,{1 / epoch},{4.0}" for epoch in (1, 2, 3)]
        text = "\n".join(["progress,iteration,metric,grad_sqr,grad_var", *rows])
        (folder / f"validation-{size}.csv").write_text(text)
    workload = tmp_path / "workload-1.csv"
    workload.write_text(
        "name,time,application,num_replicas,batch_size\n"
        "a,10,digits,1,32\nb,20,digits,4,64\nc,20,digits,8,256\nd,5000,digits,2,64\n"
    )
    return workload, tmp_path / "traces"


def test_goodput_is_throughput_times_statistical_efficiency(sia: tuple[Path, Path]) -> None:
    application = read_sia_application(sia[1] / "digits")
    squares, variances = np.array([1, 1 / 2, 1 / 3]), 4.0
    # 64 examples on four GPUs: 16 each, which is in the table.
    step = 0.16 / 3 + 0.01
    gain = (variances + squares) / (variances * 16 / 64 + squares)
    np.testing.assert_allclose(application.rates("fast", (4,), 64), gain / step)
    assert application.steps("fast", (4,), 64) == pytest.approx(1 / step)
    # 256 examples on one GPU: eight times 32, of which only the last step synchronizes.
    assert application.steps("slow", (1,), 256) == pytest.approx(1 / (8 * 0.32))
    # A better batch size exists for each placement, and noisy later epochs gain more from large batches.
    best = application.rates("fast", (8,))
    assert (best >= application.rates("fast", (8,), 64)).all()
    assert (np.diff(best) > 0).all()
    assert (application.rates("fast", (4,), 64) <= 64 / 16 / step).all()
    # A placement that was not measured lies between its neighbours; too small batches are impossible.
    assert application.rates("fast", (6,), 64)[0] > application.rates("fast", (2,), 64)[0]
    assert application.rates("absent", (1,)).tolist() == [0, 0, 0]
    assert application.most("fast") == 256 // 8


def test_a_job_alone_takes_the_time_of_its_epochs(sia: tuple[Path, Path]) -> None:
    jobs, _ = read_trace(*sia)
    job = jobs[3]
    rates = job.application.rates("fast", (2,), 64)
    result = replay(Gavel(), [job], GpuCluster({"fast": (1, 2)}), interval=60)
    wait, restart = 5040 - 5000, 30
    assert result.times[0] == pytest.approx(wait + restart + (1000 / rates).sum())
    assert result.gpu_hours[0] == pytest.approx(2 * (restart + (1000 / rates).sum()) / 3600)
    assert math.isnan(job.end)  # the caller's job is not changed


@pytest.mark.parametrize("name", GPU_POLICIES)
def test_every_policy_ends_all_jobs(sia: tuple[Path, Path], name: str) -> None:
    jobs, _ = read_trace(*sia)
    result = replay(GPU_POLICIES[name](), jobs, SMALL)
    assert (result.times > 0).all()
    assert totals([result]).makespan >= totals([result]).late - 5000 / 3600
    again = replay(GPU_POLICIES[name](), jobs, SMALL)
    np.testing.assert_array_equal(result.times, again.times)


@pytest.mark.parametrize("name", ["fair", "fifo", "learned"])
def test_a_policy_of_equal_workers_is_replayed_as_it_is(sia: tuple[Path, Path], name: str) -> None:
    jobs, _ = read_trace(*sia)
    policies: dict[str, ClusterPolicy] = {"fair": Fair(), "fifo": Fifo(64), "learned": Learned.load()}
    expected = replay(GPU_POLICIES[name](), jobs, SMALL)
    np.testing.assert_array_equal(replay(policies[name], jobs, SMALL).times, expected.times)


def test_a_policy_of_kinds_needs_a_cluster_with_kinds() -> None:
    job = Row(kind="study", age=0, done=0, remaining=1, worker={"CPU": 1}, server={})
    with pytest.raises(
        OptionError, match="the policy gavel chooses kinds of GPUs, and this cluster has none"
    ):
        allocate(Gavel(), Situation.of([job], {"CPU": 1}))


def test_the_default_of_a_cluster_measures_speeds_in_the_rounds_of_a_replay(sia: tuple[Path, Path]) -> None:
    jobs, _ = read_trace(*sia)
    policy = Measured(UntilKnown)
    policy.interval = 5.0
    assert np.isfinite(replay(policy, jobs, SMALL).times).all()
    assert isinstance(policy._policy, UntilKnown)
    speeds = policy._policy._gain.speeds
    assert speeds.kinds == ("digits",)
    fastest = jobs[0].application.rates("fast", (1,)).max() * policy.interval
    assert 1 / 5 < speeds.time_per_unit("digits", 1, 0) * fastest < 5


class _Watched(GpuPolicy):
    """Check every allocation of another policy."""

    name = "watched"

    def __init__(self, policy: GpuPolicy) -> None:
        self.policy, self.interval, self.is_rigid = policy, policy.interval, policy.is_rigid

    def allocate(self, jobs: Sequence[GpuJob], cluster: GpuCluster, now: float) -> Allocation:
        taken: set[tuple[str, int]] = set()
        for job in jobs:
            assert len(job.gpus) == sum(job.placement)
            assert taken.isdisjoint({(job.kind, gpu) for gpu in job.gpus})
            taken |= {(job.kind, gpu) for gpu in job.gpus}
            assert not job.gpus or max(job.gpus) < cluster.capacity[job.kind]
        given = self.policy.allocate(jobs, cluster, now)
        for kind, many in cluster.capacity.items():
            assert sum(gpus for of, gpus in given.values() if of == kind) <= many
        if self.is_rigid:
            assert all(given[job.name][1] == job.asked for job in jobs if job.name in given)
        return given


@pytest.mark.parametrize("name", GPU_POLICIES)
@settings(max_examples=5, deadline=None)
@given(
    jobs=st.lists(
        st.tuples(st.floats(0, 5000), st.sampled_from([1, 2, 4, 8]), st.floats(1, 5000)),
        min_size=1,
        max_size=12,
    )
)
def test_each_gpu_has_at_most_one_job(name: str, jobs: list[tuple[float, int, float]]) -> None:
    made = []
    for number, (arrival, asked, work) in enumerate(jobs):
        rates = {kind: {asked: speed * asked} for kind, speed in SPEED.items()}
        application = TimedApplication(f"kind{asked}", work, rates, 30.0)
        made.append(GpuJob(name=f"{number}", application=application, arrival=arrival, asked=asked))
    result = replay(_Watched(GPU_POLICIES[name]()), made, SMALL)
    least = [
        job.application.progress[-1] / (3 * job.asked) for job in sorted(made, key=lambda job: job.arrival)
    ]
    assert (result.times >= np.array(least)).all()


@pytest.mark.parametrize(
    ("allocation", "problem"),
    [
        ({"a": ("medium", 1)}, "to the job a: the kinds of the cluster are slow, fast"),
        ({"a": ("slow", 0)}, "to the job a: a job that runs has a whole number of GPUs"),
        ({"a": ("slow", -3)}, "to the job a: a job that runs has"),
        ({"a": ("slow", 1.5)}, "to the job a: a job that runs has"),
        ({"b": ("slow", 1)}, "to the job b: there is no unfinished job"),
    ],
)
def test_an_impossible_allocation_is_rejected(allocation: Any, problem: str) -> None:
    class Fixed(GpuPolicy):
        name = "fixed"

        def allocate(self, jobs: Sequence[GpuJob], cluster: GpuCluster, now: float) -> Allocation:
            return dict(allocation)

    application = TimedApplication("any", 10.0, {"slow": {1: 1.0}}, 30.0)
    with pytest.raises(OptionError, match=rf"the policy fixed allocated \(.*\) {problem}"):
        replay(Fixed(), [GpuJob(name="a", application=application, arrival=0.0)], SMALL)


@pytest.mark.parametrize("interval", [0.0, -1.0, math.inf, math.nan])
def test_an_interval_is_above_0_and_finite(interval: float) -> None:
    application = TimedApplication("any", 10.0, {"slow": {1: 1.0}}, 30.0)
    with pytest.raises(OptionError, match="interval = "):
        replay(Goodput(), [GpuJob(name="a", application=application, arrival=0.0)], SMALL, interval=interval)


def test_speeds_of_an_inelastic_application_do_not_depend_on_the_order_of_its_jobs() -> None:
    application = TimedApplication("any", 10.0, {"slow": {1: 1.0, 8: 8.0}}, 30.0)
    one, eight = (
        GpuJob(name=f"{asked}", application=application, arrival=0.0, asked=asked) for asked in (1, 8)
    )
    found = []
    for jobs in ([one, eight], [eight, one]):
        policy = KindBlind(MarginalGain)
        policy.allocate(jobs, SMALL, 0.0)
        assert isinstance(policy._policy, MarginalGain)
        speeds = policy._policy.speeds
        found.append([float(speeds.time_per_unit(job.speed_kind, 1, 0)) for job in (one, eight)])
    assert found[0] == found[1] == pytest.approx([1 / 360, 1 / (8 * 360)])


def test_an_allocation_beyond_the_capacity_is_rejected() -> None:
    class Greedy(GpuPolicy):
        name = "greedy"

        def allocate(self, jobs: Sequence[GpuJob], cluster: GpuCluster, now: float) -> Allocation:
            return {job.name: ("slow", 8) for job in jobs}

    application = TimedApplication("any", 10.0, {"slow": {8: 1.0}}, 30.0)
    jobs = [GpuJob(name=name, application=application, arrival=0.0, asked=8) for name in "ab"]
    with pytest.raises(OptionError, match="allocated 16 GPUs of kind slow; the cluster has 8"):
        replay(Greedy(), jobs, SMALL)
    big = GpuJob(name="big", application=application, arrival=0.0, asked=8)
    with pytest.raises(OptionError, match="job big asks for 8 GPUs, and no kind of GPU runs it"):
        replay(Gavel(), [big], GpuCluster({"slow": (1, 4)}))


@pytest.mark.parametrize("seed", range(15))
def test_the_integer_program_finds_the_best_of_all_allocations(seed: int) -> None:
    draw = np.random.default_rng(seed)
    configs = [(job, kind, many) for job in range(3) for kind in range(2) for many in (1, 2, 4)]
    costs = -draw.uniform(0.1, 1.0, len(configs)) * np.array([many**0.5 for *_, many in configs])
    capacity = np.array([3.0, 4.0])
    job_of, kind_of, many_of = np.array(configs).T
    indices = cheapest(costs, job_of, kind_of, many_of, capacity)

    def cost(choice: Sequence[int]) -> float:
        used = [
            sum(configs[index][2] for index in choice if index >= 0 and configs[index][1] == kind)
            for kind in (0, 1)
        ]
        if (np.array(used) > capacity).any():
            return math.inf
        return float(sum(costs[index] for index in choice if index >= 0))

    options = [
        [-1, *(number for number, config in enumerate(configs) if config[0] == job)] for job in range(3)
    ]
    assert cost([*indices]) == pytest.approx(min(map(cost, product(*options))), rel=2e-3)
    assert len({configs[index][0] for index in indices}) == len(indices)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), jobs=st.integers(1, 8))
def test_fair_shares_give_every_job_at_least_its_isolated_speed(seed: int, jobs: int) -> None:
    draw = np.random.default_rng(seed)
    rates, gpus = draw.uniform(0.1, 5.0, (jobs, 3)), draw.choice([1.0, 2.0, 4.0], jobs)
    capacity = np.array([8.0, 4.0, 4.0])
    shares = time_shares(rates, gpus, capacity, "fair")
    assert (shares.sum(1) <= 1 + 1e-4).all()
    assert (gpus @ shares <= capacity + 1e-3).all()
    assert ((rates * shares).sum(1) >= isolated_speed(rates, gpus, capacity) * (1 - 1e-3)).all()
    most = time_shares(rates, gpus, capacity, "throughput")
    assert (rates * most).sum() >= (rates * shares).sum() * (1 - 1e-3)


def test_equal_jobs_have_equal_shares() -> None:
    rates = np.array([[1.0, 4.0], [1.0, 4.0], [2.0, 3.0]])
    shares = time_shares(rates, np.ones(3), np.ones(2), "throughput")
    np.testing.assert_array_equal(shares[0], shares[1])


def test_goodput_prefers_the_kind_that_helps_more(sia: tuple[Path, Path]) -> None:
    """A job that is as fast on both kinds leaves the fast GPUs to the other job."""
    one = {"slow": {4: 1.0}, "fast": {4: 1.0}}
    two = {"slow": {4: 1.0}, "fast": {4: 3.0}}
    jobs = [
        GpuJob(name=name, application=TimedApplication(name, 100.0, rates, 0.0), arrival=0.0, asked=4)
        for name, rates in (("same", one), ("faster", two))
    ]
    cluster = GpuCluster({"slow": (1, 4), "fast": (1, 4)})
    assert Goodput().allocate(jobs, cluster, 0.0) == {"same": ("slow", 4), "faster": ("fast", 4)}
    elastic, _ = read_trace(*sia)
    assert Goodput(growth=2).allocate(elastic[:1], SMALL, 60.0)["a"][1] == 1
    assert Goodput().allocate(elastic[:1], SMALL, 60.0)["a"][1] == 8


def test_a_trace_of_gavel(tmp_path: Path) -> None:
    speeds = {
        kind: {"('LM', 1)": {"null": speed}, "('LM', 2)": {"null": 1.5 * speed}}
        for kind, speed in SPEED.items()
    }
    (tmp_path / "speeds.json").write_text(json.dumps(speeds))
    old = "LM\tpython x\t-n\t1\t600\t40.5\t2\n"
    new = "LM\tpython x\tdir\t-n\t1\t300\t4\t1\t-1.0\t7\n"
    (tmp_path / "msr.trace").write_text(old + new)
    jobs, _ = read_trace(tmp_path / "msr.trace", tmp_path / "speeds.json")
    assert [(job.arrival, job.asked, float(job.application.progress[-1])) for job in jobs] == [
        (40.5, 2, 600),
        (7, 4, 300),
    ]
    assert jobs[0].application.rates("fast", (2,)).tolist() == [4.5]
    assert jobs[1].application.rates("fast", (4,)).tolist() == [3.0]  # measured on one GPU only
    result = replay(Gavel(), jobs[:1], SMALL, interval=60)
    assert result.times[0] == pytest.approx(60 - 40.5 + 30 + 600 / 4.5)
    (tmp_path / "msr.trace").write_text("LM 1 2")
    with pytest.raises(InputError, match=r"msr.trace:1: 1 fields"):
        read_trace(tmp_path / "msr.trace", tmp_path / "speeds.json")


def test_a_trace_of_alibaba(tmp_path: Path) -> None:
    nodes, pods = tmp_path / "nodes.csv", tmp_path / "pods.csv"
    nodes.write_text("sn,cpu_milli,memory_mib,gpu,model\na,1,1,8,G2\nb,1,1,2,T4\nc,1,1,2,T4\n")
    pods.write_text(
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
        "p0,1,1,1,500,,LS,Running,0,7200,0\np1,1,1,2,1000,T4|P100,LS,Running,10,3610,10\np2,1,1,0,0,,BE,Running,5,9,5\n"
        "p3,1,1,1,1000,,BE,Pending,5,9,\n"
    )
    jobs, cluster = read_trace(pods, nodes)
    assert cluster == GpuCluster({"G2": (1, 8), "T4": (2, 2)})
    assert [job.name for job in jobs] == ["p0", "p1"]
    assert jobs[1].application.most("G2") == 0
    result = replay(GPU_POLICIES["fifo"](), jobs, cluster)
    np.testing.assert_allclose(result.times, [360 + 30 + 7200, 350 + 30 + 3600])


def test_unknown_files_are_rejected(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match="neither a workload of Sia"):
        read_trace(tmp_path / "x.csv", tmp_path)
    with pytest.raises(InputError, match="there are no files placements-KIND"):
        read_sia_application(tmp_path)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: GpuCluster.parse("rtx"), "give KIND=NODESxGPUS"),
        (lambda: GpuCluster.parse("rtx=0x8"), "give KIND=NODESxGPUS"),
        (lambda: GpuCluster.parse("rtx=3"), "give KIND=NODESxGPUS"),
        (lambda: GpuCluster.parse("v100=1x1,v100=2x4"), "v100 is there twice"),
        (lambda: GpuCluster.parse("T4=3x99999999999999999999"), "a kind has at most 100,000 GPUs"),
        (lambda: Gavel("best"), "objective = 'best' is unknown"),
        (lambda: Goodput(power=1), "power = 1"),
        (lambda: Goodput(waiting=1), "waiting = 1"),
        (lambda: Goodput(growth=1), "growth = 1"),
    ],
)
def test_settings_out_of_range_are_rejected(make: Callable[[], object], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        make()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("LM\tx\t-n\t1\tmany\t40\t2", "steps = 'many' is not a finite number"),
        ("LM\tx\t-n\t1\t600\tnan\t2", "arrival = 'nan' is not a finite number"),
        ("LM\tx\t-n\t1\tinf\t40\t2", "steps = 'inf' is not a finite number"),
    ],
)
def test_an_invalid_number_of_a_trace_is_located(tmp_path: Path, line: str, message: str) -> None:
    (tmp_path / "speeds.json").write_text(json.dumps({"fast": {"('LM', 1)": {"null": 2.0}}}))
    (tmp_path / "x.trace").write_text(line)
    with pytest.raises(InputError, match=f"x.trace:1: {message}"):
        read_trace(tmp_path / "x.trace", tmp_path / "speeds.json")


def test_errors_of_files_have_their_names(tmp_path: Path) -> None:
    for name, content in (("prose.csv", b"a,b\nIt is, as we know, late.\n"), ("x.csv", b"\xff\xfe\x00a")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match=name):
            read_trace(tmp_path / name, tmp_path)
    (tmp_path / "x.trace").write_text("LM\tx\t-n\t1\t600\t40\t2")
    for throughputs in ("[1]", "{", '{"fast": 1}'):
        (tmp_path / "speeds.json").write_text(throughputs)
        with pytest.raises(InputError, match="these are no throughputs of Gavel"):
            read_trace(tmp_path / "x.trace", tmp_path / "speeds.json")


@pytest.mark.parametrize(
    "changes", [{"arrival": -1.0}, {"arrival": float("inf")}, {"asked": 0}, {"name": "other"}, {"batch": 0}]
)
def test_invalid_jobs_are_rejected(changes: dict[str, object]) -> None:
    application = TimedApplication("LM", 600, {"fast": {1: 2.0}}, 30)
    jobs = [GpuJob(name=name, application=application, arrival=0, asked=1) for name in ("it", "other")]
    with pytest.raises(OptionError, match="job"):
        replay(GPU_POLICIES["fifo"](), [replace(jobs[0], **changes), jobs[1]], SMALL)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="no jobs"):
        replay(GPU_POLICIES["fifo"](), [], SMALL)


def test_the_cluster_of_sia_has_64_gpus() -> None:
    assert sum(SIA_CLUSTER.capacity.values()) == 64
    assert SIA_CLUSTER.sizes("rtx") == (1, 2, 4, 8, 16, 24)
