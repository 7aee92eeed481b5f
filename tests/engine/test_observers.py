"""Observers of decisions: several, each removed by what `observe` returned."""

from __future__ import annotations

import copy

from datasets import generate
from onlineauto import Workspace
from onlineauto.engine.search.journal import Entry

TEXT = generate.text("planted", events=600)


def searching() -> Workspace:
    return Workspace(cb_explore_adf=True, automl=3, lease=50, bit_precision=10)


def test_observers_receive_the_same_decisions_in_order() -> None:
    workspace = searching()
    heard: list[tuple[int, Entry]] = []
    workspace.observe(lambda entry: heard.append((1, entry)))
    workspace.observe(lambda entry: heard.append((2, entry)))
    workspace.fit(TEXT)
    assert heard
    assert [number for number, _ in heard] == [1, 2] * (len(heard) // 2)
    assert [entry for _, entry in heard[::2]] == [entry for _, entry in heard[1::2]]


def test_removed_observer_receives_no_more_decisions() -> None:
    workspace = searching()
    first: list[Entry] = []
    second: list[Entry] = []
    observation = workspace.observe(first.append)
    workspace.observe(second.append)
    workspace.fit(TEXT[: TEXT.index(b"\n\n") + 2])
    known = len(first)
    observation.remove()
    observation.remove()
    workspace.fit(TEXT)
    assert known == len(first) < len(second)


def test_an_observer_may_remove_itself() -> None:
    workspace = searching()
    heard: list[Entry] = []

    def once(entry: Entry) -> None:
        heard.append(entry)
        observation.remove()

    observation = workspace.observe(once)
    workspace.fit(TEXT)
    assert len(heard) == 1


def test_an_observation_ends_with_its_block() -> None:
    workspace = searching()
    heard: list[Entry] = []
    with workspace.observe(heard.append):
        pass
    workspace.fit(TEXT)
    assert heard == []


def test_copy_of_a_workspace_has_no_observers() -> None:
    workspace = searching()
    heard: list[Entry] = []
    workspace.observe(heard.append)
    copy.deepcopy(workspace).fit(TEXT)
    assert heard == []
    workspace.fit(TEXT)
    assert heard
