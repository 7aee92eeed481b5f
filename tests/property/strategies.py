"""Streams of events for property tests."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from tests.naive.blocks import Event, Line, Span

NAMES = (b"a", b"b", b"ab", b"az", b"c", b" ", b"0", "é".encode())
"""Names of namespaces; some share their first byte."""

VALUES = st.one_of(
    st.sampled_from([1.0, 1.0, 1.0, 0.5, -2.0]), st.floats(-100, 100, width=32).filter(lambda x: x != 0)
)
"""Values of features of an ordinary size."""

_HASHES = st.one_of(st.integers(0, 20), st.integers(0, 2**32 - 1))
_LABELS = st.one_of(st.sampled_from([-1.0, 0.0, 1.0]), st.floats(-5, 5, width=32))
_COSTS = st.one_of(st.sampled_from([0.0, -1.0, 1.0]), st.floats(-3, 3, width=32))
_PROBABILITIES = st.sampled_from([float(np.float32(p)) for p in (0.05, 0.1, 0.25, 0.5, 0.7, 1)])


def spans(
    names: tuple[bytes, ...] = NAMES, values: st.SearchStrategy[float] = VALUES
) -> st.SearchStrategy[tuple[Span, ...]]:
    features = st.lists(st.tuples(_HASHES, values), max_size=3).map(tuple)
    return st.lists(st.tuples(st.sampled_from(names), features), max_size=4).map(tuple)


@st.composite
def simple_events(
    draw: st.DrawFn,
    *,
    names: tuple[bytes, ...] = NAMES,
    labels: st.SearchStrategy[float] = _LABELS,
    values: st.SearchStrategy[float] = VALUES,
    weights: st.SearchStrategy[float] | None = None,
    max_size: int = 6,
) -> list[Event]:
    """Events of one labelled or unlabelled line."""
    line = st.builds(
        Line,
        spans=spans(names, values),
        label=st.one_of(labels, labels, labels, st.none()),
        weight=st.sampled_from([1.0, 1.0, 0.0, 0.5, 7.0]) if weights is None else weights,
        initial=st.sampled_from([0.0, 0.0, 0.25]),
    )
    return [(each,) for each in draw(st.lists(line, min_size=1, max_size=max_size))]


@st.composite
def bandit_events(
    draw: st.DrawFn,
    *,
    names: tuple[bytes, ...] = NAMES,
    costs: st.SearchStrategy[float] = _COSTS,
    values: st.SearchStrategy[float] = VALUES,
    probabilities: st.SearchStrategy[float] = _PROBABILITIES,
    max_size: int = 4,
) -> list[Event]:
    """Events of several lines, of which at most one has a cost."""
    events = []
    for _ in range(draw(st.integers(1, max_size))):
        actions = draw(st.lists(spans(names, values), min_size=1, max_size=4))
        logged = draw(st.integers(-1, len(actions) - 1))
        lines = [
            Line(spans=each, costs=((0, draw(costs), draw(probabilities)),) if number == logged else ())
            for number, each in enumerate(actions)
        ]
        if draw(st.booleans()):
            lines.insert(0, Line(spans=draw(spans(names, values)), shared=True))
        events.append(tuple(lines))
    return events


@st.composite
def numbered_events(
    draw: st.DrawFn,
    *,
    n_actions: int,
    names: tuple[bytes, ...] = NAMES,
    costs: st.SearchStrategy[float] = _COSTS,
    values: st.SearchStrategy[float] = VALUES,
    max_size: int = 4,
) -> list[Event]:
    """Events of one line, as ``--cb N`` reads them."""
    cost = st.tuples(st.integers(1, n_actions), st.one_of(costs, costs, st.none()), _PROBABILITIES)
    line = st.builds(Line, spans=spans(names, values), costs=st.lists(cost, max_size=2).map(tuple))
    return [(each,) for each in draw(st.lists(line, min_size=1, max_size=max_size))]
