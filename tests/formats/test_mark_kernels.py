"""Bitmaps of a text, and searches in them, compared with every byte."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from onlineauto.formats.lines.mark_kernels import bitmap_size, find_json_marks, find_marks, next_one

pytestmark = pytest.mark.lane("quick")

MARKS, BREAKS = b" \t\r\n|:", bytes({*range(32), 127} - {9})
TEXTS = st.binary(max_size=300) | st.text("ab |:\t\n\r\0", max_size=300).map(str.encode)
UNHURRIED = settings(deadline=None)  # the first call compiles


def bitmaps(text: bytes, end: int) -> tuple[tuple[int, int, int], NDArray[np.uint8], NDArray[np.uint8]]:
    marks, breaks = (np.full(bitmap_size(end), 0xA5, np.uint8) for _ in range(2))
    return find_marks(np.frombuffer(text, np.uint8), end, marks, breaks), marks, breaks


def is_found(bitmap: NDArray[np.uint8], text: bytes, end: int, wanted: bytes) -> bool:
    """Return whether a search in a bitmap finds the `wanted` bytes and the end in turn."""
    found = [next_one(bitmap, 0)]
    while found[-1] < end:
        found.append(next_one(bitmap, found[-1] + 1))
    return found == [*(i for i in range(end) if text[i] in wanted), end]


@UNHURRIED
@given(text=TEXTS, behind=st.integers(0, 70))
@example(text=b"", behind=0)
@example(text=b"a" * 64, behind=0)
@example(text=b"|" * 300, behind=64)
def test_all_marks_are_found_in_turn(text: bytes, behind: int) -> None:
    end = max(len(text) - behind, 0)
    _, marks, breaks = bitmaps(text, end)
    assert is_found(marks, text, end, MARKS)
    assert is_found(breaks, text, end, BREAKS)


@UNHURRIED
@given(st.binary(max_size=300) | st.text('ab "\\|:\t\n{}', max_size=300).map(str.encode), st.integers(0, 70))
@example(b"", 0)
@example(b'"' * 64, 0)
def test_all_marks_of_json_are_found_in_turn(text: bytes, behind: int) -> None:
    end = max(len(text) - behind, 0)
    found = np.full((3, bitmap_size(end)), 0xA5, np.uint8)
    find_json_marks(np.frombuffer(text, np.uint8), end, *found)
    control = bytes(range(32))
    for bitmap, wanted in zip(found, (control + b'"\\', b"\n", control + b" |:"), strict=True):
        assert is_found(bitmap, text, end, wanted)


@UNHURRIED
@given(text=TEXTS)
def test_counts_of_marks_are_upper_bounds(text: bytes) -> None:
    counts, _, _ = bitmaps(text, len(text))
    blanks, bars, newlines = (sum(byte in wanted for byte in text) for wanted in (b" \t", b"|", b"\n"))
    assert counts[:2] == (blanks, bars)
    assert newlines <= counts[2] <= newlines + 64
