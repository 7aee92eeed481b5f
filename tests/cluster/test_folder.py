"""Jobs reach a running cluster through a folder: they are submitted, listed, cancelled and continued."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import IO

import msgspec
import pytest

from onlineauto.cluster import Cluster, ClusterFolder, History, JobStatus
from onlineauto.errors import InputError, OptionError
from onlineauto.formats.sources.replaced_file import replacing
from onlineauto.tune import Study
from tests.cli.conftest import Command, run
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.lane("ci")
__all__ = ["run"]

TRAINABLE = """
import os, time
def loss(config, resource, report):
    while True:
        time.sleep(float(os.environ.get("SECONDS_OF_A_STEP", "0")))
        report(config["rate"] / (report.step + 1), save=report.step)
"""
STUDY = """\
[[jobs]]
name = "rates"
study = "sqlite:///study.db"
trainable = "tuned_from_a_folder:loss"
space = {rate = {type = "float", low = 0, high = 1}}
scheduler = "fifo"
max_resource = 2
max_trials = 6
"""
STREAM = """\
[[jobs]]
stream = "train.txt"
events = 500
model = "learnt.model"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ClusterFolder:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "tuned_from_a_folder.py").write_text(TRAINABLE)
    monkeypatch.delitem(sys.modules, "tuned_from_a_folder", raising=False)
    (tmp_path / "train.txt").write_text("".join(f"{i % 2} |a x{i % 3}\n" for i in range(500)))
    (tmp_path / "study.toml").write_text(STUDY)
    (tmp_path / "stream.toml").write_text(STREAM)
    return ClusterFolder("queue")


@contextmanager
def serving(folder: ClusterFolder, *, slot: float = 0.3) -> Iterator[None]:
    """Run a cluster on a folder in a thread, and stop it at the end."""
    cluster = Cluster("fair", slot=slot, capacity={"CPU": 2})
    thread = threading.Thread(target=folder.serve, args=(cluster,))
    thread.start()
    try:
        until(lambda: folder.is_running)
        yield
    finally:
        assert folder.stop()
        thread.join()


def states(folder: ClusterFolder) -> dict[str, str]:
    return {job.name: job.state for job in folder.jobs()}


def test_jobs_are_submitted_to_a_running_cluster(folder: ClusterFolder) -> None:
    with serving(folder):
        [study] = folder.submit("study.toml")
        assert study.name == "rates"
        assert study.state in {"waiting", "running"}
        folder.submit("stream.toml")
        until(lambda: states(folder) == {"rates": "done", "train": "done"}, what=folder.jobs)
        assert [(job.done, job.total, job.seconds_left) for job in folder.jobs()] == [
            (12.0, 12.0, None),
            (500.0, 500.0, None),
        ]
    assert Path("learnt.model").exists()
    assert Study.load("rates", storage="sqlite:///study.db").is_done
    assert not folder.is_running
    assert not (folder.path / "stop").exists()


def test_an_invalid_job_is_rejected_with_its_line_and_the_others_continue(
    folder: ClusterFolder, caplog: pytest.LogCaptureFixture
) -> None:
    with serving(folder):
        Path("typo.toml").write_text(STUDY.replace("max_trials", "max_trails"))
        with pytest.raises(OptionError, match=r"typo.toml:8: max_trails is unknown here"):
            folder.submit("typo.toml")
        Path("typo.toml").write_text(STREAM.replace("[[jobs]]", "[[jobs]]\nflags = '--l3 1'"))
        with pytest.raises(OptionError, match=r"typo.toml:2: flags: .*--l3"):
            folder.submit("typo.toml")
        Path("typo.toml").write_text(STREAM.replace("train.txt", "no.txt"))
        with pytest.raises(OptionError, match=r"typo.toml:2: stream = 'no.txt': there is no such"):
            folder.submit("typo.toml")
        Path("typo.toml").write_text(STREAM + STREAM)
        with pytest.raises(OptionError, match=r"typo.toml:5: there is a job 'train' above"):
            folder.submit("typo.toml")
        assert folder.jobs() == []  # none of these reaches the cluster
        Path("leaves.py").write_text("raise SystemExit(3)\n")
        for trainable, reason in (
            ("tuned_from_a_folder:lost", "bad.toml:4: trainable = .*the module .* has no 'lost'"),
            ("leaves:loss", "SystemExit: 3"),
        ):
            Path("bad.toml").write_text(
                STUDY.replace("tuned_from_a_folder:loss", trainable).replace("rates", "bad")
            )
            with pytest.raises(OptionError, match=reason):
                folder.submit("bad.toml")
        Path("bad.toml").write_text(STREAM.replace("[[jobs]]", "[[jobs]]\nname = 'wide'\nworker = {CPU = 3}"))
        with pytest.raises(OptionError, match="the job 'wide' needs at least CPU = 3"):
            folder.submit("bad.toml")
        (folder.path / "jobs" / "garbage.json").write_text("{")
        folder.submit("stream.toml")
        until(lambda: states(folder)["train"] == "done", what=folder.jobs)
        assert states(folder) == dict.fromkeys(("bad", "bad-2", "wide"), "rejected") | {"train": "done"}
        assert "garbage.json is not a submitted job" in caplog.text


def test_a_job_is_cancelled_before_and_while_it_runs(
    folder: ClusterFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECONDS_OF_A_STEP", "1")
    folder.submit("study.toml")
    assert folder.cancel("rates").state == "submitted"
    with serving(folder):
        until(lambda: states(folder) == {"rates": "cancelled"})
        [again] = folder.submit("study.toml")
        assert again.name == "rates-2"
        until(lambda: states(folder)["rates-2"] == "running", what=folder.jobs)
        with pytest.raises(OptionError, match="there is a job 'rates-2', which is running"):
            folder.submit("study.toml")
        until(lambda: folder.jobs()[1].seconds_left, what=folder.jobs)
        assert folder.jobs()[1].workers == 2
        assert folder.cancel("rates-2", seconds=PATIENCE).state == "cancelled"
        with pytest.raises(OptionError, match="the job 'rates-2' has ended: cancelled"):
            folder.cancel("rates-2")
        with pytest.raises(OptionError, match="queue has no job 'rate'; it has: rates, rates-2"):
            folder.cancel("rate")
        until(lambda: not [*folder.path.glob("jobs/*.cancel")])
        monkeypatch.setenv("SECONDS_OF_A_STEP", "0")
        assert [job.name for job in folder.submit("study.toml")] == ["rates-3"]  # continues from its store
        until(lambda: states(folder)["rates-3"] == "done", what=folder.jobs)
        assert folder.jobs()[2].done == 12


def test_a_folder_has_one_cluster(folder: ClusterFolder) -> None:
    with pytest.raises(OptionError, match="no cluster runs on queue"):
        folder.stop()
    with pytest.raises(InputError, match="queue: no jobs have been submitted"):
        folder.jobs()
    with serving(folder):
        with pytest.raises(InputError, match="another cluster runs on queue"):
            folder.serve(Cluster("fair", capacity={"CPU": 1}))
        assert folder.is_running
    Path("file").touch()
    with pytest.raises(InputError, match="cannot use the folder file"):
        ClusterFolder("file").submit("stream.toml")


def test_two_jobs_do_not_write_one_model(folder: ClusterFolder) -> None:
    Path("wide.txt").write_text("".join(f"{i % 2} |a x{i % 3}\n" for i in range(500)))
    Path("pair.toml").write_text(STREAM + STREAM.replace("train.txt", "wide.txt"))
    folder.submit("pair.toml")
    with serving(folder):
        until(lambda: {*states(folder).values()} == {"done", "rejected"}, what=folder.jobs)
        assert "pair.toml:8: model = 'learnt.model' is that of another job" in folder.jobs()[1].error
        assert folder.submit("stream.toml", seconds=PATIENCE)[0].name == "train-2"
        until(lambda: states(folder)["train-2"] == "done", what=folder.jobs)


@pytest.mark.parametrize("name", ["a/b é", "..", ".x", "x%20y", "CON:*?"])
def test_a_job_may_have_any_name(folder: ClusterFolder, name: str) -> None:
    Path("named.toml").write_text(f"[[jobs]]\nname = '{name}'\nstream = 'train.txt'\n")
    assert folder.submit("named.toml") == [JobStatus(name)]
    assert folder.cancel(name) == JobStatus(name)
    assert {path.parent for path in Path().rglob("*.cancel")} == {Path("queue/jobs")}
    with serving(folder):
        until(lambda: states(folder) == {name: "cancelled"}, what=folder.jobs)
        until(lambda: not [*Path().rglob("*.cancel")])
        assert folder.submit("named.toml", seconds=PATIENCE)[0].name == f"{name}-2"
        until(lambda: states(folder)[f"{name}-2"] == "done", what=folder.jobs)


def test_a_failed_job_does_not_affect_the_others(folder: ClusterFolder) -> None:
    Path("folder").mkdir()
    Path("fails.toml").write_text("[[jobs]]\nstream = 'folder'\n" + STREAM)
    with serving(folder):
        folder.submit("fails.toml")
        until(lambda: states(folder) == {"folder": "failed", "train": "done"}, what=folder.jobs)
        assert "is a directory" in folder.jobs()[0].error


def test_no_submission_is_lost_or_overwritten(folder: ClusterFolder) -> None:
    """Processes that submit at once get names of their own, in a folder with and without a cluster."""

    def submit(number: int) -> list[str]:
        Path(f"{number}.toml").write_text(STREAM.replace("learnt", f"{number}"))
        try:
            return [job.name for job in ClusterFolder("queue").submit(f"{number}.toml")]
        except OptionError as error:
            assert "there is a job 'train'" in f"{error}"  # noqa: PT017 - the others submitted theirs
            return []
        except InputError as error:
            assert "cannot submit 'train' to queue: File exists; submit it again" in f"{error}"  # noqa: PT017
            return []

    with ThreadPoolExecutor(8) as pool:
        names = [name for names in pool.map(submit, range(8)) for name in names]
    assert sorted(names) == sorted({*names}) == sorted(states(folder))
    with serving(folder):
        until(lambda: {*states(folder).values()} == {"done"}, what=folder.jobs)
    assert sorted(states(folder)) == sorted(names)


def test_a_killed_cluster_is_continued_with_what_was_submitted_since(
    folder: ClusterFolder, run: Command
) -> None:
    """The models are the same bytes as without a kill, and no trial that ended runs again."""
    Path("long.txt").write_text("".join(f"{i % 2} |a x{i % 3} y{i % 7}\n" for i in range(60_000)))
    Path("long.toml").write_text(
        STREAM.replace("train.txt", "long.txt").replace("500", "60000\nsave_every = 1000")
    )
    words = ["cluster", "serve", "queue", "--slot", "0.3", "--capacity", "CPU=3", "--policy", "fair"]
    command = [sys.executable, "-m", "onlineauto", *words]
    environment = os.environ | {"SECONDS_OF_A_STEP": "0.5"}
    first = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    until(lambda: folder.is_running or first.poll() is not None)
    Path("study.toml").write_text(STUDY.replace("max_trials = 6", "max_trials = 30"))
    folder.submit("study.toml", seconds=PATIENCE)
    until(lambda: folder.jobs()[0].done >= 3, what=folder.jobs)
    folder.submit("long.toml", seconds=PATIENCE)
    until(lambda: Path("learnt.model").exists() or first.poll() is not None)
    first.kill()
    _, err = first.communicate()
    assert first.returncode == -signal.SIGKILL, err
    assert states(folder) == {"rates": "waiting", "long": "waiting"}
    Path("later.toml").write_text(STREAM.replace("learnt", "later"))
    out, err = run("cluster submit queue later.toml")
    assert out == "train: submitted\n"
    assert "no cluster runs on queue, so this waits for one" in err
    out, _ = run("cluster status queue")
    assert [line.split()[:2] for line in out.splitlines()[1:4]] == [
        ["rates", "waiting"],
        ["long", "waiting"],
        ["train", "submitted"],
    ]
    assert out.splitlines()[4] == "no cluster runs on queue"
    second = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until(lambda: {*states(folder).values()} == {"done"} or second.poll() is not None, what=folder.jobs)
    status = msgspec.json.decode(run("cluster status queue --json").out)
    assert status["running"]
    assert [(job["name"], job["done"]) for job in status["jobs"]] == [
        ("rates", 60),
        ("long", 60_000),
        ("train", 500),
    ]
    assert run("cluster stop queue").out == "the cluster on queue has ended\n"
    out, err = second.communicate(timeout=PATIENCE)
    assert second.returncode == 0, err
    assert "Traceback" not in err
    Path("whole.toml").write_text(Path("long.toml").read_text().replace("learnt", "unbroken"))
    run("cluster run whole.toml --slot 0.3")
    assert Path("unbroken.model").read_bytes() == Path("learnt.model").read_bytes()
    times = History.load("queue/history.jsonl").completion_times()
    assert {"rates", "long", "train"} <= {*times}


def test_an_interrupt_ends_the_command_in_good_order(folder: ClusterFolder) -> None:
    command = [sys.executable, "-m", "onlineauto", "cluster", "serve", "queue", "--slot", "0.3"]
    environment = os.environ | {"SECONDS_OF_A_STEP": "1"}
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    until(lambda: folder.is_running or process.poll() is not None)
    folder.submit("study.toml", seconds=PATIENCE)
    until(lambda: states(folder)["rates"] == "running", what=folder.jobs)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert out == "jobs for this cluster: onlineauto cluster submit queue FILE\n"
    assert err.endswith("onlineauto: interrupted; the same command continues the jobs\n")
    assert "Traceback" not in err
    [job] = folder.jobs()
    assert (job.state, job.workers) == ("waiting", 0)


def test_a_status_that_cannot_be_written_is_reported_and_written_later(
    folder: ClusterFolder, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures = iter(range(2))

    def replace(path: Path) -> AbstractContextManager[IO[bytes]]:
        if path.name == "status.json" and next(failures, None) is not None:
            raise OSError(errno.ENOSPC, "No space left on device", f"{path}")
        return replacing(path)

    monkeypatch.setattr("onlineauto.cluster.folder.replacing", replace)
    with serving(folder):
        folder.submit("stream.toml")
        until(lambda: states(folder) == {"train": "done"}, what=folder.jobs)
    assert caplog.text.count("No space left on device") == 2


def test_the_command_line_rejects_what_has_no_effect(folder: ClusterFolder, run: Command) -> None:
    run("cluster submit queue", code=2, err="cluster needs a command and its words")
    run("cluster list queue", code=2, err="cluster needs a command")
    run("cluster status queue", code=1, err="queue: no jobs have been submitted to this folder")
    run("cluster cancel queue rates --slot 3", code=2, err="slot: for onlineauto cluster run and serve only")
    run("cluster run study.toml --json", code=2, err="json: for onlineauto cluster status only")
    run("cluster serve queue --policy lottery", code=2, err="policy = 'lottery' is unknown")
    run("cluster stop queue", code=2, err="no cluster runs on queue")
    Path("both.toml").write_text("[cluster]\nslot = 3\n" + STREAM.replace('model = "learnt.model"', ""))
    assert run("cluster submit queue both.toml").out == "train: submitted\n"
    out, _ = run("cluster status queue")
    assert out.splitlines()[:2] == [
        "job    state      workers  servers  done  left",
        "train  submitted  0        0        0",
    ]
    (folder.path / "status.json").write_text("[1]")
    run("cluster status queue", code=1, err="status.json is not the status of a cluster")


def test_an_ignored_table_and_an_unsaved_model_are_reported(
    folder: ClusterFolder, caplog: pytest.LogCaptureFixture
) -> None:
    Path("both.toml").write_text("[cluster]\nslot = 3\n" + STREAM.replace('model = "learnt.model"', ""))
    assert folder.submit("both.toml") == [JobStatus("train")]
    assert "both.toml:1: [cluster] is ignored: the cluster runs already" in caplog.text
    assert "both.toml:4: the model of this stream is not saved" in caplog.text
