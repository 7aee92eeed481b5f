"""The tests of the estimators' kernels, run again with kernels that check every index."""

from __future__ import annotations

import pytest

from tests.bounds_checked import run, run_tests

SELECTED = [
    f"tests/estimators/{name}.py"
    for name in ("test_adaptive_window_kernels", "test_lazy_kernels", "test_robust_kernels")
]
CHOICE = (
    "states or test_state or whatever or out_of_range or no_number or outweighs or vowpalwabbit"
    " or fresh or parted"
)


@pytest.mark.bounds
def test_no_index_is_out_of_bounds() -> None:
    assert " passed" in run_tests(CHOICE, *SELECTED)


def test_the_run_checks_indices() -> None:
    code = "import numpy as np\nfrom onlineauto.estimators.robust_kernels import add\nadd(np.zeros(20), 1e9)"
    assert "IndexError" in run("-c", code).stderr
