"""Studies and streams as jobs of a cluster."""

from __future__ import annotations

import io
import shutil
import threading
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from datasets.generate import text
from onlineauto import Run, Workspace
from onlineauto.cluster import Cluster, PartitionedRun, RunJob, StreamJob, StudyJob
from onlineauto.cluster.jobs import stream_jobs
from onlineauto.cluster.jobs.study_job import expected_budget, used_resource
from onlineauto.cluster.partitions.coordinator import RoundSchedule
from onlineauto.errors import InputError, OptionError
from onlineauto.tune import SCHEDULERS, Callback, Categorical, Float, Study
from onlineauto.tune.schedulers.pbt import Pbt
from onlineauto.tune.trial import Job
from onlineauto.workspace.options import REGISTRY
from onlineauto.workspace.run import load_run
from tests.tune.workers import trainables
from tests.waiting import PATIENCE, until


@pytest.mark.parametrize("scheduler", ["hyperband", "fifo", "dehb", "asha", "race"])
def test_the_expected_budget_is_the_used_resource(scheduler: str) -> None:
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


def test_copied_checkpoints_do_not_count_as_used_resource() -> None:
    study = Study(
        {"rate": Float(0.5, 1)}, Pbt(population=3, interval=2), "random", max_resource=6, max_trials=6
    )
    study.run(trainables.Counter)
    assert all(trial.resource <= 6 for trial in study.trials)
    done = {(row["trial"], row["resource"]) for row in study.history()}
    assert used_resource(study) == len(done)


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_the_budget_of_each_scheduler_is_computed_in_seconds(scheduler: str) -> None:
    study = Study({"rate": Float(0, 1)}, scheduler, max_resource=27, max_trials=30)
    before = time.process_time()
    assert expected_budget(study.settings) > 30
    assert time.process_time() - before < 15


class Most(Callback):
    """Counts parallel trials."""

    def __init__(self) -> None:
        self.running = self.most = 0

    def on_start(self, job: Job) -> None:
        self.running += 1
        self.most = max(self.most, self.running)

    def on_result(self, job: Job, value: float) -> None:
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
    assert [(job.state, job.error) for job in cluster.jobs] == 3 * [("done", "")]
    assert all(study.is_done for study in studies)
    assert [len(study.trials) for study in studies] == [6, 12]
    assert max(watch.most for watch in watches) <= 3
    assert cluster.jobs[-1].done == 3000
    records = cluster.history().records
    assert {record.kind for record in records} == {"study-fifo-Counter", "stream"}
    for slot in {record.slot for record in records}:
        assert sum(record.workers for record in records if record.slot == slot) <= 3


def test_a_study_without_a_trainable_fails_its_job() -> None:
    study = Study({"rate": Float(0, 1)}, max_trials=2)
    cluster = Cluster(slot=0.2, capacity={"CPU": 1})
    cluster.submit(study, name="a")
    cluster.run()
    [entry] = cluster.jobs
    assert entry.state == "failed"
    assert entry.error.startswith("OptionError: the study 'study' has no trainable: pass one")


def test_a_study_whose_trials_all_failed_is_a_failed_job() -> None:
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
def test_a_complete_study_does_not_run_again(tmp_path: Path) -> None:
    def command(**options: Any) -> Any:
        url = f"sqlite:///{tmp_path / 'study.db'}"
        study = Study(
            {"rate": Float(0, 1), "seconds": Categorical([0.01])}, max_resource=3, storage=url, name="rates"
        )
        cluster = Cluster("fair", slot=0.2, capacity={"CPU": 2}, history=tmp_path / "history.jsonl")
        cluster.submit(StudyJob(study, trainables.Counter, **options), name="rates")
        return cluster, study

    cluster, study = command()
    cluster.run(slots=1)  # is interrupted, or done
    cluster, study = command()
    cluster.run()
    trials, rounds = len(study.trials), study.rounds
    assert rounds >= 1  # more, if a worker had nothing else to do
    records = cluster.history().records
    for _ in range(2):
        cluster, study = command()
        cluster.run()
        assert [(job.name, job.state) for job in cluster.jobs] == [("rates", "done")]
        assert len(study.trials) == trials
        assert cluster.history().records == records
    cluster, study = command(rounds=rounds + 1)
    cluster.run()
    assert study.rounds > rounds
    assert len(study.trials) > trials


@pytest.mark.ci
def test_a_stopped_study_continues_in_another_cluster(tmp_path: Path) -> None:
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


STREAM = text("planted", events=1100, seed=5)
NO_OPTIONS = REGISTRY.from_keywords()
SHORT = RoundSchedule(alone=256, head=8, shortest=64, longest=16, growth=4)


def searching() -> Workspace:
    return Workspace(cb_explore_adf=True, live_configs=3, bit_precision=14)


def stream_job(source: Any = STREAM, **options: Any) -> StreamJob:
    return StreamJob(searching(), source, schedule=SHORT, **options)


def model_of(workspace: Workspace) -> bytes:
    file = io.BytesIO()
    workspace.save(file)
    return file.getvalue()


@pytest.fixture(scope="module")
def undisturbed() -> bytes:
    """Return the model of a run with one worker."""
    with PartitionedRun(searching(), STREAM, schedule=SHORT) as run:
        run.step()
        return model_of(run.workspace)


class Rounds:
    """Blocks jobs before each round until `let`; records the workers of each round."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.may, self.workers, self.pools = threading.Semaphore(0), list[int](), list[str]()
        self._learn = PartitionedRun.learn_round
        rounds = self

        def later(run: PartitionedRun) -> bool:
            assert rounds.may.acquire(timeout=PATIENCE)
            is_more = rounds._learn(run)
            rounds.workers.append(run.pool.size)
            return is_more

        patch.setattr(PartitionedRun, "learn_round", later)

    def let(self, n: int) -> None:
        """Run `n` more rounds of the jobs, and wait for them."""
        before = len(self.workers)
        self.may.release(n)
        until(lambda: len(self.workers) >= before + n)


@pytest.fixture
def rounds(monkeypatch: pytest.MonkeyPatch) -> Iterator[Rounds]:
    rounds = Rounds(monkeypatch)
    yield rounds
    rounds.may.release(1000)


@pytest.mark.ci
def test_the_model_of_a_stream_does_not_depend_on_its_workers(rounds: Rounds, undisturbed: bytes) -> None:
    job = stream_job()
    assert job.progress() == (0, 1000)
    assert job.demand.most_workers == 4
    assert not job.demand.server
    for workers in (1, 3, 2, 1):
        job.resize(workers, 0)
        rounds.let(2)
    assert {2, 3} <= {*rounds.workers}
    done = job.progress()[0]
    job.resize(0, 0)
    rounds.may.release()  # the round that the job has begun to wait for
    until(lambda: job.resources_in_use == (0, 0))
    assert done <= job.progress()[0] < 1100
    rounds.may.release(1000)
    cluster = Cluster("fair", slot=0.2, capacity={"CPU": 2})
    cluster.submit(job, name="stream")
    cluster.run()
    [entry] = cluster.jobs
    assert (entry.state, entry.error, entry.done) == ("done", "", 1100)
    assert model_of(job.workspace) == undisturbed
    assert job.resources_in_use == (0, 0)


def test_threads_have_no_merge_servers() -> None:
    job = stream_job(server={"CPU": 1}, most_servers=3)
    assert (job.demand.server, job.demand.most_servers) == ({"CPU": 1}, 3)
    with pytest.raises(OptionError, match="server: merge servers need the backend ray"):
        Cluster("fair", capacity={"CPU": 5}).submit(job)


@pytest.mark.ci
def test_a_run_pauses_without_a_worker() -> None:
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


def test_a_crashed_run_continues_to_the_same_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_jobs, "_STEP", 100)
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


def test_an_unreadable_stream_raises_in_progress() -> None:
    job = RunJob(Run(Workspace(), "there is no such file"))
    job.resize(1, 0)
    with pytest.raises((InputError, OSError), match="no such file"):
        until(lambda: job.progress() is None)


def test_a_study_job_has_no_option_for_workers() -> None:
    study = Study({"rate": Float(0, 1)}, max_trials=2)
    options: Any = {"workers": 2}
    with pytest.raises(OptionError, match="workers cannot be passed"):
        StudyJob(study, trainables.Counter, **options)


def test_a_stream_from_an_open_file_pauses_and_continues(
    rounds: Rounds, undisturbed: bytes, tmp_path: Path
) -> None:
    events = tmp_path / "events"
    events.write_bytes(STREAM)
    with events.open("rb") as file:
        job = stream_job(file)
        job.resize(1, 0)
        rounds.let(2)
        job.resize(0, 0)
        rounds.may.release()
        until(lambda: job.resources_in_use == (0, 0))
        done = job.progress()[0]
        rounds.may.release(1000)
        time.sleep(0.1)
        assert 0 < job.progress()[0] == done < 1100
        job.resize(1, 0)
        until(lambda: job.progress() == (1100, 1100))
    assert model_of(job.workspace) == undisturbed


def test_a_stopped_stream_continues_from_its_model(
    rounds: Rounds, undisturbed: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "model"
    job = stream_job(model=path, save_every=100)
    job.resize(1, 0)
    rounds.let(3)
    until(path.exists)
    shutil.copy(path, tmp_path / "crashed")  # which is all that a crash leaves
    stopping = threading.Thread(target=job.stop)
    stopping.start()
    rounds.may.release()
    stopping.join(PATIENCE)
    assert job.resources_in_use == (0, 0)
    assert load_run(path, NO_OPTIONS)[1]["position"]["events"] == job.progress()[0] < 1100
    rounds.may.release(1000)
    for begun in (path, tmp_path / "crashed"):
        workspace, stored = load_run(begun, NO_OPTIONS)
        again = StreamJob(workspace, STREAM, stored=stored, schedule=SHORT, model=begun)
        assert 256 <= again.progress()[0] < 1100
        again.resize(1, 0)
        until(lambda job=again: job.progress() == (1100, 1100))  # type: ignore[misc]
        assert model_of(Workspace.load(begun)) == undisturbed
    workspace, stored = load_run(path, NO_OPTIONS)
    over = StreamJob(workspace, STREAM, stored=stored, schedule=SHORT)
    assert over.progress() == (1100, 1100)  # before it has any worker
    over.resize(2, 0)
    assert over.resources_in_use == (0, 0)


def test_an_error_of_a_stream_fails_its_job() -> None:
    cluster = Cluster("fair", slot=0.1, capacity={"CPU": 2})
    cluster.submit(StreamJob(searching(), "there is no such file"), name="missing")
    cluster.run()
    [entry] = cluster.jobs
    assert entry.state == "failed"
    assert "no such file" in entry.error


@pytest.mark.parametrize(
    ("workspace", "options", "message"),
    [
        (Workspace(), {}, "partitions needs --automl"),
        (Workspace(live_configs=2), {"partitions": 0}, "partitions = 0: give 1 or more"),
        (Workspace(live_configs=2), {"save_every": 0}, "save_every = 0: give 1 or more"),
    ],
)
def test_invalid_stream_jobs_are_rejected(
    workspace: Workspace, options: dict[str, int], message: str
) -> None:
    with pytest.raises(OptionError, match=message):
        StreamJob(workspace, STREAM, **options)  # type: ignore[arg-type]


@pytest.mark.ci
def test_a_stopped_cluster_runs_again(undisturbed: bytes) -> None:
    events = b"1 |a x\n0 |a y\n" * 1500
    study = Study({"rate": Float(0, 1)}, "fifo", "random", max_resource=2, max_trials=3)
    cluster = Cluster("fair", slot=0.05, capacity={"CPU": 4})
    stream = stream_job()
    cluster.submit(Run(Workspace(), events), name="run")
    cluster.submit(stream, name="stream")
    cluster.submit(study, trainable="tests.tune.workers.trainables:Counter", name="study")
    cluster.run(slots=1)
    assert not all(job.ended for job in cluster.jobs)
    cluster.run(slots=20 * int(PATIENCE))
    assert [(job.name, job.state, job.done) for job in cluster.jobs] == [
        ("run", "done", 3000),
        ("stream", "done", 1100),
        ("study", "done", 6),
    ]
    assert model_of(stream.workspace) == undisturbed
