"""A stream learnt in partitions: the result depends on the partitions, and on no worker."""

from __future__ import annotations

import io
import itertools
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from datasets.generate import text
from onlineauto import InputError, OptionError, Workspace
from onlineauto.cluster.partitions import coordinator as coordinator_module
from onlineauto.cluster.partitions import worker as worker_module
from onlineauto.cluster.partitions.coordinator import Coordinator, RoundSchedule
from onlineauto.cluster.partitions.cutting import join_blocks, take_events
from onlineauto.cluster.partitions.messages import (
    chunk_of_tree,
    chunk_to_tree,
    end_of_tree,
    pack,
    unpack,
)
from onlineauto.cluster.partitions.pool import ThreadPool
from onlineauto.cluster.partitions.rounds import BlockRounds
from onlineauto.cluster.partitions.run import PARTITIONS, PartitionedRun
from onlineauto.cluster.partitions.state import prefix_of
from onlineauto.cluster.partitions.worker import ChunkEnd, Worker, one_blas_thread
from onlineauto.engine.ensemble.ensemble import rest
from onlineauto.engine.ensemble.states import states_of
from onlineauto.engine.records.search import Tally
from onlineauto.engine.stream.source import read_blocks
from onlineauto.features.block import Block, Namespaces
from onlineauto.formats.lines.diagnostics import Diagnostics
from onlineauto.state.schema import send
from onlineauto.workspace.options import REGISTRY
from tests.cluster.partitions.servers import NodePool

OPTIONS: dict[str, Any] = {"cb_explore_adf": True, "live_configs": 3, "bit_precision": 14}
SHORT = RoundSchedule(alone=256, head=8, shortest=128, longest=128, growth=4)
EVENTS = 1100
BANDIT = text("planted", events=EVENTS, seed=5)
LINES = text("regression", events=EVENTS, seed=2)


def run_of(
    source: Any = BANDIT, workers: int = 1, *, messages: bool = False, **options: Any
) -> PartitionedRun:
    """Return a run with workers that are threads, or that receive and send messages."""
    run = PartitionedRun(Workspace(**(options or OPTIONS)), source, workers=workers, schedule=SHORT)
    if messages:
        run.pool = NodePool(run, workers, 0)
    return run


def checkpoint(run: PartitionedRun) -> bytes:
    file = io.BytesIO()
    run.checkpoint(file)
    return file.getvalue()


def finish(run: PartitionedRun) -> tuple[bytes, bytes]:
    """Learn all events; return the model, and the predictions in the order of the stream."""
    with run:
        predictions = [outcomes.score.tobytes() + outcomes.prediction.tobytes() for _, outcomes in run]
        return checkpoint(run), b"".join(predictions)


def block_of(source: bytes, **options: Any) -> Block:
    configuration = REGISTRY.from_keywords(**(options or OPTIONS))
    return join_blocks(list(read_blocks(source, configuration, Diagnostics())))


@pytest.mark.parametrize(
    ("source", "options"), [(BANDIT, OPTIONS), (LINES, {"live_configs": 3, "bit_precision": 14})]
)
def test_the_number_of_workers_changes_no_bit(source: bytes, options: dict[str, Any]) -> None:
    expected = finish(run_of(source, **options))
    for workers, messages in ((2, False), (3, False), (1, True), (2, True)):
        assert finish(run_of(source, workers, messages=messages, **options)) == expected


def growing(n: int, actions: tuple[int, int], features: tuple[int, int], at: int) -> bytes:
    """Return events that have more actions and more features from an event on."""
    draw, events = random.Random(3), []
    for i in range(n):
        k, most = actions[i >= at], features[i >= at]
        words = " ".join(f"f{draw.randrange(30)}" for _ in range(draw.randint(1, most)))
        x, chosen = draw.randrange(5), draw.randrange(k)
        events.append(f"shared |c {words} x{x} |n v:{draw.random():.3f}")
        label = f"0:{-int((x + chosen) % 3 == 0)}:{1 / k:.4f} "
        events += [f"{label if j == chosen else ''}|A a{j}" for j in range(k)]
        events.append("")
    return "\n".join([*events, ""]).encode()


@pytest.mark.parametrize("at", [700, 900])
@pytest.mark.parametrize(("actions", "features"), [((4, 4), (3, 20)), ((3, 7), (3, 3))])
def test_events_that_grow_are_learnt_alike_by_any_workers(
    at: int, actions: tuple[int, int], features: tuple[int, int]
) -> None:
    source = growing(1500, actions, features, at)
    run = run_of(source)
    expected = finish(run)
    assert run.workspace.searching.n_learnt == 1500
    assert finish(run_of(source, 2)) == finish(run_of(source, 2, messages=True)) == expected


class Pausing:
    """An endless source of the events of `BANDIT`, in blocks of 50; a pause is an empty block."""

    name, can_be_read_again, waiting = "pausing", False, 0

    def __init__(self, pauses: int = 0) -> None:
        self.pauses, self.events_before = pauses, 0

    def seek(self, position: Mapping[str, Any] | None) -> None:
        self.events_before = 0 if position is None else position["events"]

    def position(self, events: int) -> dict[str, Any]:
        return {"events": events}

    def saved(self) -> None:
        pass

    def open(self, *_: Any) -> Any:
        raise NotImplementedError

    def read(self, *_: Any) -> Iterator[Block]:
        block = block_of(BANDIT)
        yield from self.pauses * [block.head(0)]
        for begin in range(self.events_before, EVENTS, 50):
            yield take_events([block], begin, min(begin + 50, EVENTS))
        while True:
            yield block.head(0)


def learnt_from(source: Pausing, run: PartitionedRun) -> bytes:
    run.read = source.read
    for _ in range(20):
        run._learn_round()
    assert run.position.events == EVENTS
    return checkpoint(run)


def test_a_pause_does_not_end_the_rest_of_a_round(monkeypatch: pytest.MonkeyPatch) -> None:
    source: Any = Pausing()
    run, learn, rounds = run_of(source), ThreadPool.learn, list[int]()

    def fail(*arguments: Any) -> list[ChunkEnd]:
        rounds.append(run.position.events)
        if len(rounds) == 3:
            raise RuntimeError("dead")
        return learn(*arguments)

    monkeypatch.setattr(ThreadPool, "learn", fail)
    with pytest.raises(RuntimeError, match="dead"):
        learnt_from(source, run)
    saved = checkpoint(run)
    ends = set()
    for pauses in (0, 2):
        source = Pausing(pauses)
        ends.add(learnt_from(source, PartitionedRun.resume(saved, source, schedule=SHORT)))
    assert len(ends) == 1


def turned(source: bytes) -> bytes:
    """Return events whose namespaces appear in another order."""
    lines = [line.split(b"|") for line in source.splitlines()]
    return b"\n".join(
        b"|".join([first, *reversed([each.strip() + b" " for each in rest])]) for first, *rest in lines
    )


def test_files_that_number_their_names_differently_are_learnt_alike_by_any_workers(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_bytes(BANDIT)
    second.write_bytes(turned(BANDIT) + b"\n\n")
    names = [block_of(path.read_bytes()).namespaces.names for path in (first, second)]
    assert sorted(names[0]) == sorted(names[1]) != names[0] != names[1]
    ends = []
    for workers, messages in ((1, False), (2, False), (2, True)):
        run = run_of([first, second], workers, messages=messages)
        ends.append(finish(run))
        assert run.workspace.searching.n_learnt == 2 * EVENTS
    assert ends[0] == ends[1] == ends[2]


def test_rounds_of_blocks_whose_names_are_numbered_anew_are_learnt_alike_by_any_workers() -> None:
    ends = []
    for workers in (1, 2):
        workspace, rounds, file = Workspace(**OPTIONS), BlockRounds(workers, schedule=SHORT), io.BytesIO()
        done = 0
        for source in (BANDIT, turned(BANDIT)):
            for block, _ in rounds.learn(workspace, [block_of(source)], done):
                done += len(block)
        rounds.close()
        workspace.save(file)
        assert done == 2 * EVENTS
        ends.append(file.getvalue())
    assert ends[0] == ends[1]


def sparse(source: bytes, every: int) -> bytes:
    """Return the events, of which one in `every` has its label."""
    events = source.split(b"\n\n")
    return b"\n\n".join(
        event if number % every == 0 else re.sub(rb"(?m)^0:\S+ ", b"", event)
        for number, event in enumerate(events)
    )


@pytest.mark.parametrize(("every", "head"), [(1, [8, 2048, 2048]), (8, [8])])
def test_one_learner_continues_while_members_are_on_trial(every: int, head: list[int]) -> None:
    n, source = 8448, sparse(text("planted", events=8448, seed=5), every)
    schedule, ends = RoundSchedule(alone=256, head=8, shortest=8192, longest=2048), []
    for workers, messages in ((1, False), (2, False), (2, True)):
        run = PartitionedRun(Workspace(**OPTIONS), source, workers=workers, schedule=schedule)
        if messages:
            run.pool = NodePool(run, workers, 0)
        sizes = [len(block) for block, _ in run]
        assert sizes == [256, *head, *[(n - 256 - sum(head)) // PARTITIONS] * PARTITIONS]
        ends.append(checkpoint(run))
    assert ends[0] == ends[1] == ends[2]
    rounds = BlockRounds(2, schedule=schedule)
    assert [len(block) for block, _ in rounds.learn(Workspace(**OPTIONS), [block_of(source)], 0)] == sizes
    rounds.close()


def test_the_head_of_a_round_is_about_half_of_it_if_members_are_always_on_trial(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("onlineauto.cluster.partitions.coordinator.has_new_members", lambda *_: True)
    n, schedule = 256 + 20_000, RoundSchedule(alone=256, head=8, shortest=20_000, longest=20_000)
    run = PartitionedRun(Workspace(**OPTIONS), text("planted", events=n, seed=5), schedule=schedule)
    sizes = [len(block) for block, _ in run]
    assert sizes == [256, 8, *[2048] * 5, *[(n - 256 - 8 - 5 * 2048) // PARTITIONS] * PARTITIONS]


@pytest.mark.parametrize("failing", [1, 2, 3])
def test_events_of_a_failed_piece_of_a_head_are_learnt_next(
    failing: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, schedule = text("planted", events=8448, seed=5), RoundSchedule(alone=256, head=8, shortest=8192)
    expected, _ = finish(PartitionedRun(Workspace(**OPTIONS), source, schedule=schedule))
    run, calls = PartitionedRun(Workspace(**OPTIONS), source, schedule=schedule), itertools.count()
    learn_block = run.workspace.learn_block

    def fail_once(*given: Any) -> Any:
        if next(calls) == failing:
            raise MemoryError
        return learn_block(*given)

    monkeypatch.setattr(run.workspace, "learn_block", fail_once)
    with pytest.raises(MemoryError):
        run.step()
    assert finish(run)[0] == expected
    assert next(calls) > failing + 1


def test_workers_join_and_leave_between_rounds_and_change_no_bit() -> None:
    expected = finish(run_of())
    run, seen = run_of(workers=2), set[int]()
    pool, learn = run.pool, run.pool.learn

    def resize_and_learn(coordinator: Coordinator, chunks: Any) -> list[ChunkEnd]:
        pool.resize(1 + len(seen) % 3)
        ends = learn(coordinator, chunks)
        seen.add(pool.size)
        return ends

    pool.learn = resize_and_learn  # type: ignore[method-assign]
    assert finish(run) == expected
    assert seen == {1, 2, 3}


def test_workers_that_die_are_replaced_and_change_no_bit() -> None:
    """Some die while they are idle, some while they learn; no chunk is lost, and none is merged twice."""
    expected = finish(run_of())
    run = run_of()
    run.pool = pool = NodePool(run, 2, 0, deaths=0.2, seed=2)
    assert finish(run) == expected
    assert pool.killed > 1
    assert run.workspace.searching.n_learnt == EVENTS


def test_a_resumed_coordinator_continues_to_the_same_model() -> None:
    model, predictions = finish(run_of())
    first = run_of()
    parts, saved, done = [], b"", 0
    for block, outcomes in first:
        parts.append(outcomes.score.tobytes() + outcomes.prediction.tobytes())
        done += len(block)
        if done == first.position.events and done > 500:
            saved = checkpoint(first)
            break
    first.close()
    stored = PartitionedRun.resume(saved, BANDIT, workers=2, schedule=SHORT)
    with stored:
        parts += [outcomes.score.tobytes() + outcomes.prediction.tobytes() for _, outcomes in stored]
        assert b"".join(parts) == predictions
        assert checkpoint(stored) == model


def test_every_event_is_learnt_once_and_in_order() -> None:
    run = run_of()
    costs, tags = [], 0
    for block, outcomes in run:
        costs.append(outcomes.known_cost)
        tags += len(block)
    alone = Workspace(**OPTIONS)
    expected = [outcomes.known_cost for _, outcomes in alone.stream(BANDIT)]
    assert np.concatenate(costs).tobytes() == np.concatenate(expected).tobytes()
    assert tags == EVENTS == run.progress.example_number
    actual, theirs = (each.searching.live_configs.arrays for each in (run.workspace, alone))
    for entry in (Tally.LEARNT, Tally.EVENTS, Tally.ACTIONS):
        assert actual.tally[entry] == theirs.tally[entry]
    assert actual.ensemble.members.inputs.seen[-1] == theirs.ensemble.members.inputs.seen[-1]
    names = (each.searching.live_configs.counts() for each in (run.workspace, alone))
    assert next(names) == next(names)


def test_one_chunk_is_learnt_like_by_a_single_learner() -> None:
    block = block_of(BANDIT)
    coordinator = Coordinator(Workspace(**OPTIONS), 1)
    alone = Workspace(**OPTIONS)
    for each in (coordinator.workspace, alone):
        each.learn_block(take_events([block], 0, 300))
    chunk = coordinator.cut([take_events([block], 300, 400)])[0]
    worker = Worker(REGISTRY.from_keywords(**OPTIONS))
    coordinator.next_base()
    worker.adopt(coordinator.full_base())
    end = worker.learn(chunk.block, chunk.seed)
    coordinator.merge([end])
    outcomes = end.outcomes
    expected = alone.learn_block(take_events([block], 300, 400))
    assert outcomes.score.tobytes() == expected.score.tobytes()
    same = slice(0, 3)  # the rate of the last update is scratch
    assert coordinator.workspace.weights[:, same].tobytes() == alone.weights[:, same].tobytes()


def test_a_worker_returns_to_its_base_before_each_chunk() -> None:
    block = block_of(BANDIT)
    coordinator = Coordinator(Workspace(**OPTIONS), 2)
    coordinator.workspace.learn_block(take_events([block], 0, 300))
    one, other = coordinator.cut([block.head(600)], 300)
    worker = Worker(REGISTRY.from_keywords(**OPTIONS))
    coordinator.next_base()
    worker.adopt(coordinator.full_base())
    first = packed(worker.learn(one.block, 0))
    worker.learn(other.block, 1)
    assert packed(worker.learn(one.block, 0)) == first


RESTING = "layer", "ridge", "crosses in triples", "crosses in pairs", "crosses one by one", "baseline"


def member_arrays(workspace: Workspace, name: str) -> dict[str, bytes]:
    states = states_of(workspace.searching.live_configs.arrays.ensemble)
    return {path: array.tobytes() for path, array in send(states.state_of(name), name).items()}


@pytest.mark.parametrize("grows", [False, True])
def test_members_that_rest_are_not_sent_and_do_not_change(*, grows: bool) -> None:
    """A new action of one chunk changes regressions that rest, and their other ends are the base."""
    block = block_of(growing(400, (3, 4 if grows else 3), (1, 1), 350))
    coordinator = Coordinator(Workspace(**OPTIONS), 2)
    coordinator.workspace.learn_block(take_events([block], 0, 300))
    rest(coordinator.workspace.searching.live_configs.arrays.ensemble, RESTING)
    before = {name: member_arrays(coordinator.workspace, name) for name in ("layer", "ridge", "crosses")}
    chunks = coordinator.cut([take_events([block], 300, 400)])
    ends = ThreadPool(1).learn(coordinator, chunks)
    for name, of_member in before.items():
        sent = [any(path.startswith(f"{prefix_of(name)}") for path in end.state.dense) for end in ends]
        assert sent == [name == "crosses", name == "crosses" or grows]  # how sure cells are
        assert name != "crosses" or not any(len(end.state.tables[name].rows) for end in ends)
        assert of_member
    coordinator.merge(ends)
    for name, of_member in before.items():
        after = member_arrays(coordinator.workspace, name)
        assert (after == of_member) == (name == "crosses" or not grows)
    if grows:
        states = states_of(coordinator.workspace.searching.live_configs.arrays.ensemble)
        assert states.state_of("ridge").regression.prepared[-1] == 4


def packed(end: ChunkEnd) -> bytes:
    dense = {
        name: each for name, each in end.state.dense.items() if name not in ("model.settings", "live.tally")
    }
    state, outcomes = end.state._replace(dense=dense), replace(end.outcomes, rows=np.zeros(0))
    return b"".join(pack(end._replace(state=state, outcomes=outcomes)))


def test_messages_return_what_was_packed() -> None:
    block = block_of(BANDIT)
    coordinator = Coordinator(Workspace(**OPTIONS), 2)
    coordinator.workspace.learn_block(take_events([block], 0, 300))
    chunk = coordinator.cut([take_events([block], 300, 400)])[0]
    message, held = unpack(b"".join(pack(chunk_to_tree(chunk)))), Namespaces()
    read = chunk_of_tree(message, held, coordinator.workspace.configuration)
    for name in ("event_start", "lines", "costs", "spans", "features", "tag"):
        assert (getattr(read.block, name) == getattr(chunk.block, name)).all()
    assert read.block.namespaces is held
    assert len(held) == len(held.hashes) > 3
    assert held == chunk.block.namespaces
    again = chunk_of_tree(message, held, coordinator.workspace.configuration)
    assert again.block.namespaces is held
    turned = Namespaces(held.names[::-1], held.hashes[::-1])
    longer = Namespaces([*held.names, b"other"], [*held.hashes, 1])
    hashed = Namespaces([*held.names], [*held.hashes[:-1], 1])
    for other in (turned, longer, hashed):
        before = len(other)
        block = chunk_of_tree(message, other, coordinator.workspace.configuration).block
        assert block.namespaces == held
        assert len(other) == before
    worker = Worker(REGISTRY.from_keywords(**OPTIONS))
    coordinator.next_base()
    worker.adopt(coordinator.full_base())
    sent = worker.learn(read.block, 0)
    received = end_of_tree(unpack(b"".join(pack(sent))))
    assert packed(received) == packed(sent)
    assert (received.outcomes.rows == sent.outcomes.rows).all()


@pytest.mark.parametrize("cuts", [(0, 1, 2, 50), (7, 7, 30), (0, EVENTS)])
def test_a_cut_and_joined_block_is_the_same(cuts: tuple[int, ...]) -> None:
    block = block_of(BANDIT)
    block.lines[len(block.lines) - 1]["label"] = np.nan  # only offsets of a sentinel count
    parts = [join_blocks([block.head(end).tail(begin)]) for begin, end in itertools.pairwise(cuts)]
    joined, whole = join_blocks(parts), take_events([block], cuts[0], cuts[-1])
    for name in ("event_start", "lines", "costs", "spans", "features", "tag"):
        assert (getattr(joined, name) == getattr(whole, name)).all()
        assert len(getattr(joined, name)) == len(getattr(whole, name))


def test_partitions_earn_about_as_much_as_a_single_learner() -> None:
    events = 4000
    source = text("planted", events=events, seed=9)
    run = PartitionedRun(
        Workspace(**OPTIONS), source, schedule=RoundSchedule(alone=1024, head=16, shortest=512, growth=16)
    )
    losses = np.concatenate([outcomes.loss for _, outcomes in run])
    alone = np.concatenate([outcomes.loss for _, outcomes in Workspace(**OPTIONS).stream(source)])
    gain = alone[:1024].mean() - alone[-1500:].mean()
    assert gain > 0.05
    assert losses[-1500:].mean() < alone[-1500:].mean() + 0.25 * gain


def test_no_champion_changes_where_nothing_can_be_learnt() -> None:
    """Costs depend on neither context nor action: a change of champion is a false proof, at 5 % a stream."""
    changes = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        lines = []
        for action, cost, *context in rng.integers(0, [3, 2, 4, 4, 4], (700, 5)).tolist():
            lines.append("shared |a {} |b {} |c {}".format(*context))
            lines += [f"{f'0:{-cost}:0.3333 ' * (at == action)}|z {at}" for at in range(3)]
            lines.append("")
        source = "\n".join(lines).encode()
        run = PartitionedRun(Workspace(**OPTIONS), source, schedule=SHORT)
        assert sum(len(block) for block, _ in run) == 700
        changes += run.workspace.searching.n_switches
    assert changes <= 2  # with probability 0.998, if each of six streams has one with 5 %


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"cb_explore_adf": True}, "--automl"),
        (OPTIONS | {"passes": 2}, "--passes"),
        (OPTIONS | {"testonly": True}, "--testonly"),
        (OPTIONS | {"strict_parse": True}, "--strict_parse"),
        (OPTIONS | {"bag": 3}, "--bag"),
        (OPTIONS | {"estimator": "robust"}, "--estimator robust"),
        ({"ccb_explore_adf": True, "live_configs": 2}, "--ccb_explore_adf"),
    ],
)
def test_what_cannot_be_combined_is_rejected_by_name(options: dict[str, Any], name: str) -> None:
    with pytest.raises(OptionError, match=name):
        PartitionedRun(Workspace(**options), BANDIT)


def test_bad_lines_are_located_like_by_a_single_learner() -> None:
    source = BANDIT + b"shared |a x\nbad |b y\n|b z\n\n" + BANDIT
    run, alone = run_of(source), Workspace(**OPTIONS)
    n = sum(len(block) for block, _ in run)
    assert n == sum(len(block) for block, _ in alone.stream(source))
    assert run.diagnostics.total == alone.diagnostics.total > 0
    assert list(map(str, run.diagnostics.kept)) == list(map(str, alone.diagnostics.kept))


def command(path: Path, model: Path, *flags: str) -> list[str]:
    learn = [sys.executable, "-m", "onlineauto", "-d", str(path), "--cb_explore_adf", "--automl", "3"]
    return [*learn, "-b", "14", "--workers", "2", "-f", str(model), "--quiet", *flags]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_coordinator_resumes_from_its_model(tmp_path: Path, number: signal.Signals) -> None:
    source, killed, whole = tmp_path / "events", tmp_path / "killed.oam", tmp_path / "whole.oam"
    source.write_bytes(text("planted", events=120_000, seed=1))
    subprocess.run(command(source, whole), check=True)
    flags = ("--save_every", "4000", "--resume")
    process = subprocess.Popen(command(source, killed, *flags), start_new_session=True)
    while not killed.exists():
        time.sleep(0.05)
    time.sleep(0.3)
    process.send_signal(number)
    assert process.wait() in (-number, 128 + number)
    subprocess.run(command(source, killed, *flags), check=True)
    one, other = (Workspace.load(path) for path in (killed, whole))
    assert one.weights.tobytes() == other.weights.tobytes()
    assert one.searching.n_learnt == other.searching.n_learnt == 120_000


def test_ends_are_merged_with_one_thread_of_linear_algebra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the bits would depend on the number of cores."""
    seen = list[set[int]]()

    def threads() -> set[int]:
        return {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}

    def note(module: ModuleType, name: str) -> None:
        function = getattr(module, name)

        def noted(*arguments: Any, **keywords: Any) -> Any:
            seen.append(threads())
            return function(*arguments, **keywords)

        monkeypatch.setattr(module, name, noted)

    note(coordinator_module, "merge_round")
    note(worker_module, "settled_arrays")
    with threadpool_limits(2, user_api="blas"):
        before = threads()
        finish(run_of(workers=3))
        assert threads() == before
    assert len(seen) > 1
    assert all(each <= {1} for each in seen)


@pytest.mark.parametrize("interrupts", [False, True])
def test_a_thread_that_fails_raises_its_error_and_ends_the_others(
    monkeypatch: pytest.MonkeyPatch, *, interrupts: bool
) -> None:
    expected, _ = finish(run_of())
    run, learn, calls, rounds = run_of(workers=2), Worker.learn, list[int](), itertools.count()

    def fail(self: Worker, block: Block, seed: int) -> ChunkEnd:
        calls.append(seed)
        if len(calls) == 6 and not interrupts:
            raise InputError("event 7 is broken")
        return learn(self, block, seed)

    def interrupt() -> None:
        if interrupts and next(rounds) == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(Worker, "learn", fail)
    run._coordinator.look_ahead = interrupt
    with pytest.raises(KeyboardInterrupt if interrupts else InputError):
        run.step()
    assert not [each for each in threading.enumerate() if each.name.startswith("onlineauto-worker")]
    assert run.workspace.searching.n_learnt == run.position.events < EVENTS
    assert run.pool.size == 0
    run.step()
    assert checkpoint(run) == expected


def test_linear_algebra_has_one_thread_until_the_last_of_overlapping_uses_ends() -> None:
    def threads() -> list[int]:
        return [each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"]

    before = threads()
    with ExitStack() as first:
        first.enter_context(one_blas_thread())
        with one_blas_thread():
            first.close()
            assert set(threads()) == {1}
    assert threads() == before
