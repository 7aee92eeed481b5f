"""The bench of partitions works, on a few events."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from bench.partitions import CHANGES, KINDS, design_of, earned, write_stream

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.ci


def test_streams_change_half_way_and_only_if_asked(tmp_path: Path) -> None:
    path = tmp_path / "events.txt"
    same, changed = (write_stream(path, 5, 9000, changes=changes) for changes in (False, True))
    assert path.read_text().count("shared") == 9000
    assert same.shape == changed.shape == (9000, design_of(5).actions)
    np.testing.assert_array_equal(same[:4096], changed[:4096])
    assert (same[8192:] != changed[8192:]).any()


def test_designs_have_all_kinds_of_rewards_and_changes() -> None:
    designs = [design_of(number) for number in range(10)]
    assert {each.kind for each in designs} == set(KINDS)
    assert {each.change for each in designs} == set(CHANGES)


def test_what_is_earned_is_the_true_reward_of_choices(tmp_path: Path) -> None:
    path = tmp_path / "events.txt"
    truth = write_stream(path, 2, 1500, changes=False)
    one, partitions = earned(path, truth, 0), earned(path, truth, 4)
    assert (one.rewards == partitions.rewards).all()  # so few events are learnt alone
    assert truth.mean() < one.rewards[1000:].mean() < truth.max(axis=1).mean()
