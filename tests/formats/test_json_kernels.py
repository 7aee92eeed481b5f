"""Numbers of JSON against the standard library, and bitmaps against every byte."""

from __future__ import annotations

import re

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from onlineauto.formats.json.token_kernels import INTEGER, MALFORMED, read_json_number
from onlineauto.formats.lines.mark_kernels import bitmap_size, find_json_marks, next_one
from tests.naive.json_events import RejectedError, read_number

UNHURRIED = settings(deadline=None)  # the first call compiles
USUAL = st.from_regex(r"-?(0|[1-9][0-9]{0,7})(\.[0-9]{1,7})?", fullmatch=True)
WITH_EXPONENTS = st.from_regex(r"-?(0|[1-9][0-9]{0,9})(\.[0-9]{1,5})?([eE][+-]?[0-9]{1,3})?", fullmatch=True)
WHOLE = st.integers(-(2**65), 2**65).map(str)
SOUP = st.text("0159.eE+-:x", max_size=12)


@UNHURRIED
@given(USUAL | WITH_EXPONENTS | WHOLE | SOUP)
@example("1.")
@example("01")
@example("-")
@example("1e400")
@example("0e400")
@example("1e-400")
@example("4294967296")
@example("18446744073709551616")
def test_numbers_are_those_of_the_standard_library(text: str) -> None:
    data = np.frombuffer(b"8" + text.encode() + b"8" * 20, np.uint8)  # which must not be read
    value, after, kind = read_json_number(data, 1, 1 + len(text))
    number = re.match(r"(-?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]*)?)?", text)
    assert number is not None
    try:
        expected, whole = read_number(number[0])
    except RejectedError:
        assert kind == MALFORMED
        return
    assert kind != MALFORMED
    assert np.float32(value).tobytes() == np.float32(expected).tobytes()
    assert (after, kind == INTEGER) == (1 + number.end(), whole)


@UNHURRIED
@given(st.binary(max_size=300) | st.text('ab "\\|:\t\n{}', max_size=300).map(str.encode), st.integers(0, 70))
@example(b"", 0)
@example(b'"' * 64, 0)
def test_all_marks_are_found_in_turn(text: bytes, behind: int) -> None:
    end = max(len(text) - behind, 0)
    bitmaps = np.full((3, bitmap_size(end)), 0xA5, np.uint8)
    find_json_marks(np.frombuffer(text, np.uint8), end, *bitmaps)
    control = bytes(range(32))
    for bitmap, wanted in zip(bitmaps, (control + b'"\\', b"\n", control + b" |:"), strict=True):
        found = [next_one(bitmap, 0)]
        while found[-1] < end:
            found.append(next_one(bitmap, found[-1] + 1))
        assert found == [i for i in range(end) if text[i] in wanted] + [end]
