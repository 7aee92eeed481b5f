"""Numbers of text, of VW and of JSON, compared with reference parsers, the C library and Python."""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from onlineauto.formats.json.token_kernels import INTEGER, MALFORMED, read_json_number
from onlineauto.formats.numbers.float_kernels import _strtof, parse_decimal, parse_vw_float, short_decimal
from tests.naive import floats as naive
from tests.naive.json_events import RejectedError, read_number

pytestmark = pytest.mark.lane("sampled")

UNHURRIED = settings(deadline=None)  # the first call compiles
LARGEST = 0x7F7FFFFF  # bits of the largest finite float32


def read(parser: Callable[..., tuple[np.float32, int]], text: bytes) -> tuple[np.float32, int]:
    """Run a parser on `text` set between digits, which must not be read."""
    value, after = parser(np.frombuffer(b"8" + text + b"9", np.uint8), 1, 1 + len(text))
    return np.float32(value), after - 1


def same(a: tuple[np.float32, int], b: tuple[np.float32, int]) -> bool:
    """Return whether bits and lengths are equal; NaNs are equal."""
    if a[1] != b[1]:
        return False
    return bool(np.isnan(a[0]) and np.isnan(b[0])) or a[0].tobytes() == b[0].tobytes()


def float32_of_bits(bits: int) -> np.float32:
    return np.uint32(bits).view(np.float32)


def decimal_expansion(x: Fraction) -> tuple[int, int]:
    """Return digits and exponent of a dyadic rational: ``x == digits * 10**exponent`` exactly."""
    twos = x.denominator.bit_length() - 1
    return x.numerator * 5**twos, -twos


@st.composite
def near_midpoints(draw: st.DrawFn) -> bytes:
    """Return the exact midpoint of two float32 neighbours, or a number beside it."""
    bits = draw(st.integers(0, LARGEST) | st.integers(0, 1 << 24))
    lower = Fraction(float(float32_of_bits(bits)))
    upper = Fraction(float(float32_of_bits(bits + 1))) if bits < LARGEST else Fraction(2**128)
    digits, exponent = decimal_expansion((lower + upper) / 2)
    zeros = draw(st.sampled_from([0, 1, 3, 20, 130, 400]))
    step = draw(st.integers(-1, 1))
    digits, exponent = digits * 10**zeros + step, exponent - zeros
    spelling = str(digits)
    if draw(st.booleans()):
        point = draw(st.integers(0, len(spelling)))
        spelling, exponent = spelling[:point] + "." + spelling[point:], exponent + len(spelling) - point
    return f"{spelling}e{exponent}".encode()


SIGNS = st.sampled_from([b"", b"-", b"+"])
DIGITS = st.text("0123456789", max_size=45).map(str.encode)
SMALL_EXPONENTS = st.integers(-70, 60).map(lambda e: b"e%d" % e)
ANY_EXPONENTS = st.one_of(
    st.just(b""),
    SMALL_EXPONENTS,
    st.integers(-(10**25), 10**25).map(lambda e: b"E%d" % e),
    st.sampled_from([b"e", b"e+", b"e-", b"e+3", b"ee1"]),
)
DECIMALS = st.builds(
    lambda *parts: b"".join(parts), SIGNS, DIGITS, st.sampled_from([b"", b"."]), DIGITS, ANY_EXPONENTS
)
HEXADECIMALS = st.builds(
    lambda *parts: b"".join(parts),
    SIGNS,
    st.sampled_from([b"0x", b"0X"]),
    st.text("0123456789abcdefABCDEF.", max_size=30).map(str.encode),
    st.one_of(
        st.sampled_from([b"", b"p", b"p-", b"p+1", b"p99999999999999999999", b"p-99999999999999999999"]),
        st.integers(-300, 140).map(lambda e: b"P%d" % e),
    ),
)
SOUP = st.text("0159.eE+- \t\n\r\v\fxXpPiInNfFaAtTyY()_|:\0", max_size=16).map(str.encode)
TEXTS = st.one_of(
    st.binary(max_size=12),
    SOUP,
    near_midpoints(),
    st.builds(lambda a, b: a + b, DECIMALS | HEXADECIMALS, st.sampled_from([b"", b" b", b"\tb", b"x", b"|"])),
)

HARD = [
    b"",
    b"0" * 300 + b"1." + b"0" * 300,
    b"." + b"0" * 300 + b"7e300",
    b"340282346638528859811704183484516925440",
    b"340282356779733661637539395458142568447.999",
    b"340282356779733661637539395458142568448",
    b"1e39",
    b"9.99e38",
    b"7.006492321624085354618e-46",  # just above half of the smallest subnormal
    b"7.006492321624085354617e-46",
    b"1e-46",
    b"1.17549429e-38",  # between the largest subnormal and the smallest normal
    b"16777217",
    b"16777219",
    b"16777217." + b"0" * 500 + b"1",
    b"0.1e99999999999999999999999",
    b"1e-99999999999999999999999",
    b"0e99999999999999999999999",
]


@UNHURRIED
@given(TEXTS)
@example(b"1.e5")
@example(b"+.5e-1x")
@example(b"1..2")
def test_parse_decimal_equals_the_reference(text: bytes) -> None:
    assert same(read(parse_decimal, text), naive.parse_decimal(text))


@UNHURRIED
@given(TEXTS)
@example(b"0e39")  # 0 times infinity
@example(b"134271268")  # the character code is added, then 48 taken off: another rounding
@example(b"1e4294967297")
@example(b"\0001")
def test_parse_vw_float_equals_the_reference(text: bytes) -> None:
    assert same(read(parse_vw_float, text), naive.parse_vw_float(text))


@UNHURRIED
@given(TEXTS)
@example(b"0x.8p1")
@example(b"0x1.00000100000000000000001")  # a last digit beyond 56 bits breaks the tie
@example(b"0x.p1")
@example(b"-infinit")
@example(b" \v-nan(0_a)b")
def test_strtof_equals_the_reference(text: bytes) -> None:
    assert same(read(_strtof, text), naive.strtof(text))


@pytest.mark.parametrize("text", HARD, ids=range(len(HARD)))
def test_hard_decimals_round_to_nearest(text: bytes) -> None:
    assert same(read(parse_decimal, text), naive.parse_decimal(text))
    assert same(read(_strtof, b"-" + text), naive.strtof(b"-" + text))


def c_strtof(text: bytes) -> tuple[np.float32, int]:
    function = ctypes.CDLL(None).strtof
    function.restype = ctypes.c_float
    function.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    buffer = ctypes.create_string_buffer(text)
    after = ctypes.c_void_p()
    value = function(ctypes.addressof(buffer), ctypes.addressof(after))
    return np.float32(value), (after.value or 0) - ctypes.addressof(buffer)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the C library is glibc on Linux only")
@UNHURRIED
@given(TEXTS.filter(lambda text: b"\0" not in text))
def test_strtof_and_its_reference_equal_the_c_library(text: bytes) -> None:
    expected = c_strtof(text)
    assert same(read(_strtof, text), expected)
    assert same(naive.strtof(text), expected)


@pytest.mark.parametrize(
    ("text", "value", "length"),
    [
        (b"2.993", 2.99299979, 5),  # strtof says 2.99300003
        (b"2.993|x", 2.993, 5),  # and is asked where something else than a blank follows
        (b"2020-01-01 b", 2020, 4),
        (b"134271268", 134271280, 9),  # one rounding for each of *10, + code, - 48
        (b"-", 0, 1),
        (b"  ", 0, 2),
        (b".", 0, 1),
        (b"1e", 1, 2),
        (b"+3", 3, 2),
        (b"1e+2", 100, 4),
        (b"0x10", 16, 4),
        (b"x", 0, 0),
        (b"\0", 0, 0),
        (b"1e128", 0, 5),  # the exponent wraps to -128
        (b"1e-255", 10, 6),  # and this one to 1
        (b"1e-38", 0, 5),
        (b"1e39", np.inf, 4),
        (b"nano", np.nan, 3),
        (b"inf", np.inf, 3),
        (b"0." + b"0" * 34 + b"19", 1e-35, 38),  # the 36th decimal does not count
    ],
)
def test_oddities_of_vw(text: bytes, value: float, length: int) -> None:
    got, after = read(parse_vw_float, text)
    assert after == length
    assert got == pytest.approx(value, rel=1e-7, abs=0, nan_ok=True)


@pytest.mark.parametrize("text", [b"", b".", b"+", b"-.", b"e5", b"inf", b"nan", b" 1", b"x"])
def test_parse_decimal_rejects(text: bytes) -> None:
    assert same(read(parse_decimal, text), (np.float32(0), 0))


@pytest.mark.parametrize(
    ("text", "length"), [(b"1e", 1), (b"1e+x", 1), (b"0x10", 1), (b"1.2.3", 3), (b"1,5", 1)]
)
def test_parse_decimal_stops_before_other_characters(text: bytes, length: int) -> None:
    assert read(parse_decimal, text)[1] == length


EVERY_END = """
import numpy as np
from onlineauto.formats.numbers.float_kernels import _strtof, parse_decimal, parse_vw_float
for text in (b" -12.5e-3", b"-0x1.8P-3", b"+nan(a_1)", b"-infinity", b"  .", b"1.e+", b"7" * 200 + b"e-200",
             b"16777217." + b"0" * 200 + b"1"):
    for end in range(len(text) + 1):
        data = np.frombuffer(text[:end], np.uint8)
        for parser in (_strtof, parse_decimal, parse_vw_float):
            for start in range(end + 1):
                assert start <= parser(data, start, end)[1] <= end
"""


@pytest.mark.bounds
def test_nothing_beyond_the_view_is_read(tmp_path: Path) -> None:
    environment = dict(os.environ, NUMBA_BOUNDSCHECK="1", ONLINEAUTO_CACHE_DIR=str(tmp_path))
    subprocess.run([sys.executable, "-c", EVERY_END], check=True, env=environment)


# -- short decimals --------------------------------------------------------------------------------------

SHORT = st.from_regex(r"-?[0-9]{1,7}(\.[0-9]{0,8})?", fullmatch=True).map(str.encode)
SHORT_SOUP = st.text("0159.e+-:x\xff", max_size=20).map(lambda text: text.encode("latin-1"))


@st.composite
def midpoints(draw: st.DrawFn) -> bytes:
    """Return a number of 25 significant bits, the last of which is 1, or a number 1e-8 beside it."""
    bits = draw(st.integers(1, 8))
    odd = draw(st.integers(1 << 24, min(1 << 25, 10**7 << bits) - 1)) | 1
    scaled = odd * 10**8 // 2**bits + draw(st.integers(-1, 1))
    return b"%d.%08d" % divmod(scaled, 10**8)


def read_short(text: bytes) -> tuple[np.float32, bool]:
    """Run `short_decimal` on a text between digits, which must not be read."""
    value, usual = short_decimal(np.frombuffer(b"8" + text + b"7" * 20, np.uint8), 1, 1 + len(text))
    return np.float32(value), usual


@pytest.mark.quick
@UNHURRIED
@given(SHORT)
@example(b"-0")
@example(b"5.")
@example(b"9999999.99999999")
def test_short_decimals_round_to_nearest(text: bytes) -> None:
    value, usual = read_short(text)
    assert usual
    assert value.tobytes() == naive.parse_decimal(text)[0].tobytes()


@pytest.mark.quick
@UNHURRIED
@given(midpoints())
def test_midpoints_round_to_even(text: bytes) -> None:
    value, usual = read_short(text)
    if usual:
        assert value.tobytes() == naive.parse_decimal(text)[0].tobytes()


@pytest.mark.quick
@UNHURRIED
@given(SHORT_SOUP | st.binary(max_size=20))
@example(b"")
@example(b".5")
@example(b"12345678")
@example(b"1.123456789")
@example(b"1.2.3")
@example(b"-")
def test_other_texts_are_not_short_decimals(text: bytes) -> None:
    value, usual = read_short(text)
    if usual:
        expected, length = naive.parse_decimal(text)
        assert length == len(text)
        assert value.tobytes() == expected.tobytes()


@pytest.mark.quick
def test_short_decimals_are_not_read_beyond_the_buffer() -> None:
    for text in (b"", b"1", b"1.5", b"-1.5"):
        assert not short_decimal(np.frombuffer(text, np.uint8), 0, len(text))[1]


# -- JSON ------------------------------------------------------------------------------------------------

USUAL = st.from_regex(r"-?(0|[1-9][0-9]{0,7})(\.[0-9]{1,7})?", fullmatch=True)
WITH_EXPONENTS = st.from_regex(r"-?(0|[1-9][0-9]{0,9})(\.[0-9]{1,5})?([eE][+-]?[0-9]{1,3})?", fullmatch=True)
WHOLE = st.integers(-(2**65), 2**65).map(str)
JSON_SOUP = st.text("0159.eE+-:x", max_size=12)


@UNHURRIED
@given(USUAL | WITH_EXPONENTS | WHOLE | JSON_SOUP)
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
