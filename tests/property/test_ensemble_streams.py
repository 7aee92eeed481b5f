"""Whatever a stream has, an ensemble of live configs and members stays within its arrays and finite."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onlineauto import Workspace
from onlineauto.engine.ensemble.states import states_of
from tests.bounds_checked import run_tests

pytestmark = pytest.mark.lane("sampled")

VALUES = st.sampled_from(["1", "1", "1", "0.5", "-2", "0", "nan", "inf", "-inf", "1e30", "-1e30", "1e-30"])
COSTS = st.sampled_from(["0", "-1", "1", "0.3", "1e30", "-1e30", "nan", "inf"])
PROBABILITIES = st.sampled_from(["0.5", "0.25", "1", "1e-9", "0"])
OPTIONS: list[dict[str, Any]] = [
    {"cb_explore_adf": True},
    {"ccb_explore_adf": True},
    {"cb_explore": 3},
    {"cb_explore": 35},
    {"predict_with": "ensemble"},
]


@st.composite
def features(draw: st.DrawFn, names: str = "ab") -> str:
    """Up to a few namespaces, some without features."""
    spans = []
    for name in draw(st.lists(st.sampled_from(names), max_size=2)):
        found = draw(st.lists(st.tuples(st.integers(0, 6), VALUES), max_size=3))
        spans.append(f"|{name} " + " ".join(f"{name}{at}:{x}" for at, x in found))
    return " ".join(spans) or "|"


@st.composite
def event(draw: st.DrawFn, options: dict[str, Any]) -> str:
    """Return an event, often an odd one, as a text."""
    if "predict_with" in options:
        head = draw(st.sampled_from(["", "1", "0", "-3 2", "1e30", "2 0", "nan", "0.5 1 0.25"]))
        return f"{head} {draw(features())}\n"
    if "cb_explore" in options:
        label = f"{draw(st.integers(1, 3))}:{draw(COSTS)}:{draw(PROBABILITIES)}"
        return f"{draw(st.sampled_from(['', label, label]))} {draw(features())}\n"
    slots = "ccb_explore_adf" in options
    n = draw(st.sampled_from([1, 2, 3] if slots else [0, 1, 2, 3, 40]))
    shown = draw(st.integers(-1, max(n - 1, 0)))
    lines = [f"{'ccb ' if slots else ''}shared {draw(features())}"] if slots or draw(st.booleans()) else []
    for k in range(n):
        own = draw(features("c")) if n < 10 else f"|c c{k} x:{k}"
        label = f"{k}:{draw(COSTS)}:{draw(PROBABILITIES)} " if k == shown else ""
        lines.append(f"ccb action {own}" if slots else f"{label}{own}")
    if slots:
        taken = f"{max(shown, 0)}:{draw(COSTS)}:{draw(PROBABILITIES)} " if shown >= 0 else ""
        lines += [f"ccb slot {taken}|", "ccb slot |s s"]
    return "".join(f"{line}\n" for line in lines) or "shared |\n"


def numbers_of(workspace: Workspace) -> Iterator[np.ndarray[Any, Any]]:
    """Everything of an ensemble that must stay a number."""
    ensemble = workspace.searching.live_configs.arrays.ensemble
    yield from (ensemble.weights, ensemble.spread, ensemble.range, ensemble.error, ensemble.costs)
    yield from (ensemble.test.pair, ensemble.test.loss)
    if len(ensemble.members.rests):
        states, numbers = states_of(ensemble), ensemble.members.inputs.numbers
        yield from (numbers.mean, numbers.variance, numbers.latest, numbers.cut)
        yield from (*states.state_of("features").regression, *states.state_of("waves").regression)
        trees = states.state_of("trees").trees
        yield from (trees.value, trees.cost, trees.weight, trees.threshold, trees.leaf, trees.base)
        if any(member.name == "layer" for member in states.members):  # single lines have none
            yield from (*states.state_of("layer").regression, states.state_of("layer").measure)
            yield from (
                *states.state_of("baseline"),
                *states.state_of("ridge").regression,
                states.state_of("ridge").mean,
            )


def usual(options: dict[str, Any], n: int) -> str:
    """Events from which the ensemble learns before odd ones come."""
    draw, text = np.random.default_rng(0), []
    for _ in range(n):
        x, k = draw.normal(), int(draw.integers(3))
        label = f"{k if 'cb_explore_adf' in options else k + 1}:{-abs(x) * k:.3f}:0.3333"
        if "predict_with" in options:
            text.append(f"{abs(x):.3f} |a a{k}:{x:.3f}\n")
        elif "cb_explore" in options:
            text.append(f"{label} |a a0:{x:.3f}\n")
        elif "ccb_explore_adf" in options:
            actions = "".join(f"ccb action |c c{each}\n" for each in range(3))
            text.append(f"ccb shared |a a0:{x:.3f}\n{actions}ccb slot {k}:{-abs(x) * k:.3f}:0.3333 |\n\n")
        else:
            actions = "".join(f"{f'{label} ' if each == k else ''}|c c{each}\n" for each in range(3))
            text.append(f"shared |a a0:{x:.3f}\n{actions}\n")
    return "".join(text)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@settings(max_examples=12)
@given(data=st.data())
def test_odd_events_leave_finite_numbers(options: dict[str, Any], data: st.DataObject) -> None:
    gap = "\n" if "adf" in str(options) else ""
    workspace = Workspace(**options, automl=3, default_lease=10, bit_precision=8)
    text = [usual(options, data.draw(st.sampled_from([130, 1024])))]
    text += [each + gap for each in data.draw(st.lists(event(options), min_size=3, max_size=12))]
    scores = [
        outcomes.prediction if "predict_with" in options else outcomes.score
        for _, outcomes in workspace.stream("".join(text).encode())
    ]
    assert all(math.isfinite(each.sum()) for each in scores)
    assert all(np.isfinite(each).all() for each in numbers_of(workspace))
    assert workspace.searching.live_configs.arrays.ensemble.on


@pytest.mark.bounds
def test_the_ensemble_stays_within_its_arrays() -> None:
    files = (__file__, "tests/engine/test_ensemble_twin.py")
    assert " passed" in run_tests("odd_events or twin or slots", *files)
