"""Kernels that check every index, on the rows of datasets."""

from __future__ import annotations

import pytest

from tests.bounds_checked import run


@pytest.mark.bounds
def test_nothing_is_read_or_written_out_of_bounds() -> None:
    done = run(
        *("-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "-k", "reference or bad_rows or null"),
        "tests/formats/datasets",
    )
    assert done.returncode == 0, done.stdout[-3000:]
    assert " passed" in done.stdout
