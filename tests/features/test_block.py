"""Blocks: columns are views of the records, and columns make a block."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlineauto.errors import InputError
from onlineauto.features.block import Block
from onlineauto.features.event import events as events_of
from onlineauto.workspace.workspace import Workspace
from tests.formats.reading import text_reader
from tests.naive.blocks import Event, Line, make_block
from tests.naive.lines import unpack
from tests.property.snapshot import model_of, predictions_of
from tests.property.strategies import bandit_events, simple_events

pytestmark = pytest.mark.lane("sampled")

COLUMNS = (
    "line_number",
    "line_start",
    "shared",
    "label",
    "weight",
    "initial",
    "cost_start",
    "cost_action",
    "cost",
    "probability",
    "tag_start",
    "span_namespace",
    "span_start",
    "hash",
    "value",
)
TAGGED = b"shared s|a x\n0:-1:0.5 t1|b y:2\n'two|b z |a\n\n1:0:0.25 |c q\n\n|b y |b z |\n\n"


def again(block: Block) -> Block:
    """Return a block made of the columns of a block."""
    columns = {name: getattr(block, name) for name in COLUMNS}
    return Block.of_columns(
        event_start=block.event_start, tag=block.tag, namespaces=block.namespaces, **columns
    )


def read_block(text: bytes) -> Block:
    (block,) = text_reader(text, label="cb", multiline=True)
    return block


@given(events=bandit_events() | simple_events())
def test_a_block_made_of_its_columns_is_equal(events: list[Event]) -> None:
    block = make_block(events)
    other = again(block)
    for name in COLUMNS:
        one, two = getattr(block, name), getattr(other, name)
        assert one.dtype == two.dtype
        assert one.tobytes() == two.tobytes(), name
    assert unpack([other]) == unpack([block])
    assert (len(other), other.n_lines, other.n_features) == (len(block), block.n_lines, block.n_features)


def test_a_read_block_made_of_its_columns_is_equal() -> None:
    block = read_block(TAGGED)
    other = again(block)
    assert unpack([other]) == unpack([block])
    assert [other.tag_of(line) for line in range(other.n_lines)] == ["s", "t1", "two", "", ""]


@given(events=bandit_events())
def test_columns_are_those_of_the_events(events: list[Event]) -> None:
    lines: list[Line] = [line for event in events for line in event]
    block = make_block(events)
    costs = [cost for line in lines for cost in line.costs]
    features = [feature for line in lines for _, each in line.spans for feature in each]
    assert len(block) == len(events)
    assert np.diff(block.event_start).tolist() == [len(event) for event in events]
    assert block.shared.tolist() == [line.shared for line in lines]
    assert list(zip(block.cost_action, block.cost, block.probability, strict=True)) == costs
    assert block.hash.tolist() == [hash_ for hash_, _ in features]
    assert block.value.tolist() == [value for _, value in features]


def test_columns_are_views() -> None:
    block = read_block(TAGGED)
    for name in COLUMNS:
        assert getattr(block, name).base is not None
    block.value[0] = 7
    block.cost[0] = -3
    (event, *_) = events_of(block)
    assert event.lines[0].features["a"][0][1] == 7
    assert event.lines[1].costs[0][1] == -3


@given(events=bandit_events(max_size=6), data=st.data())
def test_the_head_of_a_block_is_its_first_events(events: list[Event], data: st.DataObject) -> None:
    n = data.draw(st.integers(0, len(events)))
    head, alone = make_block(events).head(n), make_block(events[:n])
    assert len(head) == n
    assert unpack([head]) == unpack([alone])
    assert events_of(head) == events_of(alone)


@pytest.mark.parametrize("exact", [True, False], ids=["exact", "native"])
@given(events=bandit_events(max_size=6), data=st.data())
def test_learning_the_head_learns_its_events(exact: bool, events: list[Event], data: st.DataObject) -> None:
    n = data.draw(st.integers(1, len(events)))
    one, other = (
        Workspace(cb_explore_adf=True, quadratic="::", vw_exact=exact, bit_precision=8) for _ in range(2)
    )
    got, expected = one.learn_block(make_block(events).head(n)), other.learn_block(make_block(events[:n]))
    assert predictions_of([got]) == predictions_of([expected])
    assert model_of(one) == model_of(other)


# -- arrays as others make them ------------------------------------------------------------------------

ARRAYS = ("event_start", "lines", "costs", "spans", "features")


def strided(array: Any) -> Any:
    spaced = np.zeros(2 * len(array), array.dtype)
    spaced[::2] = array
    return spaced[::2]


def unaligned(array: Any) -> Any:
    moved = np.zeros(array.nbytes + 1, np.uint8)[1:].view(array.dtype)
    moved[:] = array
    return moved


def read_only(array: Any) -> Any:
    return np.frombuffer(array.tobytes(), array.dtype)


def subclassed(array: Any) -> Any:
    return array.view(type("Sub", (np.ndarray,), {}))


def unpacked(array: Any) -> Any:
    """Return the same records, without padding or with smaller items."""
    fields = array.dtype.names
    packed = [(name, array.dtype[name]) for name in fields or ()]
    return array.astype(np.dtype(packed) if fields else np.int32)


@pytest.mark.parametrize("odd", [strided, unaligned, read_only, subclassed])
def test_arrays_have_the_types_of_the_kernels(odd: Callable[[Any], Any]) -> None:
    block = read_block(TAGGED)
    other = replace(block, **{name: odd(getattr(block, name)) for name in ARRAYS})
    for name in ARRAYS:
        actual, theirs = getattr(other, name), getattr(block, name)
        assert type(actual) is np.ndarray
        assert (actual.dtype, actual.flags.carray) == (theirs.dtype, True)
        assert repr(actual.tolist()) == repr(theirs.tolist())  # unused numbers may be NaN


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize(
    "wrong",
    [lambda array: array.view(np.uint8), lambda array: array[None], lambda array: array.dtype.itemsize],
    ids=["dtype", "axes", "number"],
)
def test_an_array_of_another_kind_is_rejected(name: str, wrong: Callable[[Any], Any]) -> None:
    block = read_block(TAGGED)
    with pytest.raises(InputError, match=f"a block cannot be made: {name} has the type"):
        replace(block, **{name: wrong(getattr(block, name))})


@pytest.mark.parametrize("name", ["event_start", "lines", "spans"])
def test_an_array_of_smaller_items_is_rejected(name: str) -> None:
    block = read_block(TAGGED)
    with pytest.raises(InputError, match=f"a block cannot be made: {name} has the type"):
        replace(block, **{name: unpacked(getattr(block, name))})


@pytest.mark.parametrize("name", ["event_start", "line_start", "cost_start", "tag_start", "span_start"])
@pytest.mark.parametrize(("at", "change"), [(0, -1), (-1, 99), (-2, 99)], ids=["before", "beyond", "back"])
def test_offsets_out_of_bounds_are_rejected(name: str, at: int, change: int) -> None:
    block = read_block(TAGGED)
    columns = {each: getattr(block, each).copy() for each in (*COLUMNS, "event_start")}
    columns[name][at] += change
    with pytest.raises(InputError, match=f"a block cannot be made: {name} must ascend"):
        Block.of_columns(tag=block.tag, namespaces=block.namespaces, **columns)


@pytest.mark.parametrize("number", [-1, 99])
def test_an_unknown_namespace_is_rejected(number: int) -> None:
    block = read_block(TAGGED)
    columns = {each: getattr(block, each).copy() for each in (*COLUMNS, "event_start")}
    columns["span_namespace"][0] = number
    with pytest.raises(InputError, match="a block cannot be made: span_namespace"):
        Block.of_columns(tag=block.tag, namespaces=block.namespaces, **columns)
