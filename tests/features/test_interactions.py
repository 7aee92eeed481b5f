"""The products of an option, compared with a listing of all tuples and with known lists."""

from __future__ import annotations

from collections import Counter
from itertools import permutations
from math import comb

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from onlineauto.features.interactions import (
    WILDCARD,
    Product,
    Term,
    compile_products,
    parse_full_names,
    parse_letters,
    unique_products,
)
from tests.naive.interactions import compiled

pytestmark = pytest.mark.lane("quick")

NAMES = st.lists(st.sampled_from([b"a", b"b", b"c", b"ab", b"ad", b"za"]), unique=True, max_size=4)
LETTERS = st.text("abc:", min_size=2, max_size=4).map(parse_letters)
FULL = (
    st.lists(st.sampled_from(["ab", "ad", "bb", ":"]), min_size=2, max_size=3)
    .map("|".join)
    .map(parse_full_names)
)


def written(*products: str) -> list[Product]:
    return [parse_letters(text) for text in products]


def as_text(products: list[tuple[bytes, ...]]) -> list[str]:
    return [b"".join(names).decode() for names in products]


@given(st.lists(LETTERS, max_size=4), NAMES, st.booleans())
@example(written("ba", "ab"), [b"a", b"b"], False)
@example(written("bab", "::"), [b"a", b"b"], False)
def test_letters(products: list[Product], names: list[bytes], keep: bool) -> None:
    got = compile_products(products, names, keep_duplicates=keep)
    assert got == compiled(products, names, keep_duplicates=keep)


@given(st.lists(st.one_of(LETTERS, FULL), max_size=4), NAMES, st.booleans())
def test_letters_and_full_names(products: list[Product], names: list[bytes], keep: bool) -> None:
    got = compile_products(products, names, keep_duplicates=keep)
    assert got == compiled(products, names, keep_duplicates=keep)


@given(NAMES, st.integers(2, 4))
def test_wildcards_match_every_combination_once(names: list[bytes], order: int) -> None:
    listed = compile_products(written(":" * order), names)
    assert len(listed) == comb(len(names) + order - 1, order)
    assert len({frozenset(Counter(each).items()) for each in listed}) == len(listed)


@given(st.lists(LETTERS, max_size=4), NAMES)
def test_the_order_of_options_does_not_matter(products: list[Product], names: list[bytes]) -> None:
    """Of two products of the same names the first in alphabetical order remains."""
    listed = {tuple(compile_products(order, names)) for order in permutations(products)}
    assert len(listed) == 1


@given(st.lists(LETTERS, max_size=4), NAMES, st.sampled_from([b"ab", b"zz", b"d"]))
def test_another_namespace_only_adds_products(
    products: list[Product], names: list[bytes], more: bytes
) -> None:
    """A namespace that is known too early changes nothing for events without it."""
    before = compile_products(products, names)
    after = compile_products(products, {*names, more})
    assert [each for each in after if set(each) <= set(names)] == [
        each for each in before if set(each) <= set(names)
    ]


def test_numbers_of_pairs_and_triples() -> None:
    names = [b"a", b"b", b"c", b"d"]
    assert len(compile_products(written("::"), names)) == 10
    assert len(compile_products(written(":::"), names)) == 20
    assert len(compile_products(written("::"), names, keep_duplicates=True)) == 16
    assert len(compile_products(written(":::"), names, keep_duplicates=True)) == 64


def test_duplicates_are_removed_and_repeated_names_are_neighbours() -> None:
    letters = ["ba", "ab", "aba", "baa", "aa", "bb"]
    assert as_text(compile_products(written(*letters), [])) == ["aa", "ab", "bb", "aab"]
    assert as_text(compile_products(written(*letters), [], keep_duplicates=True)) == [
        "aa", "ab", "ba", "bb", "aab", "aab",
    ]  # fmt: skip


def test_the_written_order_is_kept() -> None:
    assert as_text(compile_products(written("ba"), [b"a", b"b"])) == ["ba"]
    assert as_text(compile_products(written("cba"), [])) == ["cba"]


def test_long_wildcards_descend_and_pairs_ascend() -> None:
    assert as_text(compile_products(written(":::"), [b"a", b"b", b"c"])) == [
        "aaa", "aab", "abb", "bbb", "aac", "cba", "bbc", "acc", "bcc", "ccc",
    ]  # fmt: skip
    assert as_text(compile_products(written("::"), [b"b", b"a"])) == ["aa", "ab", "bb"]


def test_a_letter_matches_every_name_that_begins_with_it() -> None:
    listed = compile_products(written("ab"), [b"age", b"area", b"b"])
    assert listed == [(b"age", b"b"), (b"area", b"b")]


def test_letter_beside_the_same_word_as_full_name() -> None:
    """The letter a and the full name ``a`` are different terms."""
    products = [parse_letters("ab"), parse_full_names("a|b")]
    assert compile_products(products, [b"a", b"ax", b"b"]) == [(b"a", b"b"), (b"ax", b"b")]


def test_letter_of_another_product_than_the_full_name() -> None:
    products = [parse_letters("ab"), parse_full_names("a|c")]
    assert (b"ax", b"b") in compile_products(products, [b"ax", b"b", b"c"])


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("ab", (Term(b"a"), Term(b"b"))),
        (":b", (WILDCARD, Term(b"b"))),
        (r"\x20b", (Term(b" "), Term(b"b"))),
        (r"\xe9\x3a", (Term(b"\xe9"), WILDCARD)),
        ("ив", (Term("и".encode()), Term("в".encode()))),
        (r"\xd0\xb8a", (Term("и".encode()), Term(b"a"))),
    ],
)
def test_letters_are_characters_or_bytes_that_belong_to_none(text: str, terms: Product) -> None:
    assert parse_letters(text) == terms


def test_letters_are_bytes_in_exact_mode() -> None:
    assert parse_letters("и:", bytewise=True) == (Term(b"\xd0"), Term(b"\xb8"), WILDCARD)


def test_full_names_are_sorted_and_a_lone_colon_is_a_wildcard() -> None:
    assert parse_full_names("b|a|:") == (WILDCARD, Term(b"a", full=True), Term(b"b", full=True))


def test_unique_products_in_another_order() -> None:
    backwards = {b"a": 1, b"b": 0}
    got = unique_products([(b"a", b"b", b"a")], keep_duplicates=False, key=backwards.__getitem__)
    assert got == [(b"b", b"a", b"a")]
