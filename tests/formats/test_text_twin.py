"""The reader beside its naive twin: the same events, the same problems, in chunks of any size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onlineauto.formats.sources.source import unpacker_for
from tests.formats.odd_lines import KINDS, odd_text
from tests.formats.reading import SHAPES, text_reader
from tests.formats.twins import is_read_as
from tests.naive.lines import Settings
from tests.naive.text import read

if TYPE_CHECKING:
    from random import Random

pytestmark = pytest.mark.lane("sampled")


def is_not_packed(text: bytes) -> bool:
    return unpacker_for(text) is None


def same(text: bytes, how: Settings, *, block_bytes: int) -> bool:
    options: dict[str, Any] = vars(how) | {"block_bytes": block_bytes}
    return is_read_as(text_reader(text, **options), read(text, how))


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
    exact: bool,
    kind: str,
    draw: Random,
    lines: int,
    block_bytes: int,
    hash_all: bool,
    hash_seed: int,
) -> None:
    how = Settings(**SHAPES[kind], exact=exact, hash_all=hash_all, hash_seed=hash_seed)
    assert same(odd_text(draw, kind, lines=lines), how, block_bytes=block_bytes)


@pytest.mark.parametrize("exact", [False, True])
@settings(max_examples=60, deadline=None)
@given(text=st.binary(max_size=200).filter(is_not_packed), kind=st.sampled_from(KINDS))
def test_reads_any_bytes_as_its_twin_does(exact: bool, text: bytes, kind: str) -> None:
    how = Settings(**SHAPES[kind], exact=exact)
    assert same(text, how, block_bytes=16)
