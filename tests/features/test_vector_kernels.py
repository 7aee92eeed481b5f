"""Vectors: a namespace of a line with at least 16 features whose hashes are consecutive."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from onlineauto.features.records import LEAST_VECTOR
from onlineauto.features.vector_kernels import is_vector
from tests.naive.blocks import Line, make_block

pytestmark = pytest.mark.lane("sampled")


def found(hashes: list[int]) -> bool:
    """Return whether a namespace with these hashes, between two others, is a vector."""
    spans = ((b"a", ((5, 1.0),)), (b"v", tuple((each, 0.5) for each in hashes)), (b"z", ((6, 1.0),)))
    block = make_block([(Line(spans=spans),)])
    begin, end = block.span_start[1:3].tolist()
    return bool(is_vector(block.features, begin, end))


@settings(deadline=None, max_examples=200)
@given(
    first=st.sampled_from([0, 7, 2**31, 2**32 - 5]),
    n=st.integers(1, 40),
    changed=st.none() | st.tuples(st.integers(0, 39), st.integers(0, 2**32 - 1)),
)
@example(first=2**32 - 5, n=16, changed=None)
@example(first=7, n=15, changed=None)
@example(first=7, n=17, changed=(8, 9))
def test_consecutive_hashes_are_a_vector(first: int, n: int, changed: tuple[int, int] | None) -> None:
    hashes = [(first + i) % 2**32 for i in range(n)]
    if changed is not None:
        hashes[changed[0] % n] = changed[1]
    consecutive = all(each == (hashes[0] + i) % 2**32 for i, each in enumerate(hashes))
    assert found(hashes) == (n >= LEAST_VECTOR and consecutive)
