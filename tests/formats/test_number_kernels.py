"""Short decimals against the naive parser, midpoints of two float32 neighbours among them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from onlineauto.formats.numbers.float_kernels import short_decimal
from tests.naive import floats as naive

pytestmark = pytest.mark.lane("quick")

BEHIND = b"7" * 20
UNHURRIED = settings(deadline=None)  # the first call compiles
SHORT = st.from_regex(r"-?[0-9]{1,7}(\.[0-9]{0,8})?", fullmatch=True).map(str.encode)
SOUP = st.text("0159.e+-:x\xff", max_size=20).map(lambda text: text.encode("latin-1"))


@st.composite
def midpoints(draw: st.DrawFn) -> bytes:
    """A number of 25 significant bits, the last of which is 1, or one in the last of 8 decimals beside it."""
    bits = draw(st.integers(1, 8))
    odd = draw(st.integers(1 << 24, min(1 << 25, 10**7 << bits) - 1)) | 1
    scaled = odd * 10**8 // 2**bits + draw(st.integers(-1, 1))
    return b"%d.%08d" % divmod(scaled, 10**8)


def read(text: bytes) -> tuple[np.float32, bool]:
    """Run the parser on a text set between digits, which must not be read."""
    value, usual = short_decimal(np.frombuffer(b"8" + text + BEHIND, np.uint8), 1, 1 + len(text))
    return np.float32(value), usual


@UNHURRIED
@given(SHORT)
@example(b"-0")
@example(b"5.")
@example(b"9999999.99999999")
def test_short_decimals_round_to_nearest(text: bytes) -> None:
    value, usual = read(text)
    assert usual
    assert value.tobytes() == naive.parse_decimal(text)[0].tobytes()


@UNHURRIED
@given(midpoints())
def test_midpoints_round_to_even(text: bytes) -> None:
    value, usual = read(text)
    if usual:
        assert value.tobytes() == naive.parse_decimal(text)[0].tobytes()


@UNHURRIED
@given(SOUP | st.binary(max_size=20))
@example(b"")
@example(b".5")
@example(b"12345678")
@example(b"1.123456789")
@example(b"1.2.3")
@example(b"-")
def test_nothing_else_is_taken_for_one(text: bytes) -> None:
    value, usual = read(text)
    if usual:
        expected, length = naive.parse_decimal(text)
        assert length == len(text)
        assert value.tobytes() == expected.tobytes()


def test_it_does_not_read_beyond_the_buffer() -> None:
    for text in (b"", b"1", b"1.5", b"-1.5"):
        assert not short_decimal(np.frombuffer(text, np.uint8), 0, len(text))[1]
