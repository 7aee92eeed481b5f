"""No input of finite numbers, however large or small, makes a weight that is not finite (native mode)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onlineauto.workspace.workspace import Workspace
from tests.naive.blocks import Event, Line, make_block
from tests.property.strategies import bandit_events, simple_events

Options = dict[str, Any]

MAGNITUDES = st.sampled_from([1.0, 1e4, 1e10, 1e19, 1e20, 1e30, 1e38, 1e-4, 1e-10, 1e-20, 1e-30, 1e-40])
POSITIVE = MAGNITUDES.map(lambda x: float(np.float32(x)))
SIGNED = st.tuples(POSITIVE, st.sampled_from([1.0, -1.0])).map(lambda pair: pair[0] * pair[1])
ORDINARY = st.sampled_from([1.0, -1.0, 0.5, 2.0, 10.0])
WHOLE = st.sampled_from([1.0, 0.5, 0.0, 2.0])
SIGNS = st.sampled_from([1.0, -1.0])
FROM_ZERO_ON = st.sampled_from([0.0, 1.0, 5.0])
NAMES = (b"a", b"b")


def finite(options: Options, events: list[Event]) -> bool:
    """Whether all weights and predictions are numbers after `events`."""
    workspace = Workspace(**options, bit_precision=6)
    outcomes = workspace.learn_block(make_block(events))
    numbers = [workspace.weights[:, :3], outcomes.raw, outcomes.score, outcomes.prediction]
    return all(np.isfinite(each).all() for each in numbers)


def named(options: Options) -> str:
    return " ".join(f"{name}={value}" for name, value in options.items()) or "default"


def line(label: float, *, weight: float = 1.0, x: float | None = None) -> Event:
    return (Line(spans=() if x is None else ((b"a", ((0, x),)),), label=label, weight=weight),)


def action(cost: float, probability: float) -> Event:
    return (Line(costs=((0, cost, probability),)),)


VALUES: list[Options] = [
    {"loss_function": "squared", "quadratic": ["ab"]},
    {"loss_function": "squared", "invariant": True, "learning_rate": 0.5},
    {"loss_function": "logistic"},
    {"loss_function": "hinge"},
    {"loss_function": "quantile"},
]


@pytest.mark.parametrize("options", VALUES, ids=named)
@settings(max_examples=60)
@given(data=st.data())
def test_values_up_to_1e18(options: Options, data: st.DataObject) -> None:
    """Where x² is a finite float32 and not 0, the defaults cope."""
    values = st.tuples(st.sampled_from([1.0, 1e4, 1e10, 1e18, 1e-4, 1e-10, 1e-18]), SIGNS)
    sized = values.map(lambda pair: float(np.float32(pair[0] * pair[1])))
    if options["loss_function"] == "squared" and "quadratic" in options:
        sized = sized.filter(lambda x: 1e-9 < abs(x) < 1e9)  # of the products too
    labels = SIGNS if options["loss_function"] in ("logistic", "hinge") else ORDINARY
    events = data.draw(simple_events(names=NAMES, labels=labels, values=sized, weights=WHOLE))
    assert finite(options, events)


@settings(max_examples=60)
@given(
    bandit_events(
        names=NAMES, costs=ORDINARY, values=ORDINARY, probabilities=POSITIVE.filter(lambda p: p <= 1)
    )
)
@pytest.mark.parametrize("options", [{"cb_type": "mtr"}, {"cb_type": "dm"}], ids=named)
def test_small_probabilities(options: Options, events: list[Event]) -> None:
    assert finite({**options, "cb_explore_adf": True}, events)


@settings(max_examples=60)
@given(simple_events(names=NAMES, labels=FROM_ZERO_ON, values=ORDINARY, weights=WHOLE))
def test_counts(events: list[Event]) -> None:
    assert finite({"loss_function": "poisson"}, events)


@settings(max_examples=40)
@given(
    simple_events(names=NAMES, labels=ORDINARY, values=ORDINARY, weights=st.sampled_from([1.0, 2.0, 11.0]))
)
@pytest.mark.parametrize(
    "options", [{"l1": 0.01}, {"l2": 0.01}, {"l1": 1e4}, {"sgd": True, "l2": 0.1}], ids=named
)
def test_penalties(options: Options, events: list[Event]) -> None:
    assert finite(options, events)


HARD: dict[str, tuple[Options, list[Event]]] = {
    "label whose gradient squared overflows": ({}, [line(1e19)]),
    "huge value": ({"loss_function": "hinge"}, [line(1.0, x=1e20)]),
    "huge weight": ({}, [line(10.0, weight=1e38)]),
    "huge weight, sgd": ({"sgd": True}, [line(1.0, weight=1e38)]),
    "huge weight, normalized": ({"normalized": True}, [line(1.0, weight=1e38)]),
    "tiny gradient squared": ({"adaptive": True}, [line(1.0, weight=1e-10, x=1e-20)]),
    "huge label, then a tiny value": ({"normalized": True}, [line(1e30), line(1e-40, x=1e-30)]),
    "negative weight, sgd": ({"sgd": True}, [line(1.0, weight=-2.0), line(1.0)]),
    "negative weight, normalized": ({"normalized": True}, [line(1.0, weight=-1.0), line(1.0)]),
    "tiny probability, ips": ({"cb_adf": True, "cb_type": "ips"}, [action(1.0, 1e-40)]),
    "tiny probability, dr": ({"cb_adf": True, "cb_type": "dr"}, [action(1.0, 1e-40)]),
    "huge cost": ({"cb_adf": True}, [action(1e19, 1.0)]),
}
"""Inputs that make the weights infinite or no number where nothing guards them, as in exact mode."""


@pytest.mark.parametrize("name", HARD)
def test_inputs_that_overflow_or_underflow(name: str) -> None:
    options, events = HARD[name]
    assert finite(options, events)
