"""Kernels that check every index, on the rows of datasets."""

from __future__ import annotations

import pytest

from tests.bounds_checked import run_tests


@pytest.mark.bounds
def test_nothing_is_read_or_written_out_of_bounds() -> None:
    assert " passed" in run_tests("reference or bad_rows or null", "tests/formats/datasets")
