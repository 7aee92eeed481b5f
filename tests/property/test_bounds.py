"""Some tests again, with kernels that check every index."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bounds_checked import run, run_tests

SELECTED = [
    "tests/features/test_example_kernels.py",
    "tests/explorers/test_greedy_kernels.py",
    "tests/engine/test_workspace.py",
    "tests/engine/test_searching.py",
    "tests/engine/test_slots.py",
    "tests/engine/test_wide_events.py",
    "tests/engine/test_outliers.py",
]
CHOICE = (
    "cubic or experimental or shared or more_ or many_actions or native_bandits or no_action or replayed "
    "or as_by_the_reference or outliers_are or a_slot_with or room_for"
)


@pytest.mark.bounds
def test_tests_pass_with_checked_indices() -> None:
    assert " passed" in run_tests(CHOICE, *SELECTED)


def test_out_of_bounds_index_raises_with_checked_indices() -> None:
    code = "import numpy as np\nfrom onlineauto.explorers.ranking_kernels import count_tied\n"
    done = run("-c", code + "count_tied(np.zeros(2, np.float32), 5)")
    assert "IndexError" in done.stderr


def test_out_of_bounds_index_of_four_numbers_raises(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("""
import numpy as np
from onlineauto.jit import kernel
from onlineauto.jit.four import element, load

@kernel
def first(table, row, column):
    return element(load(table, row, column), 0)

table = np.zeros((2, 6), np.float32)
first(table, 1, 2)
for row, column in ((2, 0), (1, 3), (-1, 0), (0, -1)):
    try:
        first(table, row, column)
    except IndexError:
        print("checked")
""")
    done = run(str(script))
    assert done.stdout.split() == ["checked"] * 4, done.stderr


def test_out_of_bounds_index_of_four_flags_raises(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("""
import numpy as np
from onlineauto.jit import kernel
from onlineauto.jit.four import flag, load_flags

@kernel
def first(table, row, column):
    return flag(load_flags(table, row, column), 0)

table = np.zeros((2, 6), bool)
table[1, 2] = True
assert first(table, 1, 2)
for row, column in ((2, 0), (1, 3), (-1, 0), (0, -1)):
    try:
        first(table, row, column)
    except IndexError:
        print("checked")
""")
    done = run(str(script))
    assert done.stdout.split() == ["checked"] * 4, done.stderr
