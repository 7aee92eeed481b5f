"""The simulator: Little's law, the capacity of clusters, and jobs whose times can be computed by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pytest

from onlineauto.cluster import POLICIES, ClusterPolicy, Fair, Fifo, MarginalGain, Speeds, Srtf, allocate
from onlineauto.cluster.simulator import (
    JobKind,
    Simulation,
    Traces,
    Workload,
    compare,
    draw_traces,
    record,
    run,
)
from onlineauto.cluster.simulator.simulation import mean_ratio
from onlineauto.errors import OptionError
from tests.cluster.test_policies import Drawn

if TYPE_CHECKING:
    from onlineauto.cluster import Situation
    from onlineauto.cluster.policies.policy import Watch
    from onlineauto.cluster.policies.situation import Floats

PLAIN = JobKind(name="plain", coefficients=(1, 0, 0, 0, 0), work=3, worker={"CPU": 1})
QUIET = Workload(kinds=(PLAIN,), capacity={"CPU": 1}, interference=0, noise=0)


def traces_of(arrival: list[int], work: list[float], workload: Workload = QUIET) -> Traces:
    many = len(work)
    return Traces(
        workload=workload,
        arrival=np.array([arrival]),
        kind=np.zeros((1, many), np.int64),
        work=np.array([work]),
        noise=np.ones((1, 1, many)),
    )


@pytest.mark.parametrize("rate", [0.2, 1.0, 5.0])
@pytest.mark.parametrize("name", POLICIES)
def test_littles_law(name: str, rate: float) -> None:
    """Jobs in the cluster, summed over time, are the sum of the times that jobs took."""
    ran = run(POLICIES[name](), draw_traces(Workload(rate=rate), range(20, 28), jobs=15))
    assert ran.finished.all()
    assert np.allclose(ran.waiting, ran.times.sum(1), rtol=0, atol=1e-6)


@pytest.mark.parametrize(("seed", "nothing"), [(1, -np.inf), (2, -1.0), (3, 0.0), (4, 3.0), (5, np.inf)])
def test_all_work_is_done_once_within_the_capacity(seed: int, nothing: float) -> None:
    """This holds for any scores."""
    traces = draw_traces(Workload(rate=2), range(8), jobs=12)
    simulation, done = Simulation(traces), np.zeros(8)
    while not simulation.is_done:
        given = allocate(Drawn(seed, nothing), simulation.situation())
        assert (given.free >= -1e-9).all()
        done += simulation.advance(given).progress.sum(1)
        assert simulation.now < 1000
    assert np.allclose(done, traces.work.sum(1))


def test_jobs_end_within_slots() -> None:
    ran = run(Fifo(1), traces_of([0, 0, 5], [1.5, 1.0, 0.25]))
    assert ran.times.tolist() == [[1.5, 3.0, 0.25]]  # the second one begins with the third slot
    assert ran.slots.tolist() == [4]


def test_srtf_has_the_optimal_mean_time() -> None:
    work = [4.0, 1.0, 3.0, 2.0]
    speeds = Speeds({"plain": PLAIN.coefficients})
    ran = run(Srtf(speeds, asked=1), traces_of([0] * 4, work))
    assert ran.mean[0] == np.mean(np.cumsum(sorted(work)))
    assert run(Fifo(1), traces_of([0] * 4, work)).mean[0] == np.mean(np.cumsum(work))


def test_jobs_without_a_row_wait() -> None:
    simulation = Simulation(traces_of([0, 0, 0], [1.0, 1.0, 1.0], replace(QUIET, places=2)))
    situation = simulation.situation()
    assert situation.valid.tolist() == [[True, True]]
    assert situation.backlog.tolist() == [1]
    simulation.advance(allocate(Fifo(1), situation))
    assert simulation.jobs.tolist() == [[1, 2]]


def test_more_workers_than_the_hump_are_slower() -> None:
    hump = replace(PLAIN, coefficients=(0.9, 0, 0, 0.1, 0))
    workload = replace(QUIET, kinds=(hump,), capacity={"CPU": 16})
    traces = traces_of([0], [30.0], workload)
    fair, gain = run(Fair(), traces), run(MarginalGain(workload.speeds(), least=0), traces)
    assert fair.mean[0] == pytest.approx(30 * (0.9 / 16 + 1.6))
    assert gain.mean[0] == pytest.approx(30 * 0.6)


def test_a_trace_does_not_depend_on_the_traces_beside_it() -> None:
    alone, both = (draw_traces(Workload(), seeds, jobs=20) for seeds in ([5], [4, 5]))
    for name in ("arrival", "kind", "work", "noise"):
        assert np.array_equal(getattr(alone, name)[0], getattr(both, name)[1])
    ran = run(Fair(), alone), run(Fair(), both)
    assert np.array_equal(ran[0].times[0], ran[1].times[1])


def test_a_starved_job_is_not_finished() -> None:
    ran = run(Fair(), traces_of([0], [1.0], replace(QUIET, capacity={"CPU": 0.5})), most_slots=10)
    assert ran.finished.tolist() == [[False]]
    assert ran.times.tolist() == [[10.0]]


def test_a_record_of_a_starved_job_ends_at_the_limit() -> None:
    traces = traces_of([0], [1.0], replace(QUIET, capacity={"CPU": 0.5}))
    assert [row.slot for row in record(Fair(), traces, most_slots=10).records] == [*range(10)]


def test_marginal_gain_is_faster_than_fair() -> None:
    workload = Workload(rate=0.5)
    policies: dict[str, ClusterPolicy] = {"fair": Fair(), "gain": MarginalGain(workload.speeds())}
    fair, gain = compare(policies, draw_traces(workload, range(100, 116)), by="fair")
    assert (fair.ratio, fair.low, fair.high, fair.finished) == (1, 1, 1, 1)
    assert gain.high < 0.93
    assert gain.low < gain.ratio < gain.high


def test_an_unknown_reference_policy_is_rejected() -> None:
    with pytest.raises(OptionError, match="by = 'srtf' is unknown; valid are fair"):
        compare({"fair": Fair()}, draw_traces(Workload(), range(2)), by="srtf")


def test_intervals_have_the_quantiles_of_student() -> None:
    draw = np.random.default_rng(0)
    ratios = draw.normal(1, 0.1, (4000, 6))
    covered = [low < 1 < high for _, low, high in (mean_ratio(sample, np.ones(6)) for sample in ratios)]
    assert 0.935 < np.mean(covered) < 0.965
    assert mean_ratio(np.ones(1), np.ones(1)) == (1, -np.inf, np.inf)
    for many, quantile in ((2, 12.706), (3, 4.303), (4, 3.182), (6, 2.571), (30, 2.045)):
        several = np.linspace(1, many, many)
        mean, low, _ = mean_ratio(several, np.ones(many))
        assert (mean - low) / several.std(ddof=1) * many**0.5 == pytest.approx(quantile, rel=0.003)


def test_jobs_arrive_at_the_rate_of_the_workload() -> None:
    for rate in (0.3, 2.0):
        arrival = draw_traces(Workload(rate=rate), range(40), jobs=200).arrival
        assert 200 / arrival[:, -1].mean() == pytest.approx(rate, rel=0.08)


def test_workloads_out_of_range_are_rejected() -> None:
    for change in ({"rate": 0}, {"swing": 1}, {"kinds": ()}, {"places": 0}):
        with pytest.raises(OptionError):
            replace(QUIET, **change)
    with pytest.raises(OptionError, match="kind plain: give 5 coefficients"):
        replace(QUIET, kinds=(replace(PLAIN, coefficients=(-1, 0, 0, 0, 0)),))


def test_a_resource_with_capacity_0_is_not_full() -> None:
    """It adds no interference."""
    crowded = Workload(rate=2, interference=0.5)
    more = replace(crowded, capacity={**crowded.capacity, "GPU": 0.0})
    one, other = (run(Fair(), draw_traces(workload, range(3), jobs=8)) for workload in (crowded, more))
    assert np.array_equal(one.times, other.times)


class _Sizes(ClusterPolicy):
    """Allocates given numbers of workers to the first job, slot by slot."""

    name: ClassVar[str] = "sizes"

    def __init__(self, *workers: int) -> None:
        self._workers = list(workers)

    def score(self, situation: Situation) -> Floats:
        raise NotImplementedError

    def decide(self, situation: Situation, *, watch: Watch | None = None) -> Situation:
        workers = np.array([[self._workers.pop(0)]])
        return replace(situation, workers=workers, free=situation.capacity - workers)


@pytest.mark.parametrize(
    ("pause", "workers", "time"),
    [
        (0.0, (1, 1, 2, 2), 3.5),
        (0.25, (1, 1, 1, 1, 1), 5.0),  # the size never changes
        (0.25, (1, 1, 2, 2), 3.75),
        (0.25, (1, 2, 1, 2, 2), 4.125),
        (1.5, (1, 2, 2, 2, 2), 4.5),  # longer than a slot
        (0.25, (1, 0, 1, 1, 1, 1, 1), 6.25),  # two changes, one of them without workers
    ],
)
def test_a_job_pauses_after_a_change_of_its_size(pause: float, workers: tuple[int, ...], time: float) -> None:
    workload = replace(QUIET, kinds=(replace(PLAIN, pause=pause),), capacity={"CPU": 4}, places=1)
    assert run(_Sizes(*workers), traces_of([0], [5.0], workload)).times.tolist() == [[time]]
