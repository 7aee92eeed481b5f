"""The peak memory of a run does not grow with its input."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bench.formats.memory import measure, write_stream

if TYPE_CHECKING:
    from pathlib import Path


def _peak(directory: Path, megabytes: float) -> float:
    path = directory / "stream.txt"
    write_stream(path, megabytes=megabytes)
    return measure(path)


@pytest.mark.ci
def test_peak_memory_is_the_same_for_five_times_the_input(tmp_path: Path) -> None:
    _peak(tmp_path, 0.1)  # compiles what is not compiled yet
    assert _peak(tmp_path, 25) < 1.1 * _peak(tmp_path, 5)


@pytest.mark.bench
def test_peak_memory_of_a_gigabyte_is_that_of_ten_megabytes(tmp_path: Path) -> None:
    _peak(tmp_path, 0.1)
    assert _peak(tmp_path, 1000) < 1.1 * _peak(tmp_path, 10)
