"""Products of full names in exact mode: which there are, against a listing of all tuples."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from onlineauto.features.extents import compile_extents
from onlineauto.features.interactions import Product, parse_full_names
from tests.naive.interactions import compiled_extents

POOL = ("page", "user", "up", "x", ":")
PRODUCTS = st.lists(
    st.lists(st.sampled_from(POOL), min_size=2, max_size=3).map("|".join).map(parse_full_names), max_size=3
)
HASHES = st.integers(0, 400)
"""Wildcards leave out names by their hash, so that both kinds should come."""


@st.composite
def seen(draw: st.DrawFn) -> dict[bytes, tuple[int, int]]:
    names = draw(st.lists(st.sampled_from([b"page", b"user", b"up", b"x"]), unique=True))
    hashes = draw(st.lists(HASHES, min_size=len(names), max_size=len(names), unique=True))
    return {
        name: (3 * number + 1, hash_) for number, (name, hash_) in enumerate(zip(names, hashes, strict=True))
    }


@given(PRODUCTS, seen(), st.booleans())
def test_compile(products: list[Product], names: dict[bytes, tuple[int, int]], keep: bool) -> None:
    got = compile_extents(products, names, keep_duplicates=keep)
    expected = compiled_extents(products, {name: h for name, (_, h) in names.items()}, keep_duplicates=keep)
    assert got == [tuple(names[name][0] for name in each) for each in expected]


def test_names_that_were_never_seen_are_left_out() -> None:
    products = [parse_full_names("user|page"), parse_full_names("user|nobody")]
    names = {b"user": (0, 1000), b"page": (1, 7)}
    assert compile_extents(products, names, keep_duplicates=False) == [(1, 0)]


def test_wildcards_leave_out_names_with_a_small_hash() -> None:
    names = {b"user": (0, 1000), b"page": (1, 7)}
    assert compile_extents([parse_full_names(":|:")], names, keep_duplicates=False) == [(0, 0)]
