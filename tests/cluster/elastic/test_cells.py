"""The cells that events need are those of the slow twin; a feed cuts streams however they come."""

from __future__ import annotations

import functools
import io
import operator
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onlineauto import Workspace
from onlineauto.cluster.elastic.learning.feed import TickFeed
from onlineauto.cluster.elastic.learning.model_work import ModelWork
from onlineauto.features.namespaces import Namespaces
from tests.naive.blocks import make_block
from tests.naive.features import Featurizer
from tests.property.strategies import bandit_events

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.naive.blocks import Event

OPTIONS: list[dict[str, Any]] = [
    {"bit_precision": 10},
    {"bit_precision": 6, "quadratic": ["::"]},
    {"bit_precision": 12, "cubic": [":::"], "ignore_linear": ["a"], "noconstant": True},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@given(events=bandit_events())
@settings(max_examples=40)
def test_cells_are_those_of_the_twin(options: dict[str, Any], events: list[Event]) -> None:
    scratch = Workspace(cb_adf=True, **options)
    work = ModelWork(scratch, TickFeed(b"", parts=1, part_events=1, multiline=True), 5)
    twin = Featurizer(
        cells=len(scratch.weights),
        exact=False,
        quadratic=options.get("quadratic", ()),
        cubic=options.get("cubic", ()),
        ignore_linear=tuple(name.encode() for name in options.get("ignore_linear", ())),
        noconstant=options.get("noconstant", False),
    )
    expected: set[int] = set()
    for event in events:
        twin.see(event)
    for event in events:
        shared = event[0] if event and event[0].shared else None
        for line in event[1:] if shared else event:
            expected |= {cell for cell, _ in twin.action(line, shared).features}
    found = work._cells_of([make_block(events, Namespaces())])
    assert sorted(found.tolist()) == sorted(expected)


class Trickle(io.RawIOBase):
    """A file that gives a few bytes at a time."""

    def __init__(self, content: bytes, sizes: Sequence[int]) -> None:
        self._content, self._sizes, self._turn = content, sizes, 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        n = self._sizes[self._turn % len(self._sizes)]
        self._turn += 1
        taken, self._content = self._content[:n], self._content[n:]
        return taken


@given(
    events=st.lists(
        st.sampled_from([b"shared |a\n0:1:1 |b\n\n", b"|a\n|b\n\n\n", b"|c\r\n\r\n", b"|d\n \n"])
    ),
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=5),
    parts=st.integers(1, 4),
    part_events=st.integers(1, 3),
    warm_up=st.integers(0, 4),
)
def test_a_feed_cuts_the_same_parts(
    events: list[bytes], sizes: list[int], parts: int, part_events: int, warm_up: int
) -> None:
    text = b"".join(events)
    how: dict[str, Any] = {"parts": parts, "part_events": part_events, "warm_up": warm_up, "multiline": True}
    whole, trickling = TickFeed(text, **how), TickFeed(Trickle(text, sizes), **how)  # type: ignore[arg-type]
    found: list[bytes] = []
    tick = 0
    while (cut := whole.parts_of(tick, 0, 1)) is not None:
        assert trickling.parts_of(tick, 0, 1) == cut
        single = tick < -(-warm_up // part_events)
        shares = [whole.parts_of(tick, rank, 3) or [] for rank in range(3)]
        assert functools.reduce(operator.iadd, shares, []) == cut
        assert len(cut) <= (1 if single else parts)
        found += cut
        tick += 1
    assert trickling.parts_of(tick, 0, 1) is None
    assert b"".join(found) == text
    expected = [b"".join(events[i : i + part_events]) for i in range(0, len(events), part_events)]
    assert found == expected
    assert whole.count() == len(events)
