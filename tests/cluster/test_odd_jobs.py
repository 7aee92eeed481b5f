"""A job with invalid answers fails alone: other jobs continue under any policy."""

from __future__ import annotations

import signal
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onlineauto.cli.study_progress import return_jobs_on_exit
from onlineauto.cluster import Cluster, Demand
from onlineauto.cluster.cluster import NAMED
from onlineauto.cluster.policies.speeds import Speeds
from onlineauto.errors import OptionError
from tests.cluster.test_cluster import Clock

NAN, INF = float("nan"), float("inf")


class Steps:
    """Does one unit of work per worker at each poll."""

    demand = Demand({"CPU": 1.0})

    def __init__(self) -> None:
        self.workers, self.done, self.stops = 0, 0.0, 0

    def resize(self, workers: int, servers: int) -> None:
        self.workers = workers

    def progress(self) -> Any:
        self.done = min(self.done + self.workers, 60)
        return self.done, 60

    def stop(self) -> None:
        self.workers, self.stops = 0, self.stops + 1


def answering(*answers: Any) -> Steps:
    """Return a job whose progress has these answers in order; the last answer repeats."""

    class Odd(Steps):
        polls = 0

        def progress(self) -> Any:
            answer = answers[min(self.polls, len(answers) - 1)]
            self.polls += 1
            if isinstance(answer, BaseException):
                raise answer
            return answer

    return Odd()


class UnspeakableError(Exception):
    """An error whose text raises an error."""

    def __str__(self) -> str:
        raise self


class Unspeakable:
    """A value that cannot be converted or printed."""

    def __float__(self) -> float:
        raise UnspeakableError

    def __repr__(self) -> str:
        raise UnspeakableError


def run_beside(job: Any, policy: str = "marginal-gain", *, slots: int = 40) -> Cluster:
    """Return a cluster after a run of an odd job between two valid jobs."""
    cluster = Cluster(policy, slot=0.1, capacity={"CPU": 4})
    for name, entry in (("before", Steps()), ("odd", job), ("after", Steps())):
        cluster.submit(entry, name=name)
    cluster.run(slots=slots)
    assert [job.state for job in cluster.jobs if job.name != "odd"] == ["done", "done"]
    return cluster


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onlineauto.cluster.cluster.time", Clock())


WRONG: list[Any] = [
    (NAN, 20),
    (1, NAN),
    (1, INF),
    (INF, INF),
    (-1, 20),
    (1, -20),
    (1e100, 1e101),
    (10**400, 10**401),
    (Decimal("NaN"), 20),
    (np.float32("inf"), 20),
    ("1", "20"),
    (b"1", b"20"),
    (None, 20),
    (1j, 20),
    (True, False),
    (1,),
    (1, 2, 3),
    (np.zeros(2), 20),
    (Unspeakable(), 20),
    None,
    7,
    {},
    ValueError("a wheel came off"),
    UnspeakableError(),
    SystemExit(3),
    GeneratorExit(),
    RecursionError(),
    MemoryError(),
]


@pytest.mark.parametrize("answer", WRONG, ids=lambda answer: type(answer).__name__)
@pytest.mark.parametrize("before", [[], [(1, 20)]], ids=["at once", "later"])
def test_an_invalid_answer_fails_only_its_job(
    answer: Any, before: list[Any], caplog: pytest.LogCaptureFixture
) -> None:
    job = answering(*before, answer)
    cluster = run_beside(job)
    odd = next(job for job in cluster.jobs if job.name == "odd")
    assert odd.state == "failed"
    assert job.stops == 1
    assert "the job odd failed: " in caplog.text
    if not isinstance(answer, BaseException):
        assert "two numbers from 0 to 1e100 are needed" in odd.error


@pytest.mark.parametrize("method", ["progress", "resize", "stop"])
def test_a_signal_within_a_method_of_a_job_ends_the_command(method: str) -> None:
    job = Steps()
    setattr(job, method, lambda *_: signal.raise_signal(signal.SIGTERM))
    cluster = Cluster("fair", slot=0.1, capacity={"CPU": 4})
    cluster.submit(job)
    with pytest.raises(SystemExit) as exit_info, return_jobs_on_exit():
        cluster.run(slots=40)
    assert exit_info.value.code == 143
    assert not cluster.jobs[0].error


@pytest.mark.parametrize(
    "answer",
    [
        (np.float32(20), np.int64(20)),
        (Decimal(20), Fraction(20)),
        (np.array(20.0), np.array([20.0])[0]),
        [20, 20],
        np.array([20, 20]),
        (20, 19),
    ],
    ids=str,
)
def test_progress_may_have_any_type_of_number(answer: Any) -> None:
    cluster = run_beside(answering((1, 20), answer))
    assert [(job.state, job.done) for job in cluster.jobs if job.name == "odd"] == [("done", 20.0)]


def test_a_job_may_lose_work() -> None:
    cluster = run_beside(answering((10, 20), (12, 20), (3, 20), (1, 25), (25, 25)))
    assert [job.state for job in cluster.jobs] == ["done"] * 3


AMOUNTS = st.one_of(
    st.integers(0, 50),
    st.floats(0, 1e99),
    st.sampled_from([0.0, 5e-324, 1e-300, 1e-30, 1e15, 1e30, 1e99, np.float32(1e-38), Decimal("1e-200")]),
)


@pytest.mark.ci
@settings(max_examples=60, deadline=None)
@given(
    answers=st.lists(st.tuples(AMOUNTS, AMOUNTS), min_size=1, max_size=8),
    policy=st.sampled_from(sorted(NAMED)),
    endless=st.booleans(),
)
def test_policies_accept_amounts_of_any_size(
    answers: list[tuple[Any, Any]], policy: str, endless: bool
) -> None:
    patch = pytest.MonkeyPatch()
    patch.setattr("onlineauto.cluster.cluster.time", Clock())
    with patch.context():
        cluster = Cluster(policy, slot=0.1, capacity={"CPU": 4})
        cluster.submit(answering(*answers), name="odd", kind="steps", endless=endless)
        cluster.submit(Steps(), name="valid", kind="steps")
        cluster.submit(Steps(), name="other")
        cluster.run(slots=150)
    assert [job.state for job in cluster.jobs if job.name != "odd"] == ["done", "done"]


def test_extreme_times_leave_fitted_speeds_finite() -> None:
    cluster = Cluster(slot=0.1, capacity={"CPU": 4})
    cluster.submit(answering((0, 1e99), (1e98, 1e99), (1e98, 1e99)), name="odd", kind="steps")
    cluster.submit(Steps(), name="valid", kind="steps")
    cluster.run(slots=20)
    speeds = Speeds()
    speeds.observe(cluster.history().records)
    assert np.isfinite(speeds.coefficients("steps")).all()


def broken(method: str, error: Callable[[], BaseException]) -> Steps:
    """Return a job with a method or a property that raises an error."""

    class Odd(Steps):
        pass

    def fail(self: Steps, *_: Any) -> Any:
        if self.done or method != "resize":
            raise error()
        self.done = 1

    setattr(Odd, method, property(fail) if method == "resources_in_use" else fail)
    return Odd()


@pytest.mark.parametrize("method", ["progress", "resize", "resources_in_use", "stop"])
@pytest.mark.parametrize("error", [ValueError, SystemExit, UnspeakableError])
def test_an_error_of_any_method_fails_only_its_job(method: str, error: type[BaseException]) -> None:
    cluster = run_beside(broken(method, error))
    odd = next(job for job in cluster.jobs if job.name == "odd")
    assert odd.ended
    assert odd.error if method != "stop" else "it could not be stopped" in odd.error


@pytest.mark.parametrize(
    "resources", [(NAN, 0), (1,), None, "no", (-1, 0), (0.5, 0), (INF, 0), Unspeakable()]
)
def test_invalid_resources_in_use_fail_only_their_job(resources: Any) -> None:
    job = Steps()
    job.resources_in_use = resources  # type: ignore[attr-defined]
    cluster = run_beside(job)
    assert "two whole numbers" in next(job.error for job in cluster.jobs if job.name == "odd")


def test_an_interrupt_of_a_job_ends_the_cluster() -> None:
    cluster = Cluster(slot=0.1, capacity={"CPU": 4})
    cluster.submit(answering((0, 9), KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        cluster.run()


@pytest.mark.parametrize(
    ("demand", "message"),
    [
        ({"CPU": 1}, "give a Demand"),
        (None, "give a Demand"),
        (Demand({"CPU": NAN}), "CPU = nan: give a number"),
        (Demand({"CPU": "1"}), "CPU = '1': give a number"),  # type: ignore[dict-item]
        (Demand(7), "the demand of a worker is 7"),  # type: ignore[arg-type]
        (Demand(most_workers=NAN), "most_workers = nan: give a whole number from 1 to"),  # type: ignore[arg-type]
        (Demand(most_workers=2.5), "most_workers = 2.5"),  # type: ignore[arg-type]
        (Demand(most_servers=-1), "most_servers = -1: give a whole number from 0 to"),
    ],
)
def test_invalid_demands_are_rejected_by_submit(demand: Any, message: str) -> None:
    job = Steps()
    job.demand = demand
    with pytest.raises(OptionError, match=message):
        Cluster(capacity={"CPU": 4}).submit(job)


def test_demands_are_converted_to_floats() -> None:
    job = Steps()
    job.demand = Demand({"CPU": np.float32(0.5)}, most_workers=np.int64(3))  # type: ignore[arg-type, dict-item]
    cluster = run_beside(job)
    odd = [record for record in cluster.history().records if record.job == "odd"]
    assert cluster.history().text().count('"worker":{"CPU":0.5}') == len(odd) > 0


@pytest.mark.parametrize("given", [{"name": "a\udc80"}, {"kind": "a\udc80"}])
def test_names_that_utf_8_cannot_represent_are_rejected(given: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match="UTF-8"):
        Cluster(slot=1.0, capacity={"CPU": 4}).submit(Steps(), **given)
