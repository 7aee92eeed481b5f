"""Partitions learnt by actors of Ray that are resized and killed: the model is that of an undisturbed run."""

from __future__ import annotations

import io
import os
import signal
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from datasets.generate import text
from onlineauto import Workspace
from onlineauto.cluster.partitions.coordinator import RoundSchedule
from onlineauto.cluster.partitions.on_ray import RayPool
from onlineauto.cluster.partitions.run import PartitionedRun
from onlineauto.engine.event.outcomes import Outcomes
from onlineauto.features.block import Block
from tests.tune.on_ray.conftest import Nodes

pytestmark = [pytest.mark.ray, pytest.mark.filterwarnings("default")]

EVENTS = 2000
SHORT = RoundSchedule(alone=256, head=8, shortest=128, longest=64, growth=4)


def _with_ids(events: bytes) -> bytes:
    """Return events whose tags are their numbers."""
    parts = events.strip().split(b"\n\n")
    return b"\n\n".join(
        each.replace(b"shared ", b"shared 'e%d" % number, 1) for number, each in enumerate(parts)
    )


STREAM = _with_ids(text("planted", events=EVENTS, seed=5))
IDS = {f"e{number}" for number in range(EVENTS)}


class Ids:
    """A sink that counts the ids of learnt events."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def take(self, block: Block, outcomes: Outcomes) -> None:
        assert len(block) == len(outcomes)
        tags, lines = block.tag.tobytes(), block.lines[block.event_start]
        ends = block.lines["tag"][block.event_start[:-1] + 1].tolist()
        begins = lines["tag"][:-1].tolist()
        self.counts.update(tags[begin:end].decode() for begin, end in zip(begins, ends, strict=True))

    def state(self) -> dict[str, Any]:
        return {}


def learnt(
    cpus: float | None = None,
    before_round: Callable[[PartitionedRun, int], object] | None = None,
    source: Any = STREAM,
) -> tuple[bytes, bytes]:
    """Return the model and the predictions, with a call before each round; check the ids.

    Two actors of Ray learn, each with a number of processors; None to learn in this process.
    """
    workspace = Workspace(cb_explore_adf=True, live_configs=3, bit_precision=14, seed=1)
    run, ids, rounds = PartitionedRun(workspace, source, schedule=SHORT), Ids(), [0]
    run.sinks.append(ids)
    if cpus is not None:
        run.pool = RayPool(2, workspace.configuration.command(kept=True), needs={"CPU": cpus})
    with run:
        if before_round is not None:
            learn = run.pool.learn

            def called(*arguments: Any) -> Any:
                before_round(run, rounds[0])
                rounds[0] += 1
                return learn(*arguments)

            run.pool.learn = called  # type: ignore[method-assign, assignment]
        predictions = [outcomes.score.tobytes() for _, outcomes in run]
        file = io.BytesIO()
        run.checkpoint(file)
    assert set(ids.counts) == IDS
    assert set(ids.counts.values()) == {1}
    assert before_round is None or rounds[0] > 6
    return file.getvalue(), b"".join(predictions)


def test_actors_read_a_file_themselves(
    nodes: Nodes, undisturbed: tuple[bytes, bytes], tmp_path: Path
) -> None:
    path = tmp_path / "events"
    path.write_bytes(STREAM)
    unread: set[bool] = set()

    def note(run: PartitionedRun, _: int) -> None:
        unread.add(run._read_here == 0)

    assert learnt(0.5, note, path) == undisturbed
    assert unread == {True}  # no actor has refused its chunk


@pytest.fixture(scope="module")
def undisturbed() -> tuple[bytes, bytes]:
    return learnt()


def pool_of(run: PartitionedRun) -> RayPool:
    assert isinstance(run.pool, RayPool)
    return run.pool


def until_up(pool: RayPool) -> None:
    """Wait until all actors are up."""
    import ray

    ray.get([each.handle.ready.remote() for each in pool.actors])


def test_workers_join_and_leave_in_mid_stream(nodes: Nodes, undisturbed: tuple[bytes, bytes]) -> None:
    seen, sizes = [], {0: 2, 2: 3, 4: 1}

    def resize(run: PartitionedRun, number: int) -> None:
        pool = pool_of(run)
        until_up(pool)
        seen.append(len(pool.actors))
        if number in sizes:
            run.resize(sizes[number])

    assert learnt(0.4, resize) == undisturbed
    assert [*dict.fromkeys(seen)] == [0, 2, 3, 1]


def test_a_node_and_an_actor_are_killed_while_they_learn(
    nodes: Nodes, undisturbed: tuple[bytes, bytes]
) -> None:
    """The actor is stopped before the round, so it has a chunk when it is killed with its node, or alone."""
    killed: list[str] = []

    def kill(run: PartitionedRun, number: int) -> None:
        if number not in (2, 4):
            return
        nodes.mend()
        until_up(pool_of(run))
        (node, pid), (other, _) = _actors()
        assert node != other
        os.kill(pid, signal.SIGSTOP)

        def end() -> None:
            killed.append("node" if number == 2 else "actor")
            if number == 2:
                nodes.kill(node)
            else:
                os.kill(pid, signal.SIGKILL)

        threading.Timer(1.0, end).start()

    assert learnt(1.0, kill) == undisturbed
    assert killed == ["node", "actor"]


def _actors() -> list[tuple[str, int]]:
    """Return the nodes and the process numbers of the actors that live."""
    from ray._private.state import actors

    return [
        (each["Address"]["NodeID"], each["Pid"]) for each in actors().values() if each["State"] == "ALIVE"
    ]
