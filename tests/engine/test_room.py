"""The bound on the features of the largest action of a block."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onlineauto import Block, Workspace, read
from onlineauto.engine.loop.size_kernels import EventSize
from onlineauto.engine.loop.wide_events import _NO_SIZES, _count, _most_features
from onlineauto.features.records import make_stream

pytestmark = pytest.mark.lane("quick")

LINES = st.dictionaries(st.sampled_from("abcd"), st.integers(1, 5), max_size=4)
"""How many features a line has in each of its namespaces."""


def line(sizes: dict[str, int], before: str = "") -> str:
    spans = (f" |{name} {' '.join(f'x{i}' for i in range(size))}" for name, size in sizes.items())
    return before + ("".join(spans) or " |")


def sizes_of(text: str, options: dict[str, Any]) -> tuple[int, int]:
    """Return the bound for a block, and what the largest action has."""
    reading = {name: options[name] for name in ("cb_explore_adf",) if name in options}
    blocks: list[Block] = list(read(text.encode(), **reading))
    workspace = Workspace(bit_precision=8, **options)
    workspace.learn_block(blocks[0])
    context = workspace._runner._memory._context
    assert context is not None
    stream = make_stream(blocks[0], np.zeros(len(blocks[0]), bool))
    counts = np.zeros((len(blocks[0]), 4))
    _count(context, stream, counts, 0, _NO_SIZES)
    exact = counts[:, [EventSize.LARGEST, EventSize.OWN, EventSize.SCREENED]].sum(axis=1).max()
    return _most_features(context.value, stream), int(exact)


@given(st.lists(st.tuples(LINES, st.lists(LINES, min_size=1, max_size=3)), min_size=1, max_size=4))
@settings(max_examples=30, deadline=None)
@pytest.mark.parametrize(
    "options",
    [{"interactions": ["::", ":::"]}, {"interactions": ["aab"], "noconstant": True}, {"automl": 3}],
    ids=str,
)
def test_no_action_has_more_features_than_the_bound(
    options: dict[str, Any], events: list[tuple[dict[str, int], list[dict[str, int]]]]
) -> None:
    text = ""
    for shared, actions in events:
        label = "0:1:0.5 "
        text += "\n".join([line(shared, "shared"), line(actions[0], label), *map(line, actions[1:])]) + "\n\n"
    most, exact = sizes_of(text, {"cb_explore_adf": True, **options})
    assert exact <= most


def test_bound_counts_each_namespace_separately() -> None:
    """Two namespaces of 10 and 20 features, and the constant, have 200 pairs."""
    text = f"1 {line({'a': 10, 'b': 20})}\n"
    most, exact = sizes_of(text, {"interactions": ["ab"]})
    assert exact == most == 10 + 20 + 1 + 200
