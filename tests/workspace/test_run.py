"""Runs: streams learnt step by step, and resumed from checkpoints with the same result."""

from __future__ import annotations

import gc
import io
import threading
import weakref
from typing import Any

import pytest

from datasets import generate
from onlineauto import Block, InputError, Run, Workspace
from onlineauto.engine.event.outcomes import Outcomes
from onlineauto.workspace.model_file import State
from tests.waiting import PATIENCE
from tests.workspace.test_predicting import bytes_of

pytestmark = pytest.mark.lane("quick")

TEXT = generate.text("planted", events=700)
OPTIONS: dict[str, Any] = {"cb_explore_adf": True, "automl": 3, "lease": 50, "bit_precision": 10}


class Losses:
    """A sink that adds up the losses."""

    def __init__(self, run: Run) -> None:
        self.total: float = run.stored.get("metrics", {}).get("total", 0.0)
        self.events = 0
        run.sinks.append(self)

    def take(self, block: Block, outcomes: Outcomes) -> None:
        self.total += sum(outcomes.loss.tolist())
        self.events += len(block)

    def state(self) -> State:
        return {}


def counted(run: Run) -> dict[str, object]:
    """All counters but the rows of the progress table, which depend on where blocks end."""
    return {"position": run.position, "progress": run.progress.counts()}


@pytest.mark.parametrize("steps", [[700], [1, 2, 3, 500, 1000], [350, 350], [0, 700]])
def test_a_run_learns_the_same_in_steps_of_any_length(steps: list[int]) -> None:
    whole = Run(Workspace(**OPTIONS), TEXT)
    for _ in whole:
        pass
    run = Run(Workspace(**OPTIONS), TEXT)
    sink = Losses(run)
    left = 700
    for n in steps:
        assert run.step(n) == min(n, left)
        left -= min(n, left)
        assert sink.events == 700 - left
    assert run.step() == left
    assert run.step() == run.step(5) == 0
    assert bytes_of(run.workspace) == bytes_of(whole.workspace)
    assert counted(run) == counted(whole)


@pytest.mark.parametrize("passes", [1, 3])
def test_a_run_is_resumed_from_any_checkpoint_with_the_same_result(passes: int) -> None:
    champion: dict[str, Any] = {"predict_with": "champion"} if passes > 1 else {}
    options = OPTIONS | champion | {"passes": passes, "holdout_off": True}
    whole = Run(Workspace(**options), TEXT)
    assert whole.step() == 700 * passes
    run = Run(Workspace(**options), TEXT)
    for n in (0, 1, 260, 439, 300):
        run.step(n)
        file = io.BytesIO()
        run.checkpoint(file)
        run = Run.resume(file.getvalue(), TEXT, passes=passes, holdout_off=True)
    run.step()
    assert bytes_of(run.workspace) == bytes_of(whole.workspace)
    assert counted(run) == counted(whole)


def test_a_run_does_not_step_back() -> None:
    run = Run(Workspace(**OPTIONS), TEXT)
    with pytest.raises(ValueError, match="a run cannot step by -1 events"):
        run.step(-1)
    assert run.position.events == 0


def test_a_checkpoint_waits_for_threads_that_change_the_workspace() -> None:
    run = Run(Workspace(bit_precision=6), ["1 |a x"] * 3)
    run.step(1)
    done = threading.Thread(target=run.checkpoint, args=(io.BytesIO(),), daemon=True)
    with run.workspace._lock:
        done.start()
        done.join(0.2)
        assert done.is_alive()
    done.join(PATIENCE)
    assert not done.is_alive()


def test_a_checkpoint_is_a_model_that_loads(tmp_path: Any) -> None:
    run = Run(Workspace(**OPTIONS), TEXT)
    run.step(100)
    run.checkpoint(tmp_path / "model")
    assert bytes_of(Workspace.load(tmp_path / "model")) == bytes_of(run.workspace)


def test_a_model_that_no_run_saved_is_refused() -> None:
    file = io.BytesIO()
    Workspace(**OPTIONS).fit(TEXT).save(file)
    with pytest.raises(InputError, match="the model was not saved by a run"):
        Run.resume(file.getvalue(), TEXT)


def test_what_came_before_a_fault_is_learnt_counted_and_can_be_saved() -> None:
    bad = b"1 |a x\n0 |a y\n1:x |a z\n"
    run = Run(Workspace(strict_parse=True, bit_precision=6), bad)
    sink = Losses(run)
    with pytest.raises(InputError):
        run.step()
    assert (sink.events, run.position.events, run.progress.example_number) == (2, 2, 2)
    run.checkpoint(io.BytesIO())


def test_a_predictor_is_published_between_steps() -> None:
    run = Run(Workspace(**OPTIONS), TEXT)
    question = TEXT[: TEXT.index(b"\n\n") + 2]
    seen = set()
    while run.step(100):
        predictor = run.workspace.predictor()
        assert predictor.predict(question).tolist() == run.workspace.predict(question).tolist()
        seen.add(predictor.predict(question).tobytes())
    assert len(seen) > 1


def test_an_unreferenced_workspace_frees_its_arrays_at_once() -> None:
    workspace = Workspace(**OPTIONS)
    for _ in workspace.stream(TEXT):
        pass
    searching = weakref.ref(workspace.searching)
    gc.disable()
    try:
        del workspace
        assert searching() is None, "a cycle of references waits for the garbage collector"
    finally:
        gc.enable()
