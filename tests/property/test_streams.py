"""Laws of every stream: blocks of any size, predictions in between, single events, both modes."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from onlineauto.workspace.workspace import Workspace
from tests.naive.blocks import Event, as_text, cut, make_block
from tests.property.snapshot import model_of, named, predictions_of
from tests.property.strategies import bandit_events, numbered_events, simple_events

pytestmark = pytest.mark.lane("sampled")

Options = dict[str, Any]

KINDS: list[Options] = [
    {"quadratic": ["::"]},
    {"loss_function": "logistic", "sgd": True, "cubic": [":::"]},
    {"adaptive": True, "l1": 0.01, "l2": 0.01, "quadratic": ["ab", "b:"]},
    {"cb_adf": True, "cb_type": "dr", "quadratic": ["::"]},
    {"cb_explore_adf": True, "quadratic": ["::"], "ignore": ["c"]},
    {"cb_explore_adf": True, "cb_type": "ips", "cubic": ["ab:"]},
    {"cb": 3, "cb_type": "dm", "quadratic": ["::"]},
    {"cb_explore": 3, "cb_type": "mtr", "interactions": ["ab:"]},
]
EXPLORING: list[Options] = [
    {"cb_explore_adf": True, "squarecb": True, "quadratic": ["::"]},
    {"cb_explore_adf": True, "synthcover": True, "epsilon": 0.25},
    {"cb_explore_adf": True, "bag": 3, "cb_type": "dr"},
    {"cb_explore_adf": True, "epsilon_decay": True, "min_scope": 0, "cb_type": "dr"},
    {"cb_explore_adf": True, "cover": 2, "quadratic": ["::"]},
]
"""Kinds in which the two modes differ on purpose."""

NATIVE: list[Options] = [
    {"cb_explore_adf": True, "rnd": 2, "quadratic": ["::"]},
    {"cb_explore_adf": True, "cb_type": "ips", "experimental_full_name_interactions": [":|:"]},
]
"""Kinds that exact mode does not have."""

RUNS = [*({**each, "vw_exact": exact} for each in KINDS + EXPLORING for exact in (True, False)), *NATIVE]
DISTINCT = (b"apple", b"b", b"cat", b"dog", b"0")
"""Names whose first bytes differ."""

SIZES = st.lists(st.integers(0, 3), max_size=5)


def draw_events(data: st.DataObject, options: Options, names: tuple[bytes, ...] | None = None) -> list[Event]:
    """Events of the kind that the options are for."""
    extra: Any = {} if names is None else {"names": names}
    if "cb" in options or "cb_explore" in options:
        return data.draw(numbered_events(n_actions=3, max_size=6, **extra))
    if "cb_adf" in options or "cb_explore_adf" in options:
        return data.draw(bandit_events(max_size=5, **extra))
    if options.get("loss_function") == "logistic":
        return data.draw(simple_events(labels=st.sampled_from([-1.0, 1.0]), **extra))
    return data.draw(simple_events(**extra))


def workspace_of(options: Options) -> Workspace:
    return Workspace(**options, bit_precision=8)


def text_of(options: Options, events: list[Event]) -> str:
    bandit = any(name.startswith("cb") for name in options)
    return as_text(events, bandit=bandit, multiline="cb_adf" in options or "cb_explore_adf" in options)


@pytest.mark.parametrize("options", RUNS, ids=named)
@settings(max_examples=20)
@given(data=st.data(), sizes=SIZES)
def test_model_does_not_depend_on_the_ends_of_blocks(
    options: Options, data: st.DataObject, sizes: list[int]
) -> None:
    events = draw_events(data, options)
    whole, pieces = workspace_of(options), workspace_of(options)
    expected = [whole.learn_block(make_block(events))]
    got = [pieces.learn_block(block) for block in cut(events, sizes)]
    assert predictions_of(got) == predictions_of(expected)
    assert model_of(pieces) == model_of(whole)


@pytest.mark.parametrize("options", RUNS, ids=named)
@settings(max_examples=15)
@given(data=st.data())
def test_predicting_changes_nothing(options: Options, data: st.DataObject) -> None:
    learnt, others = (draw_events(data, options) for _ in range(2))
    quiet, asked = workspace_of(options), workspace_of(options)
    expected = [quiet.learn_block(block) for block in cut(learnt, [1, 1])]
    got = []
    for block in cut(learnt, [1, 1]):
        before = model_of(asked)
        first = asked.predict_block(make_block(others))
        assert model_of(asked) == before
        assert predictions_of([asked.predict_block(make_block(others))]) == predictions_of([first])
        got.append(asked.learn_block(block))
    assert predictions_of(got) == predictions_of(expected)
    assert model_of(asked) == model_of(quiet)


@pytest.mark.parametrize("options", KINDS[4:6] + KINDS[7:], ids=named)
@settings(max_examples=20)
@given(data=st.data(), epsilon=st.sampled_from([0.0, 0.05, 0.5, 1.0]))
def test_probabilities_sum_to_one(options: Options, data: st.DataObject, epsilon: float) -> None:
    workspace = Workspace(**options, epsilon=epsilon, bit_precision=8)
    outcomes = workspace.learn_block(make_block(draw_events(data, options)))
    for start, end in pairwise(outcomes.action_start):
        pmf, n = outcomes.score[start:end], end - start
        assert pmf.sum(dtype=float) == pytest.approx(1, abs=1e-6)
        assert pmf.min() >= np.float32(epsilon) / np.float32(n)
        assert sorted(outcomes.action[start:end]) == list(range(n))


@pytest.mark.parametrize("options", RUNS, ids=named)
@settings(max_examples=8)
@given(data=st.data())
def test_learning_event_by_event_is_learning_the_stream(options: Options, data: st.DataObject) -> None:
    events = draw_events(data, options)
    streamed, taught = workspace_of(options), workspace_of(options)
    outcomes = [outcome for _, outcome in streamed.stream(text_of(options, events).encode())]
    assert sum(map(len, outcomes)) == len(events)
    got = [taught.learn(text_of(options, [event])) for event in events]
    if streamed.kind == "simple":
        expected = [np.array([x]) for each in outcomes for x in each.prediction]
    else:
        expected = [
            each.score[start:end][np.argsort(each.action[start:end])]
            for each in outcomes
            for start, end in pairwise(each.action_start)
        ]
    assert [x.tobytes() for x in got] == [x.tobytes() for x in expected]
    assert model_of(taught) == model_of(streamed)


@pytest.mark.parametrize("options", KINDS, ids=named)
@settings(max_examples=15)
@given(data=st.data())
def test_both_modes_agree_where_first_letters_differ(options: Options, data: st.DataObject) -> None:
    """Namespaces may come twice in a line."""
    events = draw_events(data, options, DISTINCT)
    values = [x for event in events for line in event for _, features in line.spans for _, x in features]
    assume(all(abs(x) > 1e-12 for x in values))  # below, native mode guards what underflows
    exact, native = workspace_of({**options, "vw_exact": True}), workspace_of(options)
    one, other = exact.learn_block(make_block(events)), native.learn_block(make_block(events))
    np.testing.assert_array_equal(one.action, other.action)
    np.testing.assert_allclose(one.score, other.score, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(one.raw, other.raw, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(exact.weights, native.weights, rtol=1e-5, atol=1e-7)
