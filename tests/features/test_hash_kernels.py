from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from onlineauto.features.hash_kernels import (
    hash_name,
    is_hashed_as_it_is,
    murmur3,
    murmur3_of_few,
)
from tests.naive import hashing

pytestmark = pytest.mark.lane("sampled")

UNHURRIED = settings(deadline=None)  # the first call compiles
SEEDS = st.integers(0, 2**32 - 1)
NAMES = st.one_of(
    st.binary(max_size=40),
    st.text("0123456789", max_size=40).map(str.encode),
    st.text("05 \t\r\0\x1f!~é\xa0", max_size=12).map(str.encode),
)


def inside(name: bytes) -> tuple[NDArray[np.uint8], int, int]:
    """Return a name between bytes that would change its hash if they were read."""
    return np.frombuffer(b"7x" + name + b"3", np.uint8), 2, 2 + len(name)


@pytest.mark.parametrize(
    ("text", "seed", "expected"),
    [
        ("t", 0, 3397902157),
        ("te", 0, 3988319771),
        ("tes", 0, 196677210),
        ("test", 0, 3127628307),
        ("tested", 0, 2247989476),
        ("t", 25436347, 960607349),
    ],
)
def test_murmur3_has_the_published_values(text: str, seed: int, expected: int) -> None:
    assert murmur3(*inside(text.encode()), np.uint32(seed)) == expected
    assert hashing.murmur3(text.encode(), seed) == expected


@pytest.mark.parametrize("seed", [0, 7, 2**32 - 5])
@pytest.mark.parametrize(
    ("name", "number"),
    [(b"", 0), (b"12", 12), (b"0012", 12), (b" \t12\r\0", 12), (b" \x00 ", 0), (b"9" * 30, 10**30 - 1)],
)
def test_digits_are_their_value_plus_the_seed(name: bytes, number: int, seed: int) -> None:
    assert hash_name(*inside(name), np.uint32(seed), False) == (number + seed) % 2**32


@pytest.mark.parametrize("name", [b"1 2", b"12a", b"-1", b"1.5", b"\xa01", b"1\x80", b"+1", b"\xb2"])
def test_other_names_are_hashed_with_the_blanks_inside(name: bytes) -> None:
    assert hash_name(*inside(b" " + name + b"\t"), np.uint32(3), False) == hashing.murmur3(name, 3)


@pytest.mark.parametrize("name", [b"", b"12", b" x "])
def test_hash_all_hashes_every_byte(name: bytes) -> None:
    assert hash_name(*inside(name), np.uint32(3), True) == hashing.murmur3(name, 3)


@UNHURRIED
@given(st.binary(max_size=70), SEEDS)
def test_murmur3_equals_the_reference(data: bytes, seed: int) -> None:
    assert murmur3(*inside(data), np.uint32(seed)) == hashing.murmur3(data, seed)


@UNHURRIED
@given(NAMES, SEEDS, st.booleans())
@example(b"18446744073709551616", 5, False)
def test_hash_name_equals_the_reference(name: bytes, seed: int, hash_all: bool) -> None:
    assert hash_name(*inside(name), np.uint32(seed), hash_all) == hashing.hash_name(name, seed, hash_all)


@UNHURRIED
@given(name=NAMES.map(lambda name: name[:8]).filter(bool), seed=SEEDS, hash_all=st.booleans())
def test_few_bytes_in_a_word_are_hashed_as_a_name(name: bytes, seed: int, hash_all: bool) -> None:
    word, n = np.uint64(int.from_bytes(name, "little")), len(name)
    assert murmur3_of_few(word, n, np.uint32(seed)) == hashing.murmur3(name, seed)
    plain = hash_all or not (name.isdigit() or min(name[0], name[-1]) <= 0x20)
    assert is_hashed_as_it_is(word, n, hash_all) == plain
    if plain:
        assert hashing.hash_name(name, seed, hash_all) == hashing.murmur3(name, seed)
