"""The ensemble on a second thread: the same predictions, decisions and models as on one thread."""

from __future__ import annotations

import copy
import gzip
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench import threads as bench
from bench.speed_kinds.streams import KINDS
from datasets import generate
from onlineauto import Workspace
from onlineauto.engine.loop import follower
from onlineauto.engine.loop.follow_kernels import follow_events
from onlineauto.engine.loop.follower import Follower
from onlineauto.engine.records.search import Tally
from tests.engine.ensemble_streams import clicked, numbered, odd, others
from tests.property.snapshot import saved_of

MANY = 2  # threads with which the ensemble has its own
DATASETS = Path(__file__).resolve().parents[2] / "datasets"


def events_of(text: bytes) -> list[bytes]:
    return [event + b"\n\n" for event in text.split(b"\n\n") if event]


def with_gaps(text: bytes) -> bytes:
    """Return the events: every ninth without a label, every eleventh with a new namespace for a while."""
    changed = []
    for at, event in enumerate(events_of(text)):
        if at % 9 == 4:
            event = b"\n".join(line.split(b" ", 1)[-1] if b":" in line.split(b" ")[0] else line
                               for line in event.split(b"\n"))  # fmt: skip
        if at > 300 and at % 11 < 3:
            event = event.replace(b"|w", b"|new%d n%d |w" % (at // 200, at % 5), 1)
        changed.append(event)
    return b"".join(changed)


def with_outliers(text: bytes) -> bytes:
    """Return the events with an absurd cost in one of the first events and in a few later ones."""
    changed = events_of(text)
    for at in (7, 240, 241, 500):
        changed[at] = changed[at].replace(b"0:-", b"0:-1000000", 1)
    return b"".join(changed)


def far_from_0(text: bytes) -> bytes:
    """Return the events with costs far from 0, so that learning restarts."""
    return text.replace(b"0:-", b"0:1000.")


def shifted(n: int) -> bytes:
    """Events of which the second half has other actions and pays the other way round."""
    return odd(n // 2, numbers=2, drift=3.0) + others(n // 2, actions=5) + clicked(n // 4)


def dataset(name: str, n: int) -> bytes:
    with gzip.open(DATASETS / f"{name}.txt.gz") as file:
        return b"".join(events_of(file.read())[:n])


STREAMS: dict[str, tuple[bytes, dict[str, Any]]] = {
    "numbers and ids": (odd(1500, numbers=3, ids=40), {}),
    "drift and new actions": (shifted(1600), {"on_drift": "reset_model"}),
    "unlabelled, held out, new namespaces": (
        with_gaps(odd(1500, numbers=2)),
        {"holdout_period": 7, "lease": 50},
    ),
    "outliers": (with_outliers(odd(900, numbers=2)), {}),
    "costs far from 0": (far_from_0(odd(900, numbers=1)), {}),
    "more than 128 actions": (odd(300, actions=140, numbers=1), {}),
    "more and more actions": (odd(400, actions=3) + others(100, actions=140) + odd(300, actions=3), {}),
    "wide events": (odd(300, words=4) + odd(300, numbers=12), {"max_crossed": 60}),
    "swaps": (generate.text("planted", events=2500, seed=3), {"lease": 25}),
    "many live configs": (generate.text("narrow", events=700, seed=2), {"live_configs": 12, "lease": 10}),
    "resting members": (generate.text("narrow", events=7000, seed=1), {}),
    "one line for an event": (numbered(1500, 4), {"cb_explore_adf": False, "cb_explore": 4}),
    "without exploration": (odd(900, numbers=2), {"cb_explore_adf": False, "cb_adf": True}),
    "no members": (odd(900, numbers=2), {"members": "none"}),
    "clicks": (clicked(1500), {"softmax": True}),
    "squarecb": (odd(900, numbers=2), {"squarecb": True}),
    "synthcover": (odd(900, numbers=2), {"synthcover": True}),
    "hyperparameters": (odd(900, numbers=2), {"search": "namespaces,power_t", "lease": 20}),
    "surveys": (dataset("cb-surveys-u", 3000), {}),
    "flights": (dataset("cb-flights-e", 3000), {}),
}
"""Streams with what may stop the loop in them, and options."""
ALONE: dict[str, tuple[bytes, dict[str, Any]]] = {
    "plausible costs": (odd(400), {"regcb": True}),
    "several models": (odd(400), {"bag": 2}),
    "a part of the events": (odd(400), {"keep_unrewarded": 0.5}),
    "doubly robust": (odd(400), {"cb_type": "dr"}),
    "a search for a type of costs": (odd(400), {"search": "namespaces,cb_type"}),
    "single lines": (
        b"".join(b"%d |a x%d |b y:%d\n" % (i % 3, i % 3, i % 5) for i in range(400)),
        {"cb_explore_adf": False},
    ),
    "exact": (odd(400), {"vw_exact": True}),
    "VW's bounds": (odd(400), {"estimator": "robust"}),
}
"""Streams whose ensemble, if there is one, never follows on another thread."""


class Learnt:
    """A workspace, and all that it told while it learnt."""

    def __init__(self, threads: int, options: dict[str, Any]) -> None:
        options = {"cb_explore_adf": True, "live_configs": 4, "hash_bits": 12} | options
        self.workspace = Workspace(**options)
        self.workspace.use_threads(threads)
        self.told: list[object] = []
        self.workspace.observe(self.told.append)

    def learn(self, text: bytes) -> Learnt:
        for _, outcomes in self.workspace.stream(text):
            for array in (outcomes.rows, outcomes.score, outcomes.action):
                self.told.append(array.tobytes())
        self.told += [self.workspace.diagnostics.total, self.workspace.outliers]
        return self

    def saved(self) -> bytes:
        return saved_of(self.workspace)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the event of each run of the live configs ahead of the ensemble."""
    found: list[int] = []
    run = Follower.run

    def noted(self: Follower, *arguments: Any, **keywords: Any) -> None:
        found.append(int(arguments[2][0]))
        run(self, *arguments, **keywords)

    monkeypatch.setattr(Follower, "run", noted)
    return found


@pytest.fixture(
    params=[
        (1, 1),
        pytest.param((3, 5), marks=pytest.mark.ci),
        (8, 64),
        pytest.param((1 << 20, 1 << 20), marks=pytest.mark.ci),
    ],
    ids=str,
)
def _sub_blocks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sub-blocks of other numbers of events, down to one event."""
    monkeypatch.setattr(follower, "_LEAST", request.param[0])
    monkeypatch.setattr(follower, "_MOST", request.param[1])
    monkeypatch.setattr(follower, "_FEWEST", 1)
    monkeypatch.setattr(follower, "_SHORTEST", 0)


@pytest.fixture(scope="module")
def one_thread() -> dict[str, Learnt]:
    """Return the state that one thread learns from each stream."""
    return {}


@pytest.mark.usefixtures("_sub_blocks")
@pytest.mark.parametrize("name", STREAMS)
def test_two_threads_learn_the_same_as_one(name: str, one_thread: dict[str, Learnt], runs: list[int]) -> None:
    text, options = STREAMS[name]
    if name not in one_thread:
        one_thread[name] = Learnt(1, options).learn(text)
    assert not runs
    two = Learnt(MANY, options).learn(text)
    assert runs
    assert two.told == one_thread[name].told
    assert two.saved() == one_thread[name].saved()


@pytest.mark.parametrize("name", ALONE)
def test_ensembles_without_a_thread_do_not_start_one(name: str, runs: list[int]) -> None:
    text, options = ALONE[name]
    one, two = (Learnt(threads, options).learn(text) for threads in (1, MANY))
    assert not runs
    assert two.told == one.told
    assert two.saved() == one.saved()


def test_streams_contain_every_event_that_stops_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """All kinds of decisions, some on an ensemble that was behind; and events that are run one by one."""
    monkeypatch.setattr(follower, "_FEWEST", 1)
    behind: list[bool] = []
    decision = Follower.decision

    def noted(self: Follower, live: Any, cursor: Any) -> Any:
        behind.append(self.is_behind(cursor))
        return decision(self, live, cursor)

    monkeypatch.setattr(Follower, "decision", noted)
    kinds, wide, outliers = set[str](), 0, 0
    for name in (
        "numbers and ids",
        "drift and new actions",
        "outliers",
        "wide events",
        "swaps",
        "resting members",
    ):
        text, options = STREAMS[name]
        learnt = Learnt(MANY, options).learn(text)
        kinds |= {type(each).__name__ for each in learnt.told}
        wide += learnt.workspace.diagnostics.total
        outliers += sum(learnt.workspace.outliers.values())
    assert {"_Widen", "_Rotate", "_Swap", "_Extend", "_PredictWith", "_RestMembers"} <= kinds
    assert wide > 0
    assert outliers > 0
    assert True in behind


@pytest.mark.parametrize("name", ["numbers and ids", "swaps", "surveys"])
@pytest.mark.parametrize("threads", [(1, MANY, 1), (MANY, 1, MANY)], ids=str)
def test_run_is_resumed_with_another_number_of_threads(
    name: str, threads: tuple[int, int, int], tmp_path: Path
) -> None:
    text, options = STREAMS[name]
    events = events_of(text)
    parts = [
        b"".join(events[at : at + len(events) // 3 + 1]) for at in range(0, len(events), len(events) // 3 + 1)
    ]
    whole = Learnt(1, options)
    for part in parts:
        whole.learn(part)
    file = tmp_path / "model"
    learnt = Learnt(threads[0], options)
    told = learnt.learn(parts[0]).told
    for number, part in zip(threads[1:], parts[1:], strict=True):
        learnt.workspace.save(file)
        learnt = Learnt(number, options)
        learnt.workspace = Workspace.load(file)
        learnt.workspace.use_threads(number)
        learnt.told = told
        learnt.workspace.observe(told.append)
        learnt.learn(part)
    decisions = [each for each in told if not isinstance(each, int | dict)]
    assert decisions == [each for each in whole.told if not isinstance(each, int | dict)]
    assert learnt.saved() == whole.saved()


def test_copy_has_its_own_thread() -> None:
    text, options = STREAMS["numbers and ids"]
    events = events_of(text)
    one = Learnt(MANY, options).learn(b"".join(events[:700]))
    other = copy.deepcopy(one.workspace)
    rest = b"".join(events[700:])
    one.learn(rest)
    for _ in other.stream(rest):
        pass
    assert saved_of(other) == one.saved()


def test_no_thread_is_left_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    text, options = STREAMS["numbers and ids"]
    learnt = Learnt(MANY, options)
    bound = Follower._bound

    def broken(self: Follower, loop: Any, context: Any, cursor: Any) -> Any:
        made = bound(self, loop, context, cursor)

        def call(stop: int) -> None:
            if "ensemble" in threading.current_thread().name and stop > 300:
                raise IndexError("broken")
            made(stop)

        return call

    monkeypatch.setattr(Follower, "_bound", broken)
    with pytest.raises(IndexError, match="broken"):
        learnt.learn(text)
    assert not [each for each in threading.enumerate() if "ensemble" in each.name]


def test_single_events_and_short_blocks_start_no_thread(runs: list[int]) -> None:
    learnt = Learnt(MANY, {}).learn(odd(100))
    for event in events_of(odd(5)):
        learnt.workspace.learn(event)
    assert not runs


def test_the_bench_learns_the_same_with_all_numbers_of_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench.write("surveys-u", tmp_path / "log.txt") == 31147
    monkeypatch.setattr(sys, "argv", ["threads", "--rounds", "1", "--kinds", "small"])
    monkeypatch.setitem(KINDS, "small", replace(KINDS["tiny"], events=400))
    assert bench.main() == 0
    assert capsys.readouterr().out.count("| small |") == 1


def test_interrupted_ensemble_has_learnt_the_events_of_the_live_configs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls, bound = 0, Follower._bound

    def interrupted(self: Follower, loop: Any, *arguments: Any) -> Any:
        run = bound(self, loop, *arguments)

        def lead(stop: int) -> None:
            nonlocal calls
            run(stop)
            calls += 1
            if calls == 9:  # the events of this call are not handed over yet
                raise KeyboardInterrupt

        return run if loop is follow_events else lead

    monkeypatch.setattr(Follower, "_bound", interrupted)
    workspace = Workspace(cb_explore_adf=True, automl=3)
    workspace.use_threads(MANY)
    with pytest.raises(KeyboardInterrupt):
        workspace.fit(odd(1500, numbers=2))
    live = workspace.searching.live_configs.arrays
    assert live.tally[Tally.LEARNT] == live.ensemble.members.inputs.seen[-1] > 0
