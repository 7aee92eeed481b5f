"""Mappings beside text with the same names and values."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlineauto import InputError, OptionError
from onlineauto.formats.mappings.named_event import named_event, spans_of
from onlineauto.interop import event_text, from_dicts
from tests.interop.learnt import ADF, lines_of, lines_of_text, predictions

pytestmark = pytest.mark.lane("quick")

WORDS = st.one_of(
    st.sampled_from(["a", "b", "7", "007", "user", "über", "x=1"]),
    st.text(
        st.characters(blacklist_categories=["Cs", "Cc", "Zs"], blacklist_characters="|:\x7f"), min_size=1
    ),
)
NUMBERS = st.one_of(
    st.sampled_from(
        [1, 0.5, -2.0, 0, True, False, None, float("nan"), 1e-30, 16777217, np.float32(0.1), np.int64(3)]
    ),
    st.floats(-1e30, 1e30),
)
VALUES = st.one_of(NUMBERS, WORDS)
NAMESPACE = st.one_of(VALUES, st.dictionaries(WORDS, VALUES, max_size=3), st.lists(WORDS, max_size=3))
FEATURES = st.dictionaries(WORDS, NAMESPACE, max_size=3)
PROBABILITIES = st.floats(1e-3, 1)


@st.composite
def bandit_event(draw: st.DrawFn) -> dict[str, Any]:
    actions = draw(st.lists(FEATURES, min_size=1, max_size=3))
    event: dict[str, Any] = {"actions": actions}
    if draw(st.booleans()):
        event["context"] = draw(FEATURES)
    if draw(st.booleans()):
        event["tag"] = draw(WORDS)
    if draw(st.booleans()):
        event["chosen"] = draw(st.integers(0, len(actions) - 1))
        event |= {"cost": draw(st.floats(-9, 9)), "probability": draw(PROBABILITIES)}
    return event


@st.composite
def single_event(draw: st.DrawFn) -> dict[str, Any]:
    event: dict[str, Any] = {"context": draw(FEATURES)}
    if draw(st.booleans()):
        event["label"] = draw(st.floats(-9, 9))
        event |= draw(
            st.fixed_dictionaries({}, optional={"weight": st.floats(0, 9), "initial": st.floats(-1, 1)})
        )
    return event


@given(events=st.lists(bandit_event(), max_size=5), size=st.integers(1, 3), seed=st.sampled_from([0, 9]))
def test_bandit_events_are_those_of_the_text(events: list[dict[str, Any]], size: int, seed: int) -> None:
    text = "".join(event_text(event, hash_seed=seed) for event in events)
    blocks = list(from_dicts(events, events_per_block=size, hash_seed=seed))
    assert lines_of(blocks) == lines_of_text(text, "cb_adf", hash_seed=seed)
    assert predictions(blocks, **ADF, hash_seed=seed) == predictions(text.encode(), **ADF, hash_seed=seed)


@given(events=st.lists(single_event(), max_size=5))
def test_single_lines_are_those_of_the_text(events: list[dict[str, Any]]) -> None:
    text = "".join(map(event_text, events))
    assert lines_of(from_dicts(events)) == lines_of_text(text, "simple")
    assert predictions(from_dicts(events)) == predictions(text.encode())


def test_numbered_actions_are_those_of_the_text() -> None:
    events: list[dict[str, Any]] = [
        {"context": {"u": "tom"}, "action": 2, "cost": -1, "probability": 0.5},
        {"context": {"u": "ann"}},
    ]
    text = "2:-1:0.5 |u u=tom\n|u u=ann\n"
    assert lines_of(from_dicts(events)) == lines_of_text(text, "cb")
    assert predictions(from_dicts(events), cb=3) == predictions(text.encode(), cb=3)


def test_all_names_hashed() -> None:
    event = {"context": {"7": {"12": 2}}, "label": 1}
    assert lines_of(from_dicts([event], hash="all")) == lines_of_text("1 |7 12:2\n", "simple", hash_all=True)
    with pytest.raises(OptionError, match="hash cannot be 'md5'; it takes one of strings, all"):
        list(from_dicts([event], hash="md5"))


def test_features_of_each_kind_of_value() -> None:
    features = {"a": 2, "b": "red", "c": True, "d": ["x", "y"], "e": {"f": "g", "h": 0.5}, "i": None, "j": []}
    assert spans_of(features) == (
        ("a", (("a", 2.0),)),
        ("b", (("b=red", 1.0),)),
        ("c", (("c", 1.0),)),
        ("d", (("x", 1.0), ("y", 1.0))),
        ("e", (("f=g", 1.0), ("h", 0.5))),
    )


@pytest.mark.parametrize(
    ("event", "message"),
    [
        ({"actions": [{}], "chosne": 0}, "unknown key 'chosne'; did you mean chosen?"),
        ({"user": {}, "_multi": []}, "unknown key 'user'; give {'context': …, 'actions': […]}, or pass json"),
        ({"zzz": 0}, "unknown key 'zzz'; an event has context, actions"),
        ({"actions": []}, "actions is empty"),
        ({"actions": [{}], "chosen": 1, "cost": 1, "probability": 1}, "chosen is 1, and there are 1 actions"),
        ({"actions": [{}], "cost": 1, "probability": 1}, "a cost without chosen"),
        ({"actions": [{}], "chosen": 0, "cost": 1}, "a cost without probability"),
        ({"cost": 1, "probability": 1}, "a cost without action"),
        ({"actions": [{}], "probability": 1}, "a probability without a cost"),
        (
            {"actions": [{}], "chosen": 0, "cost": 1, "probability": 0},
            "probability 0 is not above 0 and at most 1",
        ),
        ({"actions": [{}], "chosen": 0, "cost": 1, "probability": 1.5}, "probability 1.5 is not above 0"),
        ({"actions": [{}], "chosen": 0, "cost": "x", "probability": 1}, "cost 'x' is not a number"),
        (
            {"actions": [{}], "chosen": 0, "cost": 1e99, "probability": 1},
            "cost 1e+99 is infinite, NaN or too large",
        ),
        ({"action": True, "cost": 1, "probability": 1}, "the chosen action is True, not a whole number"),
        ({"actions": [{}], "label": 1}, "label is for events without actions; with actions there is cost"),
        (
            {"actions": [{}], "action": 1},
            "action is for events without actions; with actions there is chosen",
        ),
        ({"weight": 2}, "a weight or an initial prediction without a label"),
        ({"label": 1, "weight": -2}, "weight -2 is negative"),
        ({"context": ["a"]}, "features are a mapping of namespaces, not list"),
        ({"context": {"a": [[1]]}}, "a: 0: [1] in a list: a list has numbers, names and mappings"),
        ({"context": {"a": {0.5}}}, "a: 0: 0.5 in a set, which has no order"),
        ({"context": {"a": b"x"}}, "a: b'x' is bytes, which are no feature: decode them"),
        ({"context": {"a": {"b": 1j}}}, "a: b: value 1j is a complex, which is no feature"),
        (
            {"context": {"a": datetime.date(2026, 1, 1)}},
            "a: datetime.date(2026, 1, 1) is a date or a time, which is no feature",
        ),
        (
            {"context": {"a": np.timedelta64(1, "s")}},
            "a: np.timedelta64(1,'s') is a date or a time, which is no feature",
        ),
        ({"context": {"a": np.eye(1)}}, "a: an array of 2 dimensions: give one, as by .ravel()"),
        ({"actions": 3}, "actions are a list of mappings, not int"),
        ({"actions": [{}, {"a": {"b": 1j}}]}, "action 1: a: b: value 1j is a complex"),
        ({"actions": [{}], "chosen": "0"}, "chosen is '0', and there are 1 actions, numbered from 0"),
        ({"actions": [{}], "slots": 1}, "slots are a list of mappings, not int"),
        ({"actions": [{}], "slots": [1]}, "slot 0: a slot is a mapping, not int"),
        ({"actions": [{}], "slots": [{"only": [[]]}]}, "slot 0: only must list some of the 1 actions"),
        ({"context": {"a": float("inf")}}, "a: value inf is infinite, NaN or too large"),
    ],
)
def test_what_is_refused(event: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        named_event(event, where="event 3")
    assert str(caught.value).startswith(f"event 3: {message}")


def test_events_before_a_bad_one_are_yielded() -> None:
    blocks = from_dicts([{"label": 1}, {"label": 2}, {"label": "x"}, {"label": 3}], events_per_block=5)
    assert len(next(blocks)) == 2
    with pytest.raises(InputError, match=r"^event 2: label 'x' is not a number$"):
        next(blocks)
    with pytest.raises(InputError, match=r"^event 1: some events have actions and some do not$"):
        list(from_dicts([{"label": 1}, {"actions": [{}]}]))


@pytest.mark.parametrize("number", [3.4028235677973366e38, 10**400, np.float64(1e39), float("-inf")])
def test_values_beyond_float32_are_rejected(number: float) -> None:
    with pytest.raises(InputError, match="is infinite, NaN or too large"):
        named_event({"label": number})
    largest = float(np.finfo(np.float32).max)
    assert named_event({"label": 3.4028235677973366e38 * (1 - 1e-15)}).lines[0].label == largest


def test_no_events_are_no_blocks() -> None:
    assert list(from_dicts([])) == []
