from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onlineauto.features.hash_kernels import NO_STEM, split_number
from tests.naive.hashing import hash_name

pytestmark = pytest.mark.lane("sampled")

FORM = re.compile(rb"([A-Za-z0-9]+)[_=](\d+)")
SEEDS = st.integers(0, 2**32 - 1)
STEMS = st.text("aZ09x", min_size=1, max_size=3).map(str.encode)


def read_back(name: bytes, seed: int) -> tuple[int, float]:
    stem, number = split_number(np.uint32(hash_name(name, seed)), np.uint32(seed))
    return int(stem), number


@settings(deadline=None, max_examples=300)
@given(stem=STEMS, mark=st.sampled_from([b"_", b"="]), number=st.integers(0, 999), seed=SEEDS)
def test_short_names_are_read_back(stem: bytes, mark: bytes, number: int, seed: int) -> None:
    name = stem + mark + b"%d" % number
    if len(name) <= 5:
        found, amount = read_back(name, seed)
        assert found == (1 << 56 | seed << 24 | int.from_bytes(stem, "little"))
        assert amount == number


@pytest.mark.parametrize(
    "name", [b"", b"7", b"12", b"a1", b"x_", b"_1", b"x_y", b"x-1", b"x_1a", b"x y_1", b"\xe9_1"]
)
def test_other_names_have_no_number(name: bytes) -> None:
    assert all(read_back(name, seed) == (int(NO_STEM), 0.0) for seed in (0, 1, 2**32 - 1))


def test_few_other_hashes_are_mistaken_for_names_with_a_number() -> None:
    draw = np.random.default_rng(0)
    hashes, seeds = draw.integers(0, 2**32, (2, 10_000), dtype=np.uint64)
    found = sum(
        split_number(np.uint32(h), np.uint32(s))[0] != NO_STEM for h, s in zip(hashes, seeds, strict=True)
    )
    assert found < 30
