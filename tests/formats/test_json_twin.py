"""The reader of JSON beside its naive twin: the same events, the same problems, in chunks of any size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.formats.odd_json import JSON_KINDS, odd_json
from tests.formats.reading import json_reader
from tests.formats.twins import is_read_as
from tests.naive.json_text import JsonSettings, read

if TYPE_CHECKING:
    from random import Random

pytestmark = pytest.mark.lane("sampled")

__all__ = ["same"]


def same(text: bytes, how: JsonSettings, *, block_bytes: int) -> bool:
    options: dict[str, Any] = vars(how) | {"block_bytes": block_bytes}
    return is_read_as(json_reader(text, **options), read(text, how))


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
        **JSON_KINDS[kind],
        exact=exact,
        hash_all=hash_all,
        hash_seed=hash_seed,
        chain_hash=chain_hash,
    )
    assert same(odd_json(draw, kind, lines=lines), how, block_bytes=block_bytes)


@pytest.mark.parametrize("exact", [False, True])
@settings(max_examples=60, deadline=None)
@given(text=st.text('{}[]":,_a0\\ \n', max_size=60).map(str.encode), kind=st.sampled_from(sorted(JSON_KINDS)))
def test_reads_any_marks_as_its_twin_does(exact: bool, text: bytes, kind: str) -> None:
    assert same(text, JsonSettings(**JSON_KINDS[kind], exact=exact), block_bytes=16)
