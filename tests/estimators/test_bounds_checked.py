"""The tests of the estimators' kernels once more, with kernels that check every index."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
SELECTED = ["tests/estimators/test_robust_kernels.py", "tests/estimators/test_lazy.py"]
CHOICE = "states or test_state or whatever or out_of_range or no_number or outweighs or wheel or fresh"


def run(*words: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"NUMBA_BOUNDSCHECK": "1"}
    return subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, check=False, cwd=ROOT, env=environment
    )


def test_nothing_is_read_or_written_out_of_bounds() -> None:
    done = run("-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", CHOICE, *SELECTED)
    assert done.returncode == 0, done.stdout[-3000:]
    assert " passed" in done.stdout


def test_indices_are_checked_there() -> None:
    code = "import numpy as np\nfrom onlineauto.estimators.robust_kernels import add\nadd(np.zeros(20), 1e9)"
    assert "IndexError" in run("-c", code).stderr
