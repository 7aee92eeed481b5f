"""The reader of JSON: well-formed lines against the standard library, and laws that hold for any bytes.

What exact mode reads is compared with the `vowpalwabbit` package, in tests/parity.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.formats.odd_json import JSON_KINDS, odd_json
from tests.formats.reading import json_reader
from tests.naive.json_events import JsonSettings, MalformedError, RejectedError, event_of
from tests.naive.lines import Line, Problem, unpack

pytestmark = pytest.mark.lane("sampled")


def read(text: bytes, how: JsonSettings, block_bytes: int) -> tuple[list[list[Line]], list[Problem]]:
    """Return the events of a text, and the problems."""
    options: dict[str, Any] = vars(how) | {"block_bytes": block_bytes}
    reader = json_reader(text, **options)
    events = unpack(reader)
    assert reader.diagnostics.total >= len(reader.diagnostics.kept)
    return events, [(problem.line, problem.column, problem.code) for problem in reader.diagnostics.kept]


def joined(event: list[Line]) -> list[Line]:
    """Join the spans of each namespace of each line."""
    for line in event:
        features: dict[bytes, list[Any]] = {}
        for name, span in line.spans:
            features.setdefault(name, []).extend(span)
        line.spans = sorted(features.items())
    return event


def check(text: bytes, how: JsonSettings, *, block_bytes: int) -> None:
    """Check each well-formed line of a text, of at most 60 lines, and that blocks make no difference."""
    events, problems = read(text, how, block_bytes)
    assert repr((events, problems)) == repr(read(text, how, 1 << 16))
    by_line = {event[0].number: event for event in events}
    assert len(by_line) == len(events)
    wrong = {line for line, _, _ in problems}
    lines = text.split(b"\n")
    for number, line in enumerate(lines, start=1):
        content = line.removeprefix(b"\xef\xbb\xbf").removesuffix(b"\r")
        if not content.strip(b" \t\r"):
            assert number not in by_line
            assert number not in wrong
            continue
        try:
            expected, unused = event_of(content, how, number)
        except MalformedError:
            # A member that is not read may be malformed, and bytes beside an escape may be no UTF-8.
            assert number in wrong or b'"_' in content or b"\\u" in content or how.log
        except RejectedError:
            assert number not in by_line, content
            assert number in wrong, content
        else:
            assert repr(joined(by_line.get(number, []))) == repr(joined(expected)), content
            assert (number in wrong) is unused, content


@pytest.mark.parametrize("kind", JSON_KINDS)
@settings(max_examples=80, deadline=None)
@given(
    draw=st.randoms(use_true_random=False),
    lines=st.integers(0, 6),
    block_bytes=st.sampled_from([16, 64, 4096]),
    hash_all=st.booleans(),
    hash_seed=st.sampled_from([0, 0, 7, 2**32 - 1]),
    chain_hash=st.booleans(),
)
def test_well_formed_lines_are_the_events_of_the_standard_library(
    kind: str, draw: Random, lines: int, block_bytes: int, hash_all: bool, hash_seed: int, chain_hash: bool
) -> None:
    how = JsonSettings(**JSON_KINDS[kind], hash_all=hash_all, hash_seed=hash_seed, chain_hash=chain_hash)
    check(odd_json(draw, kind, lines=lines), how, block_bytes=block_bytes)


@settings(max_examples=60, deadline=None)
@given(text=st.text('{}[]":,_a0\\ \n', max_size=60).map(str.encode), kind=st.sampled_from(sorted(JSON_KINDS)))
def test_punctuation_in_any_order_is_read_by_the_same_rules(text: bytes, kind: str) -> None:
    check(text, JsonSettings(**JSON_KINDS[kind]), block_bytes=16)


@pytest.mark.parametrize("kind", JSON_KINDS)
@settings(max_examples=40, deadline=None)
@given(draw=st.randoms(use_true_random=False), block_bytes=st.sampled_from([16, 64]))
def test_exact_mode_reads_the_same_in_blocks_of_any_size(kind: str, draw: Random, block_bytes: int) -> None:
    how, text = JsonSettings(**JSON_KINDS[kind], exact=True), odd_json(draw, kind, lines=6)
    assert repr(read(text, how, block_bytes)) == repr(read(text, how, 1 << 16))
