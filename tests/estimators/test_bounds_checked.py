"""The tests of the estimators' kernels once more, with kernels that check every index."""

from __future__ import annotations

import pytest

from tests.bounds_checked import run

SELECTED = [
    f"tests/estimators/{name}.py"
    for name in ("test_adaptive_window_kernels", "test_lazy_kernels", "test_robust_kernels")
]
CHOICE = (
    "states or test_state or whatever or out_of_range or no_number or outweighs or wheel or fresh or parted"
)


@pytest.mark.bounds
def test_nothing_is_read_or_written_out_of_bounds() -> None:
    done = run("-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "-k", CHOICE, *SELECTED)
    assert done.returncode == 0, done.stdout[-3000:]
    assert " passed" in done.stdout


def test_indices_are_checked_there() -> None:
    code = "import numpy as np\nfrom onlineauto.estimators.robust_kernels import add\nadd(np.zeros(20), 1e9)"
    assert "IndexError" in run("-c", code).stderr
