"""Studies and streams as jobs of a cluster."""

from __future__ import annotations

import shutil
import threading
import time
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from onlineauto import Run, Workspace
from onlineauto.cluster import Cluster, RunJob, ShardedLearner, ShardedRun, StreamJob, StudyJob
from onlineauto.cluster.elastic.learning.feed import TickFeed
from onlineauto.cluster.jobs import run_job
from onlineauto.cluster.jobs.budget import expected_budget, used_resource
from onlineauto.errors import InputError, OptionError
from onlineauto.tune import SCHEDULERS, Callback, Categorical, Float, Study
from onlineauto.tune.schedulers.pbt import Pbt
from tests.tune.workers import trainables
from tests.waiting import PATIENCE, until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from onlineauto.cluster.elastic import Snapshot
    from onlineauto.tune.workers.jobs import TrialJob


@pytest.mark.parametrize("scheduler", ["hyperband", "fifo", "dehb", "asha", "race"])
def test_the_budget_of_a_study_is_what_it_takes(scheduler: str) -> None:
    study = Study({"rate": Float(0, 1)}, scheduler, "random", max_resource=9, max_trials=20)
    expected = expected_budget(study.settings)
    study.run(trainables.Counter)
    assert used_resource(study) == pytest.approx(
        expected, rel={"asha": 0.35, "dehb": 0.05}.get(scheduler, 0.02)
    )


def test_the_budget_of_a_round() -> None:
    study = Study({"rate": Float(0, 1)}, "hyperband", "random", max_resource=9)
    expected = expected_budget(study.settings, rounds=1)
    study.run(trainables.Counter)
    assert used_resource(study) == expected == 9 + 3 * 2 + 6 + 5 * 3 + 2 * 6 + 3 * 9


def test_copies_bring_no_budget_along() -> None:
    study = Study(
        {"rate": Float(0.5, 1)}, Pbt(population=3, interval=2), "random", max_resource=6, max_trials=6
    )
    study.run(trainables.Counter)
    assert all(each.resource <= 6 for each in study.trials)
    done = {(row["trial"], row["resource"]) for row in study.history()}
    assert used_resource(study) == len(done)


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_every_scheduler_has_a_budget(scheduler: str) -> None:
    study = Study({"rate": Float(0, 1)}, scheduler, max_resource=27, max_trials=30)
    before = time.process_time()
    assert expected_budget(study.settings) > 30
    assert time.process_time() - before < 15


class Most(Callback):
    """Counts trials that run at once."""

    def __init__(self) -> None:
        self.running = self.most = 0

    def on_start(self, job: TrialJob) -> None:
        self.running += 1
        self.most = max(self.most, self.running)

    def on_result(self, job: TrialJob, value: float) -> None:
        self.running -= 1


@pytest.mark.ci
def test_two_studies_and_a_stream_share_a_machine(tmp_path: Path) -> None:
    space = {"rate": Float(0, 1), "seconds": Categorical([0.02])}
    studies = [
        Study(space, "fifo", "random", max_resource=3, max_trials=trials, seed=trials) for trials in (6, 12)
    ]
    watches = [Most(), Most()]
    cluster = Cluster(slot=0.5, capacity={"CPU": 3}, policy="fair", history=tmp_path / "history.jsonl")
    for study, watch in zip(studies, watches, strict=True):
        cluster.submit(
            study, trainable=trainables.Counter, callbacks=[watch], name=f"study {len(cluster.jobs)}"
        )
    run = Run(Workspace(), [f"{i % 2} |a x{i % 3}" for i in range(3000)])
    cluster.submit(run, events=3000, name="stream")
    cluster.run()
    assert [(each.state, each.error) for each in cluster.jobs] == 3 * [("done", "")]
    assert all(study.is_done for study in studies)
    assert [len(study.trials) for study in studies] == [6, 12]
    assert max(watch.most for watch in watches) <= 3
    assert cluster.jobs[-1].done == 3000
    records = cluster.history().records
    assert {each.kind for each in records} == {"study-fifo-Counter", "stream"}
    for slot in {each.slot for each in records}:
        assert sum(each.workers for each in records if each.slot == slot) <= 3


def test_a_study_that_cannot_be_run_is_the_error_of_its_job() -> None:
    study = Study({"rate": Float(0, 1)}, max_trials=2)
    cluster = Cluster(slot=0.2, capacity={"CPU": 1})
    cluster.submit(study, name="a")
    cluster.run()
    [entry] = cluster.jobs
    assert entry.state == "failed"
    assert entry.error.startswith("OptionError: the study 'study' has no trainable: pass one")


def test_a_study_of_which_every_trial_failed_is_a_job_that_failed() -> None:
    cluster = Cluster(slot=0.2, capacity={"CPU": 2})
    studies = []
    for name, space in (
        ("bad", {"rate": Float(0, 1), "fails_at": Categorical([1])}),
        ("good", {"rate": Float(0, 1), "fails_at": Categorical([1, 99])}),
    ):
        study = Study(space, "fifo", "random", max_resource=2, max_trials=6, seed=3)
        cluster.submit(study, trainable=trainables.Counter, name=name)
        studies.append(study)
    cluster.run()
    bad, good = cluster.jobs
    assert (bad.state, good.state) == ("failed", "done")
    assert bad.error.startswith("OnlineautoError: all 6 trials failed, trial 0: ")
    assert any(trial.error for trial in studies[1].trials)


@pytest.mark.ci
def test_a_study_that_is_stopped_goes_on_in_another_cluster(tmp_path: Path) -> None:
    space = {"rate": Float(0, 1), "seconds": Categorical([0.05])}
    storage = f"sqlite:///{tmp_path / 'study.db'}"

    def submit() -> tuple[Cluster, Study]:
        study = Study(space, "fifo", "random", max_resource=4, max_trials=16, storage=storage)
        cluster = Cluster(slot=0.25, capacity={"CPU": 2}, history=tmp_path / "history.jsonl")
        cluster.submit(study, trainable=trainables.Counter, name="a")
        return cluster, study

    def interrupt(_: Cluster) -> None:
        if used_resource(study) >= 3 and cluster.history().records:
            raise KeyboardInterrupt

    cluster, study = submit()
    with pytest.raises(KeyboardInterrupt):
        cluster.run(watch=interrupt)
    assert cluster.jobs[0].resources_in_use(0.0) == (0, 0)
    cluster, study = submit()
    cluster.run()
    assert study.is_done
    records = cluster.history().records
    assert records[-1].finished
    assert all(now.before >= then.done for then, now in pairwise(records))
    assert records[0].before == 0


@contextmanager
def held_streams() -> Iterator[None]:
    """Hold sharded streams after some ticks, so that none ends before it is paused."""
    parts_of, go_on = TickFeed.parts_of, threading.Event()

    def later(feed: TickFeed, tick: int, rank: int, n: int) -> list[bytes] | None:
        if tick >= 40:
            go_on.wait(PATIENCE)
        return parts_of(feed, tick, rank, n)

    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(TickFeed, "parts_of", later)
        try:
            yield
        finally:
            go_on.set()


def test_a_sharded_stream_is_the_same_whoever_had_what(tmp_path: Path) -> None:
    events = "".join(f"{i % 2} |a x{i % 7} y{i % 11}\n" for i in range(10_000)).encode()
    learner = ShardedLearner(parts=4, part_events=16, warm_up=100, blocks=4)
    job = StreamJob(learner, events)
    with held_streams():
        job.resize(2, 1)
        until(lambda: job.progress()[0] > 500)
        job.resize(0, 0)
        until(lambda: job.resources_in_use == (0, 0))
    done = job.progress()[0]
    assert job.progress()[0] == done < 10_000
    cluster = Cluster(slot=0.3, capacity={"CPU": 4})
    cluster.submit(job, name="stream")
    cluster.run()
    [entry] = cluster.jobs
    assert (entry.state, entry.error, entry.done) == ("done", "", 10_000)
    alone = learner.fit(events)
    assert job.workspace().predict("|a x3 y5") == alone.predict("|a x3 y5")
    assert job.resources_in_use == (0, 0)


@pytest.mark.ci
def test_a_run_waits_without_a_worker() -> None:
    run = Run(Workspace(), (f"{i % 2} |a x{i % 3}" for i in range(10**9)))
    job = RunJob(run)
    assert job.progress() == (0, 1000)
    job.resize(1, 0)
    until(lambda: job.progress()[0] > 0)
    job.resize(0, 0)
    until(lambda: job.resources_in_use == (0, 0))
    done = job.progress()[0]
    time.sleep(0.1)
    assert job.progress()[0] == done == run.position.events
    job.resize(1, 0)
    until(lambda: job.progress()[0] > done)
    job.stop()
    assert job.resources_in_use == (0, 0)


def test_a_run_that_crashed_goes_on_and_comes_to_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_job, "_STEP", 100)
    events = [f"{i % 2} |a x{i % 3} y{i % 7}" for i in range(900)]
    options: dict[str, Any] = {"save_every": 200, "kind": "stream"}

    def learn(run: Run, path: Path) -> RunJob:
        job = RunJob(run, model=path, **options)
        job.resize(1, 0)
        until(lambda: job.progress()[0] == job.progress()[1])
        return job

    learn(Run(Workspace(), events), tmp_path / "whole")
    goes_on = threading.Event()

    def crashes() -> Iterator[str]:
        yield from events[:550]
        goes_on.wait(PATIENCE)
        yield from events[550:]

    job = RunJob(Run(Workspace(), crashes()), model=tmp_path / "torn", **options)
    job.resize(1, 0)
    until((tmp_path / "torn").exists)
    until(lambda: Run.resume(tmp_path / "torn", events).position.events == 400)
    shutil.copy(tmp_path / "torn", tmp_path / "crashed")  # which is all that a crash leaves
    job.resize(0, 0)
    goes_on.set()
    until(lambda: job.resources_in_use == (0, 0))
    paused = Run.resume(tmp_path / "torn", events)
    assert paused.position.events == job.progress()[0] >= 400
    job.stop()
    for path in (tmp_path / "crashed", tmp_path / "torn"):
        again = learn(Run.resume(path, events), path)
        assert again.run.position.passes == 1
        assert path.read_bytes() == (tmp_path / "whole").read_bytes()
    over = RunJob(Run.resume(tmp_path / "whole", events), model=tmp_path / "whole")
    assert over.progress() == (900, 900)  # before it has any worker


def test_a_stream_that_cannot_be_read_is_the_error_of_its_job() -> None:
    job = RunJob(Run(Workspace(), "there is no such file"))
    job.resize(1, 0)
    with pytest.raises((InputError, OSError), match="no such file"):
        until(lambda: job.progress() is None)


def test_how_many_workers_there_are_is_the_clusters_word() -> None:
    study = Study({"rate": Float(0, 1)}, max_trials=2)
    options: Any = {"workers": 2}
    with pytest.raises(OptionError, match="workers cannot be passed"):
        StudyJob(study, trainables.Counter, **options)


def test_a_stream_that_is_paused_while_its_progress_is_asked_for_has_not_failed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    job = StreamJob(ShardedLearner(parts=2, part_events=2, warm_up=2, blocks=2), b"1 |a x\n" * 20000)
    with held_streams():
        job.resize(1, 1)
        until(lambda: job.progress()[0])
        run, before = job._run, ShardedRun.progress
        assert run is not None

        def paused(self: ShardedRun) -> tuple[int, int]:
            found = before(self)
            job._run = None
            self.stop()
            return found

        monkeypatch.setattr(ShardedRun, "progress", paused)
        done, total = job.progress()
    assert 0 < done < total
    assert run.ended
    job.stop()


def test_a_stream_that_is_stopped_while_it_is_paused_has_not_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    job = StreamJob(ShardedLearner(parts=2, part_events=2, warm_up=2, blocks=2), b"1 |a x\n" * 400)
    snapshot, stopping = ShardedRun.snapshot, threading.Thread(target=job.stop)

    def stopped(self: ShardedRun, *given: Any) -> Snapshot:
        stopping.start()
        until(lambda: self.ended)
        return snapshot(self, *given)

    with held_streams():
        job.resize(1, 1)
        until(lambda: job.progress()[0])
        with monkeypatch.context() as changed:
            changed.setattr(ShardedRun, "snapshot", stopped)
            job.resize(0, 0)
            until(lambda: stopping.ident is not None)
            stopping.join(PATIENCE)
    assert job.resources_in_use == (0, 0)
    job.resize(1, 1)
    until(lambda: job.progress() == (400, 400))
    job.stop()


@pytest.mark.ci
def test_a_cluster_that_was_stopped_is_run_again(tmp_path: Path) -> None:
    events = b"1 |a x\n0 |a y\n" * 1500
    learner = ShardedLearner(parts=2, part_events=8, warm_up=2, blocks=2)
    study = Study({"rate": Float(0, 1)}, "fifo", "random", max_resource=2, max_trials=3)
    cluster = Cluster("fair", slot=0.05, capacity={"CPU": 4})
    stream = StreamJob(learner, events)
    cluster.submit(Run(Workspace(), events), name="run")
    cluster.submit(stream, name="stream")
    cluster.submit(study, trainable="tests.tune.workers.trainables:Counter", name="study")
    cluster.run(slots=1)
    assert not all(each.ended for each in cluster.jobs)
    cluster.run(slots=20 * int(PATIENCE))
    assert [(each.name, each.state, each.done) for each in cluster.jobs] == [
        ("run", "done", 3000),
        ("stream", "done", 3000),
        ("study", "done", 6),
    ]
    assert (stream.workspace().weights == learner.fit(events).weights).all()


def test_a_stream_that_cannot_be_read_twice_does_not_wait(tmp_path: Path) -> None:
    events = tmp_path / "events"
    events.write_bytes(b"1 |a x\n0 |a y\n" * 400)
    learner = ShardedLearner(parts=2, part_events=2, warm_up=2, blocks=2)
    with events.open("rb") as file:
        job = StreamJob(learner, file)
        job.resize(1, 1)
        until(lambda: job.progress()[0])
        job.resize(0, 0)

        def is_over() -> bool:
            done, total = job.progress()
            assert job.resources_in_use == (1, 1) or done == 800
            return (done, total) == (800, 800)

        until(is_over)
        weights = job.workspace().weights
        job.stop()
    assert (weights == learner.fit(events).weights).all()
