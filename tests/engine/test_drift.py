"""Drift: alarms equal those of river's ADWIN, and a saved detector continues without river."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from river.drift import ADWIN

from onlineauto.engine.search.drift import Drift, make_drift
from onlineauto.errors import InputError
from onlineauto.state.stored import Stored
from onlineauto.workspace.model_file import decode_tree, encode_tree
from onlineauto.workspace.workspace import Workspace
from tests.property.snapshot import saved_of

LEVELS = st.lists(st.tuples(st.integers(0, 200), st.floats(0, 100)), max_size=5)
CUTS = st.lists(st.integers(0, 900), max_size=6).map(sorted)


class Twin:
    """Alarms one loss after the other, by river."""

    def __init__(self) -> None:
        self.seen, self.most = 0, 0.0
        self.window: Any = None

    def alarms(self, losses: list[float]) -> bool:
        alarm = False
        for loss in losses:
            self.seen += 1
            if self.seen <= 64 or self.most == 0.0:
                self.most += (3.5 if self.seen > 32 else 0.1) * loss / 32
                continue
            self.window = self.window or ADWIN(delta=0.002, clock=1)  # type: ignore[no-untyped-call]
            before = self.window.estimation
            self.window.update(min(loss / self.most, 1.0))
            if self.window.drift_detected:
                alarm = alarm or self.window.estimation > before
                self.window = None
        return alarm


def losses_of(levels: list[tuple[int, float]], seed: int) -> list[float]:
    draw = np.random.default_rng(seed)
    return [float(each) for n, level in levels for each in level * draw.random(n)]


@given(levels=LEVELS, seed=st.integers(0, 2**32), cuts=CUTS)
def test_alarms_equal_those_of_river_for_any_cuts_and_saves(
    levels: list[tuple[int, float]], seed: int, cuts: list[int]
) -> None:
    losses = losses_of(levels, seed)
    drift, twin = Drift(make_drift()), Twin()
    for begin, end in zip([0, *cuts], [*cuts, len(losses)], strict=True):
        part = losses[begin:end]
        assert drift.alarms(part) == twin.alarms(part)
        other = Drift(make_drift())
        other.restore(Stored(drift.state()))
        drift = other


def test_growing_losses_raise_an_alarm() -> None:
    rng = np.random.default_rng(0)
    quiet, loud = 0.1 * rng.random(300), 0.1 * rng.random(100) + 0.2
    assert not Drift(make_drift()).alarms(quiet)
    assert Drift(make_drift()).alarms(np.concatenate([quiet, loud]))
    improved = Drift(make_drift())
    assert not improved.alarms(np.concatenate([loud, quiet]))
    improved.restart()
    assert improved.state() == Drift(make_drift()).state()


def test_drift_reopens_the_search_before_the_next_review() -> None:
    before, after = 20_000, 1_000  # reviews are at about 19,900 and 21,100
    draw = np.random.default_rng(1).normal(size=before + after)
    draw[before:] *= 20
    events = "".join(f"{label:.3f} |a x |b y\n" for label in draw).encode()
    journal: list[dict[str, Any]] = []
    workspace = Workspace(automl=2, predict_with="champion")
    workspace.observe(lambda entry: journal.append(msgspec.to_builtins(entry)))
    workspace.fit(events)
    reopened = [line["events"] for line in journal if line["decision"] == "reopen"]
    assert len(reopened) == 1
    assert reopened[0] > before


def learnt() -> Workspace:
    events = "".join(f"{number % 2} |a x{number % 2} |b y\n" for number in range(6000))
    return Workspace(automl=2, on_drift="reopen", default_lease=4000).fit(events.encode())


def tree_of(workspace: Workspace) -> Any:
    return decode_tree(saved_of(workspace), name="the model")


def loaded(tree: Any) -> Workspace:
    return Workspace.load(b"".join(encode_tree(tree)))


def test_model_file_stores_the_window_in_plain_arrays() -> None:
    drift = tree_of(learnt())["model"]["search"]["drift"]
    assert set(drift) == {"observations", "most", "window"}
    found = {name: (array.dtype.str, array.shape) for name, array in drift["window"].items()}
    assert found == {
        "counts": ("<i8", (48,)),
        "sums": ("<f8", (48, 6)),
        "spreads": ("<f8", (48, 6)),
        "whole": ("<f8", (3,)),
    }
    assert 0 < drift["window"]["whole"][0] <= drift["observations"] - 64


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"observations": -1}, "search.drift.observations is -1, and not a whole number"),
        ({"observations": "many"}, "search.drift.observations is 'many', and not a whole number"),
        ({"most": -1.0}, "search.drift.most is -1.0, and not a loss"),
        ({"window": {"counts": np.zeros(48, np.int64)}}, "search.drift.window.sums is missing"),
        ({"window": 3}, "search.drift.window is 3, and not a map"),
    ],
)
def test_damaged_window_is_rejected(change: dict[str, Any], message: str) -> None:
    tree = tree_of(learnt())
    tree["model"]["search"]["drift"] |= change
    with pytest.raises(InputError, match=message):
        loaded(tree)
