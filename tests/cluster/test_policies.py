"""Policies: common requirements, and the decisions of each."""

from __future__ import annotations

import math
from functools import partial
from itertools import permutations, product
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.cluster.default import mean_time, renamed
from onlineauto.cluster import (
    POLICIES,
    ClusterPolicy,
    Fair,
    Fifo,
    MarginalGain,
    Record,
    Row,
    Situation,
    Speeds,
    Srtf,
    allocate,
)
from onlineauto.cluster.cluster import NAMED
from onlineauto.cluster.policies.marginal_gain import UntilKnown
from onlineauto.cluster.policies.situation import LEAST_REMAINING, Bools, Floats, Ints
from onlineauto.cluster.simulator import JobKind, Workload, draw_traces
from onlineauto.cluster.simulator.simulation import run
from onlineauto.errors import OptionError
from onlineauto.testing import check_policy
from tests.cluster.situations import linear, situations

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.lane("quick")


@pytest.mark.parametrize("name", POLICIES)
def test_registered_policies_conform(name: str) -> None:
    check_policy(POLICIES[name])
    assert POLICIES[name].name == name


def test_named_policies_conform() -> None:
    assert {*POLICIES, "learned"} == {*NAMED}
    for name, make in NAMED.items():
        if make is not POLICIES.get(name):
            check_policy(make)


@pytest.mark.parametrize("unit", [1.0, 1e-6, 2.0**30, 1e15])
def test_the_unit_of_a_resource_does_not_matter(unit: float) -> None:
    """A third of 0.3 fits three times into it, in gibibytes as in bytes."""
    worker = {"CPU": 0.1, "memory": 0.1 * unit}
    job = Row(kind="study", age=0, done=0, remaining=9, worker=worker, server={})
    situation = Situation.of([job], {"CPU": 0.7, "memory": 0.3 * unit}, places=1)
    assert allocate(Fair(), situation).workers[0, 0] == 3


class Drawn(ClusterPolicy):
    """Returns random scores."""

    name = "drawn"

    def __init__(self, seed: int, nothing: float) -> None:
        self.seed, self.nothing = seed, nothing

    def score(self, situation: Situation) -> Floats:
        draw = np.random.default_rng([self.seed, int(situation.workers.sum()), int(situation.servers.sum())])
        score = draw.normal(size=(len(situation.valid), 3 * situation.places + 1))
        score[draw.random(score.shape) < 0.1] = draw.choice([np.inf, -np.inf])
        score[:, -1] = self.nothing
        return score


@given(situations(), st.integers(0, 1000), st.sampled_from([-np.inf, -1.0, 0.0, 1.0, np.inf]))
def test_no_score_exceeds_the_capacity(situation: Situation, seed: int, nothing: float) -> None:
    steps = []

    def watch(now: Situation, choices: Bools, actions: Ints) -> None:
        assert now.legal()[:, -1].all(), "nothing more is always legal"
        assert choices.any(1).all()
        assert (choices <= now.legal()).all()
        steps.append(int(actions[0]))

    after = allocate(Drawn(seed, nothing), situation, watch=watch)
    used = (
        after.workers[..., None] * after.worker_demand + after.servers[..., None] * after.server_demand
    ).sum(1)
    assert (used <= after.capacity + 1e-6).all()
    assert np.allclose(used + after.free, after.capacity)
    assert (after.workers <= after.most_workers).all()
    assert (after.servers <= after.most_servers).all()
    assert not after.workers[~after.valid].any()
    assert ((after.servers > 0) == (after.workers > 0))[after.takes_servers].all()
    waits = after.valid & (after.workers == 0)
    bundle = after.worker_demand + after.server_demand
    assert not (waits & (bundle <= after.free[:, None, :]).all(2)).any(), "a job starves"
    assert steps[-1] == 15
    assert not situation.workers.any(), "the input has changed"


def test_fair_reproduces_the_example_of_the_paper() -> None:
    """Ghodsi et al.: 9 CPU, 18 GB; tasks of <1, 4> and <3, 1>."""
    has = {"CPU": 9, "memory": 18}
    a, b = ({"CPU": 1, "memory": 4}, {"CPU": 3, "memory": 1})
    for first, second, expected in ((a, b, [3, 2]), (b, a, [2, 3])):
        jobs = [linear(1, worker=first), linear(1, worker=second)]
        assert allocate(Fair(), Situation.of(jobs, has, places=4)).workers[0, :2].tolist() == expected


def test_fifo_gives_each_job_what_it_asks_for_in_order() -> None:
    jobs = [linear(9), linear(1), linear(5)]
    given = allocate(Fifo(asked=4), Situation.of(jobs, {"CPU": 7}, places=3)).workers
    assert given.tolist() == [[4, 2, 1]]  # each has one before any has two


def test_srtf_has_the_least_mean_completion_time() -> None:
    """One CPU, linear jobs: no order has a smaller mean completion time than the shortest first."""
    draw = np.random.default_rng(3)
    for _ in range(20):
        works = draw.integers(1, 9, 5).astype(float)
        policy = Srtf(Speeds({"linear": [1, 0, 0, 0, 0]}), asked=1)
        left, total = works.copy(), 0
        while left.any():
            total += int(np.count_nonzero(left))
            jobs = [linear(work) for work in left[left > 0]]
            served = allocate(policy, Situation.of(jobs, {"CPU": 1}, places=5)).workers[0, : len(jobs)]
            left[np.flatnonzero(left > 0)[served > 0]] -= 1
        best = min(int(np.cumsum(order).sum()) for order in permutations(works))
        assert total == best


@pytest.mark.parametrize(
    ("power", "short_first"), [(None, 0.5), (-0.5, 0.0), (-2.0, 0.0), (-0.5, 0.5), (-2.0, 0.3)]
)
@pytest.mark.parametrize("seed", range(12))
def test_marginal_gain_is_optimal_for_decreasing_gains(
    seed: int, power: float | None, short_first: float
) -> None:
    """Workers alone, 1/f = a/w + b: no division has a smaller sum of remaining times, or of powers."""
    draw = np.random.default_rng(seed)
    kinds = {f"kind{i}": [a, 1 - a, 0, 0, 0] for i, a in enumerate(draw.uniform(0.3, 0.99, 3))}
    speeds = Speeds(kinds)
    jobs = [linear(work, kind=kind) for work, kind in zip(draw.uniform(1, 40, 3), kinds, strict=True)]
    policy = MarginalGain(speeds, least=0, power=power, short_first=short_first)
    given = allocate(policy, Situation.of(jobs, {"CPU": 8}, places=3)).workers[0]

    def cost(workers: tuple[int, ...]) -> float:
        times = [
            float(speeds.time_per_unit(job.kind, many, 0)) for job, many in zip(jobs, workers, strict=True)
        ]
        if power is None:
            return sum(job.remaining * time for job, time in zip(jobs, times, strict=True))
        e = 1 / (1 - short_first)
        total = 0.0
        for job, time in zip(jobs, times, strict=True):  # each kind takes 1 with one worker
            rank = sum(other.remaining >= job.remaining for other in jobs)
            total += (rank**e - (rank - 1) ** e) ** (1 / e) * math.pow(1 / time, power)
        return total

    best = min(cost(counts) for counts in product(range(1, 9), repeat=3) if sum(counts) <= 8)
    assert cost(tuple(given)) == pytest.approx(best)


def test_marginal_gain_stops_at_the_hump() -> None:
    """1/f = .9/w + .1 w has its hump at three workers."""
    speeds = Speeds({"linear": [0.9, 0, 0, 0.1, 0]})
    situation = Situation.of([linear(5)], {"CPU": 16}, places=1)
    assert allocate(MarginalGain(speeds, least=0), situation).workers.tolist() == [[3]]
    assert allocate(MarginalGain(speeds, least=0.3), situation).workers.tolist() == [[2]]
    assert allocate(Fair(), situation).workers.tolist() == [[16]]


@pytest.mark.parametrize("many", [8, 64])
def test_a_job_that_scales_gets_the_whole_cluster(many: int) -> None:
    """The ninth worker of a linear job makes it 12.5 % faster, and the 64th 1.6 %: neither is a hump."""
    situation = Situation.of([linear(5, most_workers=many)], {"CPU": many}, places=1)
    policy = MarginalGain(Speeds({"linear": [1, 0, 0, 0, 0]}))
    assert allocate(policy, situation).workers.tolist() == [[many]]


def test_marginal_gain_prefers_short_jobs_and_divides_equally_between_equal_jobs() -> None:
    """The weights are 1 and sqrt 3; with power -0.5 workers are as weight ** (2 / 3): 1 to 1.44."""
    policy = MarginalGain(Speeds({"linear": [1, 0, 0, 0, 0]}), least=0)

    def divide(*works: float) -> list[int]:
        rows = [linear(work, most_workers=99) for work in works]
        return [
            int(count) for count in allocate(policy, Situation.of(rows, {"CPU": 100}, places=3)).workers[0]
        ]

    assert divide(5, 4) == [41, 59, 0]
    assert divide(4, 5) == [59, 41, 0]
    assert divide(5, 5) == [50, 50, 0]
    assert divide(LEAST_REMAINING, 5) == [41, 59, 0]  # a stream that has kept up is the longest job


def test_powers_of_many_ranks_do_not_overflow() -> None:
    """The weight of rank k is that of k jobs less that of k - 1, of powers up to 40 ** 1,000."""
    jobs = [linear(work, most_workers=99) for work in range(1, 41)]
    policy = MarginalGain(Speeds({"linear": [1, 0, 0, 0, 0]}), least=0, short_first=0.999)
    given = allocate(policy, Situation.of(jobs, {"CPU": 100}, places=40)).workers[0]
    assert given[0] == given.max()


def test_the_unit_of_work_does_not_matter_to_the_default_policy() -> None:
    """Speeds are learnt online; the network of the package takes 20 to 40 % longer with 1,000 units."""
    one, thousand = (mean_time(UntilKnown(), renamed(3, units=units), 3) for units in (1.0, 1000.0))
    assert thousand == pytest.approx(one, rel=0.01)


@pytest.mark.parametrize("seed", range(4))
def test_short_jobs_first_saves_time_where_jobs_scale(seed: int) -> None:
    kind = JobKind(name="job", coefficients=(1, 0.05, 0, 0, 0), work=40, worker={"CPU": 1})
    workload = Workload(kinds=(kind,), capacity={"CPU": 16}, noise=0, interference=0, spread=1.2)
    traces = draw_traces(workload, range(8 * seed, 8 * seed + 8), jobs=20)
    equal, short = (run(MarginalGain(workload.speeds(), short_first=p), traces) for p in (0.0, 0.5))
    assert short.mean.mean() < 0.97 * equal.mean.mean()


@pytest.mark.parametrize("unit", [1, 2])
def test_the_limit_of_marginal_gain_does_not_depend_on_the_demand(unit: int) -> None:
    """1/f = 1/w + 0.25: a third more than three workers is 17 % faster; a quarter more than four, 11 %."""
    speeds = Speeds({"linear": [1, 0.25, 0, 0, 0]})
    situation = Situation.of([linear(5, worker={"CPU": unit})], {"CPU": 16 * unit}, places=1)
    assert allocate(MarginalGain(speeds, least=0.47), situation).workers.tolist() == [[4]]
    free = Situation.of([linear(5, worker={})], {"CPU": 16}, places=1)
    assert allocate(MarginalGain(speeds, least=0.47), free).workers.tolist() == [[4]]


def test_marginal_gain_adds_servers_to_a_job_with_too_few() -> None:
    """Workers that share a server wait for it."""
    speeds = Speeds({"stream": [0.5, 0, 0.5, 0, 0]})
    job = linear(5, kind="stream", server={"CPU": 1}, most_workers=2)
    after = allocate(MarginalGain(speeds), Situation.of([job], {"CPU": 16}, places=1))
    assert after.workers.tolist() == [[2]]
    assert after.servers[0, 0] > 2


@pytest.mark.parametrize("name", POLICIES)
def test_a_job_with_its_most_servers_still_gets_workers(name: str) -> None:
    job = linear(5, server={"CPU": 1}, most_servers=1)
    after = allocate(POLICIES[name](), Situation.of([job], {"CPU": 16}, places=1))
    assert after.servers.tolist() == [[1]]
    assert after.workers[0, 0] > 1


@pytest.mark.parametrize("policy", [MarginalGain, UntilKnown, partial(MarginalGain, power=None)])
@pytest.mark.parametrize(("shared", "servers"), [(0.0, {1}), (0.5, {3, 4})])
def test_servers_are_learned_from_the_history(
    policy: Callable[[], ClusterPolicy], shared: float, servers: set[int]
) -> None:
    """A job gets servers if its speed has grown with servers, and only its first one otherwise."""
    decides = policy()
    job = linear(5, kind="stream", server={"CPU": 1}, most_workers=4, most_servers=4)
    for slot, size in enumerate([(4, 4), (4, 1), (2, 1), (4, 2), (1, 1)]):
        time = 1 / size[0] + shared * size[0] / size[1] / 4
        decides.observe(
            [
                Record(
                    slot=slot, job="a", kind="stream", arrived=0, workers=size[0], servers=size[1],
                    before=0, done=1 / time, total=100, worker={"CPU": 1}, server={"CPU": 1},
                )
            ]
        )  # fmt: skip
    after = allocate(decides, Situation.of([job], {"CPU": 16}, places=1))
    assert after.workers[0, 0] >= 2
    assert after.servers[0, 0] in servers


@pytest.mark.parametrize(
    ("worker", "message"),
    [
        ({"GPU": 1}, "takes GPU; the cluster has CPU"),
        ({"CPU": -1.0}, "takes -1.0 of a resource: give 0 or more"),
        ({"CPU": np.nan}, "takes nan of a resource: give 0 or more"),
    ],
)
def test_invalid_demands_are_rejected(worker: dict[str, float], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        Situation.of([linear(1, worker=worker)], {"CPU": 3})


def test_a_score_of_nan_is_rejected() -> None:
    situation = Situation.of([linear(1)], {"CPU": 3})
    with pytest.raises(OptionError, match="scored an action as NaN"):
        allocate(Drawn(0, np.nan), situation)


def test_settings_out_of_range_are_rejected() -> None:
    for make in (
        lambda: Fifo(0),
        lambda: Srtf(asked=0),
        lambda: MarginalGain(least=-1),
        lambda: MarginalGain(power=1),
        lambda: MarginalGain(short_first=1),
        lambda: MarginalGain(short_first=-0.1),
    ):
        with pytest.raises(OptionError):
            make()


def test_jobs_without_a_row_are_backlog() -> None:
    situation = Situation.of([linear(1)] * 5, {"CPU": 3}, places=3, backlog=2)
    assert situation.backlog.tolist() == [4]
    assert isinstance(linear(1), Row)
