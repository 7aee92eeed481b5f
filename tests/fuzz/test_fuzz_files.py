"""Model files and files of blocks forged behind their checksums, used with every array access checked.

As many as one likes, of any seed; the second command says what became of them::

    FORGED_FILES=10000 FORGED_SEED=3 python -m pytest -m fuzz tests/fuzz/test_fuzz_files.py
    NUMBA_BOUNDSCHECK=1 python -c "from tests.fuzz.test_fuzz_files import fuzz; print(fuzz(10000, 3))"
"""

from __future__ import annotations

import os
import tempfile
import warnings
from pathlib import Path

import pytest

from tests.fuzz.forged import Forger
from tests.fuzz.frame import run_checked

pytestmark = pytest.mark.lane("ci")


def fuzz(files: int, seed: int) -> str:
    """Forge and use files; return how many were rejected and how many were used."""
    from numba.core import config

    assert vars(config)["BOUNDSCHECK"] == 1
    return forged(files, seed)


def forged(files: int, seed: int) -> str:
    """Do as `fuzz`, whether or not indices are checked."""
    warnings.simplefilter("ignore")  # of numbers that overflow, which is what they are forged for
    with tempfile.TemporaryDirectory() as directory:
        forger = Forger(Path(directory), seed=seed, bases=min(4 + files // 50, 40))
        forger.run(files)
    return f"{files} forged files: {forger.refused} refusals, {forger.used} uses"


def test_forty_forged_files() -> None:
    with warnings.catch_warnings():
        assert forged(40, seed=0).startswith("40 ")


@pytest.mark.bounds
def test_four_hundred_forged_files() -> None:
    assert run_checked("test_fuzz_files", 400, seed=1) >= 400


@pytest.mark.fuzz
def test_ten_thousand_forged_files() -> None:
    files, seed = int(os.environ.get("FORGED_FILES", "10000")), int(os.environ.get("FORGED_SEED", "2"))
    assert run_checked("test_fuzz_files", files, seed=seed) >= files
