"""A cluster allocates what its policy decides within its capacity, and records it in a history."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onlineauto.cluster import Cluster, ClusterPolicy, Demand, Fair, History, MarginalGain, Record, Situation
from onlineauto.cluster.history import Head, HistoryFile
from onlineauto.cluster.policies.policy import bundles
from onlineauto.cluster.policies.situation import Floats
from onlineauto.errors import InputError, OptionError, OutputError
from tests.cluster.workers import Account, Work
from tests.waiting import until


class Clock:
    """A clock that advances only when a cluster sleeps, so that tests do not depend on the load."""

    def __init__(self) -> None:
        self._now = 0.0

    def monotonic(self) -> float:
        return self._now

    def sleep(self, seconds: float) -> None:
        self._now += seconds


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the clock of clusters and of their jobs."""
    shared_clock = Clock()
    for module in ("onlineauto.cluster.cluster", "tests.cluster.workers"):
        monkeypatch.setattr(f"{module}.time", shared_clock)


def cluster_of(cpus: float = 4, **options: Any) -> Cluster:
    return Cluster(**{"slot": 0.2, "capacity": {"CPU": cpus}, **options})


def test_jobs_share_the_capacity_until_all_are_done() -> None:
    cluster, account = cluster_of(), Account()
    jobs = [Work(account, 30), Work(account, 60, demand=Demand({"CPU": 2.0}))]
    names = [cluster.submit(job) for job in jobs]
    assert names == ["work-1", "work-2"]
    cluster.run()
    assert [(job.state, job.done) for job in cluster.jobs] == [("done", 30.0), ("done", 60.0)]
    assert account.most == 4
    assert [job.stopped for job in jobs] == [1, 1]
    history = cluster.history()
    assert set(history.completion_times()) == {*names}
    for name, job in zip(names, jobs, strict=True):
        mine = [record for record in history.records if record.job == name]
        assert [record.slot for record in mine] == list(range(len(mine)))
        assert [record.before for record in mine] == [0, *(record.done for record in mine[:-1])]
        assert mine[-1].done == mine[-1].total == job.progress()[1]
        assert mine[-1].finished
        assert 0 < mine[-1].used <= 1
    slots = range(1 + max(record.slot for record in history.records))
    for slot in slots:
        given_away = [
            record.workers * record.worker["CPU"] for record in history.records if record.slot == slot
        ]
        assert sum(given_away) <= 4


class Swing(ClusterPolicy):
    """Prefers the first job and the last job in alternate slots."""

    name = "swing"

    def __init__(self) -> None:
        self.slots = 0

    def score(self, situation: Situation) -> Floats:
        places = np.arange(situation.places, dtype=np.float64)[None]
        return bundles(situation, places if self.slots % 2 else -places)

    def observe(self, records: Sequence[Record]) -> None:
        self.slots += 1


@pytest.mark.parametrize("lag", [0.0, 0.15])
def test_a_growing_job_waits_for_the_workers_of_a_shrinking_job(lag: float) -> None:
    cluster, account = cluster_of(6, policy=Swing()), Account()
    for _ in range(3):
        cluster.submit(Work(account, 120, lag=lag))
    cluster.run()
    assert all(job.state == "done" for job in cluster.jobs)
    assert account.most == 6
    if lag:
        assert any(record.used < 0.9 and not record.finished for record in cluster.history().records)


def test_all_jobs_shrink_before_any_job_grows() -> None:
    cluster, account, heard = cluster_of(6, policy=Swing()), Account(), list[tuple[int, int, int]]()

    def hear(job: Work, workers: int, servers: int) -> None:
        heard.append((slot_of(), jobs.index(job), workers))

    def slot_of() -> int:
        return cluster._slots

    jobs = [Work(account, 1000, on_resize=hear) for _ in range(3)]
    for job in jobs:
        cluster.submit(job)
    cluster.run(slots=4)
    for slot in range(1, 4):
        before = {job: workers for time, job, workers in heard if time < slot}
        changes = [workers - before.get(job, 0) for time, job, workers in heard if time == slot]
        grown = [number for number, change in enumerate(changes) if change > 0]
        assert grown
        assert all(change > 0 for change in changes[grown[0] :])


@settings(max_examples=15, deadline=None)
@given(
    cpus=st.integers(1, 5),
    sizes=st.lists(st.tuples(st.sampled_from([0.5, 1.0]), st.integers(1, 8)), min_size=1, max_size=5),
    lag=st.sampled_from([0.0, 0.01]),
    places=st.integers(1, 4),
)
def test_jobs_never_exceed_the_capacity(
    cpus: int, sizes: list[tuple[float, int]], lag: float, places: int
) -> None:
    cluster, account = Cluster(slot=0.02, capacity={"CPU": cpus}, places=places), Account()
    for demand, total in sizes:
        cluster.submit(Work(account, total, demand=Demand({"CPU": demand}), seconds=0.005, lag=lag))
    cluster.run()
    assert account.most <= cpus
    assert all(job.state == "done" for job in cluster.jobs)
    assert len(cluster.history().completion_times()) == len(sizes)


def test_a_failed_job_is_reported_and_its_workers_are_free(caplog: pytest.LogCaptureFixture) -> None:
    cluster, account = cluster_of(2, policy="fair"), Account()
    bad, good = Work(account, 1000, fails_at=5), Work(account, 60)
    cluster.submit(bad, name="bad")
    cluster.submit(good, name="good")
    cluster.run()
    assert [(job.name, job.state, job.error) for job in cluster.jobs] == [
        ("bad", "failed", "ValueError: a wheel came off"),
        ("good", "done", ""),
    ]
    assert bad.stopped == 1
    assert max(good.sizes) == (2, 0)  # after the failure it had both
    assert "the job bad failed: ValueError: a wheel came off" in caplog.text
    assert set(cluster.history().completion_times()) == {"good"}


def test_jobs_may_be_submitted_while_others_run() -> None:
    cluster, account = cluster_of(), Account()
    cluster.submit(Work(account, 80), name="first")

    def submit_once(_: Cluster) -> None:
        if cluster.at >= 1.5 and len(cluster.jobs) == 1:
            later = threading.Thread(
                target=cluster.submit, args=(Work(account, 5),), kwargs={"name": "later"}
            )
            later.start()
            later.join()

    cluster.run(watch=submit_once)
    assert [job.state for job in cluster.jobs] == ["done", "done"]
    arrived = next(record for record in cluster.history().records if record.job == "later").arrived
    assert 1.5 <= arrived < 2


def test_a_cluster_waits_for_jobs_until_it_is_stopped() -> None:
    """Idle time counts in slots, so that arrivals in the history are those of the clock."""
    cluster, account = cluster_of(slot=1), Account()

    def watch(_: Cluster) -> None:
        if cluster.at >= 5.2 and not cluster.jobs:
            cluster.submit(Work(account, 60), name="late")
        if cluster.jobs and cluster.jobs[0].ended:
            cluster.stop()

    cluster.run(watch=watch, wait=True)
    [job] = cluster.jobs
    assert job.state == "done"
    records = cluster.history().records
    assert 5.2 <= job.arrived < records[0].slot == 6
    working = Work(account, 1000)
    cluster.submit(working, name="long")
    cluster.run(watch=lambda _: cluster.stop())
    assert [job.state for job in cluster.jobs] == ["done", "waiting"]
    assert working.stopped == 1
    cluster.run(slots=2)  # the stop was for the last run only
    assert working.stopped == 2


def test_a_cancelled_job_releases_its_workers_and_is_not_finished_in_the_history() -> None:
    cluster, account = cluster_of(2), Account()
    works = [Work(account, 1000), Work(account, 60), Work(account, 1000)]
    for name, work in zip(("stopped", "kept", "never"), works, strict=True):
        cluster.submit(work, name=name, endless=name == "stopped")
    cluster.cancel("never")

    def watch(_: Cluster) -> None:
        if cluster.at >= 1.5 and not cluster.jobs[0].cancelled:
            cluster.cancel("stopped")

    cluster.run(watch=watch)
    assert [job.state for job in cluster.jobs] == ["cancelled", "done", "cancelled"]
    assert [work.stopped for work in works] == [1, 1, 0]
    assert works[2].sizes == []
    assert max(works[1].sizes) == (2, 0)  # after the cancellation it had both
    assert set(cluster.history().completion_times()) == {"kept"}
    for name, message in (("kept", "the job has ended: done"), ("kite", "there is no such job")):
        with pytest.raises(OptionError, match=f"'{name}' cannot be cancelled: {message}"):
            cluster.cancel(name)


def test_an_endless_job_runs_until_the_slots_are_over() -> None:
    cluster, account = cluster_of(), Account()
    work = Work(account, 3)
    cluster.submit(work, endless=True)
    cluster.run(slots=3)
    [entry] = cluster.jobs
    assert not entry.ended
    assert work.stopped == 1
    assert [record.slot for record in cluster.history().records] == [0, 1, 2]


def test_the_default_policy_is_fair_until_speeds_are_observed() -> None:
    from onlineauto.cluster.policies import Row, Situation, allocate

    policy = Cluster(capacity={"CPU": 8}).policy
    cluster, account = cluster_of(8), Account()
    assert policy.name == cluster.policy.name == MarginalGain.name

    def shared(policy: ClusterPolicy) -> list[int]:
        job: dict[str, Any] = {
            "kind": "work",
            "age": 0,
            "done": 0,
            "remaining": 9,
            "server": {},
            "most_workers": 999,
        }
        rows = [Row(worker={"CPU": cpus}, **job) for cpus in (1, 3)]
        return [int(count) for count in allocate(policy, Situation.of(rows, {"CPU": 99})).workers[0, :2]]

    assert shared(cluster.policy) == shared(Fair())
    cluster.submit(Work(account, 40))
    cluster.run()
    assert shared(cluster.policy) != shared(Fair())


def test_the_history_is_written_after_each_slot_and_continued(tmp_path: Path) -> None:
    path, account = tmp_path / "history.jsonl", Account()
    seen: list[int] = []
    cluster = cluster_of(history=path)
    cluster.submit(Work(account, 90), name="a")
    cluster.submit(Work(account, 8), name="b")
    cluster.run(slots=2, watch=lambda _: seen.append(len(path.read_bytes().splitlines())))
    assert seen[0] == 1  # the head
    assert seen[-1] > 1  # and the first slot, while the second one went on
    with path.open("ab") as file:
        file.write(b'{"type":"slot","slot":2,"jo')  # a crash
    again = cluster_of(history=path)
    again.submit(Work(account, 90), name="a")
    again.submit(Work(account, 8), name="b")  # which the history records as finished
    again.run()
    history = History.load(path)
    assert history.records == again.history().records
    assert set(history.completion_times()) == {"a", "b", "b-2"}
    slots = sorted({record.slot for record in history.records if record.job == "a"})
    assert slots == list(range(len(slots)))
    assert {record.arrived for record in history.records if record.job == "a"} == {0.0}
    assert [json.loads(line)["type"] for line in path.read_text().splitlines()].count("head") == 2


def test_a_history_file_has_one_writer_and_fixed_resources(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    file = HistoryFile(path, Head(capacity={"CPU": 4}))
    with pytest.raises(InputError, match="is in use by another cluster"):
        HistoryFile(path, Head(capacity={"CPU": 4}))
    file.close()
    with pytest.raises(InputError, match="a cluster with CPU, but this one has CPU, GPU"):
        HistoryFile(path, Head(capacity={"CPU": 4, "GPU": 1}))
    (tmp_path / "other").write_text("rate,loss\n1,2\n")
    with pytest.raises(InputError, match="not a line of a cluster's history"):
        HistoryFile(tmp_path / "other", Head(capacity={"CPU": 4}))
    assert (tmp_path / "other").read_text() == "rate,loss\n1,2\n"


CRASHES = """
import sys
from onlineauto.cluster import Cluster
from tests.cluster.workers import Account, Work
cluster = Cluster(slot=0.1, capacity={"CPU": 2}, history=sys.argv[1])
cluster.submit(Work(Account(), 1e9), name="a")
cluster.run()
"""


def test_the_history_survives_a_kill(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    process = subprocess.Popen([sys.executable, "-c", CRASHES, str(path)])
    until(lambda: path.exists() and path.read_bytes().count(b"\n") >= 5)
    process.kill()
    process.wait()
    assert len(History.load(path)) >= 4
    HistoryFile(path, Head(capacity={"CPU": 2})).close()  # the lock went with the process


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"policy": "chance"}, "policy = 'chance' is unknown; valid are"),
        ({"backend": "dask"}, "backend = 'dask' is unknown; valid are local, ray"),
        ({"slot": 0}, "slot = 0: give a number of seconds above 0"),
        ({"places": 0}, "places = 0: give a whole number from 1 to"),
        ({"capacity": {}}, "the capacity is empty"),
        ({"capacity": {"CPU": -1}}, "capacity CPU = -1"),
    ],
)
def test_invalid_options_are_rejected(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        Cluster(**options)


@pytest.mark.parametrize(
    ("job", "options", "message"),
    [
        (object(), {}, "cannot be a job of a cluster, because it has no progress, resize, demand"),
        (Demand({"CPU": 5.0}), {}, "needs at least CPU = 5, but the cluster has only 4"),
        (Demand({"CPU": 1.0}, {"GPU": 1}), {}, "needs at least GPU = 1, but the cluster has none"),
        (Demand({"CPU": 0.0}), {}, "the demand of a worker is empty"),
        (Demand(), {"name": "a"}, "there is a job 'a' already"),
        (Demand(), {"rounds": 2}, "rounds: options are for a Study or a Run"),
    ],
)
def test_invalid_jobs_are_rejected(job: object, options: dict[str, Any], message: str) -> None:
    cluster, account = cluster_of(), Account()
    cluster.submit(Work(account, 1), name="a")
    with pytest.raises(OptionError, match=message):
        cluster.submit(Work(account, 1, demand=job) if isinstance(job, Demand) else job, **options)


def test_records_wait_while_the_disk_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path, sync, full = tmp_path / "history", os.fsync, [False]

    def synced(descriptor: int) -> None:
        if full[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        sync(descriptor)

    monkeypatch.setattr("onlineauto.cluster.history.os.fsync", synced)
    file = HistoryFile(path, Head(capacity={"CPU": 4}))
    before = path.read_bytes()
    record = Record(slot=0, job="a", kind="k", arrived=0, worker={"CPU": 1}, workers=1, servers=0, before=0,
                    done=1, total=9)  # fmt: skip
    full[0] = True
    for _ in range(3):
        file.append([record])
    assert path.read_bytes() == before  # no part of a line is left
    assert caplog.text.count("cannot be written, and its records wait: No space left") == 1
    full[0] = False
    file.append([record])
    assert path.read_bytes().count(b'"job":"a"') == 4
    full[0] = True
    file.append([record])
    with pytest.raises(OutputError, match="lacks its last 1 records: No space left"):
        file.close()
    assert len(History.load(path)) == 4


def test_an_incomplete_first_line_is_replaced_and_other_files_are_not(
    tmp_path: Path,
) -> None:
    path = tmp_path / "history"
    for content in (b"", b'{"ty', b'{"type":"head","capa', b"\n"):
        path.write_bytes(content)
        HistoryFile(path, Head(capacity={"CPU": 4})).close()
        assert path.read_bytes().strip().startswith(b'{"type":"head","capacity":{"CPU":4}')
    for content in (b"my notes", b"my notes\nand more", b'{"a": 1}'):
        path.write_bytes(content)
        with pytest.raises(InputError):
            HistoryFile(path, Head(capacity={"CPU": 4}))
        assert path.read_bytes() == content
