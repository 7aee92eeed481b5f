"""Restoring changes a workspace in one step; forks have learnt the same and go on by themselves."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from datasets import generate
from onlineauto import OptionError, Workspace
from onlineauto.engine.search.journal import Entry
from tests.workspace.test_predicting import KINDS, all_of, assert_same, bytes_of, each_kind, learnt

TEXT = generate.text("planted", events=400)
OPTIONS: dict[str, Any] = {"cb_explore_adf": True, "automl": 3, "lease": 50, "bit_precision": 10}
PLACES = ("learner", "layout", "slots", "search")


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", ["adf", "automl", "ccb"])
def test_a_state_that_is_no_state_changes_nothing(kind: str, place: str) -> None:
    workspace, other = learnt(*KINDS[kind]), learnt(*KINDS[kind], times=3)
    before, saved = copy.deepcopy(all_of(workspace)), bytes_of(workspace)
    for bad in (
        {},
        {name: value for name, value in other.state()[place].items() if name != "pass"} | {"x": 1},
    ):
        state = other.state() | {place: bad}
        if place != "learner" and bad:
            state[place] = {name: {} for name in bad}
        with pytest.raises(ValueError, match=r"\w"):
            workspace.restore(state)
        assert_same(all_of(workspace), before)
        assert bytes_of(workspace) == saved


def test_observers_hear_on_after_a_restore() -> None:
    workspace = Workspace(**OPTIONS)
    heard: list[Entry] = []
    workspace.observe(heard.append)
    workspace.restore(Workspace(**OPTIONS).fit(TEXT).state())
    assert heard == []
    workspace.fit(TEXT)
    assert heard


@each_kind
def test_a_fork_goes_on_as_the_original_does_and_shares_nothing(
    options: dict[str, Any], text: str, label: str
) -> None:
    original, twin = (learnt(options, text, label) for _ in range(2))
    fork = original.fork()
    assert bytes_of(fork) == bytes_of(original)
    event = text.format(a="x7", b="b", label=label)
    for _ in range(5):
        fork.learn(event)
        twin.learn(event)
    assert bytes_of(fork) == bytes_of(twin)
    before = bytes_of(fork)
    for _ in range(7):
        original.learn(event)
    assert bytes_of(fork) == before


def test_a_fork_with_other_options_is_the_model_loaded_with_them(tmp_path: Any) -> None:
    original = Workspace(**OPTIONS).fit(TEXT)
    original.save(tmp_path / "model")
    fork = original.fork(learning_rate=0.9, epsilon=0.3)
    loaded = Workspace.load(tmp_path / "model", learning_rate=0.9, epsilon=0.3)
    assert bytes_of(fork.fit(TEXT)) == bytes_of(loaded.fit(TEXT))


def test_a_fork_keeps_options_that_files_do_not() -> None:
    original = Workspace(**OPTIONS, strict_parse=True)
    assert original.fork(epsilon=0.3).configuration.get("strict_parse") is True


@pytest.mark.parametrize(
    "option", [{"bit_precision": 12}, {"automl": 4}, {"hash_seed": 3}, {"vw_exact": True}]
)
def test_error_names_options_that_the_learnt_state_depends_on(option: dict[str, Any]) -> None:
    with pytest.raises(
        OptionError, match=rf"cannot use .*--{next(iter(option))}.*: the workspace was made with"
    ):
        Workspace(**OPTIONS).fork(**option)
