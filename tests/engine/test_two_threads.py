"""Live configs on one thread and the ensemble on another: all results are those of one thread, to the bit."""

from __future__ import annotations

import copy
import io
import pickle
import re
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np
import pytest

from onlineauto import Workspace
from onlineauto.engine.loop import block_runner, working_memory
from onlineauto.engine.loop.ensemble_thread import EnsembleThread
from onlineauto.engine.options.registry import RunOptions
from tests.engine.ensemble_streams import bent, numbered, odd, worded

if TYPE_CHECKING:
    from collections.abc import Callable

    from onlineauto.options import Configuration

ADF: dict[str, Any] = {"cb_explore_adf": True, "automl": 4, "default_lease": 60, "random_seed": 5}
LINES: dict[str, Any] = {"automl": 3, "default_lease": 60}
NUMBERED: dict[str, Any] = {"cb_explore": 3, "automl": 3, "default_lease": 60}
HALF = 300


def far(text: bytes) -> bytes:
    """Add 1,000 to each cost, so that learning restarts once the origin of costs is found."""
    return re.sub(rb"0:([-.\d]+):", lambda label: b"0:%.4f:" % (1000.0 + float(label[1])), text)


STREAMS: dict[str, tuple[dict[str, Any], Callable[[], bytes]]] = {
    "numbers": (ADF, lambda: odd(2 * HALF, numbers=2)),
    "drift": (ADF | {"squarecb": True}, lambda: odd(2 * HALF, numbers=2, drift=9.0)),
    "many actions": (ADF | {"cb_sample": True}, lambda: odd(2 * HALF, actions=40, shuffled=True)),
    "settings": (ADF | {"search": "interactions,learning_rate"}, lambda: odd(2 * HALF, numbers=1)),
    "wide events": (ADF | {"max_crossed": 150}, lambda: worded(2 * HALF, words=9)),
    "held out": (ADF | {"holdout_period": 7}, lambda: odd(2 * HALF, ids=20)),
    "costs far from 0": (ADF, lambda: far(odd(2 * HALF, numbers=1))),
    "lines": (LINES, lambda: bent(2 * HALF)),
    "one line for all actions": (NUMBERED, lambda: numbered(2 * HALF, 3)),
}


class Learnt(NamedTuple):
    """All results of a run."""

    predictions: list[bytes]
    journal: list[Any]
    model: bytes


class Calls(NamedTuple):
    """Calls of the second thread: how many events it ran, and the events at which the ensemble decided."""

    runs: list[int]
    decisions: list[int]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    """Allow a second thread on every machine, and count its calls."""
    counted = Calls([], [])
    run, catch_up = EnsembleThread.run, EnsembleThread.catch_up

    def allows(configuration: Configuration) -> bool:
        return configuration[RunOptions].threads > 1

    def counting_run(self: EnsembleThread, *arguments: Any) -> None:
        counted.runs.append(arguments[3])
        run(self, *arguments)

    def counting_catch_up(self: EnsembleThread, *arguments: Any) -> None:
        counted.decisions.append(int(self.cursor[0]))
        catch_up(self, *arguments)

    for module in (block_runner, working_memory):
        monkeypatch.setattr(module, "has_two_threads", allows)
    monkeypatch.setattr(EnsembleThread, "run", counting_run)
    monkeypatch.setattr(EnsembleThread, "catch_up", counting_catch_up)
    return counted


def continued(model: Workspace, text: bytes, journal: list[Any]) -> list[bytes]:
    model.observe(lambda entry: journal.append(msgspec.to_builtins(entry)))
    found = []
    for _, outcomes in model.stream(text):
        found += [outcomes.score.tobytes(), outcomes.action.tobytes(), outcomes.rows.tobytes()]
    return found


def learnt(text: bytes, *threads: int, half: int = HALF, **options: Any) -> Learnt:
    """Learn half of a stream after the other, each with a number of threads, through a model file."""
    events = text.splitlines(keepends=True)
    if b"\n" in events:
        events = [event + b"\n\n" for event in text.split(b"\n\n")[:-1]]
    journal: list[Any] = []
    model = Workspace(**options, threads=threads[0])
    predictions = continued(model, b"".join(events[:half]), journal)
    file = io.BytesIO()
    model.save(file)
    again = Workspace.load(io.BytesIO(file.getvalue()), threads=threads[1])
    predictions += continued(again, b"".join(events[half:]), journal)
    file = io.BytesIO()
    again.save(file)
    return Learnt(predictions, journal, file.getvalue())


@pytest.mark.parametrize("name", STREAMS)
def test_results_do_not_depend_on_the_number_of_threads(name: str, calls: Calls) -> None:
    options, made = STREAMS[name]
    text = made()
    one = learnt(text, 1, 1, **options)
    assert not calls.runs
    assert len(one.journal) > 3
    for threads in ((2, 2), (1, 2)):
        assert learnt(text, *threads, **options) == one
    assert calls.runs


def test_a_decision_on_the_ensemble_is_made_at_its_event_though_live_configs_are_ahead(calls: Calls) -> None:
    text = odd(900, numbers=2)
    one, two = learnt(text, 1, 1, half=450, **ADF), learnt(text, 2, 2, half=450, **ADF)
    decided = [entry["events"] for entry in one.journal if entry["decision"] == "predict_with"]
    assert decided
    assert calls.decisions == decided
    assert two == one


def test_a_full_ring_makes_the_live_configs_wait(calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    text = odd(2 * HALF, numbers=2)
    one = learnt(text, 1, 1, **ADF)
    monkeypatch.setattr(working_memory, "RING", 2)
    assert learnt(text, 2, 2, **ADF) == one
    assert calls.runs


@pytest.mark.parametrize(
    "options",
    [
        {"bag": 2},
        {"regcb": True},
        {"cb_type": "dr"},
        {"automl": None},
        {"predict_with": "champion"},
        {"threads": 1},
    ],
    ids=str,
)
def test_other_loops_have_one_thread(options: dict[str, Any], calls: Calls) -> None:
    for _ in Workspace(**(ADF | {"threads": 2, "default_lease": None} | options)).stream(odd(200)):
        pass
    assert not calls.runs


def test_an_error_of_the_second_thread_is_raised(calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> None:
        raise MemoryError("of the second thread")

    monkeypatch.setattr(EnsembleThread, "_combine", fails)
    with pytest.raises(MemoryError, match="of the second thread"):
        list(Workspace(**ADF, threads=2).stream(odd(200)))
    assert calls.runs


def test_few_events_have_one_thread(calls: Calls) -> None:
    model = Workspace(**ADF, threads=2)
    list(model.stream(odd(50)))
    assert not calls.runs
    assert np.isfinite(model.learn(odd(1))).all()


def test_a_copy_goes_on_like_the_original(calls: Calls) -> None:
    model = Workspace(**ADF, threads=2)
    list(model.stream(odd(200, numbers=1)))
    copies = copy.deepcopy(model), pickle.loads(pickle.dumps(model))  # noqa: S301
    rest = odd(300, numbers=1, seed=1)
    expected = continued(model, rest, [])
    assert all(continued(each, rest, []) == expected for each in copies)
    assert calls.runs
