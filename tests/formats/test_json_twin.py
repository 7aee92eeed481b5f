"""The reader of JSON beside its naive twin: the same events, the same problems, in chunks of any size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onlineauto.errors import ParseError
from onlineauto.formats.json import JsonReader
from tests.formats.odd_json import JSON_KINDS, odd_json
from tests.naive.json_text import JsonSettings, read
from tests.naive.lines import Problem, Reading, unpack

if TYPE_CHECKING:
    from random import Random

    from onlineauto.features.block import Block

__all__ = ["same"]


def kernel_reading(text: bytes, how: JsonSettings, *, block_bytes: int) -> Reading:
    options: dict[str, Any] = vars(how) | {"block_bytes": block_bytes}
    reader = JsonReader(text, **options)
    blocks: list[Block] = []
    stopped = False
    try:
        blocks.extend(reader)
    except ParseError:
        stopped = True
    problems: list[Problem] = [(d.line, d.column, d.code) for d in reader.diagnostics.kept]
    assert reader.diagnostics.total >= len(problems)
    return Reading(events=unpack(blocks), problems=problems, stopped=stopped)


def same(text: bytes, how: JsonSettings, *, block_bytes: int) -> bool:
    # NaN is a value in exact mode, and not equal to itself; its text is
    expected = read(text, how)
    expected.problems = expected.problems[:100]
    return repr(kernel_reading(text, how, block_bytes=block_bytes)) == repr(expected)


@pytest.mark.parametrize("exact", [False, True])
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
def test_reads_as_its_twin_does(
    exact: bool,
    kind: str,
    draw: Random,
    lines: int,
    block_bytes: int,
    hash_all: bool,
    hash_seed: int,
    chain_hash: bool,
) -> None:
    how = JsonSettings(
        **JSON_KINDS[kind], exact=exact, hash_all=hash_all, hash_seed=hash_seed, chain_hash=chain_hash
    )
    assert same(odd_json(draw, kind, lines=lines), how, block_bytes=block_bytes)


@pytest.mark.parametrize("exact", [False, True])
@settings(max_examples=60, deadline=None)
@given(text=st.text('{}[]":,_a0\\ \n', max_size=60).map(str.encode), kind=st.sampled_from(sorted(JSON_KINDS)))
def test_reads_any_marks_as_its_twin_does(exact: bool, text: bytes, kind: str) -> None:
    assert same(text, JsonSettings(**JSON_KINDS[kind], exact=exact), block_bytes=16)
