"""Predicting changes nothing of a model, whatever the namespaces of the predicted events."""

from __future__ import annotations

import copy
import io
from typing import Any

import numpy as np
import pytest

import onlineauto.features.layout
from onlineauto import Workspace
from onlineauto.jit import SealedRecords
from onlineauto.workspace.model_file import State

LINE = "{label} |{a} x y:2 |{b} z\n"
ADF = "shared |{a} x y:2\n{label} |{b} z |c w\n|{b} v\n"
CCB = (
    "ccb shared |{a} x y:2\nccb action |{b} z\nccb action |{b} v |c w\nccb slot {label} |d s\nccb slot |d t\n"
)
NUMBERED = "{label} |{a} x y:2 |{b} z\n"

KINDS: dict[str, tuple[dict[str, Any], str, str]] = {
    "line": ({"quadratic": ["::"]}, LINE, "1"),
    "penalised": ({"l1": 0.01, "l2": 0.01, "cubic": ["a::"]}, LINE, "1"),
    "adf": ({"cb_explore_adf": True, "quadratic": ["::"], "interactions": ["ab"]}, ADF, "0:-1:0.5"),
    "full names": (
        {"cb_explore_adf": True, "experimental_full_name_interactions": [":|:"]},
        ADF,
        "0:-1:0.5",
    ),
    "bag": ({"cb_explore_adf": True, "bag": 3}, ADF, "0:-1:0.5"),
    "cover": ({"cb_explore_adf": True, "cover": 2}, ADF, "0:-1:0.5"),
    "rnd": ({"cb_explore_adf": True, "rnd": 2}, ADF, "0:-1:0.5"),
    "regcb": ({"cb_explore_adf": True, "regcb": True}, ADF, "0:-1:0.5"),
    "decay": ({"cb_explore_adf": True, "epsilon_decay": True, "min_scope": 0}, ADF, "0:-1:0.5"),
    "numbered": ({"cb_explore": 2, "quadratic": ["::"]}, NUMBERED, "1:-1:0.5"),
    "ccb": ({"ccb_explore_adf": True, "quadratic": ["::"]}, CCB, "0:-1:0.5"),
    "automl of lines": ({"automl": 3, "lease": 4}, LINE, "1"),
    "automl": ({"cb_explore_adf": True, "automl": 3, "lease": 4}, ADF, "0:-1:0.5"),
    "automl of ccb": ({"ccb_explore_adf": True, "automl": 3, "lease": 4}, CCB, "0:-1:0.5"),
    "automl of namespaces": (
        {"cb_explore_adf": True, "automl": 3, "lease": 4, "search": "interactions,namespaces"},
        ADF,
        "0:-1:0.5",
    ),
}
NAMES = [("a", "b"), ("b", "a"), ("ab", "b"), ("a", "x1"), ("x2", "x3"), ("", "b"), ("ümlaut", "a")]

each_kind = pytest.mark.parametrize(("options", "text", "label"), KINDS.values(), ids=KINDS)


def learnt(options: dict[str, Any], text: str, label: str, *, times: int = 20) -> Workspace:
    """Return a workspace that knows the namespaces a, b and those that the text always has."""
    workspace = Workspace(**options, bit_precision=8)
    for _ in range(times):
        workspace.learn(text.format(a="a", b="b", label=label))
    return workspace


def asked(text: str) -> list[str]:
    """Events without labels, with namespaces that are known and unknown."""
    return [text.format(a=a, b=b, label="") for a, b in NAMES]


def all_of(workspace: Workspace) -> dict[str, Any]:
    """Everything that a model is: what is saved, its whole tables, and what the layout has compiled."""
    layout, learner = workspace.layout, workspace.learner
    return {
        "state": workspace.state(),
        "model": learner.model._asdict(),
        "task": [learner.task.exploration._asdict(), learner.task.decay._asdict()],
        "live": workspace.searching.live_configs.arrays._asdict(),
        "layout": [layout.version, layout.n_keys, layout.n_namespaces, layout.interactions._asdict()],
        "decided": workspace.searching.n_events,
    }


def assert_same(one: Any, other: Any, place: str = "all") -> None:
    """Compare trees of values and arrays, bit for bit."""
    assert type(one) is type(other), place
    if isinstance(one, dict):
        assert one.keys() == other.keys(), place
        for name in one:
            assert_same(one[name], other[name], f"{place}.{name}")
    elif isinstance(one, list | tuple):
        assert len(one) == len(other), place
        for i, (mine, yours) in enumerate(zip(one, other, strict=True)):
            assert_same(mine, yours, f"{place}[{i}]")
    elif isinstance(one, SealedRecords):
        assert_same(one.records, other.records, place)
    elif isinstance(one, np.ndarray) and one.dtype.names:  # records have bytes between their fields
        assert one.tolist() == other.tolist(), place
    elif isinstance(one, np.ndarray):
        assert (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes()), place
    else:
        assert one == other or (one != one and other != other), place  # NaN


def bytes_of(workspace: Workspace) -> bytes:
    file = io.BytesIO()
    workspace.save(file)
    return file.getvalue()


@each_kind
def test_predicting_changes_nothing(options: dict[str, Any], text: str, label: str) -> None:
    for times in (0, 20):
        workspace = learnt(options, text, label, times=times)
        before, saved = copy.deepcopy(all_of(workspace)), bytes_of(workspace)
        first = [workspace.predict(each).tolist() for each in asked(text)]
        assert_same(all_of(workspace), before)
        assert bytes_of(workspace) == saved
        again = [workspace.predict(each).tolist() for each in reversed(asked(text))]
        assert again[::-1] == first


@each_kind
def test_learning_goes_on_as_if_nothing_had_been_predicted(
    options: dict[str, Any], text: str, label: str
) -> None:
    quiet, questioned = (learnt(options, text, label) for _ in range(2))
    for a, b in NAMES * 3:
        event = text.format(a=a, b=b, label=label)
        for each in asked(text):
            questioned.predict(each)
        assert questioned.learn(event).tolist() == quiet.learn(event).tolist()
    assert bytes_of(questioned) == bytes_of(quiet)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "automl" not in kind and kind != "ccb"])
def test_an_event_is_predicted_as_the_next_one_of_the_stream(kind: str) -> None:
    options, text, label = KINDS[kind]
    workspace = learnt(options | {"initial_weight": 0.25}, text, label)
    for a, b in NAMES:
        event = text.format(a=a, b=b, label="")
        following = copy.deepcopy(workspace)
        assert workspace.predict(event).tolist() == following.learn(event).tolist()


def test_unknown_namespaces_of_predicted_events_push_out_none_that_are_learnt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(onlineauto.features.layout, "MAX_PRODUCTS", 6)  # those of three namespaces
    workspace, quiet = (Workspace(quadratic=["::"], noconstant=True) for _ in range(2))
    for each in (workspace, quiet):
        each.learn("1 |a x |b y")
    for n in range(300):
        workspace.predict(f"|a x |u{n} y")
    for each in (workspace, quiet):
        each.learn("1 |c x")
    assert workspace.layout.state() == quiet.layout.state() == {"known": [b"a", b"b", b"c"], "left_out": []}


def test_what_is_predicted_does_not_depend_on_namespaces_predicted_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(onlineauto.features.layout, "MAX_PRODUCTS", 6)
    workspace = Workspace(quadratic=["::"], initial_weight=1.0, noconstant=True).fit(["1 |a x |b y"])
    first = workspace.predict("|a x |c z")
    for n in range(100):
        workspace.predict(f"|a x |u{n} y")
    assert workspace.predict("|a x |c z").tolist() == first.tolist()


@pytest.mark.ci
def test_names_that_are_asked_for_do_not_fill_the_memory() -> None:
    workspace = Workspace(cb_explore_adf=True, quadratic=["::"]).fit(["shared |a x\n0:-1:1 |b y\n"])
    names = set()
    for n in range(1500):
        workspace.predict(f"shared |u{n} x\n|b y\n")
        names.add(len(workspace._asked.readers.text.namespaces))
    assert max(names) < 1100
    assert workspace.layout.n_namespaces == 2


def test_exact_mode_notices_what_it_predicts_as_vowpal_wabbit_does() -> None:
    workspace = Workspace(cb_explore_adf=True, automl=2, vw_exact=True)
    workspace.predict("shared |a x\n|b y\n")
    state: State = workspace.state()
    assert state["search"]["slots"]["namespaces"] == [b"a", b"b"]
