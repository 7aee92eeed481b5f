"""Workers that fail for good: the model has what was learnt once, and nothing is left behind."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from datasets.generate import text
from onlineauto import Workspace
from onlineauto.cli.main import main
from onlineauto.cluster.partitions import local
from onlineauto.cluster.partitions.coordinator import Coordinator, RoundSchedule
from onlineauto.cluster.partitions.cutting import cut_block, join_blocks
from onlineauto.cluster.partitions.run import PartitionedRun
from onlineauto.cluster.partitions.worker import Worker
from onlineauto.engine.stream.source import read_blocks
from onlineauto.errors import WorkersError
from onlineauto.formats.lines.diagnostics import Diagnostics
from onlineauto.workspace.options import REGISTRY

OPTIONS: dict[str, Any] = {"cb_explore_adf": True, "live_configs": 3, "bit_precision": 14}
SHORT = RoundSchedule(alone=256, head=8, shortest=128, longest=128, growth=4)
EVENTS = 1100
BANDIT = text("planted", events=EVENTS, seed=5)


def run_of(**options: Any) -> PartitionedRun:
    return PartitionedRun(Workspace(**OPTIONS), BANDIT, schedule=SHORT, **options)


def saved(run: PartitionedRun) -> bytes:
    file = io.BytesIO()
    run.checkpoint(file)
    return file.getvalue()


def fail_at(run: PartitionedRun, number: int) -> None:
    """Have the workers fail in a round."""
    pool, rounds = run.pool, iter(range(100))
    learn = pool.learn

    def learn_or_fail(coordinator: Coordinator, chunks: Any) -> Any:
        if next(rounds) == number:
            coordinator.next_base()
            raise WorkersError("workers have died")
        return learn(coordinator, chunks)

    pool.learn = learn_or_fail  # type: ignore[method-assign]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the only folder for messages."""
    folder = tmp_path / "messages"
    folder.mkdir()
    monkeypatch.setattr(local, "_SHARED_MEMORY", folder)
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.mark.parametrize("number", [0, 2])
def test_a_run_whose_workers_fail_is_resumed_without_learning_an_event_twice(number: int) -> None:
    whole = run_of()
    assert whole.step() == EVENTS
    expected = saved(whole)
    run = run_of()
    fail_at(run, number)
    with pytest.raises(WorkersError):
        run.step()
    stored, done = saved(run), run.position.events
    assert run.workspace.searching.n_learnt == done == run.progress.example_number
    head = SHORT.head
    assert run.step() == EVENTS - done + head  # the same run may go on: it returns the head first
    assert saved(run) == expected
    resumed = PartitionedRun.resume(stored, BANDIT, schedule=SHORT)
    assert resumed.step() == EVENTS - done
    assert resumed.workspace.searching.n_learnt == EVENTS
    assert saved(resumed) == expected


def test_a_worker_that_gets_a_full_base_forgets_what_it_had() -> None:
    """Cells that are 0 again are no part of a full base."""
    block = join_blocks(list(read_blocks(BANDIT, REGISTRY.from_keywords(**OPTIONS), Diagnostics())))
    ends, used = [], Worker(REGISTRY.from_keywords(**OPTIONS))
    for events, worker in ((600, used), (300, used), (300, Worker(REGISTRY.from_keywords(**OPTIONS)))):
        coordinator = Coordinator(Workspace(**OPTIONS), 1)
        coordinator.workspace.learn_block(cut_block(block, 0, events))
        chunk = coordinator.cut([cut_block(block, events, events + 50)])[0]
        coordinator.next_base()
        worker.adopt(coordinator.full_base())
        worker.learn(chunk.block, chunk.seed)
        ends.append(worker.workspace.weights[:, :3].tobytes())
    assert ends[0] != ends[1] == ends[2]


def test_workers_that_die_nine_times_end_a_run_with_one_line_and_leave_no_folder(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(local, "_WORKER", "onlineauto.no_such_module:serve")
    source = tmp_path / "events"
    source.write_bytes(text("planted", events=66_000, seed=1))
    model = tmp_path / "model.oam"
    flags = ["--cb_explore_adf", "--automl", "2", "-b", "12", "--quiet", "-f", str(model)]
    assert main(["-d", str(source), *flags, "--workers", "2", "--backend", "processes"]) == 1
    output = capsys.readouterr()
    assert output.out == ""
    assert len(output.err.splitlines()) == 1
    assert "workers have died 9 times in a row" in output.err
    assert [*folder.iterdir()] == []
    assert Workspace.load(model).searching.n_learnt == 65_568


def test_a_run_whose_pool_has_failed_goes_on_with_new_processes(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = run_of()
    whole.step()
    with run_of(workers=2, backend="processes") as run:
        with monkeypatch.context() as patch:
            patch.setattr(local, "_WORKER", "onlineauto.no_such_module:serve")
            with pytest.raises(WorkersError, match="died 9 times"):
                run.step()
        assert run.pool.size == 0
        run.step()
        assert saved(run) == saved(whole)
        assert len([*folder.iterdir()]) == 1
    assert [*folder.iterdir()] == []


def test_a_worker_whose_disk_is_full_says_so(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file cannot be written where a directory is."""
    send = local.ProcessPool.send

    def obstruct(self: local.ProcessPool, name: str, tree: Any) -> str:
        if name == "chunk0":
            Path(self._folder, "end0.0").mkdir()
        return send(self, name, tree)

    monkeypatch.setattr(local.ProcessPool, "send", obstruct)
    with (
        run_of(workers=2, backend="processes") as run,
        pytest.raises(WorkersError, match=r"a worker cannot .*end0"),
    ):
        run.step()
    assert [*folder.iterdir()] == []


def test_messages_are_not_put_into_a_small_shared_memory(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(other))
    for free, parent in (((1 << 30) - 1, other), (1 << 30, folder)):
        monkeypatch.setattr("shutil.disk_usage", lambda _path, free=free: SimpleNamespace(free=free))
        assert Path(local.new_folder()).parent == parent


def test_the_folders_of_killed_coordinators_are_removed(folder: Path) -> None:
    killed = subprocess.Popen([sys.executable, "-c", ""])
    killed.wait()
    mine = Path(local.new_folder())
    dead = folder / mine.name.replace(f"-{os.getpid()}-", f"-{killed.pid}-")
    foreign = folder / f"onlineauto-0-{killed.pid}-abc"  # of a container
    unnumbered = folder / f"{mine.name.split(str(os.getpid()))[0]}x-y"
    for path in (dead, foreign, unnumbered):
        path.mkdir()
        (path / "changes").write_bytes(b"x")
    new = Path(local.new_folder())
    assert {*folder.iterdir()} == {mine, new, foreign, unnumbered}
