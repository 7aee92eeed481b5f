"""Peers on bandit logs: columns for those that know no text, and learners that learn."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from bench.peer_process import PeerError
from bench.quality.columns import save_columns
from bench.quality.logs import head, load
from bench.quality.peer_worker import Columns, blocks, forest
from bench.quality.peers import Peers

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.ci


def test_columns_of_a_log(tmp_path: Path) -> None:
    log = head(load("surveys-u"), 300)
    save_columns(log, tmp_path / "log.npz")
    columns = Columns(str(tmp_path / "log.npz"))
    assert columns.fixed
    assert columns.shared.shape == (300, 7)
    assert columns.shared[0, [0, 1, 2, 4]].tolist() == [2, 7, 1977, 16]
    assert np.isnan(columns.shared[0, 5])  # na
    assert columns.nominal.tolist() == [3, 7]  # the sex, and the action
    assert columns.joined(np.array([5]), np.array([8])).tolist()[0][:3] == columns.shared[5].tolist()[:3]
    assert columns.joined(np.array([5]), np.array([8]))[0, 7] == 8


def test_blocks_of_events() -> None:
    assert list(blocks(5000)) == [(250, 500), (500, 1000), (1000, 2000), (2000, 4000), (4000, 5000)]
    assert list(blocks(400)) == [(250, 400)]


def test_the_forest_learns(tmp_path: Path) -> None:
    pytest.importorskip("river.forest")
    log = head(load("surveys-u"), 600)
    save_columns(log, tmp_path / "log.npz")
    greedy = forest(Columns(str(tmp_path / "log.npz")), 0)
    assert log.rewards[np.arange(300, 600), greedy[300:]].mean() > 0.2  # at random 0.1


def test_what_is_not_there_is_left_out(tmp_path: Path) -> None:
    peers = Peers("/bin/false", tmp_path)
    assert set(peers.missing) >= {"LightGBM", "LightGBM each", "ARF"}
    assert not set(peers.versions) & {"LightGBM", "ARF"}
    with pytest.raises(PeerError):
        peers.run(head(load("surveys-u"), 10), "ARF")
