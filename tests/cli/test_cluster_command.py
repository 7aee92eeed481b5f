"""The verb ``cluster``: jobs of a file share a machine."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from datasets.generate import text
from onlineauto.cluster import Cluster, Fair, Guarded, History, Learned
from onlineauto.cluster.partitions.coordinator import RoundSchedule
from onlineauto.tune import Study
from tests.cli.conftest import Command
from tests.processes import python
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.lane("ci")

JOBS = """\
[cluster]
capacity = {CPU = 3}
slot = 0.5

[[jobs]]
name = "rates"
study = "sqlite:///study.db"
trainable = "tuned_in_a_cluster:loss"
space = {rate = {type = "float", low = 0, high = 1}}
scheduler = "fifo"
max_resource = 2
max_trials = 6

[[jobs]]
stream = "train.txt"
flags = "--l2 0.001"
events = 500
model = "learnt.model"
"""
TRAINABLE = """
import os, time
def loss(config, resource, report):
    while True:
        time.sleep(float(os.environ.get("SECONDS_OF_A_STEP", "0")))
        report(config["rate"] / (report.step + 1), save=report.step)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tuned_in_a_cluster.py").write_text(TRAINABLE)
    (tmp_path / "train.txt").write_text("".join(f"{i % 2} |a x{i % 3}\n" for i in range(500)))
    (tmp_path / "jobs.toml").write_text(JOBS)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "tuned_in_a_cluster", raising=False)
    return tmp_path


def test_the_jobs_of_a_file_are_run(run: Command, folder: Path) -> None:
    out, err = run("cluster run jobs.toml --history history.jsonl")
    first, second, third = out.splitlines()
    assert first.startswith("rates: done, 12 of 12 in ")
    assert second.startswith("train: done, 500 of 500 in ")
    assert third == "the model of train is in learnt.model"
    assert err == ""
    assert (folder / "learnt.model").exists()
    assert Study.load("rates", storage="sqlite:///study.db").is_done
    assert set(History.load("history.jsonl").completion_times()) == {"rates", "train"}
    learnt = (folder / "learnt.model").read_bytes()
    assert run("cluster run jobs.toml --history history.jsonl").out == out  # nothing is done twice
    assert (folder / "learnt.model").read_bytes() == learnt


def test_a_failed_job_is_reported_and_the_others_continue(run: Command, folder: Path) -> None:
    (folder / "nothing.txt").mkdir()
    (folder / "jobs.toml").write_text(JOBS.replace("train.txt", "nothing.txt"))
    first, second = run("cluster run jobs.toml", code=1).out.splitlines()
    assert first.startswith("rates: done")
    assert second.startswith("nothing: failed, 0 of")
    assert "nothing.txt" in second


def test_all_failed_jobs_are_reported(run: Command, folder: Path) -> None:
    (folder / "nothing.txt").mkdir()
    (folder / "fails_in_a_cluster.py").write_text(
        "def loss(config, resource, report):\n    raise ValueError('flat')\n"
    )
    jobs = JOBS.replace("train.txt", "nothing.txt").replace("tuned_in_a_cluster", "fails_in_a_cluster")
    (folder / "jobs.toml").write_text(jobs)
    out, err = run("cluster run jobs.toml", code=1)
    assert out.startswith("rates: failed, ")
    assert "OnlineautoError: all 6 trials failed, trial 0: " in out
    assert "ValueError: flat" in out
    assert "onlineauto: all 2 jobs failed\n" in err
    assert "done" not in out


def test_the_same_command_continues_after_an_interrupt(run: Command, folder: Path) -> None:
    words = [sys.executable, "-m", "onlineauto", "cluster", "run", "jobs.toml", "--history", "history.jsonl"]
    environment = os.environ | {"SECONDS_OF_A_STEP": "1.5"}
    process = subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    history = folder / "history.jsonl"
    until(lambda: process.poll() is not None or (history.exists() and b"rates" in history.read_bytes()))
    assert process.poll() is None, process.communicate()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert "the same command continues" in err
    assert "Traceback" not in err
    assert out.startswith("rates: ")
    run("cluster run jobs.toml --history history.jsonl")
    assert {"rates"} <= set(History.load("history.jsonl").completion_times())


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("slot = 0.5", "slot = -1", "jobs.toml:3: slot = -1"),
        ("slot = 0.5", 'policy = "lottery"', "jobs.toml:3: policy = 'lottery' is unknown; valid are"),
        ("slot = 0.5", 'learned = "no.npz"', r"jobs.toml:3: learned = 'no.npz': there is no such file"),
        ("slot = 0.5", 'learned = "train.txt"', r"jobs.toml:3: .*train.txt: not a policy that Learned.save"),
        ("slot = 0.5", 'policy = "fair"\nlearned = "train.txt"', "jobs.toml:4: learned = .* needs policy"),
        ("slot = 0.5", "learned = 3", "jobs.toml:3: learned = 3: give the path of a file"),
        ("slot = 0.5", "slots = 1", "jobs.toml:3: slots is unknown here; valid are"),
        ("CPU = 3", "CPU = 0", "jobs.toml:2: capacity CPU = 0"),
        ("max_trials = 6", "max_trails = 6", "jobs.toml:12: max_trails is unknown here"),
        ("max_trials = 6", "max_trials = 0", "jobs.toml:12: max_trials"),
        ('scheduler = "fifo"', 'scheduler = "fife"', "jobs.toml:10: scheduler = 'fife' is unknown"),
        ('stream = "train.txt"\n', "", "jobs.toml:14: a job has either a stream, or a study"),
        ('flags = "--l2 0.001"', 'flags = "--l3 1"', r"jobs.toml:1[46]: "),
        ('flags = "--l2 0.001"', "flags = 3", "jobs.toml:16: flags = 3: give a text"),
        ('model = "learnt.model"', "worker = {GPU = 1}", "jobs.toml:.*needs at least GPU = 1"),
        ('model = "learnt.model"', 'model = "no/m"', "jobs.toml:18: cannot write no/m: the folder .* does"),
        ('model = "learnt.model"', 'model = "train.txt"', "jobs.toml:18: model = .*train.txt.* is a file"),
        ('model = "learnt.model"', "save_every = 0", "jobs.toml:18: save_every = 0: give a whole number, 1"),
        ('stream = "train.txt"', 'stream = "no.txt"', "jobs.toml:15: stream = 'no.txt': there is no such"),
        ('"--l2 0.001"', '"-f m"', "jobs.toml:16: flags: final_regressor is for the command line"),
        ("events = 500", "events = 'many'", "jobs.toml:17: events = 'many': give a whole number, 1 or more"),
        ("events = 500", "partitions = 0", "jobs.toml:17: partitions = 0: give a whole number, 1 or more"),
        ("events = 500", "partitions = 2", "jobs.toml:17: partitions needs --automl"),
        ("events = 500", "server = 3", "jobs.toml:17: server = 3: give names and amounts, as {CPU = 1}"),
        ("events = 500", "server = {CPU = 1}", "jobs.toml:17: server: merge servers need a stream in part"),
        ("events = 500", "most_servers = 0", "jobs.toml:17: most_servers = 0: give a whole number, 1 or"),
        ("events = 500", "sharded = true", "jobs.toml:17: sharded is unknown here; valid are"),
        ("cluster:loss", "cluster:lost", "jobs.toml:8: trainable = .*: the module .* has no 'lost'"),
        ("events = 500", "worker = 3", "jobs.toml:17: worker = 3: give names and amounts, as {CPU = 1}"),
        ("capacity = {CPU = 3}", "capacity = 3", "jobs.toml:2: capacity = 3: give names and amounts"),
        ("slot = 0.5", 'history = "no/h"', "jobs.toml:3: cannot write no/h: the folder .* does not exist"),
        ("///study.db", "///no/study.db", "jobs.toml:7: study: the folder .*no of .* does not exist"),
        ('{rate = {type = "float", low = 0, high = 1}}', '"no.toml"', "jobs.toml:9: space: no.toml: No such"),
        (
            '{rate = {type = "float", low = 0, high = 1}}',
            '{rate = {type = "float"}}',
            "jobs.toml:9: space: rate",
        ),
        ("[[jobs]]\nname", "[[works]]\nname", "jobs.toml:5: the file has the tables"),
    ],
)
def test_errors_have_the_line_of_the_job_file(
    run: Command, before: str, after: str, message: str, folder: Path
) -> None:
    assert before in JOBS
    (folder / "jobs.toml").write_text(JOBS.replace(before, after, 1))
    assert re.search(message, run("cluster run jobs.toml", code=None).err)


def test_a_stream_of_a_file_has_the_same_model_with_any_workers(
    run: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = RoundSchedule(alone=256, head=8, shortest=64, longest=64, growth=4)
    plan = RoundSchedule.plan
    monkeypatch.setattr(RoundSchedule, "plan", lambda _, *progress: plan(short, *progress))
    (folder / "planted.txt").write_bytes(text("planted", events=3000, seed=5))
    job = """
[[jobs]]
stream = "planted.txt"
flags = "--cb_explore_adf --automl 3 -b 14"
partitions = 4
events = 3000
"""
    models = []
    for capacity in (1, 3):
        name = f"of{capacity}"
        head = (
            f'[cluster]\ncapacity = {{CPU = {capacity}}}\nslot = 0.2\npolicy = "fair"\nhistory = "{name}"\n'
        )
        (folder / "jobs.toml").write_text(f'{head}{job}model = "{name}.model"\n')
        out, _ = run("cluster run jobs.toml")
        assert out.startswith("planted: done, 3,000 of 3,000 in ")
        models.append((folder / f"{name}.model").read_bytes())
        assert {record.workers for record in History.load(name).records} == {capacity}
    assert models[0] == models[1]
    with (folder / "jobs.toml").open("a") as file:
        file.write("server = {CPU = 1}\n")
    assert "server: merge servers need the backend ray" in run("cluster run jobs.toml", code=None).err


def test_paths_are_relative_to_the_job_file(
    run: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "elsewhere").mkdir()
    monkeypatch.chdir(folder / "elsewhere")
    begin, stream = JOBS.split("\n[[jobs]]", 1)[0], JOBS.split("[[jobs]]")[2]
    (folder / "jobs.toml").write_text(f'{begin}\nhistory = "h.jsonl"\n[[jobs]]{stream}')
    assert "the model of train is in" in run("cluster run ../jobs.toml --slot 0.1").out
    assert {"h.jsonl", "learnt.model"} <= {each.name for each in folder.iterdir()}
    (folder / "jobs.toml").write_text("[jobs]\nstream = 'train.txt'\n")
    run("cluster run ../jobs.toml", code=2, err="jobs.toml:1: there may be several jobs: write [[jobs]]")
    (folder / "jobs.toml").write_text("[[jobs]]\nstream = 'train.txt'\n")
    run("cluster run ../jobs.toml --slot 0.1", err="jobs.toml:2: the model of this stream is not saved")
    assert [each.name for each in (folder / "elsewhere").iterdir()] == []


def test_malformed_toml_is_reported_with_its_line(run: Command, folder: Path) -> None:
    (folder / "jobs.toml").write_text("[cluster]\nslot = \n")
    run("cluster run jobs.toml", code=1, err="jobs.toml: not TOML: Invalid value (at line 2")
    run("cluster jobs.toml", code=2, err="onlineauto cluster run jobs.toml")
    run("cluster run jobs.toml --capacity 8", code=None)


def test_the_learned_policy_may_come_from_a_file(folder: Path) -> None:
    from onlineauto.cluster.job_file import JobFile

    Learned.untrained(seed=7).save("own.oam")
    (folder / "jobs.toml").write_text(JOBS.replace("slot = 0.5", 'policy = "learned"\nlearned = "own.oam"'))
    jobs = JobFile("jobs.toml")
    policy = jobs.cluster().policy
    assert isinstance(policy, Guarded)
    assert isinstance(policy.policy, Learned)
    assert policy.policy.weights["job"][0, 0] == Learned.untrained(seed=7).weights["job"][0, 0]
    assert isinstance(policy.by, Fair)
    assert not policy.trusted
    assert isinstance(jobs.cluster(policy="fair").policy, Fair)
    shipped = Cluster("learned", capacity={"CPU": 1}).policy
    assert isinstance(shipped, Guarded)
    assert isinstance(shipped.policy, Learned)
    assert shipped.policy.weights["job"][0, 0] == Learned.load().weights["job"][0, 0]


def test_errors_of_the_command_line_do_not_name_the_job_file(run: Command, folder: Path) -> None:
    run("cluster run jobs.toml --policy lottery", code=2, err="error: policy = 'lottery' is unknown")


def test_help_imports_neither_numba_nor_ray() -> None:
    code = """
import sys
from onlineauto.cli.main import main
main(["cluster", "--help"])
assert not {"numba", "llvmlite", "ray", "torch"} & sys.modules.keys()
"""
    assert "onlineauto cluster run FILE" in python("-c", code).stdout
