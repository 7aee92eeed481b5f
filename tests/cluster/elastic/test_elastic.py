"""Workers and servers that come, go and die in mid-stream leave the weights exactly as they would be."""

from __future__ import annotations

import itertools
import math
import threading
import time
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pytest

from onlineauto.cluster.elastic import ShardedLearner, ShardedRun, Snapshot
from onlineauto.cluster.elastic.learning.feed import TickFeed
from onlineauto.cluster.elastic.protocol.messages import COORDINATOR, Died
from onlineauto.cluster.elastic.running import hub
from onlineauto.cluster.elastic.running.threads import Threads
from onlineauto.errors import InputError, OnlineautoError
from tests.cluster.elastic.streams import BANDIT, EXPLORING, FINE, LINES, bits_of, same
from tests.waiting import PATIENCE, until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from onlineauto.cluster.elastic.running.nodes import Post, Spec

LONG = BANDIT * 3


@pytest.fixture(scope="module")
def learner() -> ShardedLearner:
    return ShardedLearner(**FINE, **EXPLORING)


@pytest.fixture(scope="module")
def undisturbed(learner: ShardedLearner) -> Snapshot:
    return learner.run(LONG).wait().snapshot()


class Gate:
    """Holds streams where their tests are, so that none ends before what is asked of its run."""

    ahead = 4
    """Ticks that a run may learn while its test does something else."""

    def __init__(self) -> None:
        self._changed, self._end = threading.Condition(), 2.0 * self.ahead

    def wait(self, tick: int) -> None:
        """Wait until a tick may be learnt."""
        with self._changed:
            assert self._changed.wait_for(lambda: tick < self._end, PATIENCE)

    def open(self, end: float) -> None:
        """Let all ticks before `end` be learnt."""
        with self._changed:
            self._end = max(self._end, end)
            self._changed.notify_all()

    def open_more(self, ticks: int) -> None:
        """Let so many more ticks be learnt."""
        self.open(self._end + ticks)


@pytest.fixture(autouse=True)
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    """Hold the streams until their runs are waited for or stopped; each tick takes some milliseconds."""
    made = Gate()
    parts_of, wait, stop = TickFeed.parts_of, ShardedRun.wait, ShardedRun.stop

    def held(feed: TickFeed, tick: int, rank: int, n: int) -> list[bytes] | None:
        time.sleep(0.002)
        made.wait(tick)
        return parts_of(feed, tick, rank, n)

    def waited_for(run: ShardedRun, timeout: float | None = None) -> ShardedRun:
        made.open(math.inf)
        return wait(run, timeout)

    def stopped(run: ShardedRun) -> None:
        made.open(math.inf)
        stop(run)

    monkeypatch.setattr(TickFeed, "parts_of", held)
    monkeypatch.setattr(ShardedRun, "wait", waited_for)
    monkeypatch.setattr(ShardedRun, "stop", stopped)
    yield made
    made.open(math.inf)


def reach(run: ShardedRun, ticks: int, gate: Gate) -> None:
    """Wait until so many more ticks are learnt, or all."""
    goal = run._hub.version + ticks
    gate.open(goal + gate.ahead)
    with run._hub.condition:
        assert run._hub.condition.wait_for(lambda: run.ended or run._hub.version >= goal, PATIENCE)


def commits(run: ShardedRun, n: int, gate: Gate) -> None:
    """Wait until there were so many layouts; the stream is held, but for the margin of a change."""
    gate.open_more(run._hub._margin)
    with run._hub.condition:
        assert run._hub.condition.wait_for(lambda: run.ended or len(run._hub.changes) >= n, PATIENCE)


def test_resized_all_the_time(gate: Gate, learner: ShardedLearner, undisturbed: Snapshot) -> None:
    run = learner.run(LONG, workers=1, servers=1).start()
    sizes = itertools.cycle([(2, 1), (2, 3), (1, 2), (3, 4), (3, 1), (1, 1)])
    while not run.ended:
        before = len(run.changes)
        run.resize(*next(sizes))
        commits(run, before + 1, gate)
        reach(run, 2, gate)
    assert same(run.wait().snapshot(), undisturbed)
    assert len(run.changes) > 10
    assert len({change.tick for change in run.changes}) > 10
    assert any(change.moved for change in run.changes)
    times = [when for _, when in run.times]
    assert times == sorted(times)


def test_several_requests_coalesce(gate: Gate, learner: ShardedLearner, undisturbed: Snapshot) -> None:
    run = learner.run(LONG, workers=2, servers=2).start()
    reach(run, 3, gate)
    for n in range(1, 20):
        run.resize(1 + n % 3, 1 + n % 4)
    run.resize(3, 2)
    assert same(run.wait().snapshot(), undisturbed)
    assert run.layout == (3, 2)


@pytest.mark.parametrize("margin", [0, 1, 5])
def test_the_margin_changes_no_weight(
    gate: Gate, learner: ShardedLearner, undisturbed: Snapshot, margin: int
) -> None:
    run = learner.run(LONG, workers=2, servers=2, margin=margin).start()
    reach(run, 5, gate)
    run.resize(1, 3)
    assert same(run.wait().snapshot(), undisturbed)


def test_workers_die_in_mid_tick(gate: Gate, learner: ShardedLearner, undisturbed: Snapshot) -> None:
    run = learner.run(LONG, workers=3, servers=2).start()
    for _ in range(3):
        reach(run, 4, gate)
        kill(run, run._hub._target[0][0])
    assert same(run.wait().snapshot(), undisturbed)
    assert run.layout == (3, 2)


def test_a_server_that_dies_is_restored_from_the_last_snapshot(
    gate: Gate, learner: ShardedLearner, undisturbed: Snapshot
) -> None:
    run = learner.run(LONG, workers=2, servers=2, snapshot_every=10).start()
    reach(run, 25, gate)
    kill(run, run._hub._target[1][0])
    snapshot = run.wait().snapshot()
    assert same(snapshot, undisturbed)
    assert run._hub._epoch == 1
    assert run._hub.begun >= 10


def test_a_stream_that_cannot_be_read_again_ends_with_its_server(
    gate: Gate, learner: ShardedLearner, tmp_path: Path
) -> None:
    path = tmp_path / "stream"
    path.write_bytes(LONG)
    with path.open("rb") as file:
        run = learner.run(file, workers=2, servers=2).start()
        reach(run, 5, gate)
        kill(run, run._hub._target[1][0])
        with pytest.raises(OnlineautoError, match="second time"):
            run.wait(60)


def kill(run: ShardedRun, node: str) -> None:
    """Let a node vanish, and tell the coordinator a little later."""
    backend = run._hub._backend
    assert backend is not None
    backend.end(node)
    time.sleep(0.05)
    run._hub._queue.put((run._hub._epoch, COORDINATOR, Died(node)))


def test_a_snapshot_is_taken_in_mid_stream_and_gone_on_from(
    gate: Gate, learner: ShardedLearner, undisturbed: Snapshot, tmp_path: Path
) -> None:
    run = learner.run(LONG, workers=2, servers=3).start()
    reach(run, 20, gate)
    taken = run.snapshot(60)
    run.stop()
    assert 0 < taken.tick < undisturbed.tick
    taken.save(tmp_path / "snapshot")
    loaded = Snapshot.load(tmp_path / "snapshot")
    assert same(loaded, taken)
    assert (loaded.events, loaded.loss) == (taken.events, taken.loss)
    again = learner.run(LONG, workers=1, servers=2, begin=loaded)
    assert same(again.wait().snapshot(), undisturbed)
    assert again.snapshot().events == undisturbed.events


def test_files_that_are_no_snapshots(tmp_path: Path) -> None:
    path = tmp_path / "snapshot"
    for content in (b"", b"nothing", b"PK\x03\x04"):
        path.write_bytes(content)
        with pytest.raises(InputError, match="not a snapshot"):
            Snapshot.load(path)


WRONG: dict[str, Callable[[dict[str, Any]], object]] = {
    "a cell beyond its block": lambda arrays: arrays["1.cell"].__setitem__(-1, 2**31),
    "a cell twice": lambda arrays: arrays["1.cell"].__setitem__(1, arrays["1.cell"][0]),
    "a number too few": lambda arrays: arrays.update({"1.value": arrays["1.value"][1:]}),
    "numbers of another type": lambda arrays: arrays.update({"1.value": arrays["1.value"].astype(float)}),
    "a narrow header": lambda arrays: arrays.update({"header.lanes": arrays["header.lanes"][:, :1]}),
    "an account without a number": lambda arrays: arrays["header.account"].fill(np.nan),
    "fewer events than none": lambda arrays: arrays["header.account"].fill(-1),
    "no blocks": lambda arrays: changed(
        arrays, cutting={"parts": 1, "part_events": 1, "warm_up": 0, "blocks": 0}
    ),
    "a tick before the first": lambda arrays: changed(arrays, tick=-1),
    "other options": lambda arrays: changed(arrays, command="--bit_precision 4"),
    "no options": lambda arrays: changed(arrays, command="--no_such_flag"),
    "a later format": lambda arrays: changed(arrays, format=2),
}
"""Changes of a snapshot that no learner can have made."""


def changed(arrays: dict[str, Any], **values: Any) -> None:
    about = msgspec.json.decode(arrays["about"].tobytes()) | values
    arrays["about"] = np.frombuffer(msgspec.json.encode(about), np.uint8)


@pytest.mark.parametrize("change", WRONG.values(), ids=WRONG)
def test_a_snapshot_is_checked_before_it_is_used(
    change: Callable[[dict[str, Any]], object], undisturbed: Snapshot, tmp_path: Path
) -> None:
    path = tmp_path / "snapshot"
    undisturbed.save(path)
    with path.open("rb") as file, np.load(file) as found:
        arrays = {name: found[name].copy() for name in found}
    assert same(Snapshot.load(path), undisturbed)
    change(arrays)
    with path.open("wb") as target:
        np.savez(target, **arrays)
    with pytest.raises(InputError, match="snapshot"):
        Snapshot.load(path)


def test_it_is_a_job(gate: Gate, learner: ShardedLearner) -> None:
    run = learner.run(LONG, worker={"CPU": 2.0}, server={"CPU": 0.25})
    assert run.demand.worker == {"CPU": 2.0}
    assert run.demand.server == {"CPU": 0.25}
    assert (run.demand.most_workers, run.demand.most_servers) == (4, 8)
    run.resize(2, 2)  # before it has begun
    run.start()
    reach(run, 3, gate)
    done, total = run.progress()
    assert 0 < done <= total
    assert run.layout == (2, 2)
    assert run.wait().progress() == (2700, 2700)


def test_a_run_that_is_stopped(gate: Gate, learner: ShardedLearner) -> None:
    run = learner.run(LONG).start()
    reach(run, 2, gate)
    run.stop()
    assert run.ended
    done, total = run.progress()
    assert done < total
    with pytest.raises(OnlineautoError, match="without"):
        run.snapshot()


def test_a_run_that_is_stopped_is_not_taken_for_finished(learner: ShardedLearner) -> None:
    run = learner.run(LONG, snapshot_every=2).start()
    with run._hub.condition:
        assert run._hub.condition.wait_for(lambda: run._hub.snapshot is not None, 60)
    run.stop()
    done, total = run.progress()
    assert done < total
    for result in (run.wait, run.snapshot, run.workspace, run.loss):
        with pytest.raises(OnlineautoError, match=r"stopped|without"):
            result()


def test_joiners_that_are_called_off_are_ended(gate: Gate, learner: ShardedLearner) -> None:
    """On Ray each of them would keep its processors until the end of the run."""
    run = learner.run(LONG).start()
    reach(run, 1, gate)
    with run._hub.condition:  # so that none of the joiners is ready before it is called off
        run.resize(6, 4)
        run.resize(2, 1)
    commits(run, 2, gate)
    backend = run._hub._backend
    assert isinstance(backend, Threads)
    assert len(backend._queues) == 3
    run.stop()


def test_a_snapshot_that_is_asked_for_before_all_nodes_are_ready(learner: ShardedLearner) -> None:
    run = learner.run(LONG)
    taken = run.snapshot(60)
    assert taken.tick < run.wait().snapshot().tick


def test_a_snapshot_that_is_asked_for_when_a_server_dies(
    gate: Gate, learner: ShardedLearner, undisturbed: Snapshot
) -> None:
    run = learner.run(LONG, workers=2, servers=2).start()
    reach(run, 2, gate)
    hub = run._hub
    server = hub._target[1][0]
    assert hub._backend is not None
    hub._backend.end(server)
    hub.copy()
    hub._queue.put((hub._epoch, COORDINATOR, Died(server)))
    assert run.snapshot(60).tick < undisturbed.tick
    assert same(run.wait().snapshot(), undisturbed)


def test_nodes_that_never_begin_end_the_run(learner: ShardedLearner, monkeypatch: pytest.MonkeyPatch) -> None:
    """A node may lack what a worker imports: its actor dies, and so would all that take its place."""

    def begin(_self: Threads, spec: Spec, post: Post) -> None:
        post(COORDINATOR, Died(spec.name))

    monkeypatch.setattr(Threads, "begin", begin)
    with pytest.raises(OnlineautoError, match="before they were ready"):
        learner.run(LONG).wait(60)


def test_learning_that_is_interrupted_leaves_no_threads(
    learner: ShardedLearner, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_self: object, _timeout: object = None) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(ShardedRun, "wait", interrupted)
    before = {thread.name for thread in threading.enumerate()}
    with pytest.raises(KeyboardInterrupt):
        learner.fit(LONG)
    until(lambda: not {thread.name for thread in threading.enumerate()} - before - {"elastic count"})


def test_single_lines_too(gate: Gate) -> None:
    learner = ShardedLearner(**FINE, quadratic=["::"])
    run = learner.run(LINES * 3, workers=1, servers=1).start()
    for n in itertools.count():
        if run.ended:
            break
        run.resize(1 + n % 4, 1 + n % 3)
        reach(run, 3, gate)
    assert bits_of(run.workspace()) == bits_of(learner.fit(LINES * 3))


def test_a_run_begins_though_not_all_nodes_find_room(
    gate: Gate, learner: ShardedLearner, undisturbed: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin, waiting = Threads.begin, []

    def sometimes(threads: Threads, spec: Spec, post: Post) -> None:
        if len(threads._queues) < 2:
            begin(threads, spec, post)
        else:
            waiting.append((threads, spec, post))

    monkeypatch.setattr(hub, "_PATIENCE", 0.2)
    monkeypatch.setattr(Threads, "begin", sometimes)
    run = learner.run(LONG, workers=3, servers=2).start()
    reach(run, 3, gate)
    assert run.layout == (1, 1)
    for each in waiting:
        begin(*each)
    commits(run, 2, gate)
    assert run.layout == (3, 2)
    assert same(run.wait(60).snapshot(), undisturbed)
