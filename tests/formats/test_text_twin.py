"""The reader beside its naive twin: the same events, the same problems, in chunks of any size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onlineauto.errors import ParseError
from onlineauto.formats.text import TextReader
from onlineauto.formats.unpacking import unpacker_for
from tests.formats.odd_lines import KINDS, odd_text
from tests.naive.lines import Problem, Reading, Settings, unpack
from tests.naive.text import read

if TYPE_CHECKING:
    from random import Random

    from onlineauto.features.block import Block


def kernel_reading(text: bytes, how: Settings, *, block_bytes: int) -> Reading:
    label: Literal["simple", "cb"] = "simple" if how.label == "simple" else "cb"
    reader = TextReader(
        text,
        label=label,
        multiline=how.multiline,
        exact=how.exact,
        hash_all=how.hash_all,
        hash_seed=how.hash_seed,
        block_bytes=block_bytes,
    )
    blocks: list[Block] = []
    stopped = False
    try:
        blocks.extend(reader)
    except ParseError:
        stopped = True
    problems: list[Problem] = [(d.line, d.column, d.code) for d in reader.diagnostics.kept]
    assert reader.diagnostics.total >= len(problems)
    return Reading(events=unpack(blocks), problems=problems, stopped=stopped)


def is_not_packed(text: bytes) -> bool:
    return unpacker_for(text) is None


def same(text: bytes, how: Settings, *, block_bytes: int) -> bool:
    # NaN is a value in exact mode, and not equal to itself; its text is
    expected = read(text, how)
    expected.problems = expected.problems[:100]
    return repr(kernel_reading(text, how, block_bytes=block_bytes)) == repr(expected)


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
def test_reads_as_its_twin_does(
    exact: bool, kind: str, draw: Random, lines: int, block_bytes: int, hash_all: bool, hash_seed: int
) -> None:
    label = "simple" if kind == "simple" else "cb"
    how = Settings(
        label=label, multiline=kind == "cb_adf", exact=exact, hash_all=hash_all, hash_seed=hash_seed
    )
    assert same(odd_text(draw, kind, lines=lines), how, block_bytes=block_bytes)


@pytest.mark.parametrize("exact", [False, True])
@settings(max_examples=60, deadline=None)
@given(text=st.binary(max_size=200).filter(is_not_packed), kind=st.sampled_from(KINDS))
def test_reads_any_bytes_as_its_twin_does(exact: bool, text: bytes, kind: str) -> None:
    label = "simple" if kind == "simple" else "cb"
    how = Settings(label=label, multiline=kind == "cb_adf", exact=exact)
    assert same(text, how, block_bytes=16)
