"""No input of finite numbers, however large or small, makes a weight that is not finite (native mode)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onlineauto.estimators.typical_size_kernels import LARGEST_SIZE, MANY
from onlineauto.formats.lines.diagnostics import ProblemCode
from onlineauto.workspace.workspace import Workspace
from tests.naive.blocks import Event, Line, as_text, make_block
from tests.property.snapshot import named
from tests.property.strategies import bandit_events, numbered_events, simple_events

pytestmark = pytest.mark.lane("sampled")

Options = dict[str, Any]

MAGNITUDES = st.sampled_from([1.0, 1e4, 1e10, 1e19, 1e20, 1e30, 1e38, 1e-4, 1e-10, 1e-20, 1e-30, 1e-40])
POSITIVE = MAGNITUDES.map(lambda x: float(np.float32(x)))
ORDINARY = st.sampled_from([1.0, -1.0, 0.5, 2.0, 10.0])
WHOLE = st.sampled_from([1.0, 0.5, 0.0, 2.0])
SIGNS = st.sampled_from([1.0, -1.0])
FROM_ZERO_ON = st.sampled_from([0.0, 1.0, 5.0])
NAMES = (b"a", b"b")


def finite(options: Options, events: list[Event]) -> bool:
    """Return whether all weights and predictions are numbers after `events`."""
    workspace = Workspace(**options, bit_precision=6)
    outcomes = workspace.learn_block(make_block(events))
    numbers = [workspace.weights[:, :3], outcomes.raw, outcomes.score, outcomes.prediction]
    return all(np.isfinite(each).all() for each in numbers)


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
    """The square of each value is a finite float32 and not 0."""
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


# -- whatever is read ----------------------------------------------------------------------------------

LARGE = st.sampled_from([1e10, 1e15, 1e19, 1e20, 1e25, 1e30, 1e38, 3e38])
TINY = st.sampled_from([1e-10, 1e-19, 1e-20, 1e-30, 1e-38, 1e-45])
ANY_SIZE = st.one_of(LARGE, LARGE, st.sampled_from([1.0, 0.5]), TINY).map(lambda x: float(np.float32(x)))
ANY = st.one_of(st.just(0.0), st.tuples(ANY_SIZE, SIGNS).map(lambda pair: pair[0] * pair[1]))
PROBABILITIES = st.sampled_from([1.0, 0.5, 1e-10, 1e-38]).map(lambda p: float(np.float32(p)))


def words(line: Line) -> str:
    """Features of a line as VW text."""
    return as_text([(Line(spans=line.spans),)], bandit=True, multiline=False).strip()


def members(line: Line) -> dict[str, Any]:
    """Features of a line as members of JSON."""
    found: dict[str, Any] = {}
    for name, features in line.spans:
        found.setdefault(name.decode(), {}).update({f"x{hash_}": value for hash_, value in features})
    return found


def parted(event: Event) -> tuple[Line, Event, list[tuple[int, float, float]]]:
    """Shared line of an event, its actions, and which of them was logged with which cost and probability."""
    shared = event[0] if event[0].shared else Line(shared=True)
    actions = event[1:] if event[0].shared else event
    logged = [(i, cost or 0.0, p) for i, each in enumerate(actions) for _, cost, p in each.costs]
    return shared, actions, logged


def simple_text(events: list[Event]) -> str:
    return as_text(events, bandit=False, multiline=False)


def simple_json(events: list[Event]) -> str:
    lines = [
        {"_label": event[0].label, **members(event[0])} for event in events if event[0].label is not None
    ]
    return "\n".join(map(json.dumps, lines))


def numbered_text(events: list[Event]) -> str:
    return as_text(events, bandit=True, multiline=False)


def action_text(events: list[Event]) -> str:
    return as_text(events, bandit=True, multiline=True)


def as_context(event: Event, **more: Any) -> dict[str, Any]:
    shared, actions, _ = parted(event)
    return {**members(shared), "_multi": [members(each) for each in actions], **more}


def as_label(event: Event) -> dict[str, Any]:
    _, _, logged = parted(event)
    keys = ("_labelIndex", "_label_Action", "_label_cost", "_label_probability")
    return {key: value for i, cost, p in logged for key, value in zip(keys, (i, i + 1, cost, p), strict=True)}


def action_json(events: list[Event]) -> str:
    return "\n".join(json.dumps({**as_label(event), **as_context(event)}) for event in events)


def action_log(events: list[Event]) -> str:
    return "\n".join(json.dumps({**as_label(event), "c": as_context(event)}) for event in events)


def slot_text(events: list[Event]) -> str:
    """Each event with the slot that its label is for, whose features are the shared ones once more."""
    text = ""
    for event in events:
        shared, actions, logged = parted(event)
        text += f"ccb shared {words(shared)}\n"
        text += "".join(f"ccb action {words(each)}\n" for each in actions)
        text += "".join(f"ccb slot {i}:{cost!r}:{p!r} {words(shared)}\n" for i, cost, p in logged) + "\n"
    return text


def slot_log(events: list[Event]) -> str:
    lines = []
    for event in events:
        shared, _, logged = parted(event)
        slots = [members(shared) for _ in logged]
        outcomes = [{"_label_cost": cost, "_a": [i], "_p": [p]} for i, cost, p in logged]
        lines.append({"c": as_context(event, _slots=slots), "_outcomes": outcomes})
    return "\n".join(map(json.dumps, lines))


LINES = simple_events(names=NAMES, labels=ANY, values=ANY, weights=ANY.map(abs))
ACTIONS = bandit_events(names=NAMES, costs=ANY, values=ANY, probabilities=PROBABILITIES)
NUMBERED = numbered_events(n_actions=3, names=NAMES, costs=ANY, values=ANY)
READ: dict[str, tuple[Options, st.SearchStrategy[list[Event]], Callable[[list[Event]], str]]] = {
    "text": ({}, LINES, simple_text),
    "json": ({"json": True}, LINES, simple_json),
    "cb": ({"cb": 3}, NUMBERED, numbered_text),
    "cb_explore_adf": ({"cb_explore_adf": True}, ACTIONS, action_text),
    "cb_explore_adf, json": ({"cb_explore_adf": True, "json": True}, ACTIONS, action_json),
    "cb_explore_adf, dsjson": ({"cb_explore_adf": True, "dsjson": True}, ACTIONS, action_log),
    "ccb": ({"ccb_explore_adf": True}, ACTIONS, slot_text),
    "ccb, dsjson": ({"ccb_explore_adf": True, "dsjson": True}, ACTIONS, slot_log),
}
"""What is read: options, events and how they are written."""
LEARNT: list[Options] = [
    {"quadratic": ["::"]},
    {"quadratic": ["::"], "sgd": True},
    {"quadratic": ["::"], "normalized": True, "l1": 0.01, "l2": 0.01},
    {"cubic": [":::"], "power_t": 0.25, "l2": 10.0},
    {"automl": 4, "default_lease": 2},
]
LOSSES: list[Options] = [
    {"loss_function": "classic", "quadratic": ["::"]},
    {"loss_function": "quantile", "quadratic": ["::"], "l2": 0.01},
    {"loss_function": "expectile", "expectile_q": 0.25, "automl": 2, "default_lease": 2},
]
BANDITS: list[Options] = [
    {"cb_type": "dr", "quadratic": ["::"]},
    {"cb_type": "dr", "automl": 2, "default_lease": 2},
    {"cb_type": "ips", "quadratic": ["::"]},
]
EXPLORERS: list[Options] = [
    {"regcb": True},
    {"squarecb": True},
    {"squarecb": True, "elim": True},
    {"bag": 2, "cb_type": "dr"},
    {"cover": 2, "cb_type": "dr"},
    {"rnd": 2, "cb_type": "dr"},
    {"epsilon_decay": True, "min_scope": 0},
]


OUTLIERS = {
    ProblemCode.LABEL_FAR_OUT,
    ProblemCode.WEIGHT_FAR_OUT,
    ProblemCode.PROBABILITY_FAR_OUT,
    ProblemCode.VALUE_FAR_OUT,
    ProblemCode.BEGAN_AGAIN,
}


def learns_finitely(options: Options, text: str) -> None:
    """Check that everything learnt from a text without faults is finite, with outliers and without them."""
    for accepts_all in (True, False):
        workspace = Workspace(**options, bit_precision=6)
        if accepts_all:
            workspace.learner.model.sizes[:] = LARGEST_SIZE, MANY, 0, 0
        for _ in workspace.stream(text.encode()):
            pass
        assert set(workspace.diagnostics.counts) <= {ProblemCode.BARE_ACTION} | (
            set() if accepts_all else OUTLIERS
        )
        assert np.isfinite(workspace.weights).all()
        assert np.isfinite(workspace.learner.model.lanes).all()
        assert np.isfinite(workspace.searching.screening.screen.table).all()


LINES_LEARNT = [(read, options) for read in ("text", "json") for options in LEARNT + LOSSES]
BANDITS_LEARNT = [(read, options) for read in list(READ)[2:] for options in LEARNT + BANDITS]


@pytest.mark.parametrize(("read", "options"), LINES_LEARNT + BANDITS_LEARNT, ids=str)
@settings(max_examples=20)
@given(data=st.data())
def test_finite_numbers_of_any_size_in_any_format(read: str, options: Options, data: st.DataObject) -> None:
    kind, events, written = READ[read]
    learns_finitely({**kind, **options}, written(data.draw(events)))


@pytest.mark.parametrize("options", EXPLORERS, ids=named)
@settings(max_examples=20)
@given(events=ACTIONS)
def test_finite_numbers_of_any_size_and_explorers(options: Options, events: list[Event]) -> None:
    learns_finitely({"cb_explore_adf": True, "quadratic": ["::"], **options}, action_text(events))


def test_overflowing_product_is_left_out() -> None:
    """The event is not learnt; later events are."""
    workspace = Workspace(quadratic=["::"])
    workspace.learner.model.sizes[:] = LARGEST_SIZE, MANY, 0, 0
    workspace.fit(["1 |a x y"] * 20 + ["0 |a x:1e38 y:1e30"])
    assert np.isfinite(workspace.weights).all()
    assert workspace.fit(["1 |a x y"] * 20).predict("|a x y") > 0.9
