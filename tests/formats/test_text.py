"""Events of well-formed text."""

from __future__ import annotations

import numpy as np
import pytest

from onlineauto.features.block import UNLABELLED
from tests.formats.reading import SHAPES, events, only_line, strings_of, text_reader
from tests.naive.hashing import hash_name, murmur3
from tests.naive.lines import unpack

pytestmark = pytest.mark.lane("quick")

BOTH = pytest.mark.parametrize("exact", [False, True])


def hashes(name: bytes, *features: bytes, seed: int = 0) -> list[int]:
    return [hash_name(feature, hash_name(name, seed)) for feature in features]


@BOTH
def test_label_weight_initial_and_tag(exact: bool) -> None:
    line = only_line(b"-1.5 2 0.25 'id-7 |a x\n", exact=exact)
    assert (line.label, line.weight, line.initial, line.tag) == (-1.5, 2.0, 0.25, b"id-7")


@BOTH
@pytest.mark.parametrize(
    ("head", "label", "tag"),
    [
        (b"1 ", 1.0, b""),
        (b"1 tag", 1.0, b"tag"),
        (b"1 'tag", 1.0, b"tag"),
        (b"1 'tag ", 1.0, b"tag"),
        (b"1 '", 1.0, b""),
        (b"1 ''", 1.0, b"'"),
        (b"tag", float(UNLABELLED), b"tag"),
        (b"'1 ", float(UNLABELLED), b"1"),
        (b"", float(UNLABELLED), b""),
        ("1 é".encode(), 1.0, "é".encode()),
    ],
)
def test_a_tag_touches_the_bar_or_begins_with_a_quote(
    exact: bool, head: bytes, label: float, tag: bytes
) -> None:
    line = only_line(head + b"|a x", exact=exact)
    assert (line.label, line.tag) == (label, tag)


@BOTH
def test_features_keep_their_order_and_spans_their_namespaces(exact: bool) -> None:
    line = only_line(b"1 |b x y:2 |a z |b:0.5 x:3 |c\n", exact=exact)
    hb, ha = hashes(b"b", b"x", b"y"), hashes(b"a", b"z")
    assert line.spans == [
        (b"b", [(hb[0], 1.0), (hb[1], 2.0)]),
        (b"a", [(ha[0], 1.0)]),
        (b"b", [(hb[0], 1.5)]),
    ]


@BOTH
def test_the_default_namespace_is_a_blank_and_hashes_to_zero(exact: bool) -> None:
    line = only_line(b"1 | x |", exact=exact)
    assert line.spans == [(b" ", [(hash_name(b"x", 0), 1.0)])]


@BOTH
def test_hash_seed_reaches_every_namespace(exact: bool) -> None:
    line = only_line(b"1 | x |a y", exact=exact, hash_seed=7)
    assert line.spans == [
        (b" ", [(hash_name(b"x", murmur3(b"", 7)), 1.0)]),
        (b"a", [(hashes(b"a", b"y", seed=7)[0], 1.0)]),
    ]


@BOTH
def test_numbers_as_names_are_their_value_unless_all_is_hashed(exact: bool) -> None:
    line = only_line(b"1 |12 5 0005", exact=exact)
    assert line.spans == [(b"12", [(17, 1.0), (17, 1.0)])]
    line = only_line(b"1 |12 5 0005", exact=exact, hash_all=True)
    seed = murmur3(b"12", 0)
    assert line.spans == [(b"12", [(murmur3(b"5", seed), 1.0), (murmur3(b"0005", seed), 1.0)])]


@BOTH
def test_nameless_features_are_numbered_from_each_bar_and_zeros_count(exact: bool) -> None:
    line = only_line(b"1 |a :3 :0 :4 |a :5", exact=exact)
    a = hash_name(b"a", 0)
    assert line.spans == [(b"a", [(a, 3.0), (a + 2, 4.0)]), (b"a", [(a, 5.0)])]


@BOTH
def test_a_string_value_is_hashed_into_the_name(exact: bool) -> None:
    line = only_line(b"1 |a color:red :blue", exact=exact)
    a = hash_name(b"a", 0)
    red, blue = hash_name(b"red", hash_name(b"color", a)), hash_name(b"blue", hash_name(b"", a))
    assert line.spans == [(b"a", [(red, 1.0), (blue, 1.0)])]


def test_the_weight_of_a_namespace_multiplies_strings_in_native_mode_only() -> None:
    for exact, value in ((False, 2.0), (True, 1.0)):
        ((_, ((_, found),)),) = only_line(b"1 |a:2 color:red", exact=exact).spans
        assert found == value


@BOTH
def test_zero_values_are_dropped_and_empty_spans_with_them(exact: bool) -> None:
    line = only_line(b"1 |a x:0 |b y |c:0 z |", exact=exact)
    assert strings_of(line) == ["b"]


@BOTH
def test_empty_lines_end_events_of_several_lines(exact: bool) -> None:
    text = b"\n\nshared |u a\n0:1:0.5 |a x\n|a y\n\n\n|a x\n1:-1:0.25 |a y"
    first, second = events(text, "cb_adf", exact=exact)
    assert [line.shared for line in first] == [True, False, False]
    assert [line.costs for line in first] == [[], [(0, 1.0, 0.5)], []]
    assert [line.costs for line in second] == [[], [(1, -1.0, 0.25)]]
    assert [line.number for line in second] == [8, 9]


@BOTH
def test_a_line_of_cb_may_have_several_costs(exact: bool) -> None:
    reader = text_reader(b"1:2:0.5 3 2:-1:0.25 |a x", **SHAPES["cb"], exact=exact)
    ((line,),) = unpack(reader)
    said = [str(each) for each in reader.diagnostics.kept]
    message = "action '3' has no cost and no probability, and does not limit the choice; label not used"
    assert said == ([] if exact else [f"<bytes>:1:9: {message}"])
    assert line.costs == [(1, 2.0, 0.5), (3, float(UNLABELLED), 0.0), (2, -1.0, 0.25)]


@BOTH
def test_carriage_returns_byte_order_mark_and_missing_newline(exact: bool) -> None:
    first, second = events(b"\xef\xbb\xbf1 |a x\r\n\r\n0 |a y:2\r", exact=exact)
    assert (first[0].label, second[0].label) == (1.0, 0.0)
    assert second[0].spans == [(b"a", [(hashes(b"a", b"y")[0], 2.0)])]


def test_native_mode_accepts_blanks_and_tabs_anywhere() -> None:
    line = only_line(b" \t1\t2   0.5 \t 'tag \t|a\tx  y:2 \t|b \tz\t")
    assert (line.label, line.weight, line.initial, line.tag) == (1.0, 2.0, 0.5, b"tag")
    assert strings_of(line) == ["a", "b"]


def test_a_tab_before_the_bar_loses_the_label_in_exact_mode_only() -> None:
    assert only_line(b"1\t|a x").label == 1.0
    assert only_line(b"1\t|a x", exact=True).label == UNLABELLED


def test_a_line_of_blanks_is_an_action_in_exact_mode_only() -> None:
    text = b"|a x\n \n|a y\n"
    assert [len(event) for event in events(text, "cb_adf")] == [1, 1]
    assert [len(event) for event in events(text, "cb_adf", exact=True)] == [3]


def test_exact_mode_rounds_numbers_like_vw() -> None:
    for exact, value in ((False, np.float32(2.993)), (True, np.float32(2.9929998))):
        ((_, ((_, found),)),) = only_line(b"1 |a x:2.993", exact=exact).spans
        assert found == value


@BOTH
def test_names_of_all_namespaces_are_known_in_the_order_of_appearance(exact: bool) -> None:
    reader = text_reader(b"1 |b x | y |a z |b w\n1 |\xc3\xa9 x |a y\n", multiline=False, exact=exact)
    assert sum(map(len, reader)) == 2
    assert reader.namespaces.names == [b"b", b" ", b"a", b"\xc3\xa9"]
    assert reader.namespaces.hashes == [hash_name(b"b", 0), 0, hash_name(b"a", 0), hash_name(b"\xc3\xa9", 0)]


@BOTH
def test_names_with_the_same_first_letter_are_different(exact: bool) -> None:
    assert strings_of(only_line(b"1 |User x |Uptime y", exact=exact)) == ["User", "Uptime"]


def test_commands_are_tags_in_native_mode() -> None:
    assert only_line(b"1 'save_model| ").tag == b"save_model"


@BOTH
@pytest.mark.parametrize("text", [b"", b"\n", b"\n\n\r\n", b"\xef\xbb\xbf\n"])
@pytest.mark.parametrize("kind", ["simple", "cb", "cb_adf"])
def test_empty_texts_give_no_blocks_and_no_problems(exact: bool, text: bytes, kind: str) -> None:
    assert events(text, kind, exact=exact) == []


def test_a_reader_is_read_once() -> None:
    reader = text_reader(b"1 |a x\n", multiline=False)
    assert [len(block) for block in reader] == [1]
    assert list(reader) == []
