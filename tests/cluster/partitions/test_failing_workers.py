"""Workers that fail for good: the model has what was learnt once."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from datasets.generate import text
from onlineauto import Workspace
from onlineauto.cluster.partitions.coordinator import Coordinator, RoundSchedule
from onlineauto.cluster.partitions.cutting import join_blocks, take_events
from onlineauto.cluster.partitions.merge import merge_round
from onlineauto.cluster.partitions.run import PartitionedRun
from onlineauto.cluster.partitions.worker import Worker
from onlineauto.engine.stream.source import read_blocks
from onlineauto.errors import WorkersError
from onlineauto.formats.lines.diagnostics import Diagnostics
from onlineauto.workspace.options import REGISTRY
from tests.cluster.partitions.servers import NodePool

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


@pytest.mark.parametrize("reads_file", [False, True])
def test_a_round_that_cannot_be_merged_is_learnt_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, reads_file: bool
) -> None:
    def run_of_source() -> PartitionedRun:
        return PartitionedRun(Workspace(**OPTIONS), source, schedule=SHORT)

    source: Any = BANDIT
    if reads_file:
        source = tmp_path / "events.txt"
        source.write_bytes(BANDIT)
    whole, run, merges = run_of_source(), run_of_source(), iter(range(100))
    assert whole.step() == EVENTS

    def merge_or_fail(*arguments: Any, **options: Any) -> Any:
        if next(merges) == 1:
            raise MemoryError
        return merge_round(*arguments, **options)

    monkeypatch.setattr("onlineauto.cluster.partitions.coordinator.merge_round", merge_or_fail)
    with pytest.raises(MemoryError):
        run.step()
    while run.step():
        pass
    assert run.workspace.searching.n_learnt == EVENTS
    assert saved(run) == saved(whole)


def test_a_worker_that_gets_a_full_base_forgets_what_it_had() -> None:
    """Cells that are 0 again are no part of a full base."""
    block = join_blocks(list(read_blocks(BANDIT, REGISTRY.from_keywords(**OPTIONS), Diagnostics())))
    ends, used = [], Worker(REGISTRY.from_keywords(**OPTIONS))
    for events, worker in ((600, used), (300, used), (300, Worker(REGISTRY.from_keywords(**OPTIONS)))):
        coordinator = Coordinator(Workspace(**OPTIONS), 1)
        coordinator.workspace.learn_block(take_events([block], 0, events))
        chunk = coordinator.cut([take_events([block], events, events + 50)])[0]
        coordinator.next_base()
        worker.adopt(coordinator.full_base())
        worker.learn(chunk.block, chunk.seed)
        ends.append(worker.workspace.weights[:, :3].tobytes())
    assert ends[0] != ends[1] == ends[2]


def test_workers_that_die_nine_times_end_a_run_that_goes_on_with_others() -> None:
    whole = run_of()
    whole.step()
    run = run_of()
    run.pool = NodePool(run, 2, 0, deaths=1.0)
    with pytest.raises(WorkersError, match="workers have died 9 times in a row"):
        run.step()
    assert run.pool.size == 0
    assert run.workspace.searching.n_learnt == run.position.events == SHORT.alone + SHORT.head
    run.pool = NodePool(run, 2, 0)
    run.step()
    assert saved(run) == saved(whole)
