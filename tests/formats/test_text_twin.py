"""The reader of text beside its reference implementation, in blocks of any size.

What exact mode reads is compared with the `vowpalwabbit` package, in tests/parity.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onlineauto.errors import ParseError
from onlineauto.features.block import Block
from onlineauto.formats.sources.source import unpacker_for
from tests.formats.odd_lines import KINDS, odd_text
from tests.formats.reading import SHAPES, text_reader
from tests.naive.lines import Reading, Settings, unpack
from tests.naive.text import read

pytestmark = pytest.mark.lane("sampled")

_KEPT = 100
"""Number of problems that a reader stores."""


def is_not_packed(text: bytes) -> bool:
    return unpacker_for(text) is None


def reading(text: bytes, how: Settings, block_bytes: int) -> tuple[Reading, bool]:
    """Return what a reader finds, and whether it stopped."""
    options: dict[str, Any] = vars(how) | {"block_bytes": block_bytes}
    reader, stopped = text_reader(text, **options), False
    blocks: list[Block] = []
    try:
        blocks.extend(reader)
    except ParseError:
        stopped = True
    kept = reader.diagnostics.kept
    assert reader.diagnostics.total >= len(kept)
    problems = [(problem.line, problem.column, problem.code) for problem in kept]
    return Reading(events=unpack(blocks), problems=problems), stopped


def check(text: bytes, how: Settings, *, block_bytes: int) -> None:
    """Compare a reader with the reference implementation; in exact mode, with itself in one block."""
    if how.exact:  # NaN is a value in exact mode, and not equal to itself; its text is
        assert repr(reading(text, how, block_bytes)) == repr(reading(text, how, 1 << 16))
        return
    expected = read(text, how)
    expected.problems = expected.problems[:_KEPT]
    assert repr(reading(text, how, block_bytes)) == repr((expected, False))


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=80, deadline=None)
@given(
    draw=st.randoms(use_true_random=False),
    lines=st.integers(0, 8),
    block_bytes=st.sampled_from([16, 64, 4096]),
    hash_all=st.booleans(),
    hash_seed=st.sampled_from([0, 0, 7, 2**32 - 1]),
)
def test_odd_lines(
    exact: bool, kind: str, draw: Random, lines: int, block_bytes: int, hash_all: bool, hash_seed: int
) -> None:
    how = Settings(**SHAPES[kind], exact=exact, hash_all=hash_all, hash_seed=hash_seed)
    check(odd_text(draw, kind, lines=lines), how, block_bytes=block_bytes)


@pytest.mark.parametrize("exact", [False, True])
@settings(max_examples=60, deadline=None)
@given(text=st.binary(max_size=200).filter(is_not_packed), kind=st.sampled_from(KINDS))
def test_any_bytes(exact: bool, text: bytes, kind: str) -> None:
    check(text, Settings(**SHAPES[kind], exact=exact), block_bytes=16)
