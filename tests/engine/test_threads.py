"""Threads that share a workspace or have one each, and calls that must not block them."""

from __future__ import annotations

import copy
import os
import pickle
import random
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest

import onlineauto
from datasets import generate
from onlineauto import InputError, Workspace
from onlineauto.explorers.policy import Policy
from tests.engine.event_texts import FORMATS, bandit
from tests.learners.model_view import shared_of
from tests.property.snapshot import model_of, saved_of

ROOT = Path(__file__).resolve().parents[2]
THREADS = 8
PATIENCE = 120.0  # seconds, for threads that never end to fail a test
R = TypeVar("R")


@pytest.fixture(autouse=True)
def _in_quick_turns() -> Iterator[None]:
    """Make Python switch threads a thousand times as often as usual."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(before / 1000)
    yield
    sys.setswitchinterval(before)


def at_once(*jobs: Callable[[], R]) -> list[R]:
    """Run each job in a separate thread, all at the same time, and return their results."""
    start, results, errors = threading.Barrier(len(jobs)), dict[int, R](), list[Exception]()

    def run(place: int) -> None:
        try:
            start.wait(PATIENCE)
            results[place] = jobs[place]()
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(place,), daemon=True) for place in range(len(jobs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive(), "threads wait for each other"
    if errors:
        raise errors[0]
    return [results[place] for place in range(len(jobs))]


def shuffled(seed: int, items: list[R]) -> list[R]:
    return random.Random(seed).sample(items, len(items))


@pytest.mark.parametrize(("options", "event"), FORMATS)
def test_concurrent_predictions_equal_those_of_one_thread(
    options: dict[str, Any], event: Callable[[int], str]
) -> None:
    workspace = Workspace(**options, bit_precision=12)
    for n in (5, 1, 12):
        workspace.learn(event(n))
    texts = [event(n) for n in (*range(25), 300, 2000)]
    expected = {text: workspace.predict(text).tobytes() for text in texts}
    before = model_of(workspace)

    def ask(seed: int) -> int:
        return sum(workspace.predict(text).tobytes() != expected[text] for text in shuffled(seed, texts * 4))

    assert at_once(*(partial(ask, seed) for seed in range(THREADS))) == [0] * THREADS
    assert model_of(workspace) == before


# -- while one thread learns ---------------------------------------------------------------------------

EVENTS = [bandit(n % 13) for n in range(150)]
OPTIONS: dict[str, Any] = {
    "cb_explore_adf": True,
    "squarecb": True,
    "automl": 2,
    "lease": 20,
    "bit_precision": 8,
}


def learner(workspace: Workspace, ended: threading.Event) -> Callable[[], int]:
    """Return a job that learns all events."""

    def learn() -> int:
        try:
            for event in EVENTS:
                workspace.learn(event)
        finally:
            ended.set()
        return 0

    return learn


def test_concurrent_predictions_are_of_a_state_between_events() -> None:
    asked = [bandit(n) for n in (0, 3, 40, 500)]
    serial, known = Workspace(**OPTIONS), {text: set[bytes]() for text in asked}
    for event in ["", *EVENTS]:
        if event:
            serial.learn(event)
        for text in asked:
            known[text].add(serial.predict(text).tobytes())
    workspace, ended = Workspace(**OPTIONS), threading.Event()

    def ask(seed: int) -> int:
        wrong = 0
        while not ended.is_set():
            wrong += sum(
                workspace.predict(text).tobytes() not in known[text] for text in shuffled(seed, asked)
            )
        return wrong

    jobs = [partial(ask, seed) for seed in range(THREADS - 1)]
    assert at_once(learner(workspace, ended), *jobs) == [0] * THREADS
    assert model_of(workspace) == model_of(serial)
    assert min(map(len, known.values())) > 10


@pytest.mark.ci
def test_concurrent_saves_and_copies_are_of_a_state_between_events() -> None:
    serial, known = Workspace(**OPTIONS), dict[bytes, int]()
    for n, event in enumerate(["", *EVENTS]):
        if event:
            serial.learn(event)
        known[saved_of(serial)] = n
    workspace, ended = Workspace(**OPTIONS), threading.Event()

    def take(saved: Callable[[Workspace], bytes]) -> int:
        moments = list[int]()
        while not ended.is_set():
            moments.append(known.get(saved(workspace), -1))
        assert moments == sorted(moments)
        return sum(moment < 0 for moment in moments)

    ways: list[Callable[[Workspace], bytes]] = [
        saved_of,
        lambda each: saved_of(copy.deepcopy(each)),
        lambda each: saved_of(copy.copy(each)),
        lambda each: saved_of(pickle.loads(pickle.dumps(each))),  # noqa: S301 - its own
    ]
    assert at_once(learner(workspace, ended), *(partial(take, way) for way in ways)) == [0] * 5
    assert saved_of(workspace) == saved_of(serial)


def test_several_threads_learn_each_event_once() -> None:
    workspace = Workspace(cb_explore_adf=True, bit_precision=8)

    def learn(seed: int) -> None:
        for event in shuffled(seed, EVENTS):
            workspace.learn(event)

    at_once(*(partial(learn, seed) for seed in range(4)))
    serial = Workspace(cb_explore_adf=True, bit_precision=8).fit(EVENTS * 4)
    assert workspace.learner.model.sums.tolist() == serial.learner.model.sums.tolist()
    assert shared_of(workspace).t == shared_of(serial).t == 4 * len(EVENTS)


@pytest.mark.parametrize("exact", [False, True], ids=["native", "exact"])
def test_workspaces_in_threads_learn_independently(exact: bool) -> None:
    text = generate.text("planted", events=3000)

    def learnt() -> bytes:
        made = Workspace(cb_explore_adf=True, automl=3, lease=50, vw_exact=exact, bit_precision=12)
        return saved_of(made.fit(text))

    alone = learnt()
    assert at_once(learnt, learnt) == [alone, alone]


FORKS = """
import os, signal, threading
from onlineauto import Workspace
from tests.engine.test_threads import EVENTS, OPTIONS, saved_of

Workspace(**OPTIONS).learn(EVENTS[0])  # what has to be loaded is, before there are children
shared, ended = Workspace(**OPTIONS), False

def learn():
    global shared
    while not ended:
        shared = Workspace(**OPTIONS)
        for event in EVENTS:
            shared.learn(event)

def right():
    twin = Workspace(**OPTIONS)
    for event in EVENTS[: shared.searching.n_learnt]:
        twin.learn(event)
    return saved_of(shared) == saved_of(twin)

thread = threading.Thread(target=learn)
thread.start()
codes = []
for _ in range(12):
    if child := os.fork():
        codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        continue
    signal.alarm(120)
    os._exit(0 if right() else 1)
ended = True
thread.join()
print(codes)
"""


@pytest.mark.ci
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_forked_process_has_a_state_between_events() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKS], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert done.stdout == f"{[0] * 12}\n", done.stderr


LOADS = """
import os, threading
from onlineauto import Workspace
from tests.engine.event_texts import FORMATS

Workspace().learn("1 |a x")  # so that all that forks wait for is there

def learn():
    for options, event in FORMATS:
        Workspace(**options, bit_precision=8).learn(event(3))

thread = threading.Thread(target=learn)
thread.start()
codes = set()
while thread.is_alive():
    if child := os.fork():
        codes.add(os.waitpid(child, 0)[1])
        continue
    os._exit(0)
print(codes)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_fork_does_not_deadlock_while_a_thread_loads_kernels() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", LOADS],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        timeout=2 * PATIENCE,
    )
    assert done.stdout == "{0}\n", done.stderr


# -- what must not keep threads waiting ----------------------------------------------------------------


def test_stream_releases_the_lock_between_blocks_and_while_it_waits() -> None:
    workspace = Workspace(**OPTIONS)
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb", buffering=0) as pipe, os.fdopen(writing, "wb", buffering=0) as events:
        events.write(f"{EVENTS[0]}\n".encode())
        stream = workspace.stream(pipe)
        next(stream)
        at_once(partial(workspace.predict, EVENTS[1]))  # the stream waits at its yield
        waits = threading.Thread(target=partial(next, stream, None), daemon=True)
        waits.start()
        at_once(partial(workspace.learn, EVENTS[1]))  # and now for input
        assert waits.is_alive()
        events.write(f"{EVENTS[2]}\n".encode())
        waits.join(PATIENCE)
        assert workspace.searching.n_learnt == 3


# -- others that threads may share ---------------------------------------------------------------------


@pytest.mark.parametrize("blocks", [False, True], ids=["text", "blocks"])
def test_reader_rejects_a_second_thread(tmp_path: Path, blocks: bool) -> None:
    path, text = tmp_path / "events", generate.text("narrow", events=3000)
    path.write_bytes(text)
    if blocks:
        onlineauto.convert(path, tmp_path / "blocks", cb_adf=True)
        path = tmp_path / "blocks"
    shared = onlineauto.read(path, cb_adf=True)

    def count() -> int:
        try:
            return sum(map(len, shared))
        except InputError as error:
            assert str(error) == f"{path}: it is being read already; open it once for each reader"  # noqa: PT017
            return 0

    assert sorted(at_once(count, count, count)) == [0, 0, 3000]


def test_concurrent_policies_equal_those_of_one_thread() -> None:
    policy, scores = Policy(squarecb=True, gamma_scale=20), np.arange(5, dtype=np.float32)
    asked = list(range(0, 2000, 10))
    expected = {learnt: policy.pmf(scores, learnt=learnt).tobytes() for learnt in asked}

    def ask(seed: int) -> int:
        return sum(
            policy.pmf(scores, learnt=learnt).tobytes() != expected[learnt]
            for learnt in shuffled(seed, asked)
        )

    assert at_once(*(partial(ask, seed) for seed in range(THREADS))) == [0] * THREADS
