"""Bytes of a text many at once: what one byte after the other says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from onlineauto.jit import kernel
from onlineauto.jit.words import below, equal, first_one, load1, load4, load8, ones, store8
from tests import bounds_checked

pytestmark = pytest.mark.lane("quick")

BLOCKS = st.binary(min_size=64, max_size=80)
UNHURRIED = settings(deadline=None)  # the first call compiles


@kernel
def loads(data: NDArray[np.uint8], i: int) -> tuple[int, int, int]:
    return load1(data, i), load4(data, i), load8(data, i)


@kernel
def compares(data: NDArray[np.uint8], i: int, byte: int) -> tuple[int, int]:
    return equal(data, i, byte), below(data, i, byte)


@kernel
def counts(word: np.uint64) -> tuple[int, int]:
    return first_one(word), ones(word)


@kernel
def stores(data: NDArray[np.uint8], i: int, word: np.uint64) -> None:
    store8(data, i, word)


def array(data: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(data, np.uint8).copy()


def bits(truths: list[bool]) -> int:
    return sum(1 << i for i, truth in enumerate(truths) if truth)


@UNHURRIED
@given(data=BLOCKS, i=st.integers(0, 16))
def test_words_are_little_endian(data: bytes, i: int) -> None:
    assert loads(array(data), i) == tuple(int.from_bytes(data[i : i + n], "little") for n in (1, 4, 8))


@UNHURRIED
@given(data=BLOCKS, byte=st.integers(0, 255))
def test_a_bit_for_each_byte(data: bytes, byte: int) -> None:
    i = len(data) - 64
    block = data[i:]
    expected = bits([each == byte for each in block]), bits([each < byte for each in block])
    assert compares(array(data), i, byte) == expected


@UNHURRIED
@given(word=st.integers(0, 2**64 - 1) | st.sampled_from([0, 1, 2**63]))
def test_bits_are_counted(word: int) -> None:
    lowest = (word & -word).bit_length() - 1 if word else 64
    assert counts(np.uint64(word)) == (lowest, word.bit_count())


@UNHURRIED
@given(word=st.integers(0, 2**64 - 1), i=st.integers(0, 8))
def test_a_word_is_written_where_it_belongs(word: int, i: int) -> None:
    data = np.zeros(16, np.uint8)
    stores(data, i, np.uint64(word))
    assert data.tobytes() == bytes(i) + word.to_bytes(8, "little") + bytes(8 - i)


BEYOND = """
import numpy as np
from tests.jit.test_words import compares, loads, stores
data = np.zeros(70, np.uint8)
loads(data, 62), compares(data, 6, 0), stores(data, 62, np.uint64(0))
try:
    {}
except IndexError:
    print("caught")
"""


@pytest.mark.parametrize(
    "call",
    [
        "loads(data, 63)",
        "loads(data, -1)",
        "compares(data, 7, 0)",
        "compares(data, -1, 0)",
        "stores(data, 63, np.uint64(0))",
    ],
)
def test_bytes_beyond_the_end_are_an_error(call: str) -> None:
    done = bounds_checked.run("-c", BEYOND.format(call))
    assert done.stdout == "caught\n", done.stderr
