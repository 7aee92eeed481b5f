"""Logs made anew: the policies are those of the committed files, and nothing but the labels changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from bench.quality.logs import (
    FOLDER,
    drawn,
    head,
    labelled,
    load,
    names_in,
    relogged,
    unlabelled,
    write,
)
from onlineauto import read

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.ci

EVENTS = 2000


@pytest.mark.parametrize("name", ["penbased-u", "penbased-e"])
def test_the_seed_of_the_files_draws_what_they_hold(name: str) -> None:
    log = load(name)
    again = drawn(log, 0)
    assert np.array_equal(again.actions, log.actions)
    assert np.allclose(again.probabilities, log.probabilities)


@pytest.mark.parametrize("name", ["diamonds-e", "planted-u"])
def test_a_label_put_back_gives_the_same_text(name: str) -> None:
    log = head(load(name), EVENTS)
    rows = zip(log.events, log.actions.tolist(), log.observed, log.probabilities, strict=True)
    assert all(labelled(unlabelled(e), a, reward=r, probability=p) == e for e, a, r, p in rows)


@pytest.mark.parametrize("name", ["surveys-e", "planted-u"])
def test_only_labels_change(name: str) -> None:
    log = head(load(name), EVENTS)
    new = relogged(log, 1)
    assert list(map(unlabelled, new.events)) == list(map(unlabelled, log.events))
    assert not np.array_equal(new.actions, log.actions)
    assert set(new.probabilities.round(6)) == set(log.probabilities.round(6))
    true = log.rewards[np.arange(EVENTS), new.actions]
    assert abs(new.observed - true).max() <= log.noise / 1000 + 1e-12
    assert new.observed.mean() == pytest.approx(true.mean(), abs=0.005)
    assert relogged(log, 0) is log


def test_logs_there_are(tmp_path: Path) -> None:
    assert len(names_in(FOLDER)) == 11
    assert names_in(tmp_path, ("surveys", "planted")) == ["planted-u"]


def test_written_text_is_read_as_events(tmp_path: Path) -> None:
    log = head(load("penbased-u"), 100)
    write(log, tmp_path / "log.txt")
    assert [len(block) for block in read(tmp_path / "log.txt", cb_adf=True)] == [100]
